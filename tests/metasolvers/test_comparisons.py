"""Win matrices, how often agents beat one another, and evaluation matrices of payoff tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from metasolvers.comparisons import (
    advantages,
    advantages_of_wins,
    check_antisymmetric,
    check_wins,
    two_player,
    win_matrix,
    win_probabilities,
    wins_of_payoffs,
)

GAMES = [("ann", "bob", 1), ("bob", "ann", 0.5), ("eve", "bob", 0), ("ann", "bob", 1)]


def test_records_are_counted_whoever_was_first():
    wins = win_matrix(GAMES, ["eve", "ann", "bob"])
    np.testing.assert_array_equal(wins, [[0, 0, 0], [0, 0, 2.5], [1, 0.5, 0]])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0, 0.5, 1])), max_size=30))
def test_every_game_is_worth_one_win(games):
    games = [game for game in games if game[0] != game[1]]
    wins = win_matrix(games, range(4))
    turned = win_matrix([(second, first, 1 - score) for first, second, score in games], range(4))
    assert wins.sum() == len(games)
    np.testing.assert_array_equal(wins, turned)
    check_wins(wins)


@pytest.mark.parametrize(
    ("games", "agents", "message"),
    [
        ([("ann", "bbo", 1)], ["ann", "bob"], "no agent 'bbo': did you mean 'bob'"),
        ([("ann", "ann", 1)], ["ann", "bob"], "game 0, 'ann' plays itself"),
        ([("ann", "bob", 1), ("ann", "bob", 3)], ["ann", "bob"], r"game 1 .* got 3"),
        ([("ann", "bob", np.nan)], ["ann", "bob"], "got nan"),
        ([("ann", "bob", 1), ("ann", "bob")], ["ann", "bob"], r"game 1 must be .* got \('ann', 'bob'\)"),
        ([("ann", "bob", "win")], ["ann", "bob"], "game 0 must be .* the score a number; got .*'win'"),
        ([("ann", "bob", None)], ["ann", "bob"], "game 0 must be"),
        ([7], ["ann", "bob"], "game 0 must be .* got 7"),
        ([], ["ann", "ann"], "each listed once"),
        ([], [], "at least one"),
    ],
)
def test_malformed_records(games, agents, message):
    with pytest.raises(ValueError, match=message):
        win_matrix(games, agents)


def test_wins_of_a_payoff_table_are_those_of_its_games():
    """Games of two agents in both seats, averaged into a table as a run would."""
    scores = np.random.default_rng(0).integers(0, 2, size=(3, 3, 8))  # [first, second, game]
    expected = win_matrix(
        [(i, j, scores[i, j, game]) for i, j, game in np.ndindex(scores.shape) if i != j], agents=range(3)
    )
    first = 10 * scores.mean(axis=2) - 3  # a win pays 7, a loss -3
    table = np.stack([first, 4 - first])
    np.testing.assert_allclose(wins_of_payoffs(table, games=8, win=7, loss=-3), expected, atol=1e-12)
    np.testing.assert_allclose(wins_of_payoffs(table, games=np.full((3, 3), 8), win=7, loss=-3), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("payoffs", "options", "message"),
    [
        (np.zeros((2, 2, 3)), {}, r"\[2, k, k\]"),
        (np.zeros((3, 2, 2, 2)), {}, "the same k policies in both seats"),
        ([[[0, 2], [0, 0]], [[0, -2], [0, 0]]], {}, r"at profile \(0, 1\) the players get 2 and -2"),
        ([[[0, 1], [0, 0]], [[0, 0], [0, 0]]], {}, r"at profile \(0, 1\) the players get 1 and 0"),
        (np.zeros((2, 2, 2)), {"games": -1}, "games must be non-negative"),
        (np.zeros((2, 2, 2)), {"games": [1, 1]}, "games must be non-negative"),
        (np.zeros((2, 2, 2)), {"win": -1}, "a win must be worth more"),
    ],
)
def test_payoffs_that_are_no_wins(payoffs, options, message):
    with pytest.raises(ValueError, match=message):
        wins_of_payoffs(payoffs, **options)


def test_advantages_of_a_symmetric_zero_sum_game_are_its_payoffs():
    matrix = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
    np.testing.assert_array_equal(advantages(two_player(matrix)), matrix)


@pytest.mark.parametrize("offset", [0, 1e3])
def test_advantages_leave_out_what_a_seat_is_worth(offset):
    """A constant for either player, and a bonus for the seat, are nobody's merit."""
    table = np.random.default_rng(0).normal(size=(2, 4, 4))
    moved = table + np.array([offset, -3 * offset])[:, None, None]
    np.testing.assert_allclose(advantages(moved), advantages(table), atol=1e-12 + 1e-15 * offset)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_score_intervals_agree_with_scipy(confidence):
    wins = np.array([[0, 0, 7], [12, 0, 1], [7, 2, 0]])
    estimate, low, high = win_probabilities(wins, confidence)
    for i, j in zip(*np.nonzero(~np.eye(3, dtype=bool)), strict=True):
        test = binomtest(int(wins[i, j]), int(wins[i, j] + wins[j, i]))
        expected = test.proportion_ci(confidence, method="wilson")
        assert (estimate[i, j], low[i, j], high[i, j]) == pytest.approx((test.statistic, *expected), abs=1e-12)


def test_who_never_met_is_not_said_to_be_equal():
    estimate, low, high = win_probabilities(np.zeros((2, 2)))
    assert np.isnan(estimate).all()
    assert (low == 0).all()
    assert (high == 1).all()


def test_advantages_of_wins_are_shares_above_a_half():
    """Three of four won; two games drawn; the last two never met."""
    wins = np.array([[0, 3, 1], [1, 0, 0], [1, 0, 0]])
    expected = [[0, 0.25, 0], [-0.25, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(advantages_of_wins(wins), expected)


def test_nobody_plays_on_the_diagonal_of_an_evaluation_matrix():
    """Shares of games won are not known there, and they are all that an evaluation matrix needs."""
    wins = np.array([[0, 3, 5], [1, 0, 2], [2, 9, 0]])
    shares = win_probabilities(wins).estimate
    assert np.isnan(shares.diagonal()).all()
    np.testing.assert_allclose(check_antisymmetric(shares - 0.5), advantages_of_wins(wins), atol=1e-15)


@pytest.mark.parametrize("confidence", [0, 1, np.nan, 95])
def test_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match=r"in \(0, 1\)"):
        win_probabilities([[0, 1], [1, 0]], confidence)


MALFORMED = [
    ([[0, 1], [1]], "ragged"),
    ([[0, np.nan], [1, 0]], r"got nan at \(0, 1\)"),
    (np.zeros((2, 2), complex), "dtype complex128"),
    (np.zeros((2, 3)), r"got shape \(2, 3\)"),
    (np.zeros((0, 0)), r"got shape \(0, 0\)"),
    (np.zeros((1, 2, 2)), r"got shape \(1, 2, 2\)"),
]


@pytest.mark.parametrize(
    ("wins", "message"),
    [*MALFORMED, ([[0, 1], [-2, 0]], r"got -2 at \(1, 0\)"), ([[0, 1], [2, 3]], r"got 3 at \(1, 1\)")],
)
def test_malformed_wins(wins, message):
    with pytest.raises(ValueError, match=message):
        check_wins(wins)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        *MALFORMED,
        ([[0, 0.6, 0.5], [0.4, 0, 0.2], [0.5, 0.8, 0]], r"got 0.6 at \(0, 1\) and 0.4 at \(1, 0\)"),
        ([[0.0, 1.0], [-1.0, 1e-3]], r"got 0.001 at \(1, 1\)"),
    ],
)
def test_malformed_evaluation_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_antisymmetric(matrix)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 700, 1e300])
def test_rounding_of_any_scale_is_forgiven_and_removed(scale):
    matrix = (scale * np.random.default_rng(0).normal(size=(4, 4))).astype(np.float64)
    matrix = (matrix - matrix.T) * (1 + 1e-8 * np.random.default_rng(1).random((4, 4)))
    before = matrix.copy()
    found = check_antisymmetric(matrix)
    np.testing.assert_array_equal(found, -found.T)
    np.testing.assert_allclose(found, matrix, rtol=1e-7)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("matrix", [[1, 2], np.zeros((0, 2)), np.zeros((1, 1, 1))])
def test_a_game_is_made_of_a_matrix(matrix):
    with pytest.raises(ValueError, match=r"matrix must be \[m, n\]"):
        two_player(matrix)
