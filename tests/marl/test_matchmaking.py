"""Matchmakers: laws of every registered one, and what each is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marl.matchmaking import MATCHMAKERS, WINDOW, Standing

every_matchmaker = pytest.mark.parametrize("name", MATCHMAKERS)
ORDERED = ("round_robin", "self_play")  # those that ask how old a snapshot is, rather than how it plays


@st.composite
def standings(draw):
    rates = draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    rating = st.floats(-2000, 2000)
    ratings = draw(st.lists(rating, min_size=len(rates), max_size=len(rates)))
    return Standing(np.array(rates), np.array(ratings), draw(rating), draw(st.integers(0, 100)))


@every_matchmaker
@given(standing=standings())
def test_it_gives_a_distribution(name, standing):
    chances = MATCHMAKERS[name](standing)
    assert chances.shape == standing.win_rates.shape
    assert chances.dtype == np.float64
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", sorted(set(MATCHMAKERS) - set(ORDERED)))
@given(standing=standings(), data=st.data())
def test_permuting_snapshots_permutes_the_answer(name, standing, data):
    order = data.draw(st.permutations(range(len(standing.ratings))))
    permuted = standing._replace(win_rates=standing.win_rates[order], ratings=standing.ratings[order])
    np.testing.assert_allclose(MATCHMAKERS[name](permuted), MATCHMAKERS[name](standing)[order], rtol=1e-9, atol=1e-12)


@given(standing=standings())
def test_who_is_met_and_who_is_not(standing):
    rates, gap = standing.win_rates, np.abs(standing.ratings - standing.rating)
    support = {name: matchmaker(standing) > 0 for name, matchmaker in MATCHMAKERS.items()}
    assert support["random"].all()
    assert np.flatnonzero(support["self_play"]).tolist() == [len(rates) - 1]
    assert support["fitness_window"].tolist() == (gap <= max(WINDOW, gap.min())).tolist()
    if ((1 - rates) ** 2).any():  # of denormal numbers the square is 0
        assert support["pfsp_hard"].tolist() == ((1 - rates) ** 2 > 0).tolist()
    if (rates * (1 - rates)).any():
        assert not support["pfsp_variance"][(rates == 0) | (rates == 1)].any()


@given(standing=standings())
def test_a_round_robin_meets_everybody_once_a_round(standing):
    k = len(standing.ratings)
    met = sum(MATCHMAKERS["round_robin"](standing._replace(turn=standing.turn + turn)) for turn in range(k))
    assert met.tolist() == [1.0] * k


@given(standing=standings())
def test_prioritised_self_play_prefers_the_harder_and_the_more_even(standing):
    rates = standing.win_rates
    hard, even = MATCHMAKERS["pfsp_hard"](standing), MATCHMAKERS["pfsp_variance"](standing)
    assert (np.diff(hard[np.argsort(rates)]) <= 1e-12).all()
    assert (np.diff(even[np.argsort(np.abs(rates - 0.5))]) <= 1e-12).all()


def test_who_always_wins_meets_everybody():
    """All weights are 0: nobody is left to be hard to beat."""
    champion = Standing(np.ones(4), np.zeros(4), 500.0, 0)
    assert MATCHMAKERS["pfsp_hard"](champion).tolist() == [0.25] * 4
