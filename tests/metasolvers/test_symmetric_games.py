"""Symmetric games from tables of counts: beside full tensors, closed forms, and what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers import deviation_gains, logit_nash, nash_conv, product
from metasolvers.replicator_dynamics import replicator_field_single
from metasolvers.single_population import sorted_table
from metasolvers.symmetric import exchangeable_groups, expand, one_group, sorted_profiles
from metasolvers.symmetric_games import (
    strategy_payoffs,
    symmetric_nash,
    symmetric_regret,
    symmetric_replicator_field,
)
from tests.golden_cases import numbers, select

quick = settings(max_examples=25, deadline=None, derandomize=True)


def of_matrix(matrix):
    return np.stack([matrix, np.transpose(matrix)])


def random_table(players, policies, seed, ties=False):
    """A sorted table with nothing but its symmetry."""
    rng = np.random.default_rng(seed)
    profiles = sorted_profiles(players, policies)
    counts = (profiles[:, :, None] == np.arange(policies)).sum(axis=1)
    earned = rng.normal(size=counts.shape)
    return sorted_table(counts, np.round(earned) if ties else earned)


games = st.builds(random_table, st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6), st.booleans())


@quick
@given(table=games, seed=st.integers(0, 10**6))
def test_expectations_are_those_of_the_full_tensor(table, seed):
    full = expand(table, one_group(len(table)))
    x = np.random.default_rng(seed).dirichlet(np.ones(full.shape[1]))
    sigma = product([x] * len(table))
    gains = deviation_gains(full, sigma)[0]
    earned = strategy_payoffs(table, x)
    np.testing.assert_allclose(earned - x @ earned, gains, atol=1e-12)
    np.testing.assert_allclose(strategy_payoffs(full, x), earned, atol=1e-12)
    assert symmetric_regret(table, x) * len(table) == pytest.approx(nash_conv(full, sigma), abs=1e-12)


@quick
@given(table=games, scale=st.sampled_from([1e-6, 1.0, 700.0]))
def test_there_is_a_symmetric_equilibrium(table, scale):
    x = symmetric_nash(scale * table + 100 * scale)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1, abs=1e-12)
    spread = np.ptp(table) or 1.0
    assert symmetric_regret(table, x) <= 2e-8 * spread


@pytest.mark.parametrize("players", [2, 3, 4])
def test_it_is_where_the_full_game_leads(players):
    """The principal branch treats equal seats equally."""
    table = random_table(players, 3, seed=players)
    full = logit_nash(expand(table, one_group(players)))
    np.testing.assert_allclose(full, product([symmetric_nash(table)] * players), atol=1e-6)


@pytest.mark.parametrize("players", [2, 3, 10, 30])
def test_volunteers_dilemma(players):
    """Who volunteers pays 1, and everybody has 2 if anyone does: nobody does with probability (1/2)^(1/(N-1)) each
    [Diekmann 1985, Journal of Conflict Resolution 29:605]."""
    volunteers = np.arange(players + 1)
    counts = np.column_stack([volunteers, players - volunteers])
    table = sorted_table(counts, np.column_stack([np.ones(players + 1), np.where(volunteers > 0, 2.0, 0.0)]))
    refuse = 0.5 ** (1 / (players - 1))
    np.testing.assert_allclose(symmetric_nash(table), [1 - refuse, refuse], atol=1e-9)


@pytest.mark.parametrize("case", select("replicator", check="fixedpts"))
def test_golden_rest_points(case):
    game = of_matrix(numbers(case["input"]["A"]))
    for point in case["expected"]["rest_points"]:
        np.testing.assert_allclose(symmetric_replicator_field(game, numbers(point)), 0, atol=case["tolerance"])
    stable = [point for point in case["expected"]["rest_points"] if symmetric_regret(game, numbers(point)) <= 1e-9]
    assert any(np.allclose(symmetric_nash(game), numbers(point), atol=1e-6) for point in stable)


def test_two_players_replicate_as_by_their_matrix():
    matrix, x = np.random.default_rng(0).normal(size=(4, 4)), np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(
        symmetric_replicator_field(of_matrix(matrix), x), replicator_field_single(matrix, x), atol=1e-15
    )


@pytest.mark.parametrize("case", select("symmetric_reduction", check="symmetric"))
def test_golden_groups(case):
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    assert (exchangeable_groups(payoffs) == one_group(2)) == case["expected"]["symmetric"]


def test_groups_are_found_whatever_the_seating():
    """Two seats of one kind and two of another, dealt in every order."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 3, 3))
    table[1, 0], table[1, 2], table[3, :, 0], table[3, :, 2] = table[0, 0], table[0, 2], table[2, :, 0], table[2, :, 2]
    for seating in itertools.permutations(range(4)):
        first, second = seating[:2], seating[2:]
        groups = (tuple(sorted(first)), tuple(sorted(second)))
        rows = np.empty_like(table)
        for row, seat in enumerate([*groups[0], *groups[1]]):
            rows[seat] = table[row]
        assert set(exchangeable_groups(expand(rows, groups))) == set(groups)


@pytest.mark.parametrize(
    ("payoffs", "mixture", "message"),
    [
        ([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]], [0.5, 0.5], "not exchangeable: player"),
        ([[[3, 0], [5, 1]], [[3, 5], [0, 1]]], [1.0], "over the 2 policies"),
        ([[[3, 0], [5, 1]], [[3, 5], [0, 1]]], [0.7, 0.7], "mixture must be .* sum to 1"),
        ([[1.0, 2.0], [1.0, 2.0]], [0.5, 0.5], "a two-player game of matrix M"),
        ([[1.0, np.nan, 0.0]] * 2, [0.5, 0.5], "finite"),
        ([[1.0, 2.0], [1.0]], [0.5, 0.5], "ragged"),
    ],
)
def test_what_is_no_symmetric_game_is_refused(payoffs, mixture, message):
    with pytest.raises(ValueError, match=message):
        strategy_payoffs(payoffs, mixture)
