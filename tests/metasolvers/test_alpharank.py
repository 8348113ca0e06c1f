"""Alpha-rank against published numbers, OpenSpiel, 60-digit arithmetic and elimination of the whole chain."""

import itertools

import mpmath
import numpy as np
import pytest
from open_spiel.python.egt import alpharank as peer
from open_spiel.python.egt.examples.alpharank_example import get_kuhn_poker_data

from metasolvers import (
    NotConverged,
    alpha_rank,
    alpharank,
    fixation_edges,
    fixation_probability,
    log_fixation_probability,
    markov,
    stationarity,
    transition_matrix,
)
from metasolvers.alpharank import alpha_ranks
from tests.golden_cases import numbers, select

FINITE = [
    case
    for case in select("alpha_rank_multi", "alpha_rank_published", check="ar_multi")
    if case.values[0]["input"].get("mode") != "inf"
]
PENNIES = [
    case for case in select("n_player_nash", check="nmp") if "alpharank_pi_alpha5_m20" in case.values[0]["expected"]
]


def normal(shape, seed=0):
    return np.random.default_rng(seed).normal(size=(len(shape), *shape))


def potential(shape, seed=0):
    """Common payoffs: the chain is reversible with log pi = (m - 1) alpha payoff, and rests in many equilibria."""
    return np.stack([np.random.default_rng(seed).normal(size=shape)] * len(shape))


def majority(players, policies):
    """More than half must leave an equilibrium before leaving it pays, so wells are several deviations deep."""
    payoffs = np.zeros((players, *[policies] * players))
    for profile in itertools.product(range(policies), repeat=players):
        for player, policy in enumerate(profile):
            count = profile.count(policy)
            payoffs[(player, *profile)] = count + 0.1 * policy if count > players / 2 else 0.3
    return payoffs


def jordan(players):
    """N-player matching pennies [Jordan 1993]: everyone matches the next player, the last mismatches the first."""
    payoffs = np.zeros((players, *[2] * players))
    for profile in itertools.product(range(2), repeat=players):
        for player, policy in enumerate(profile):
            last = player == players - 1
            payoffs[(player, *profile)] = 1 if (policy == profile[0 if last else player + 1]) != last else -1
    return payoffs


def exact(payoffs, alpha, population_size):
    """pi [K] by elimination in 60 digits, straight from the formula of the fixation probability."""
    with mpmath.workdps(60):
        profiles = list(itertools.product(*map(range, payoffs.shape[1:])))
        rates = {state: {} for state in profiles}
        for old, new in itertools.permutations(profiles, 2):
            changed = [player for player in range(len(old)) if old[player] != new[player]]
            if len(changed) == 1:
                own = payoffs[changed[0]]
                u = mpmath.mpf(alpha) * (mpmath.mpf(float(own[new])) - mpmath.mpf(float(own[old])))
                rates[old][new] = (
                    (1 - mpmath.exp(-u)) / (1 - mpmath.exp(-population_size * u))
                    if u
                    else mpmath.mpf(1) / population_size
                )
        mass = eliminate(rates, profiles)
        total = sum(mass.values())
        return np.array([float(mass[profile] / total) for profile in profiles])


def eliminate(rates, states):
    """Stationary weights by state reduction without subtraction [Grassmann, Taksar & Heyman 1985]."""
    for kept in range(len(states) - 1, 0, -1):
        gone, rest = states[kept], states[:kept]
        leaving = sum(rates[gone].get(state, 0) for state in rest)
        for state in rest:
            share = rates[state].get(gone, 0) / leaving
            if share:
                rates[state][gone] = share
                for onward in rest:
                    if onward != state and onward in rates[gone]:
                        rates[state][onward] = rates[state].get(onward, 0) + share * rates[gone][onward]
    mass = {states[0]: mpmath.mpf(1)}
    for kept in range(1, len(states)):
        mass[states[kept]] = sum(mass[state] * rates[state].get(states[kept], 0) for state in states[:kept])
    return mass


def state_reduction(matrix, block=64):
    """pi [K] of a dense chain by the same elimination, many states at a time where they leave the rest alone."""
    moves = matrix.copy()
    for end in range(len(moves), 1, -block):
        start = max(1, end - block)
        for gone in range(end - 1, start - 1, -1):
            moves[:gone, gone] /= moves[gone, :gone].sum()
            moves[start:gone, :gone] += np.outer(moves[start:gone, gone], moves[gone, :gone])
            moves[:start, start:gone] += np.outer(moves[:start, gone], moves[gone, start:gone])
        moves[:start, :start] += moves[:start, start:end] @ moves[start:end, :start]
    mass = np.ones(len(moves))
    for state in range(1, len(moves)):
        mass[state] = mass[:state] @ moves[:state, state]
    return mass / mass.sum()


def residual(payoffs, **arguments):
    pi = alpha_rank(payoffs, **arguments).ravel()
    return np.abs(pi @ transition_matrix(payoffs, **arguments) - pi).sum()


@pytest.mark.parametrize("case", FINITE)
def test_golden_distribution(case):
    given = case["input"]
    sigma = alpha_rank(numbers(given["payoffs"]), given["alpha"], given["m"], normalize=False).ravel()
    expected = numbers(case["expected"]["pi"])
    np.testing.assert_allclose(sigma, expected, rtol=1e-7, atol=1e-300)
    assert np.abs(sigma - expected).max() <= case["tolerance"]


@pytest.mark.parametrize("case", PENNIES)
def test_golden_matching_pennies(case):
    sigma = alpha_rank(jordan(case["input"]["players"]), alpha=5, population_size=20, normalize=False).ravel()
    np.testing.assert_allclose(sigma, case["expected"]["alpharank_pi_alpha5_m20"], rtol=1e-9)


@pytest.mark.parametrize("case", select("alpha_rank_published", check="kuhn_ar"))
def test_golden_kuhn_poker_table(case):
    """The published table, from OpenSpiel's float32 payoffs, on which OpenSpiel 2.0.2 itself gets NaN."""
    payoffs = get_kuhn_poker_data(num_players=case["input"]["players"])
    sigma = alpha_rank(payoffs, case["input"]["alpha"], case["input"]["m"], normalize=False)
    for profile, score in case["expected"]["top"]:
        assert sigma[tuple(profile)] == pytest.approx(score, abs=case["tolerance"])


@pytest.mark.parametrize("case", select("alpha_rank_fixation"))
def test_golden_fixation_probability(case):
    for entry in case["input"]["cases"]:
        rho = fixation_probability(numbers(entry["u"]), entry["m"])
        assert rho == pytest.approx(numbers(entry["rho"]), rel=case["tolerance"], abs=1e-80)


@pytest.mark.parametrize("m", [2, 50, 1000])
def test_fixation_probability_at_extremes(m):
    """The limit 1/m at and around 0, logs where exponentials overflow, float32 in, monotone throughout."""
    u = np.array([-800, -1, -1e-9, -1e-320, 0, 1e-320, 1e-9, 1, 800], dtype=np.float64)
    log_rho = log_fixation_probability(u, m)
    assert np.isfinite(log_rho).all()
    assert (np.diff(log_rho) >= 0).all()
    np.testing.assert_allclose(log_rho[3:6], -np.log(m), rtol=1e-12)
    assert log_rho[0] == pytest.approx(-800 * (m - 1), rel=1e-6)
    assert log_fixation_probability(np.float32(-800), m).dtype == np.float64
    np.testing.assert_allclose(np.diff(log_rho[[1, 7]]), m - 1, rtol=1e-12)  # rho(u) / rho(-u) = e^((m - 1) u)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (2, 2, 2, 2), (12, 9), (4, 4, 4)])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_agrees_with_open_spiel(shape, alpha):
    """Where OpenSpiel answers; the referee builds its dense chain profile by profile."""
    payoffs = 0.5 * normal(shape)
    expected = peer.compute(list(payoffs), alpha=alpha, m=50)[2]
    np.testing.assert_allclose(alpha_rank(payoffs, alpha, normalize=False).ravel(), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("payoffs", "alpha"),
    [
        (normal((3, 4)), 1),
        (potential((3, 3)), 1),
        (potential((2, 2, 2)), 0.5),
        (normal((2, 2, 2, 2)), 3),
        (majority(4, 2), 0.8),
        (normal((4, 4), seed=3), 5),
    ],
)
def test_agrees_with_60_digits(payoffs, alpha):
    np.testing.assert_allclose(
        alpha_rank(payoffs, alpha, 30, normalize=False).ravel(), exact(payoffs, alpha, 30), rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("alpha", [0.01, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize(
    "payoffs",
    [
        pytest.param(normal((3, 3, 3, 3)), id="normal"),
        pytest.param(potential((4, 4, 4)), id="many equilibria"),
        pytest.param(potential((2,) * 7), id="long climbs"),
        pytest.param(majority(3, 4), id="deep wells"),
        pytest.param(majority(7, 2), id="deeper wells"),
        pytest.param(potential((2, 60)) + 0.05 * normal((2, 60)), id="slow cycles"),
        pytest.param(normal((1, 60)), id="one row"),
        pytest.param(np.zeros((3, 4, 4, 4)), id="constant"),
        pytest.param(np.round(normal((9, 9))), id="ties"),
        pytest.param(np.stack([np.eye(8)] * 2), id="coordination"),
    ],
)
def test_cycles_find_what_elimination_finds(payoffs, alpha):
    """Masses of size e^-100000 included: logs are compared, down to their own rounding."""
    source, target, log_rates = fixation_edges(payoffs, alpha, normalize=False)
    size = payoffs[0].size
    graph = markov.Graph(source, target, np.searchsorted(source, np.arange(size + 1)))
    jumps = log_rates - markov.log_sums(log_rates, graph.starts)[source]
    expected = markov._eliminate(graph, jumps)
    found, step = markov._measure(graph, jumps)
    assert step == 0
    expected, found = expected - expected.max(), found - found.max()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("shape", [(6, 6, 6, 6), (30, 30), pytest.param((8, 8, 8, 8), marks=pytest.mark.slow)])
def test_agrees_with_state_reduction(shape, alpha):
    """To 1e-10 and better, every entry relative to itself, in chains that hardly ever leave a few profiles too."""
    payoffs = normal(shape)
    expected = state_reduction(transition_matrix(payoffs, alpha, normalize=False).toarray())
    np.testing.assert_allclose(alpha_rank(payoffs, alpha, normalize=False).ravel(), expected, rtol=1e-11)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("shape", [(8, 8, 8, 8), (30, 30)])
def test_residual_of_large_and_nearly_reducible_chains(shape, alpha):
    """Plain power iteration needs more than 200,000 steps for the 4 x 8 chain at intensity 1."""
    for seed in range(2):
        assert residual(normal(shape, seed), alpha=alpha, normalize=False) <= 1e-10


@pytest.mark.parametrize("alpha", [1.0, 100.0])
def test_potential_games_have_a_closed_form(alpha):
    payoffs = potential((6, 6, 6, 6))
    log_mass = 49 * alpha * (payoffs[0] - payoffs[0].max())
    expected = np.exp(log_mass) / np.exp(log_mass).sum()
    sigma = alpha_rank(payoffs, alpha, normalize=False)
    np.testing.assert_allclose(sigma, expected, rtol=1e-8, atol=1e-290)


def test_ten_thousand_profiles():
    sigma = alpha_rank(normal((10, 10, 10, 10)), alpha=1, normalize=False)
    assert sigma.shape == (10, 10, 10, 10)
    assert sigma.sum() == pytest.approx(1, abs=1e-12)


def test_float32_tables_at_full_selection():
    """OpenSpiel 2.0.2 keeps u in float32 here, and |u| > 88 gives NaN."""
    payoffs = normal((4, 4)).astype(np.float32)
    np.testing.assert_array_equal(
        alpha_rank(payoffs, 100, normalize=False), alpha_rank(payoffs.astype(np.float64), 100, normalize=False)
    )


def test_no_selection_is_uniform():
    np.testing.assert_allclose(alpha_rank(normal((3, 4)), alpha=0), 1 / 12, rtol=1e-12)


def test_normalized_intensity_is_per_largest_gain():
    payoffs = np.array([[[0.0, 1.0], [3.0, 0.0]], [[0.0, 2.0], [0.0, 5.0]]])
    scaled = payoffs / np.array([3.0, 5.0])[:, None, None]
    np.testing.assert_allclose(alpha_rank(payoffs, 2), alpha_rank(scaled, 2, normalize=False), rtol=1e-12)


def test_normalizing_does_not_amplify_rounding():
    """0.1 + 0.2 and 0.3 differ in the last bit; that is no preference."""
    payoffs = np.array([[[0.1 + 0.2], [0.3]], [[1.0], [1.0]]])
    np.testing.assert_allclose(alpha_rank(payoffs, alpha=100), 0.5, rtol=1e-12)


def test_transition_matrix_is_the_papers():
    """Rows sum to one; a move is a mutation, one of sum(k - 1), that fixates."""
    payoffs = normal((2, 3))
    matrix = transition_matrix(payoffs, 0.5, 20, normalize=False).toarray()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-14)
    u = 0.5 * (payoffs[1, 0, 2] - payoffs[1, 0, 0])
    assert matrix[0, 2] == pytest.approx(fixation_probability(u, 20) / 3)
    assert matrix[0, 4] == 0  # two players at once
    assert transition_matrix(np.zeros((2, 1, 1))).toarray() == [[1]]


def test_edges_are_the_single_deviations():
    source, target, log_probability = fixation_edges(normal((2, 3)), 0.5)
    assert len(source) == len(target) == len(log_probability) == 6 * 3
    assert {(int(a), int(b)) for a, b in zip(source, target, strict=True)} >= {(0, 1), (0, 2), (0, 3), (5, 2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"population_size": 1}, "population_size must be"),
        ({"population_size": 2.5}, "population_size must be"),
        ({"alpha": 1e308, "normalize": False}, "must stay finite"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        alpha_rank(4 * normal((2, 2)), **arguments)


def test_payoffs_whose_differences_overflow():
    with pytest.raises(ValueError, match="scale the payoffs down"):
        alpha_rank(np.array([[[1e308], [-1e308]], [[0.0], [0.0]]]))


def test_an_unsettled_chain_is_never_returned(monkeypatch):
    """Without enough cycles: elimination while that is possible, an error where it is not."""
    payoffs = potential((4, 4, 4))
    expected = alpha_rank(payoffs, 100, normalize=False)
    monkeypatch.setattr(markov, "_settle", lambda graph, jumps, measure, cycles, accuracy: (measure, 0.5))
    np.testing.assert_allclose(alpha_rank(payoffs, 100, normalize=False), expected, atol=1e-12)
    monkeypatch.setattr(markov, "LAST_RESORT", 0)
    with pytest.raises(NotConverged, match=r"did not settle.* 0\.5") as caught:
        alpha_rank(payoffs, 100, normalize=False)
    assert caught.value.value == 0.5
    assert caught.value.sigma.shape == (4, 4, 4)
    assert caught.value.sigma.sum() == pytest.approx(1)


def test_a_residual_above_its_tolerance_is_never_returned(monkeypatch):
    """Here every cycle claims to have settled at once."""
    monkeypatch.setattr(markov, "_settle", lambda graph, jumps, measure, cycles, accuracy: (measure, 0.0))
    with pytest.raises(NotConverged, match="stationarity"):
        alpha_rank(normal((4, 4, 4)), 1, normalize=False)


@pytest.mark.parametrize("payoffs", [normal((6, 6, 6)), potential((4, 4, 4)), majority(5, 3)])
def test_one_alpha_after_the_other(payoffs):
    """Each starts from where the last one points, and arrives where it would from scratch; 0 points nowhere."""
    alphas = [0, *np.geomspace(0.01, 1000, 8), 0, 0.5]
    for alpha, sigma in zip(alphas, alpha_ranks(payoffs, alphas, normalize=False), strict=True):
        np.testing.assert_allclose(sigma, alpha_rank(payoffs, alpha, normalize=False), rtol=1e-8, atol=1e-290)


def test_stationarity_is_the_residual_of_the_matrix():
    """Of mass anywhere."""
    payoffs, sigma = normal((3, 4, 2)), np.random.default_rng(1).dirichlet(np.ones(24)).reshape(3, 4, 2)
    matrix = transition_matrix(payoffs, 0.3, 20, normalize=False)
    expected = np.abs(sigma.ravel() @ matrix - sigma.ravel()).sum()
    assert stationarity(payoffs, sigma, 0.3, 20, normalize=False) == pytest.approx(expected, rel=1e-12)


def test_blocks_change_nothing(monkeypatch):
    payoffs = normal((6, 5, 4))
    expected = alpha_rank(payoffs, 2, normalize=False)
    for module in (markov, alpharank):
        monkeypatch.setattr(module, "BLOCK", 50)
    np.testing.assert_allclose(alpha_rank(payoffs, 2, normalize=False), expected, rtol=1e-12)
    assert stationarity(payoffs, expected, 2, normalize=False) <= 1e-12
