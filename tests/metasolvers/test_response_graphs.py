"""Both limits of alpha-rank against golden numbers, strong finite selection, 60 digits and networkx."""

import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers import alpha_limit, alpha_rank, fixation_edges, response_graph, sink_components, sink_distributions
from metasolvers.markov import Graph
from metasolvers.response_graphs import limit_stationarity, response_stationarity, responses
from metasolvers.stochastic_stability import Rates, limit_distribution
from tests.golden_cases import numbers, select
from tests.metasolvers.test_alpharank import exact, jordan, majority, normal, potential

PERTURBED = [
    case
    for case in select("alpha_rank_multi", "alpha_rank_published", check="ar_multi")
    if case.values[0]["input"].get("mode") == "inf"
]
WITH_SINKS = [case for case in select("alpha_rank_multi") if "sink_sccs" in case.values[0]["expected"]]
COORDINATION = np.stack([np.diag([2.0, 1.0])] * 2)
quick = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def games_with_ties(draw):
    """Small whole payoffs: ties between deviations, and between sums of what they cost."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    spread = draw(st.sampled_from([1, 2, 4]))
    return np.round(spread * normal(shape, draw(st.integers(0, 2**32 - 1))))


@pytest.mark.parametrize("case", PERTURBED)
def test_golden_response_graph(case):
    given = case["input"]
    sigma = response_graph(numbers(given["payoffs"]), given["eps"])
    np.testing.assert_allclose(sigma.ravel(), numbers(case["expected"]["pi"]), rtol=1e-9, atol=case["tolerance"])


@pytest.mark.parametrize("case", [*select("alpha_rank_response_graph"), *WITH_SINKS])
def test_golden_sink_components(case):
    found = sink_components(numbers(case["input"]["payoffs"]))
    expected = [sorted(map(tuple, component)) for component in case["expected"]["sink_sccs"]]
    assert found == sorted(expected)


def test_the_two_limits_differ_on_coordination():
    np.testing.assert_allclose(response_graph(COORDINATION), np.eye(2) / 2, atol=1e-6)
    np.testing.assert_array_equal(alpha_limit(COORDINATION), [[1, 0], [0, 0]])


@quick
@given(payoffs=games_with_ties())
def test_finite_selection_approaches_the_limit(payoffs):
    """Losses of at least 1 at intensity 1000: what is left of worse profiles is e^-49000."""
    sigma = alpha_rank(payoffs, 1000, normalize=False)
    np.testing.assert_allclose(alpha_limit(payoffs, normalize=False), sigma, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "payoffs",
    [
        pytest.param(potential((4, 4, 4)), id="many equilibria"),
        pytest.param(majority(4, 3), id="deep wells"),
        pytest.param(jordan(5), id="a long cycle"),
        pytest.param(normal((6, 6, 6), seed=1), id="normal"),
        pytest.param(np.stack([np.diag(np.arange(1.0, 31))] * 2), id="thirty equilibria"),
    ],
)
@pytest.mark.parametrize("normalize", [True, False])
def test_strong_selection_approaches_the_limit(payoffs, normalize):
    sigma = alpha_rank(payoffs, 1e5, normalize=normalize)
    np.testing.assert_allclose(alpha_limit(payoffs, normalize=normalize), sigma, rtol=1e-8, atol=1e-100)


def test_the_limit_agrees_with_60_digits():
    """Two equilibria of equal depth; a neutral way out of one halves its share, and population size shows."""
    payoffs = np.array([[[2, 0, 2], [0, 2, 0]], [[2, 0, 2], [0, 2, 1]]], dtype=float)
    for m in (3, 10):
        expected = exact(payoffs, 60, m)
        np.testing.assert_allclose(alpha_limit(payoffs, m, normalize=False).ravel(), expected, rtol=1e-12, atol=1e-20)


def test_a_potential_game_rests_at_its_highest_potential():
    payoffs = potential((5, 5, 5, 5), seed=2)
    sigma = alpha_limit(payoffs, normalize=False)
    assert (sigma.max(), sigma.argmax()) == (1, payoffs[0].argmax())


def test_units_of_players_matter_unless_normalized():
    """Leaving (0, 0) costs 2 or 10 and leaving (1, 1) 1 or 30; in shares, all or a third, and a half or all."""
    payoffs = np.array([[[2.0, 0], [0, 1]], [[10.0, 0], [0, 30]]])
    assert alpha_limit(payoffs, normalize=False)[0, 0] == 1
    assert alpha_limit(payoffs)[1, 1] == 1
    payoffs[0] *= 100
    assert alpha_limit(payoffs, normalize=False)[1, 1] == 1
    assert alpha_limit(payoffs)[1, 1] == 1


def test_orders_are_summed_along_paths_and_compared_without_rounding():
    """Ways out of state 0 cost 0.1 + 0.2 in two moves, of state 2 0.3 in one: no way is rarer than the other."""
    source, target = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 0])
    order = np.array([0.1, 0.0, 0.2, 0.3])
    graph = Graph(source, target, np.array([0, 1, 3, 4]))
    mass = limit_distribution(graph, Rates(order, np.full(4, 1e-14), np.zeros(4)))
    np.testing.assert_allclose(mass, [0.5, 0, 0.5], rtol=1e-14)
    exactly = limit_distribution(graph, Rates(order, np.zeros(4), np.zeros(4)))
    assert sorted(exactly) == [0, 0, 1]


def test_rounding_is_a_tie_and_small_differences_are_none():
    rounded = np.array([[[0.1 + 0.2], [0.3]], [[1.0], [1.0]]])
    near = np.array([[[700.0], [700.005]], [[1.0], [1.0]]])
    for solve in (response_graph, alpha_limit):
        np.testing.assert_allclose(solve(rounded), 0.5, rtol=1e-12)
        np.testing.assert_allclose(solve(near), [[0], [1]], atol=1e-5)
    np.testing.assert_allclose(response_graph(near, eps=1e-3).ravel(), [0.001, 0.999])
    single = near.astype(np.float32)
    np.testing.assert_array_equal(alpha_limit(single, rounding=1e-6), [[0], [1]])
    np.testing.assert_allclose(alpha_limit(np.float32(rounded) + np.float32(1e-8), rounding=1e-6), 0.5)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (1, 5), (1, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_sinks_agree_with_networkx(shape, seed):
    payoffs = np.round(normal(shape, seed))
    graph = networkx.DiGraph()
    graph.add_nodes_from(np.ndindex(shape))
    for old, new in itertools.permutations(np.ndindex(shape), 2):
        changed = [player for player in range(len(old)) if old[player] != new[player]]
        if len(changed) == 1 and payoffs[(changed[0], *new)] >= payoffs[(changed[0], *old)]:
            graph.add_edge(old, new)
    expected = networkx.attracting_components(graph)
    assert sink_components(payoffs) == sorted(sorted(component) for component in expected)


def test_several_sinks_are_reported_and_not_averaged():
    payoffs = np.zeros((2, 3, 3))
    payoffs[:, 0, 0] = 5
    payoffs[:, 1:, 1:] = [[[1, 2], [2, 1]], [[2, 1], [1, 2]]]  # matching pennies, apart
    assert sink_components(payoffs) == [[(0, 0)], [(1, 1), (1, 2), (2, 1), (2, 2)]]
    first, second = sink_distributions(payoffs)
    np.testing.assert_array_equal(first, np.eye(3)[:, :1] * np.eye(3)[:1])
    np.testing.assert_allclose(second[1:, 1:], 0.25, rtol=1e-14)
    assert second.sum() == pytest.approx(1, abs=1e-14)
    with pytest.raises(ValueError, match=r"eps = 0 leaves 2 sink components.*sink_distributions"):
        response_graph(payoffs, eps=0)


def test_a_single_sink_needs_no_mistakes():
    payoffs = normal((3, 3), seed=5)
    (only,) = sink_distributions(payoffs)
    np.testing.assert_array_equal(response_graph(payoffs, eps=0), only)
    np.testing.assert_allclose(response_graph(payoffs, eps=1e-12), only, atol=1e-10)
    np.testing.assert_allclose(alpha_limit(payoffs), only, atol=1e-12)


def test_neutral_deviations_follow_the_tie():
    """A walk that lingers: the second policy is left for the third when it gains, for the first when it is let."""
    payoffs = np.array([[[1.0], [1.0], [0.0]]]).reshape(1, 3)
    for tie in (0.1, 1.0):
        np.testing.assert_allclose(response_graph(payoffs, eps=0, tie=tie), [0.5, 0.5, 0])


@pytest.mark.parametrize("payoffs", [normal((3, 4)), np.round(normal((2, 3, 2))), potential((3, 3))])
def test_certificates_measure_the_chain(payoffs):
    """A response graph with another eps, or a uniform sigma, is not stationary."""
    sigma = response_graph(payoffs, eps=0.1)
    assert response_stationarity(payoffs, sigma, eps=0.1) <= 1e-15
    assert response_stationarity(payoffs, sigma) > 1e-3
    assert limit_stationarity(payoffs, alpha_limit(payoffs)) <= 1e-15
    assert limit_stationarity(payoffs, np.full_like(sigma, 1 / sigma.size)) > 1e-3


def test_gains_are_those_of_the_fixations():
    """Edges, signs and ties of the response graph are alpha-rank's own at any intensity."""
    payoffs = np.round(normal((3, 2, 4)))
    moves = responses(payoffs)
    found = dict(zip(zip(moves.graph.source, moves.graph.target, strict=True), np.sign(moves.gain), strict=True))
    source, target, log_fixation = fixation_edges(payoffs, 1.0, normalize=False)
    signs = np.sign(np.round(log_fixation + np.log(50), 9))
    assert found == dict(zip(zip(source, target, strict=True), signs, strict=True))


@pytest.mark.parametrize(
    ("solve", "arguments", "message"),
    [
        (response_graph, {"eps": -0.1}, "eps must be"),
        (response_graph, {"eps": 0.6}, "eps must be"),
        (response_graph, {"eps": np.nan}, "eps must be"),
        (response_graph, {"tie": 0}, "tie must be"),
        (response_graph, {"tie": 1.1}, "tie must be"),
        (sink_distributions, {"tie": 0}, "tie must be"),
        (sink_components, {"rounding": -1}, "rounding must be"),
        (alpha_limit, {"rounding": 1}, "rounding must be"),
        (alpha_limit, {"population_size": 1}, "population_size must be"),
    ],
)
def test_bad_arguments(solve, arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(normal((2, 2)), **arguments)


def test_payoffs_whose_differences_overflow():
    with pytest.raises(ValueError, match="scale the payoffs down"):
        alpha_limit(np.array([[1e308, -1e308]]))
