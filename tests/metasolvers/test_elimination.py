"""Iterated elimination of strictly dominated policies against golden cases and the theory of rationalizability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from metasolvers import iterated_elimination, marginal, zero_sum_nash
from metasolvers.elimination import dominated, survivors
from tests.golden_cases import numbers, select


def normal(shape, seed=0):
    return np.random.default_rng(seed).normal(size=(len(shape), *shape))


def is_best_response(rows, policy):
    """Whether policy is best against some belief over the columns of rows [k, n], found by a program of its own."""
    worse = rows - rows[policy]
    found = linprog(
        np.zeros(rows.shape[1]), A_ub=worse, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, rows.shape[1])), b_eq=[1]
    )
    return found.status == 0


def guessing(players, guesses):
    """Everybody loses its distance from 2/5 of the others' mean guess; the guesses are 0, ..., guesses - 1."""
    guess = np.indices((guesses,) * players)
    others = (guess.sum(axis=0) - guess) / (players - 1)
    return -np.abs(guess - 0.4 * others)


@pytest.mark.parametrize("case", select("dominance"))
def test_golden_survivors(case):
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    assert [list(policies) for policies in survivors(payoffs)] == case["expected"]["survivors"]
    assert list(np.flatnonzero(dominated(payoffs, player=0))) == case["expected"]["row_dominated"]


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 1.0, 700.0]),
)
def test_undominated_policies_are_best_against_some_belief(shape, seed, scale):
    """And dominated ones against none [Pearce 1984, lemma 3; beliefs may be correlated]."""
    payoffs = scale * normal(shape, seed)
    for player in range(len(shape)):
        rows = np.moveaxis(payoffs[player], player, 0).reshape(shape[player], -1)
        best = [is_best_response(rows / scale, policy) for policy in range(len(rows))]
        np.testing.assert_array_equal(dominated(payoffs, player), ~np.array(best))


@given(seed=st.integers(0, 2**32 - 1), margin=st.sampled_from([1e-6, 1e-3, 1.0]))
def test_a_policy_below_a_mixture_is_dominated_and_one_at_it_is_not(seed, margin):
    """All mixtures earn the same against some belief, so that none beats another everywhere."""
    generator = np.random.default_rng(seed)
    rows, belief = generator.normal(size=(3, 6)), generator.dirichlet(np.ones(6))
    rows -= (rows @ belief)[:, None]
    mixture = generator.dirichlet(np.ones(3)) @ rows
    beside = np.zeros((4, 6))
    for below, expected in [(margin, True), (0.0, False)]:
        payoffs = np.stack([np.vstack([rows, mixture - below]), beside])
        assert dominated(payoffs, player=0)[3] == expected


def test_a_small_difference_is_not_a_tie():
    """700 against 700.005, with and without a payoff of 0 beside them; an offset of 1e6 spreads is no difference."""
    assert list(dominated([[[700.0], [700.005]], [[0], [0]]], 0)) == [True, False]
    assert list(dominated([[[700.0], [700.005], [0]], [[0], [0], [0]]], 0)) == [True, False, True]
    tied = np.array([[0.1 + 0.2, 1.0], [0.3, 1.0]])
    assert not dominated(np.stack([1e6 + tied, tied]), 0).any()


@pytest.mark.parametrize(("players", "guesses"), [(2, 9), (3, 6), (4, 5)])
def test_guessing_games_are_solved_one_round_after_the_other(players, guesses):
    """Only the guess of 0 survives [Nagel 1995]; at first the higher ones alone are dominated."""
    payoffs = guessing(players, guesses)
    assert not dominated(payoffs, player=0)[:2].any()
    assert [list(kept) for kept in survivors(payoffs)] == [[0]] * players
    sigma = iterated_elimination(payoffs)
    assert sigma[(0,) * players] == 1


@pytest.mark.parametrize("seed", range(5))
def test_equilibria_survive(seed):
    row = np.random.default_rng(seed).normal(size=(6, 5))
    nash = zero_sum_nash(np.stack([row, -row]))
    for player, kept in enumerate(survivors(np.stack([row, -row]))):
        assert set(np.flatnonzero(marginal(nash, player) > 1e-9)) <= set(kept)


def test_the_order_of_elimination_does_not_matter():
    """One dominated policy at a time, the last player's first."""
    for seed in range(5):
        payoffs = normal((4, 4, 3), seed)
        kept = [np.arange(policies) for policies in payoffs.shape[1:]]
        while True:
            table = payoffs[(slice(None), *np.ix_(*kept))]
            lost = [(player, policy) for player in (2, 1, 0) for policy in np.flatnonzero(dominated(table, player))]
            if not lost:
                break
            player, policy = lost[0]
            kept[player] = np.delete(kept[player], policy)
        for one_by_one, together in zip(kept, survivors(payoffs), strict=True):
            np.testing.assert_array_equal(one_by_one, together)


def test_a_player_who_is_not_there():
    with pytest.raises(ValueError, match=r"player must be in 0\.\.1"):
        dominated(np.zeros((2, 2, 2)), 2)
