"""All equilibria of two-player games: golden values, Gambit and Nashpy as referees, and laws."""

import nashpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers import nash_conv, product, pure_equilibria, support_enumeration, vertex_enumeration
from metasolvers.bimatrix import equilibrium_components
from metasolvers.gambit import gambit_nash
from tests.golden_cases import numbers, select

quick = settings(max_examples=20, deadline=None, derandomize=True)


def bimatrix(case):
    rows = numbers(case["input"]["A"])
    return np.stack([rows, numbers(case["input"]["B"]) if "B" in case["input"] else -rows])


def same_sets(found, expected, tolerance=1e-9):
    """Every equilibrium of each list is in the other."""
    rows, others = (np.array([np.concatenate(pair) for pair in pairs], dtype=float) for pairs in (found, expected))
    apart = np.abs(rows[:, None] - others).max(axis=2)
    assert len(rows) == len(others)
    assert apart.min(axis=0).max() <= tolerance
    assert apart.min(axis=1).max() <= tolerance


@st.composite
def bimatrix_games(draw, values=None, most=4):
    """Payoffs [2, m, n]: integers from -values to values, so that ties abound, or normal."""
    shape = (2, draw(st.integers(1, most)), draw(st.integers(1, most)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.normal(size=shape) if values is None else rng.integers(-values, values + 1, shape)


@pytest.mark.parametrize("case", select("general_sum_nash"))
def test_golden(case):
    """All extreme equilibria, nothing else, and all pure ones; von Stengel's game has 75 of them."""
    payoffs, expected = bimatrix(case), case["expected"]
    found = vertex_enumeration(payoffs)
    assert len(found) == expected["n_extreme"]
    assert len(pure_equilibria(payoffs)) == expected["n_pure"]
    assert max(nash_conv(payoffs, product(pair)) for pair in found) <= 1e-13 * np.ptp(payoffs)
    if "equilibria" in expected:
        same_sets(found, [[numbers(x), numbers(y)] for x, y in expected["equilibria"]], case["tolerance"])


@pytest.mark.parametrize("case", select("zero_sum_nash"))
def test_golden_zero_sum(case):
    """One equilibrium where it is unique; elsewhere the vertices reach exactly as far as the optimal strategies."""
    payoffs, expected = bimatrix(case), case["expected"]
    sides = zip(*vertex_enumeration(payoffs), strict=True)
    for side, strategies in zip(("row", "col"), map(np.array, sides), strict=True):
        if expected.get(f"{side}_unique"):
            np.testing.assert_allclose(
                np.unique(strategies, axis=0), [numbers(expected[f"{side}_strategy"])], rtol=0, atol=case["tolerance"]
            )
        if f"{side}_range" in expected:
            reached = np.stack([strategies.min(axis=0), strategies.max(axis=0)], axis=1)
            np.testing.assert_allclose(reached, numbers(expected[f"{side}_range"]), atol=case["tolerance"])


@quick
@given(payoffs=bimatrix_games(values=2))
def test_gambit_finds_the_same_in_degenerate_games(payoffs):
    """In rational arithmetic, as here; nearly all of these games have ties."""
    same_sets(vertex_enumeration(payoffs), gambit_nash(payoffs, "enummixed"))


@quick
@given(payoffs=bimatrix_games(most=5))
def test_generic_games_have_an_odd_number_of_isolated_equilibria(payoffs):
    """Wilson (1971); found alike by vertices, by supports, and by Nashpy's vertices."""
    found = vertex_enumeration(payoffs)
    assert len(found) % 2 == 1
    assert [len(component) for component in equilibrium_components(payoffs)] == [1] * len(found)
    same_sets(support_enumeration(payoffs), found)
    if min(payoffs.shape) > 1:
        same_sets(nashpy.Game(*payoffs).vertex_enumeration(), found, 1e-6)


@quick
@given(payoffs=bimatrix_games(values=1, most=3))
def test_supports_of_degenerate_games(payoffs):
    """Each support pair once, an equilibrium each; those of the extreme equilibria among them."""
    found = list(support_enumeration(payoffs))
    supports = [tuple(np.concatenate(pair) > 0) for pair in found]
    assert len(set(supports)) == len(supports)
    assert {tuple(np.concatenate(pair) > 0) for pair in vertex_enumeration(payoffs)} <= set(supports)
    assert max(nash_conv(payoffs, product(pair)) for pair in found) <= 1e-9


@quick
@given(payoffs=bimatrix_games(values=2))
def test_pure_equilibria_are_extreme(payoffs):
    pure = [[np.argmax(x), np.argmax(y)] for x, y in vertex_enumeration(payoffs) if x.max() == y.max() == 1]
    assert sorted(pure) == pure_equilibria(payoffs).tolist()


@pytest.mark.parametrize("name", ["gs-deg1", "gs-winkels-12", "gs-nashpy82-minimizers"])
def test_nothing_changes_with_units_offsets_or_order(name):
    """Not even the last digit, where the floats that come in are exact."""
    (case,) = (case.values[0] for case in select("general_sum_nash", id=name))
    payoffs = bimatrix(case)
    found = vertex_enumeration(payoffs)
    for moved in (payoffs * 2.0**-300, payoffs * 700, payoffs + 1e6, payoffs.astype(np.float32)):
        same_sets(vertex_enumeration(moved), found, 0)
    turned = [(x[::-1], y[::-1]) for x, y in vertex_enumeration(payoffs[:, ::-1, ::-1])]
    same_sets(turned, found, 0)


def test_payoffs_are_taken_at_their_word():
    """700.005 beats 700; three tenths in floats are not a third of nine tenths."""
    assert len(vertex_enumeration([[[700.005], [700]], [[0], [0]]])) == 1
    assert len(vertex_enumeration([[[700], [700]], [[0], [0]]])) == 2
    assert len(vertex_enumeration([[[0.1 + 0.2], [0.3]], [[0], [0]]])) == 1


def test_components_of_a_game_with_a_whole_side_of_equilibria():
    """Von Stengel 2007, Algorithmic Game Theory, example 3.7: row 0 and two thirds of column 0 or more; and a point."""
    (case,) = (case.values[0] for case in select("general_sum_nash", id="gs-degenerate-qe326"))
    side, point = equilibrium_components(bimatrix(case))
    same_sets(side, [[[1, 0, 0], [1, 0]], [[1, 0, 0], [2 / 3, 1 / 3]]])
    same_sets(point, [[[0, 1 / 3, 2 / 3], [1 / 3, 2 / 3]]])


def test_the_first_support_is_quick_in_large_games():
    """Small supports come first: a 30x30 game has 1e18 pairs of them."""
    payoffs = np.random.default_rng(0).normal(size=(2, 30, 30))
    pair = next(support_enumeration(payoffs))
    assert nash_conv(payoffs, product(pair)) <= 1e-9


def test_the_tournament_without_balanced_vertices():
    """Nashpy issue 231: support enumeration of six strategies found nothing where one equilibrium is."""
    (case,) = (case.values[0] for case in select("zero_sum_nash", id="zs-tournament6-nashpy231"))
    thirds = numbers(case["expected"]["row_strategy"])
    same_sets([next(support_enumeration(bimatrix(case)))], [[thirds, thirds]])


def test_pure_equilibria_of_many_players():
    """Three meet behind one of two doors, or not at all."""
    meeting = np.zeros((3, 2, 2, 2))
    meeting[:, 0, 0, 0] = meeting[:, 1, 1, 1] = 1
    assert pure_equilibria(meeting).tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("solver", [vertex_enumeration, equilibrium_components, support_enumeration])
def test_two_players_are_needed(solver):
    with pytest.raises(ValueError, match=r"two players; got 3"):
        solver(np.zeros((3, 2, 2, 2)))


def test_large_games_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"20x20 may have \d+: use mixed_integer_nash"):
        vertex_enumeration(np.zeros((2, 20, 20)))
