"""Quantal response equilibria and where they lead: closed forms, golden equilibria, Gambit as a referee, and laws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, softmax

from games.normal_form import matching_pennies
from metasolvers import (
    NotConverged,
    deviation_gains,
    logit_nash,
    logit_path,
    marginal,
    nash_conv,
    payoff_spread,
    product,
    pure_equilibria,
    quantal,
    quantal_response,
)
from metasolvers.gambit import gambit_nash
from metasolvers.metagame import in_units_of_spread
from tests.golden_cases import numbers, select
from tests.metasolvers.test_bimatrix import bimatrix

quick = settings(max_examples=15, deadline=None, derandomize=True)
TURNING = np.array([[[1, 3, 4], [4, 3, 1], [1, 0, 4]], [[0, 3, 0], [4, 2, 4], [2, 1, 0.0]]])
"""A game whose principal branch turns back at rationality 1.824 and goes on again from 1.809."""


def marginals(sigma):
    return [marginal(sigma, player) for player in range(sigma.ndim)]


def residual(payoffs, sigma, rationality):
    """How far every player's strategy is from the softmax of what policies earn against the others."""
    strategies, off = marginals(sigma), []
    for player, own in enumerate(payoffs):
        others = [strategy for other, strategy in enumerate(strategies) if other != player]
        flat = np.moveaxis(own, player, 0).reshape(len(strategies[player]), -1)
        earned = flat @ (product(others).ravel() if others else np.ones(1))
        off.append(np.abs(strategies[player] - softmax(rationality * earned)).max())
    return max(off)


@st.composite
def games(draw):
    """Payoffs of 1 to 4 players with 1 to 3 policies each."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(len(shape), *shape))


@pytest.mark.parametrize("case", select("n_player_nash"))
def test_golden(case):
    """The path ends at one of the equilibria listed, and there are as many pure ones."""
    build = case["input"]
    payoffs = numbers(build["payoffs"]) if "payoffs" in build else matching_pennies(build["players"]).payoffs
    expected = case["expected"]
    listed = [numbers(strategies) for strategies in expected.get("equilibria", [expected.get("equilibrium")])]
    found = np.array(marginals(logit_nash(payoffs)))
    assert min(np.abs(found - strategies).max() for strategies in listed) <= case["tolerance"]
    assert len(pure_equilibria(payoffs)) == expected["n_pure"]
    for strategies in listed:
        assert nash_conv(payoffs, product(list(strategies))) <= case["tolerance"] * np.ptp(payoffs)


@pytest.mark.parametrize("case", select("general_sum_nash", "zero_sum_nash"))
def test_golden_bimatrix_games(case):
    """Degenerate ones, at 1e-6 and at 700, with an offset of 1e6: an equilibrium, and the one that is unique."""
    payoffs, expected = bimatrix(case), case["expected"]
    found = marginals(logit_nash(payoffs))
    listed = expected.get("equilibria", [])
    if expected.get("row_unique") and expected.get("col_unique"):
        listed = [[expected["row_strategy"], expected["col_strategy"]]]
    if len(listed) == 1:
        for strategy, golden in zip(found, listed[0], strict=True):
            np.testing.assert_allclose(strategy, numbers(golden), atol=1e-6)
    rounding = 8 * np.spacing(np.abs(payoffs).max())
    assert nash_conv(payoffs, product(found)) <= 1e-8 * payoff_spread(payoffs) + rounding


@quick
@given(payoffs=games(), rationality=st.sampled_from([0.0, 0.3, 2.0, 30.0]), scale=st.sampled_from([1e-6, 1.0, 700.0]))
def test_quantal_responses_respond_to_themselves(payoffs, rationality, scale):
    """Rationality is per payoff unit: in larger units, less of it gives the same."""
    sigma = quantal_response(payoffs, rationality)
    assert residual(payoffs, sigma, rationality) <= 1e-8
    np.testing.assert_allclose(quantal_response(scale * payoffs, rationality / scale), sigma, atol=1e-8)


@pytest.mark.parametrize("rationality", [0.1, 1, 10])
def test_the_dilemma_in_closed_form(rationality):
    """Defection gains 2 against a cooperator and 1 against a defector: p = expit(rationality (2 - p))."""
    dilemma = [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]
    defects = brentq(lambda p: expit(rationality * (2 - p)) - p, 0, 1, xtol=1e-14)
    np.testing.assert_allclose(
        marginals(quantal_response(dilemma, rationality)), [[1 - defects, defects]] * 2, atol=1e-9
    )


@pytest.mark.parametrize("payoffs", [TURNING, np.random.default_rng(0).normal(size=(3, 2, 3, 2))], ids=["turning", "3"])
def test_all_of_a_path_is_quantal_response(payoffs):
    """From the uniform strategies to best responses, in small steps."""
    points = list(logit_path(payoffs))
    for point in points[:-30]:
        assert residual(payoffs, product(point.strategies), point.rationality) <= 1e-8
    assert points[0].rationality == 0
    np.testing.assert_allclose(product(points[0].strategies), 1 / payoffs[0].size)
    assert nash_conv(payoffs, product(points[-1].strategies)) <= 1e-6
    steps = [np.abs(product(b.strategies) - product(a.strategies)).max() for a, b in pairwise(points)]
    assert max(steps) <= 0.1


def test_a_path_that_turns_back():
    """The rationality decreases for a while; where it passes one value three times, the first passage counts."""
    points = list(logit_path(TURNING))
    back = np.flatnonzero(np.diff([point.rationality for point in points]) < 0)
    turn, again = points[back[0]].rationality, points[back[-1] + 1].rationality
    assert again < turn
    np.testing.assert_allclose([turn, again], [1.824, 1.809], atol=2e-3)
    first = quantal_response(TURNING, (turn + again) / 2)
    assert np.abs(first - product(points[back[0]].strategies)).max() < 0.1
    (referee,) = gambit_nash(TURNING, "logit")
    np.testing.assert_allclose(logit_nash(TURNING), product(referee), atol=1e-3)  # Gambit ends earlier


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 2), (2, 2, 2), (3, 2, 3)])
def test_gambit_ends_at_the_same_equilibrium(shape):
    for seed in range(3):
        payoffs = in_units_of_spread(np.random.default_rng(seed).normal(size=(len(shape), *shape)))
        (referee,) = gambit_nash(payoffs, "logit")
        np.testing.assert_allclose(logit_nash(payoffs), product(referee), atol=1e-5)


@quick
@given(losses=st.lists(st.floats(0.1, 3), min_size=4, max_size=4))
def test_coordination_ends_where_less_is_at_risk(losses):
    """2x2 games with two pure equilibria: the one whose deviations lose more in product [Turocy 2005]."""
    first, second = losses[0] * losses[1], losses[2] * losses[3]
    if abs(first - second) < 0.02:
        return
    payoffs = np.array([np.diag([losses[0], losses[2]]), np.diag([losses[1], losses[3]])])
    better = [1.0, 0.0] if first > second else [0.0, 1.0]
    np.testing.assert_allclose(logit_nash(payoffs), np.diag(better), atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 30), (40, 40), (8, 8, 8), (5, 5, 5, 5), (2, 2, 2, 2, 2, 2)])
def test_larger_games(shape):
    payoffs = np.random.default_rng(5).normal(size=(len(shape), *shape))
    assert nash_conv(payoffs, logit_nash(payoffs)) <= 1e-8


@quick
@given(payoffs=games(), seed=st.integers(0, 99))
def test_players_may_count_in_units_of_their_own(payoffs, seed):
    """A player who earns millionths is as strategic as others; every gain counts in the player's own units."""
    scales = np.random.default_rng(seed).choice([1e-6, 1.0, 700.0], size=len(payoffs))
    scaled = scales.reshape(-1, *[1] * (payoffs.ndim - 1)) * payoffs
    sigma = logit_nash(scaled)
    np.testing.assert_allclose(sigma, logit_nash(payoffs), atol=1e-9)
    for gains, scale in zip(deviation_gains(scaled, sigma), scales, strict=True):
        assert gains.max() <= 1e-8 * scale


def test_what_is_hardly_worse_is_not_played():
    """700 against 700.005 is no tie."""
    np.testing.assert_array_equal(logit_nash([[[700.0], [700.005], [-700]], [[0], [0], [0]]]), [[0], [1], [0]])


def test_a_branch_that_is_lost_is_said_to_be(monkeypatch):
    monkeypatch.setattr(quantal, "MAX_STEPS", 20)
    with pytest.raises(NotConverged, match=r"logit_path .* residual .* lost"):
        list(logit_path(TURNING))
    with pytest.raises(NotConverged, match=r"quantal_response .* residual .* lost"):
        quantal_response(TURNING, 100)
    with pytest.raises(NotConverged, match=r"logit_nash .* nash_conv") as raised:
        logit_nash(TURNING)
    assert raised.value.value > 1e-8


def test_rationality_out_of_reach_leads_to_nash():
    """A thousand times what the docstring promises and more; the promise itself holds."""
    battle_of_the_sexes = np.array([[[3, 0], [0, 2]], [[2, 0], [0, 3.0]]])
    reach = 1e8 / payoff_spread(battle_of_the_sexes)
    np.testing.assert_allclose(quantal_response(battle_of_the_sexes, reach), [[0.24, 0.36], [0.16, 0.24]], atol=1e-6)
    with pytest.raises(NotConverged, match=r"lost at .* up to 1e.08.*: use logit_nash"):
        quantal_response(battle_of_the_sexes, 1e4 * reach)


@pytest.mark.parametrize("rationality", [-1, np.inf, np.nan])
def test_rationality_is_finite_and_not_negative(rationality):
    with pytest.raises(ValueError, match="finite and >= 0, per payoff unit"):
        quantal_response(TURNING, rationality)
