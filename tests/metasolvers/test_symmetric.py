"""Counting laws, and tables by counts against full tensors."""

from itertools import combinations_with_replacement, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasolvers import alpha_rank, cce_gap, deviation_gains, marginal, uniform, zero_sum_nash
from metasolvers.symmetric import (
    check_groups,
    check_symmetric,
    expand,
    group_sizes,
    pooled,
    profile_index,
    reduce,
    sorted_profiles,
    symmetric_table,
    symmetrised,
)
from tests.golden_cases import numbers, select

RPS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0.0]])
RPS = np.stack([RPS, -RPS])

seats_and_policies = st.tuples(st.integers(1, 5), st.integers(1, 5))


@st.composite
def divided(draw):
    """Groups of up to 4 seats in any order, and a random sorted table of them, equal policies earning equally."""
    seats = draw(st.integers(1, 4))
    label = draw(st.lists(st.integers(0, 2), min_size=seats, max_size=seats))
    groups = tuple(tuple(i for i in range(seats) if label[i] == g) for g in sorted(set(label)))
    shape = [comb(draw(st.integers(1, 3)) + len(group) - 1, len(group)) for group in groups]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return groups, pooled(rng.normal(size=(seats, *shape)), groups)


def exchanges(groups, seats):
    """Every permutation of the seats within groups, as lists."""
    for order in permutations(range(seats)):
        if all({order[seat] for seat in group} == set(group) for group in groups):
            yield list(order)


@given(seats_and_policies)
def test_there_are_as_many_sorted_profiles_as_multisets(sizes):
    seats, policies = sizes
    rows = sorted_profiles(seats, policies)
    assert len(rows) == comb(policies + seats - 1, seats)
    assert {tuple(row) for row in rows.tolist()} == set(combinations_with_replacement(range(policies), seats))


@given(seats_and_policies)
def test_index_and_profile_are_inverse(sizes):
    rows = sorted_profiles(*sizes)
    assert profile_index(rows).tolist() == list(range(len(rows)))


@given(seats_and_policies)
def test_more_policies_leave_the_first_indices_alone(sizes):
    seats, policies = sizes
    fewer, more = sorted_profiles(seats, policies), sorted_profiles(seats, policies + 1)
    assert np.array_equal(more[: len(fewer)], fewer)


@given(divided())
def test_expanded_payoffs_are_symmetric(game):
    groups, table = game
    payoffs = expand(table, groups)
    assert payoffs.ndim == 1 + len(payoffs)
    for order in exchanges(groups, len(payoffs)):
        moved = payoffs[order].transpose(0, *(1 + seat for seat in order))
        np.testing.assert_array_equal(moved, payoffs)


@given(divided())
def test_reducing_and_expanding_are_inverse(game):
    groups, table = game
    payoffs = expand(table, groups)
    np.testing.assert_array_equal(reduce(payoffs, groups), table)
    np.testing.assert_allclose(check_symmetric(payoffs, groups), table, rtol=1e-15)
    assert group_sizes(table, groups) == tuple(payoffs.shape[1 + group[0]] for group in groups)


@given(divided(), st.data())
def test_one_changed_entry_breaks_the_symmetry(game, data):
    """Unless nothing could be exchanged for it."""
    groups, table = game
    payoffs = expand(table, groups)
    entry = tuple(data.draw(st.integers(0, size - 1)) for size in payoffs.shape)
    player, *profile = entry
    orbit = {(order.index(player), *(profile[seat] for seat in order)) for order in exchanges(groups, len(payoffs))}
    payoffs[entry] += 10
    if len(orbit) == 1:
        check_symmetric(payoffs, groups)
    else:
        with pytest.raises(ValueError, match="not exchangeable: player"):
            check_symmetric(payoffs, groups)


def test_groups_of_one_are_the_ordinary_case():
    payoffs = np.random.default_rng(0).normal(size=(3, 2, 3, 4))
    groups = ((0,), (1,), (2,))
    np.testing.assert_array_equal(reduce(payoffs, groups), payoffs)
    np.testing.assert_array_equal(expand(payoffs, groups), payoffs)


def test_the_refusal_shows_both_numbers():
    dilemma = np.array([[[3, 0], [5, 1]], [[3, 4], [0, 1.0]]])
    with pytest.raises(
        ValueError, match=r"player 0 earns 5 in profile \(1, 0\), but player 1 earns 4 in profile \(0, 1\)"
    ):
        check_symmetric(dilemma, [(0, 1)])
    dilemma[1, 0, 1] = 5
    assert check_symmetric(dilemma, [(0, 1)]).tolist() == [[3, 0, 1], [3, 5, 1]]


def test_the_refusal_names_the_seats_whose_exchange_matters():
    payoffs = np.zeros((3, 2, 2, 2))
    payoffs[0, 0, 0, 1] = 1  # the first player is paid by which of the others plays 1
    with pytest.raises(ValueError, match=r"seats \(1, 2\) are not exchangeable: player 0"):
        check_symmetric(payoffs, [(0,), (1, 2)])


def test_eight_seats_and_five_policies_are_495_profiles():
    assert sorted_profiles(8, 5).shape == (495, 8)


@pytest.mark.parametrize("case", select("symmetric_reduction", check="symmetric"))
def test_golden_games_are_symmetric_or_not(case):
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    if case["expected"]["symmetric"]:
        np.testing.assert_array_equal(expand(check_symmetric(payoffs, [(0, 1)]), ((0, 1),)), payoffs)
    else:
        with pytest.raises(ValueError, match="not exchangeable"):
            check_symmetric(payoffs, [(0, 1)])


@pytest.mark.parametrize("policies", [2, 3, 5])
def test_one_matrix_is_no_game_yet(policies):
    """Nor can it be a sorted table, unless of one player and policy."""
    with pytest.raises(ValueError, match=r"a two-player game of matrix M is np.stack\(\[M, M.T\]\)"):
        symmetric_table(np.eye(policies))
    assert symmetric_table([[7.0]]) == 7


@pytest.mark.parametrize("groups", [[(0, 1)], [(0, 1), (1, 2)], [(0, 1, 2), ()], [(0, 1, 2, 3)]])
def test_groups_hold_every_seat_once(groups):
    with pytest.raises(ValueError, match=r"every seat of 0\.\.2 exactly once"):
        check_groups(groups, 3)


def test_seats_of_a_group_have_equally_many_policies():
    with pytest.raises(ValueError, match=r"\(0, 1\) are declared exchangeable, but have \[2, 3\] policies"):
        reduce(np.zeros((2, 2, 3)), [(0, 1)])
    with pytest.raises(ValueError, match="share one population"):
        symmetrised(np.full((2, 3), 1 / 6), [(0, 1)])


def test_no_number_of_policies_gives_four_profiles_of_two_seats():
    with pytest.raises(ValueError, match="4 sorted profiles"):
        group_sizes(np.zeros((2, 4)), ((0, 1),))


@given(divided(), st.integers(0, 2**32 - 1))
def test_symmetrised_strategies(game, seed):
    """They are distributions, exchanging seats changes nothing, and gaps do not grow."""
    groups, table = game
    payoffs = expand(table, groups)
    sigma = np.random.default_rng(seed).dirichlet(np.ones(payoffs[0].size)).reshape(payoffs.shape[1:])
    fair = symmetrised(sigma, groups)
    orders = list(exchanges(groups, sigma.ndim))
    np.testing.assert_allclose(fair, np.mean([sigma.transpose(order) for order in orders], axis=0), atol=1e-15)
    assert cce_gap(payoffs, fair) <= cce_gap(payoffs, sigma) + 1e-12
    for group in groups:
        for seat in group[1:]:
            np.testing.assert_allclose(marginal(fair, seat), marginal(fair, group[0]))


@given(divided())
def test_symmetric_games_have_symmetric_alpha_rank(game):
    groups, table = game
    sigma = alpha_rank(expand(table, groups))
    np.testing.assert_allclose(symmetrised(sigma, groups), sigma, rtol=1e-9)


def test_symmetrised_equilibria_of_a_symmetric_zero_sum_game_are_equilibria():
    """With a copy of rock, equilibria are many."""
    payoffs = RPS[:, [0, 0, 1, 2]][:, :, [0, 0, 1, 2]]
    fair = symmetrised(zero_sum_nash(payoffs), [(0, 1)])
    assert cce_gap(payoffs, fair) == pytest.approx(0, abs=1e-9)
    first, second = deviation_gains(payoffs, fair)
    np.testing.assert_allclose(first, second, atol=1e-9)
    np.testing.assert_array_equal(symmetrised(uniform(payoffs), [(0, 1)]), uniform(payoffs))
