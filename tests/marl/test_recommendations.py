"""The played CE gap, against games whose exact one is known."""

import numpy as np
import pytest

from games import make
from games.exact import TabularPolicy, recommended_responses
from games.normal_form import NormalForm, matching_pennies
from marl.exact import evaluate_exact, exact_ce_gap, population_parts
from marl.population import Estimate, full_gap
from marl.recommendations import full_ce_gap
from metasolvers import ce_gap
from tests.marl.small_games import Fixed

HEADS, TAILS, FAIR = Fixed((1.0, 0.0)), Fixed((0.0, 1.0)), Fixed((0.5, 0.5))
CHICKEN = NormalForm([[[0, 7], [2, 6]], [[0, 2], [7, 6]]])
LIGHTS = np.array([[0.0, 0.5], [0.5, 0.0]])


def nobody(populations):
    return [[[] for _ in population] for population in populations]


def test_the_gap_is_unbiased_and_its_error_is_honest():
    game = NormalForm([[[3, 0, 1], [1, 2, -1]], [[2, 5, 0], [0, 1, 4]]])
    populations = [[Fixed((0.9, 0.1)), Fixed((0.1, 0.9))], [Fixed((0.6, 0.2, 0.2)), Fixed((0.1, 0.8, 0.1))]]
    sigma = np.array([[0.4, 0.1], [0.1, 0.4]])
    strategies = [np.array([policy.mixture for policy in population]) for population in populations]
    payoffs = np.einsum("nab,ia,jb->nij", game.payoffs, *strategies)
    exact = ce_gap(payoffs, sigma)
    assert exact > 0.2
    gaps = [full_ce_gap(game, populations, sigma, nobody(populations), 200, seed, "gap").total for seed in range(60)]
    z = [(gap.value - exact) / gap.standard_error for gap in gaps]
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert 0.75 < np.std(z) < 1.3


def test_traffic_lights_are_obeyed():
    """A correlated equilibrium of chicken [Aumann 1974]; payoffs of pure policies are known without error."""
    gap = full_ce_gap(CHICKEN, [[HEADS, TAILS]] * 2, LIGHTS, nobody([[HEADS, TAILS]] * 2), 50, 0, "lights")
    assert gap.total == Estimate(0.0, 0.0, "lower bound")
    assert list(gap.chosen) == [{}, {}]


def test_broken_lights_are_not():
    """Always the same for both: told to drive, swerving gains 2; told to swerve, driving gains 1 [by hand]."""
    sigma = np.array([[0.5, 0.0], [0.0, 0.5]])
    gap = full_ce_gap(CHICKEN, [[HEADS, TAILS]] * 2, sigma, nobody([[HEADS, TAILS]] * 2), 50, 0, "green")
    assert gap.total.value == pytest.approx(2 * (0.5 * 2 + 0.5 * 1))
    assert list(gap.chosen) == [{0: 1, 1: 0}, {0: 1, 1: 0}]


def test_what_is_told_by_rounding_alone_is_not_played():
    sigma = np.array([[1.0, 0.0], [0.0, 3e-19]])
    gap = full_ce_gap(CHICKEN, [[HEADS, TAILS]] * 2, sigma, nobody([[HEADS, TAILS]] * 2), 50, 0, "dust")
    assert gap.total.value == 2 * 2
    assert list(gap.chosen) == [{0: 1}, {0: 1}]


def test_responses_are_to_one_recommendation_only():
    """Told heads, the second player of matching pennies knows what the first shows, but has only heads itself."""
    populations, sigma = [[HEADS, TAILS], [HEADS, HEADS]], np.array([[0.5, 0.0], [0.0, 0.5]])
    for responses, expected in (([[[], []], [[TAILS], []]], 1.0), ([[[], []], [[], [TAILS]]], 0.0)):
        gap = full_ce_gap(matching_pennies(), populations, sigma, responses, 20, 0, "told")
        assert gap.gains[1].value == expected
    with pytest.raises(ValueError, match=r"of \[2, 2\] policies a player, got \[2, 1\]"):
        full_ce_gap(matching_pennies(), populations, sigma, [[[], []], [[]]], 20, 0, "told")


def test_exact_responses_find_the_whole_gap_of_kuhn_poker():
    game = make("openspiel:kuhn_poker")
    rng = np.random.default_rng(0)
    tables = [[np.repeat(rng.random((6, 1)), 2, axis=1) for _ in range(2)] for _ in range(2)]
    populations = [
        [TabularPolicy.of(game, player, (table * [1, -1] + [0, 1]).ravel()) for table in own]
        for player, own in enumerate(tables)
    ]
    sigma = np.array([[0.6, 0.1], [0.0, 0.3]])
    best = recommended_responses(game.tree, population_parts(game, populations), sigma)
    responses = [[[TabularPolicy.of(game, player, told[k].part)] for k in range(2)] for player, told in enumerate(best)]
    exact = exact_ce_gap(game, populations, evaluate_exact(game, populations), sigma).total.value
    gap = full_ce_gap(game, populations, sigma, responses, 8000, 0, "gap")
    assert abs(gap.total.value - exact) < 4 * gap.total.standard_error < 0.4
    untold = full_gap(game, populations, sigma, [own[0] + own[1] for own in responses], 8000, 0, "gap")
    assert gap.total.value > untold.total.value
