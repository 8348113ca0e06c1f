"""Rules of thumb for meta-strategies, by closed forms and by hand."""

import numpy as np
import pytest

from metasolvers import is_product, latest, marginal, rectified_nash, softmax, uniform, zero_sum_nash
from metasolvers.heuristics import rectified_weights

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def zero_sum(row):
    return np.stack([row, -np.asarray(row)])


def antisymmetric(policies, seed):
    row = np.random.default_rng(seed).normal(size=(policies, policies))
    return row - row.T


def test_latest_is_the_profile_of_newest_policies():
    sigma = latest(np.zeros((3, 2, 1, 4)))
    assert sigma[1, 0, 3] == 1
    assert sigma.sum() == 1


def test_uniform_is_alike_for_every_profile():
    np.testing.assert_array_equal(uniform(np.zeros((2, 2, 4))), np.full((2, 4), 1 / 8))


def test_softmax_by_the_definition():
    """Mean payoffs 1 and 3 of a spread of 4: odds e^((3 - 1) / 4 / temperature); the others do not care."""
    payoffs = np.array([[[0, 2], [2, 4]], [[5, 5], [5, 5]]])
    odds = np.exp(0.5 / 0.3)
    expected = np.outer([1 / (1 + odds), odds / (1 + odds)], [0.5, 0.5])
    np.testing.assert_allclose(softmax(payoffs, temperature=0.3), expected)


def test_softmax_between_the_best_and_all():
    payoffs = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
    np.testing.assert_allclose(softmax(payoffs, temperature=1e9), uniform(payoffs), atol=1e-8)
    assert softmax(payoffs, temperature=1e-6).max() == pytest.approx(1)
    assert is_product(softmax(payoffs))


@pytest.mark.parametrize("temperature", [0, -1, np.nan])
def test_bad_temperatures(temperature):
    with pytest.raises(ValueError, match="temperature must be"):
        softmax(np.zeros((2, 2, 2)), temperature)


@pytest.mark.parametrize("solve", [rectified_nash, rectified_weights])
def test_what_is_no_zero_sum_game_is_refused_in_the_name_of_the_solver(solve):
    with pytest.raises(ValueError, match=f"{solve.__name__} needs payoffs that cancel"):
        solve([[[3, 0], [0, 2]], [[2, 0], [0, 3]]])
    with pytest.raises(ValueError, match=f"{solve.__name__} needs two players"):
        solve(np.zeros((3, 2, 2, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_in_symmetric_games_a_policy_trains_against_those_it_beats_or_ties(seed):
    """PSRO_rN by its definition, policy by policy [Balduzzi et al. 2019, algorithm 4]."""
    row = antisymmetric(7, seed)
    nash = marginal(zero_sum_nash(zero_sum(row)), 0)
    for weights in rectified_weights(zero_sum(row)):
        for policy in range(7):
            expected = np.array([nash[other] if row[policy, other] >= 0 else 0 for other in range(7)])
            expected = expected / expected.sum() if nash[policy] > 0 else np.zeros(7)
            np.testing.assert_allclose(weights[policy], expected, atol=1e-9)


def test_rectified_nash_is_the_mean_of_what_is_trained_against():
    """Biased rock-paper-scissors, p = (1, 10, 5) / 16: each meets itself and the one that it beats."""
    row = np.array([[0, -0.25, 0.5], [0.25, 0, -0.05], [-0.5, 0.05, 0]])
    rock, paper, scissors = np.array([1, 0, 5]) / 6, np.array([1, 10, 0]) / 11, np.array([0, 10, 5]) / 15
    met = (1 * rock + 10 * paper + 5 * scissors) / 16
    np.testing.assert_allclose(rectified_nash(zero_sum(row)), np.outer(met, met), atol=1e-12)


def test_in_other_games_not_to_lose_is_to_earn_the_value():
    """Worth 1/5 to the row player: each row keeps the column that suits it, each column the other row."""
    payoffs = zero_sum([[3.0, -1.0], [-1.0, 0.5]]) + 100
    row_meets, column_meets = rectified_weights(payoffs)
    np.testing.assert_allclose(row_meets, [[1, 0], [0, 1]])
    np.testing.assert_allclose(column_meets, [[0, 1], [1, 0]])


def test_who_is_not_in_the_equilibrium_does_not_train():
    """A saddle point, of a game with more rows than columns."""
    payoffs = zero_sum([[2.0, 1.0], [0.0, -1.0], [3.0, 0.0]])
    row_meets, column_meets = rectified_weights(payoffs)
    np.testing.assert_array_equal(row_meets, [[0, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(column_meets, [[0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(rectified_nash(payoffs), [[0, 1], [0, 0], [0, 0]])
