"""Correlated equilibria against golden values, published closed forms, and OpenSpiel's JPSRO and CVXPY."""

import cvxpy
import numpy as np
import pytest
from open_spiel.python.algorithms import jpsro
from scipy.stats import entropy

from metasolvers import (
    cce_gap,
    ce_gap,
    expected_payoffs,
    marginal,
    max_entropy_cce,
    max_entropy_ce,
    max_entropy_nash,
    max_gini_cce,
    max_gini_ce,
    max_welfare_cce,
    max_welfare_ce,
)
from metasolvers.correlated import best_cce, best_ce
from tests.golden_cases import numbers, select

CHICKEN = np.array([[[6, 2], [7, 0]], [[6, 7], [2, 0.0]]])
golden = pytest.mark.parametrize("case", select("correlated_equilibrium"))


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=(len(shape), *shape))


def earnings(payoffs, name):
    """The linear objective that a golden name such as player0_max or welfare_min asks for, and its sign."""
    whose, side = name.split("_")
    return (payoffs.sum(axis=0) if whose == "welfare" else payoffs[0]), {"max": 1, "min": -1}[side]


@golden
def test_golden_extremes(case):
    payoffs = numbers(case["input"]["payoffs"])
    for best, kind in ((best_ce, "ce"), (best_cce, "cce")):
        for name, expected in case["expected"].get(kind, {}).items():
            objective, sign = earnings(payoffs, name)
            sigma = best(payoffs, sign * objective)
            assert (sigma * objective).sum() == pytest.approx(numbers(expected), abs=case["tolerance"])


@golden
def test_golden_welfare(case):
    payoffs, expected = numbers(case["input"]["payoffs"]), case["expected"]
    for solve, kind in ((max_welfare_ce, "ce"), (max_welfare_cce, "cce")):
        if kind in expected:
            welfare = expected_payoffs(payoffs, solve(payoffs)).sum()
            assert welfare == pytest.approx(expected[kind]["welfare_max"], abs=case["tolerance"])


@golden
def test_golden_uniqueness(case):
    """One equilibrium: every profile's largest mass is its smallest. Several: some profile's is not."""
    payoffs = numbers(case["input"]["payoffs"])
    for best, name in ((best_ce, "ce_unique"), (best_cce, "cce_unique")):
        if name in case["expected"]:
            profiles = np.eye(payoffs[0].size).reshape(-1, *payoffs.shape[1:])
            ranges = [(best(payoffs, one) * one).sum() - (best(payoffs, -one) * one).sum() for one in profiles]
            assert (max(ranges) <= case["tolerance"]) == case["expected"][name]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)])
@pytest.mark.parametrize(
    ("solve", "referee"),
    [
        (max_gini_ce, jpsro._mgce),
        (max_gini_cce, jpsro._mgcce),
        (max_welfare_ce, jpsro._mwce),
        (max_welfare_cce, jpsro._mwcce),
    ],
)
def test_the_same_as_open_spiels(solve, referee, shape, seed):
    payoffs = normal(seed, *shape)
    theirs, _ = referee(payoffs, [np.ones(size, int) for size in shape], True)
    np.testing.assert_allclose(solve(payoffs), theirs, atol=1e-6)


def incentives(payoffs, sigma, coarse):
    """CVXPY constraints written out player by player and policy by policy."""
    for player, own in enumerate(payoffs):
        told = np.moveaxis(np.arange(sigma.size).reshape(own.shape), player, 0).reshape(own.shape[player], -1)
        earned = np.moveaxis(own, player, 0).reshape(own.shape[player], -1)
        for other in range(len(told)):
            gains = [sigma[row] @ (earned[a] - earned[other]) for a, row in enumerate(told)]
            yield from [sum(gains) >= 0] if coarse else [gain >= 0 for gain in gains]


@pytest.mark.parametrize(("solve", "coarse"), [(max_entropy_ce, False), (max_entropy_cce, True)])
@pytest.mark.parametrize("payoffs", [normal(0, 3, 4), normal(1, 2, 3, 2), np.round(normal(2, 3, 3)), CHICKEN])
def test_no_equilibrium_has_more_entropy(solve, coarse, payoffs):
    sigma = cvxpy.Variable(payoffs[0].size, nonneg=True)
    limits = [cvxpy.sum(sigma) == 1, *incentives(payoffs, sigma, coarse)]
    most = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(sigma))), limits).solve(cvxpy.CLARABEL)
    ours = solve(payoffs).ravel()
    assert entropy(ours) >= most - 1e-6
    np.testing.assert_allclose(ours, sigma.value, atol=1e-4)  # entropy is flat at its top


def test_unique_equilibria_are_what_every_selection_finds():
    """Rock-paper-scissors has one CE, its Nash equilibrium; dominance leaves one profile of the prisoner's dilemma."""
    rps = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0.0]])
    dilemma = np.array([[[5, 0], [10, 1]], [[5, 10], [0, 1.0]]])
    for solve in (max_welfare_ce, max_gini_ce, max_entropy_ce):
        np.testing.assert_allclose(solve([rps, -rps]), np.full((3, 3), 1 / 9), atol=1e-9)
    for solve in (max_welfare_ce, max_gini_ce, max_entropy_ce, max_welfare_cce, max_gini_cce, max_entropy_cce):
        np.testing.assert_allclose(solve(dilemma), [[0, 0], [0, 1]], atol=1e-9)


def test_the_flattest_equilibrium_of_chicken():
    """With yielding first, two incentives bind: sigma = (s, 2p, 2p, p) / (s + 5p), and p / s = 5 / 9 is flattest."""
    np.testing.assert_allclose(max_gini_ce(CHICKEN), np.array([[9, 10], [10, 5]]) / 34, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_in_zero_sum_games_marginals_are_equilibria(seed):
    """Of every CE, and of every CCE [Rosenthal 1974]; with one Nash equilibrium, there is one CE."""
    row = np.random.default_rng(seed).normal(size=(4, 4))
    nash = max_entropy_nash([row, -row])
    for solve in (max_welfare_ce, max_gini_ce, max_entropy_ce):
        np.testing.assert_allclose(solve([row, -row]), nash, atol=1e-7)
    for player in (0, 1):
        np.testing.assert_allclose(marginal(max_entropy_cce([row, -row]), player), marginal(nash, player), atol=1e-7)


@pytest.mark.parametrize("shape", [(6, 6, 6, 6), (30, 30), (10, 10, 10)])
def test_large_games(shape):
    payoffs = normal(0, *shape)
    gini, mixed = max_gini_ce(payoffs), max_entropy_ce(payoffs)
    assert max(ce_gap(payoffs, gini), ce_gap(payoffs, mixed)) <= 1e-9
    assert (gini**2).sum() < (mixed**2).sum()
    assert entropy(gini.ravel()) < entropy(mixed.ravel())


def test_correlated_equilibria_are_coarse_ones():
    payoffs = normal(3, 3, 3, 2)
    for fine, coarse in ((max_gini_ce, max_gini_cce), (max_entropy_ce, max_entropy_cce)):
        assert cce_gap(payoffs, fine(payoffs)) <= 1e-9
        assert entropy(coarse(payoffs).ravel()) > entropy(fine(payoffs).ravel())


@pytest.mark.parametrize("objective", [np.zeros(2), np.full((2, 2), np.nan)])
def test_objectives_must_value_every_profile(objective):
    with pytest.raises(ValueError, match=r"every joint profile, \(2, 2\)"):
        best_ce(CHICKEN, objective)
