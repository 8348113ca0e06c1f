"""Single-population alpha-rank against published numbers, OpenSpiel, and mutants that are followed one by one."""

import itertools

import numpy as np
import pytest
from open_spiel.python.egt import alpharank as peer

from metasolvers.response_graphs import sink_components
from metasolvers.single_population import (
    alpha_limit_single,
    alpha_rank_single,
    fixation_edges_single,
    response_graph_single,
    sink_components_single,
    sorted_table,
)
from metasolvers.symmetric import expand, reduce, sorted_profiles
from tests.golden_cases import numbers, select

TOPICS = ("alpha_rank_single", "alpha_rank_multi", "alpha_rank_published")
FINITE, PERTURBED = [], []
for golden in select(*TOPICS, check="ar_single"):
    (PERTURBED if golden.values[0]["input"].get("mode") == "inf" else FINITE).append(golden)
WITH_SINKS = [case for case in [*FINITE, *PERTURBED] if "sink_sccs" in case.values[0]["expected"]]
STAG_HUNT = np.array([[4.0, 1], [3, 2]])


def symmetric(matrix):
    return np.stack([matrix, np.transpose(matrix)])


def normal(policies, seed=0):
    return symmetric(np.random.default_rng(seed).normal(size=(policies, policies)))


def counts(players, policies):
    """[M, k] how many of the players use each policy, profile by sorted profile."""
    return np.array([np.bincount(row, minlength=policies) for row in sorted_profiles(players, policies)])


def table(players, policies, seed=0):
    """A random sorted table."""
    rows = counts(players, policies)
    return sorted_table(rows, np.random.default_rng(seed).normal(size=rows.shape))


def follow(payoffs, alpha, m):
    """log rho [resident, mutant]: absorption of the pairwise comparison process, payoffs averaged draw by draw."""
    seats, policies = len(payoffs), payoffs.shape[1]
    rho = np.full((policies, policies), np.nan)
    for resident, mutant in itertools.permutations(range(policies), 2):
        ups = []
        for mutants in range(1, m):
            crowd = [mutant] * mutants + [resident] * (m - mutants)
            earned = []
            for own in (mutant, resident):
                others = list(crowd)
                others.remove(own)
                drawn = itertools.combinations(others, seats - 1)
                earned.append(np.mean([payoffs[(0, own, *co_players)] for co_players in drawn]))
            ups.append(1 / (1 + np.exp(-alpha * (earned[0] - earned[1]))))
        system = np.eye(m - 1) - np.diag(ups[:-1], 1) - np.diag([1 - up for up in ups[1:]], -1)
        rho[resident, mutant] = np.linalg.solve(system, np.append(np.zeros(m - 2), ups[-1]))[0]
    return np.log(rho)


@pytest.mark.parametrize("case", FINITE)
def test_golden_distribution(case):
    given = case["input"]
    payoffs, selection = symmetric(numbers(given["M"])), given.get("selection", "local")
    pi = alpha_rank_single(payoffs, given["alpha"], given["m"], normalize=False, selection=selection)
    expected = numbers(case["expected"]["pi"])
    np.testing.assert_allclose(pi, expected, rtol=1e-7, atol=1e-300)
    assert np.abs(pi - expected).max() <= case["tolerance"]


@pytest.mark.parametrize("case", PERTURBED)
def test_golden_response_graph(case):
    given = case["input"]
    pi = response_graph_single(symmetric(numbers(given["M"])), given["eps"])
    np.testing.assert_allclose(pi, numbers(case["expected"]["pi"]), rtol=1e-9, atol=case["tolerance"])


@pytest.mark.parametrize("case", WITH_SINKS)
def test_golden_sink_components(case):
    assert sink_components_single(symmetric(numbers(case["input"]["M"]))) == case["expected"]["sink_sccs"]


@pytest.mark.parametrize("selection", ["local", "global"])
@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_agrees_with_open_spiel(selection, alpha):
    payoffs = 0.3 * normal(5)
    expected = peer.compute([payoffs[0]], m=15, alpha=alpha, use_local_selection_model=selection == "local")[2]
    found = alpha_rank_single(payoffs, alpha, 15, normalize=False, selection=selection)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("players", [1, 2, 3, 4])
def test_fixations_agree_with_mutants_followed_one_by_one(players):
    payoffs = expand(table(players, 3), (tuple(range(players)),))
    resident, mutant, log_fixation = fixation_edges_single(payoffs, 1.5, 7, normalize=False, selection="global")
    np.testing.assert_allclose(log_fixation, follow(payoffs, 1.5, 7)[resident, mutant], rtol=1e-9)


def test_local_selection_compares_a_mutant_with_those_it_meets():
    """A match of one mutant and two residents: 5 for the mutant, 2 for each of them."""
    rows = [[3, 0], [2, 1], [1, 2], [0, 3]]
    payoffs = sorted_table(rows, [[1, 0], [2, 5], [7, 7], [0, 0]])
    edges = fixation_edges_single(payoffs, 0.1, 10, normalize=False)
    expected = (1 - np.exp(-0.3)) / (1 - np.exp(-3))
    assert edges[2][(edges[0] == 0) & (edges[1] == 1)] == pytest.approx(np.log(expected), rel=1e-12)


@pytest.mark.parametrize("selection", ["local", "global"])
@pytest.mark.parametrize("players", [1, 2, 3])
def test_payoffs_and_their_sorted_table_rank_alike(players, selection):
    sorted_form = table(players, 4)
    payoffs = expand(sorted_form, (tuple(range(players)),))
    found = alpha_rank_single(payoffs, selection=selection)
    np.testing.assert_allclose(alpha_rank_single(sorted_form, selection=selection), found, rtol=1e-12)
    np.testing.assert_array_equal(reduce(payoffs, [range(players)]), sorted_form)


def test_thirty_players_fit_into_a_table():
    """A public good: contributors give 1 each, and all share 10 times what is given."""
    rows = counts(30, 2)
    shared = 10 * rows[:, 1] / 30
    payoffs = sorted_table(rows, np.column_stack([shared, shared - 1]))
    pi = alpha_rank_single(payoffs, 2, 50, normalize=False, selection="global")
    # Whoever contributes earns 1 less than another with the same company, and 10/30 of it comes back.
    gain = 10 / 30 - 1 - 10 * 29 / 30 / 49
    assert np.log(pi[1] / pi[0]) == pytest.approx(49 * 2 * gain, rel=1e-9)


@pytest.mark.parametrize("selection", ["local", "global"])
@pytest.mark.parametrize("seed", range(5))
def test_strong_selection_approaches_the_limit(seed, selection):
    """Whole payoffs: ties, and levels that are reached more than once on the way to fixation."""
    payoffs = np.round(2 * normal(4, seed))
    found = alpha_limit_single(payoffs, 11, selection=selection)
    strong = alpha_rank_single(payoffs, 1e5, 11, selection=selection)
    np.testing.assert_allclose(found, strong, rtol=1e-9, atol=1e-100)


def test_a_level_that_is_reached_twice_halves_the_rate():
    """Anti-coordination among m = 3: the second mutant loses what the first gains, so fixating is as likely as 1/2."""
    payoffs = symmetric([[0.0, 1.0], [1.0, 0.0]])
    edges = fixation_edges_single(payoffs, 1e4, 3, selection="global")
    np.testing.assert_allclose(np.exp(edges[2]), 1 / 2, rtol=1e-12)


def test_extremes_stay_finite():
    for selection in ("local", "global"):
        pi = alpha_rank_single(symmetric([[0, 700.0], [700.005, 0]]), 100, normalize=False, selection=selection)
        assert np.isfinite(pi).all()
        assert pi.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(alpha_rank_single([[[3.0]], [[3.0]]]), [1])
    np.testing.assert_allclose(alpha_rank_single(np.zeros((2, 3, 3)), selection="global"), 1 / 3, rtol=1e-12)
    np.testing.assert_allclose(alpha_limit_single(np.zeros((2, 3, 3))), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("selection", ["local", "global"])
def test_units_do_not_matter(selection):
    payoffs = normal(4)
    for scale in (1e-6, 700):
        found = alpha_rank_single(scale * payoffs, selection=selection)
        np.testing.assert_allclose(found, alpha_rank_single(payoffs, selection=selection), rtol=1e-7)


def test_two_player_sinks_are_those_of_equal_opponents():
    """A dominant policy is the sink of either response graph."""
    payoffs = symmetric([[5, 0], [10, 1]])
    assert sink_components_single(payoffs) == [[1]]
    assert sink_components(payoffs) == [[(1, 1)]]


@pytest.mark.parametrize(
    ("payoffs", "message"),
    [
        pytest.param([STAG_HUNT, STAG_HUNT], "not exchangeable: player 0 earns", id="not transposed"),
        pytest.param(np.zeros((2, 2, 3)), "share one population", id="unequal"),
        pytest.param([[1, 2], [3]], "ragged", id="ragged"),
        pytest.param([[0.0, np.nan, 1.0]] * 2, "finite", id="nan"),
        pytest.param(np.zeros((2, 4)), "no number of policies", id="no sorted table"),
        pytest.param(np.zeros((2, 0)), "at least one policy", id="empty"),
        pytest.param(symmetric([[0, 1e308], [-1e308, 0]]), "scale the payoffs down", id="overflow"),
    ],
)
def test_bad_payoffs(payoffs, message):
    with pytest.raises(ValueError, match=message):
        alpha_rank_single(payoffs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1}, "alpha must be"),
        ({"alpha": 1e308, "normalize": False}, "must stay finite"),
        ({"population_size": 1}, "population_size must be"),
        ({"population_size": 10**6, "selection": "global"}, "population_size must be from 2"),
        ({"selection": "locals"}, "selection must be 'local' or 'global'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        alpha_rank_single(4 * normal(3), **arguments)
    with pytest.raises(ValueError, match="population_size must be from 3"):
        alpha_rank_single(table(3, 2), population_size=2, selection="global")


@pytest.mark.parametrize(
    ("counted", "earned", "message"),
    [
        ([[2, 0], [1, 1]], [[0, 0], [0, 0]], "3 different profiles; got 2 rows"),
        ([[2, 0], [1, 1], [1, 1]], np.zeros((3, 2)), "2 of them different"),
        ([[2, 0], [1, 1], [0, 1]], np.zeros((3, 2)), "same number of players"),
        ([[2, 0]], np.zeros((3, 2)), "shapes"),
    ],
)
def test_incomplete_heuristic_tables(counted, earned, message):
    with pytest.raises(ValueError, match=message):
        sorted_table(counted, earned)
