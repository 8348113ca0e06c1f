"""Time averages of play, and waiting for their certificate."""

from itertools import islice, repeat

import numpy as np
import pytest
from open_spiel.python.algorithms.projected_replicator_dynamics import _partial_multi_dot as peer_values

from metasolvers import NotConverged, cce_gap, independent, marginal, nash_conv, product
from metasolvers.dynamics import BLOCK, averaged, averages, policy_values, solve, starting, tilted
from metasolvers.metagame import in_units_of_gain
from metasolvers.no_regret import fictitious_play_steps, hedge_steps, regret_matching_plus_steps

PENNIES = np.array([[[3, -1], [-1, 1]], [[-3, 1], [1, -1]]])


def normal(shape, seed=0):
    return np.random.default_rng(seed).normal(size=(len(shape), *shape))


def random_play(shape, seed=0):
    """Without end, strategies drawn at random."""
    generator = np.random.default_rng(seed)
    while True:
        yield tuple(generator.dirichlet(np.ones(policies)) for policies in shape)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 4), (3, 2, 4), (2, 3, 1, 2)])
def test_values_agree_with_open_spiel(shape):
    payoffs, strategies = normal(shape), next(random_play(shape))
    for player, values in enumerate(policy_values(payoffs)(strategies)):
        np.testing.assert_allclose(values, peer_values(payoffs[player], strategies, player), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2, 4), (2, 1, 3, 2)])
@pytest.mark.parametrize("steps", [1, BLOCK, 2 * BLOCK + 1])
def test_the_average_is_of_the_joint_play(shape, steps):
    """Correlated over the steps, though independent within each."""
    average = averaged(random_play(shape), steps)
    played = list(islice(random_play(shape), steps))
    np.testing.assert_allclose(average.sigma, np.mean([product(strategies) for strategies in played], axis=0))
    np.testing.assert_array_equal(average.last[0], played[-1][0])
    assert average.steps == steps


def test_blocks_of_large_games_are_shorter():
    shape = (2, 300, 300, 100)
    first = next(averages(random_play(shape)))
    assert first.steps == 1
    assert first.sigma.sum() == pytest.approx(1)


def test_the_average_of_play_that_ends():
    constant = (np.array([0.25, 0.75]), np.array([1.0]))
    assert [average.steps for average in averages(repeat(constant, BLOCK + 3))] == [BLOCK, BLOCK + 3]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 700.0])
def test_solving_ends_with_the_certificate(scale):
    payoffs = scale * normal((3, 2, 3))
    spread = np.ptp(payoffs.reshape(3, -1), axis=1).max()
    for tolerance in (0.05, 0.005):
        sigma = solve(hedge_steps(payoffs), payoffs, tolerance)
        assert cce_gap(payoffs, sigma) <= tolerance * spread


def test_the_marginals_of_a_zero_sum_game_are_nash_strategies():
    sigma = solve(regret_matching_plus_steps(PENNIES), PENNIES, tolerance=5e-3)
    assert nash_conv(PENNIES, independent(sigma)) <= 5e-3 * 4
    np.testing.assert_allclose(marginal(sigma, 0), [1 / 3, 2 / 3], atol=0.02)


def test_what_does_not_converge_says_so_with_its_certificate():
    with pytest.raises(NotConverged, match=r"fictitious_play did not converge: .* 50 steps were not enough") as raised:
        solve(fictitious_play_steps(PENNIES), PENNIES, tolerance=1e-6, max_steps=50)
    error = raised.value
    np.testing.assert_array_equal(error.sigma, averaged(fictitious_play_steps(PENNIES), 50).sigma)
    assert error.value == pytest.approx(cce_gap(in_units_of_gain(PENNIES), error.sigma))
    assert (error.certificate, error.tolerance) == ("cce_gap / largest gain", 1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance must be"),
        ({"tolerance": np.nan}, "tolerance must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"max_steps": 1.5}, "max_steps must be"),
        ({"max_steps": np.inf}, "max_steps must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        solve(hedge_steps(PENNIES), PENNIES, **options)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([[0.5, 0.5]], "one strategy for each player"),
        ([[0.5, 0.5], [1.0]], "one strategy for each player"),
        ([[0.5, 0.5], [0.5, 0.6]], "sum to 1"),
    ],
)
def test_bad_starts(start, message):
    with pytest.raises(ValueError, match=message):
        starting(PENNIES, start)


def test_tilting_keeps_what_is_absent_away():
    """Even where its exponent alone would overflow."""
    np.testing.assert_allclose(tilted(np.array([0.5, 0.5, 0.0]), np.array([0.0, np.log(3), 1e4])), [0.25, 0.75, 0])
