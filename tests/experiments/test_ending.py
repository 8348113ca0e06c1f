"""When runs end, and what a best response gains, from what was measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.ending import ending, improves
from experiments.measures import response_gain
from marl.exact import ExactTable
from marl.population import PayoffTable
from metasolvers import deviation_gains


def gap(iteration, value, error=0.0, kind="lower bound"):
    return {"metric": "full_gap", "iteration": iteration, "value": value, "standard_error": error, "kind": kind}


def found(iteration, *gains, copies=0, error=0.0):
    rows = [{"metric": "response_gain", "iteration": iteration, "value": g, "standard_error": error} for g in gains]
    return [*rows, {"metric": "duplicates", "iteration": iteration, "value": copies}]


@pytest.mark.parametrize(("value", "error", "ends"), [(0.1, 0, True), (0.05, 0.02, True), (0.05, 0.03, False)])
def test_a_gap_is_small_enough_with_its_errors(value, error, ends):
    told = ending([gap(0, 1), gap(1, value, error)], 0.1, None, False)
    assert (told is not None) == ends


def test_only_an_exact_gap_is_that_of_the_whole_game():
    """What best responses found may be less: there is reason to go on."""
    exact, played = (ending([gap(5, 0.05, kind=kind)], 0.1, None, False) for kind in ("exact", "lower bound"))
    assert exact == ("the gap in the whole game of iteration 5 is at most 0.1", None, "")
    found = "best responses found a gap of at most 0.1 in iteration 5 (a lower bound on the whole game's)"
    assert played == (found, 9, "--stop-at None")


def test_only_the_last_gap_counts():
    assert ending([gap(0, 0), gap(1, 1)], 0.1, None, False) is None
    assert ending([], 0.1, 3, True) is None


def test_a_run_ends_where_everything_was_found_before_and_would_be_again():
    rows = [*found(1, 1, 1, copies=1), *found(2, 1, 1, copies=2)]
    assert "found before" in ending(rows, None, None, True).why
    assert ending(rows, None, None, False) is None
    assert ending(rows[:3], None, None, True) is None


def test_patience_is_with_responses_that_gain_nothing():
    rows = [row for i, gain in enumerate([1, 0.3, 0, -1], start=1) for row in found(i, gain, 0, error=0.1)]
    assert ending(rows, None, 3, False) is None  # 0.3 is above two standard errors
    assert "no best response gained anything in 2 iterations" in ending(rows, None, 2, False).why


@pytest.mark.parametrize(
    ("values", "patience", "ends"),
    [
        ([5, 4, 3], 1, False),
        ([5, 4, 4], 1, True),
        ([5, 4, 3.95, 4], 2, True),  # the fall is within the standard error of 0.1
        ([5, 4, 3.8, 4], 2, False),
        ([5, 4], 2, False),
    ],
)
def test_patience_is_with_gaps_that_do_not_fall(values, patience, ends):
    rows = [gap(i, value, 0.1) for i, value in enumerate(values)]
    assert (ending(rows, None, patience, False) is not None) == ends


def test_exact_gains_are_above_rounding():
    assert not improves({"value": 1e-10, "standard_error": 0})
    assert improves({"value": 1e-6, "standard_error": 0})


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_a_response_gains_what_deviating_to_it_does(seed, players):
    """And sigma may be of the populations as they were before."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 4, players))
    payoffs = rng.normal(size=(players, *(size + 1 for size in sizes)))
    sigma = rng.random(sizes)
    sigma /= sigma.sum()
    gains = deviation_gains(payoffs, np.pad(sigma, [(0, 1)] * players))
    for player, size in enumerate(sizes):
        gain = response_gain(ExactTable(payoffs), sigma, player, size)
        assert gain.value == pytest.approx(gains[player][size], abs=1e-12)
        assert (gain.standard_error, gain.kind) == (0, "exact")
    together = response_gain(ExactTable(payoffs), sigma, 0, sizes[0], "team")
    team = np.broadcast_to(payoffs.sum(axis=0), payoffs.shape)
    assert together.value == pytest.approx(deviation_gains(team, np.pad(sigma, [(0, 1)] * players))[0][-1], abs=1e-12)


def test_played_gains_have_the_error_of_what_they_compare():
    mean, variance = np.zeros((1, 2)), np.array([4.0, 9.0])
    mean[0, 1] = 1
    table = PayoffTable(mean, variance[None, None], np.array([100, 100]))
    gain = response_gain(table, np.array([1.0]), 0, 1)
    assert gain == (1, pytest.approx(np.sqrt(0.04 + 0.09)), "estimate")
