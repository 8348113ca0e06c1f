"""Regret matching(+), Hedge and fictitious play: golden steps, OpenSpiel, and the bounds that were proved."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import regret_matching as peer

from metasolvers import cce_gap, deviation_gains, fictitious_play, independent, marginal, nash_conv, zero_sum_nash
from metasolvers.dynamics import averaged
from metasolvers.no_regret import (
    fictitious_play_steps,
    hedge,
    hedge_steps,
    regret_matching_plus_steps,
    regret_matching_steps,
)
from tests.golden_cases import numbers, select

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
SHAPLEY = np.array([[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]])

RATES = {
    regret_matching_steps: lambda policies, steps: np.sqrt(policies / steps),
    regret_matching_plus_steps: lambda policies, steps: np.sqrt(policies / steps),
    hedge_steps: lambda policies, steps: np.sqrt(2 * np.log(policies) / steps) + np.sqrt(np.log(policies) / 8) / steps,
}
"""Proved bounds on the largest regret per step, in spreads: (policies, steps) -> bound."""


def zero_sum(shape, seed=0):
    own = np.random.default_rng(seed).normal(size=shape)
    return np.stack([own, -own])


def nth(play, step):
    return next(islice(play, step, None))


@pytest.mark.parametrize("case", select("regret_matching"))
def test_golden_regret_matching(case):
    given, expected = case["input"], case["expected"]
    payoffs, start = np.stack([numbers(given["A"]), numbers(given["B"])]), [given["x0"], given["y0"]]
    for step, strategies in expected.get("strategy_after", {}).items():
        found = nth(regret_matching_steps(payoffs, start), int(step))
        np.testing.assert_allclose(found, strategies, atol=case["tolerance"])
    if "average_within" in expected:
        average = averaged(regret_matching_steps(payoffs, start), given["steps"])
        target, within = numbers(expected["average_within"]["target"]), expected["average_within"]["eps"]
        for player in range(2):
            assert np.abs(marginal(average.sigma, player) - target[player]).max() <= within


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (3, 2, 4), (2, 2, 2, 2)])
def test_regret_matching_agrees_with_open_spiel(shape, monkeypatch):
    """Whose players start with a regret of 1e-6, and explore, unless they are told not to."""
    monkeypatch.setattr(peer, "INITIAL_REGRET_DENOM", np.inf)
    payoffs = np.random.default_rng(0).normal(size=(len(shape), *shape))
    expected = peer.regret_matching(list(payoffs), iterations=300, gamma=0)
    sigma = averaged(regret_matching_steps(payoffs), 301).sigma
    for player, strategy in enumerate(expected):
        np.testing.assert_allclose(marginal(sigma, player), strategy, atol=1e-9)


@pytest.mark.parametrize("dynamic", RATES, ids=lambda dynamic: dynamic.__name__)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 300),
)
def test_regrets_keep_the_bounds_that_were_proved(dynamic, shape, seed, steps):
    """For every player, whatever the others do, after any number of steps."""
    payoffs = np.random.default_rng(seed).normal(size=(len(shape), *shape))
    gains = deviation_gains(payoffs, averaged(dynamic(payoffs), steps).sigma)
    for own, regrets in zip(payoffs, gains, strict=True):
        assert regrets.max() <= np.ptp(own) * RATES[dynamic](len(regrets), steps) + 1e-12


def test_regret_matching_plus_forgets_negative_regrets():
    """By hand: after paper met paper, scissors' old regret of -1 no longer stands in their way."""
    payoffs, rock = np.stack([ROCK_PAPER_SCISSORS, ROCK_PAPER_SCISSORS.T]), [1, 0, 0]
    played = list(islice(regret_matching_plus_steps(payoffs, [rock, rock]), 3))
    np.testing.assert_allclose(played[1], [[0, 1, 0]] * 2)
    np.testing.assert_allclose(played[2], [[0, 0.5, 0.5]] * 2)


def test_hedge_multiplies_weights():
    """A policy that earns a spread more each step: odds of 2^steps at rate log 2, on top of those at the start."""
    payoffs = np.array([[[7.0], [4.0]], [[0.0], [0.0]]])
    assert nth(hedge_steps(payoffs, rate=np.log(2)), 5)[0] == pytest.approx([32 / 33, 1 / 33])
    assert nth(hedge_steps(payoffs, np.log(2), [[0.2, 0.8], [1]]), 5)[0] == pytest.approx([32 / 36, 4 / 36])
    step = np.exp(np.sqrt(8 * np.log(2) / 5) * 5)
    assert nth(hedge_steps(payoffs), 5)[0] == pytest.approx([step / (1 + step), 1 / (1 + step)])


@pytest.mark.parametrize("rate", [0, -1, np.inf, np.nan])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate must be"):
        hedge(np.zeros((2, 2, 2)), rate=rate)


@pytest.mark.parametrize("shape", [(3, 3), (4, 7)])
def test_fictitious_play_finds_the_value_of_zero_sum_games(shape):
    """[Robinson 1951]"""
    payoffs = zero_sum(shape)
    sigma = fictitious_play(payoffs, steps=4000)
    assert nash_conv(payoffs, independent(sigma)) <= 0.02 * np.ptp(payoffs[0])
    for player in range(2):
        np.testing.assert_allclose(marginal(sigma, player), marginal(zero_sum_nash(payoffs), player), atol=0.04)


def test_fictitious_play_responds_to_averages_and_breaks_ties_evenly():
    """By hand, from rock against rock: paper; then rock and paper are averaged, to which scissors lose nothing more."""
    payoffs, rock = np.stack([ROCK_PAPER_SCISSORS, ROCK_PAPER_SCISSORS.T]), [1, 0, 0]
    played = [strategies[0] for strategies in islice(fictitious_play_steps(payoffs, [rock, rock]), 4)]
    np.testing.assert_allclose(played, [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0.5, 0.5]])


def test_fictitious_play_cycles_in_shapleys_game():
    """[Shapley 1964]: the strategies settle nowhere near the only equilibrium; what is regretted are the switches."""
    average = averaged(fictitious_play_steps(SHAPLEY, [[1, 0, 0], [0, 1, 0]]), 3000).sigma
    assert nash_conv(SHAPLEY, independent(average)) > 0.1
    assert cce_gap(SHAPLEY, average) <= 0.005


def test_three_players_coordinate_in_fictitious_play():
    """A potential game [Monderer & Shapley 1996]: they end in the best of a common payoff's equilibria at hand."""
    payoffs = np.stack([np.random.default_rng(3).normal(size=(2, 3, 2))] * 3)
    last = averaged(fictitious_play_steps(payoffs), 500).last
    profile = tuple(int(strategy.argmax()) for strategy in last)
    assert [strategy.max() for strategy in last] == [1, 1, 1]
    for player in range(3):
        deviations = payoffs[0][tuple(slice(None) if other == player else profile[other] for other in range(3))]
        assert payoffs[0][profile] == deviations.max()
