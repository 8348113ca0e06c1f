"""Payoff tables and gaps, against games whose exact values are known."""

import numpy as np
import pytest

from games.normal_form import NormalForm, matching_pennies
from marl.population import deviation_value, evaluate, full_gap, mixture_value
from metasolvers import cce_gap, deviation_gains
from tests.marl.small_games import Fixed

HEADS, TAILS, FAIR = Fixed((1.0, 0.0)), Fixed((0.0, 1.0)), Fixed((0.5, 0.5))
GENERAL_SUM = NormalForm([[[3, 0, 1], [1, 2, -1]], [[2, 5, 0], [0, 1, 4]]])


def exact_mean(game, populations):
    strategies = [np.array([policy.mixture for policy in population]) for population in populations]
    return np.einsum("nab,ia,jb->nij", game.payoffs, *strategies)


def test_means_and_errors_agree_with_the_exact_values():
    populations = [[FAIR, HEADS, Fixed((0.2, 0.8))], [Fixed((0.3, 0.3, 0.4)), Fixed((0.0, 0.5, 0.5))]]
    table = evaluate(GENERAL_SUM, populations, 4000, seed=1)
    noisy = table.standard_error > 0
    z = (table.mean - exact_mean(GENERAL_SUM, populations))[noisy] / table.standard_error[noisy]
    assert np.abs(z).max() < 4
    assert (table.episodes == 4000).all()
    covariance = table.covariance[:, :, 0, 0]
    assert np.allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() >= -1e-9


def test_a_table_does_not_depend_on_how_it_was_extended():
    game, policies = matching_pennies(3), [FAIR, HEADS, TAILS]
    whole = evaluate(game, [policies] * 3, 8, seed=5)
    first = evaluate(game, [[FAIR], [FAIR, HEADS], [FAIR]], 8, seed=5)
    grown = evaluate(game, [policies] * 3, 8, seed=5, known=evaluate(game, [policies[:2]] * 3, 8, 5, first))
    for one, other in zip(whole, grown, strict=True):
        assert np.array_equal(one, other)


def test_only_new_profiles_are_played():
    class Forbidden(Fixed):
        def act(self, *_):
            raise AssertionError("this profile was known")

    game = matching_pennies()
    known = evaluate(game, [[FAIR, HEADS], [FAIR]], 4, seed=0)
    again = evaluate(game, [[Forbidden((1, 0)), Forbidden((1, 0))], [Forbidden((1, 0))]], 4, seed=0, known=known)
    assert np.array_equal(known.mean, again.mean)


@pytest.mark.parametrize("episodes", [1, 0, -4])
def test_one_episode_shows_no_variance(episodes):
    with pytest.raises(ValueError, match="at least 2 episodes"):
        evaluate(matching_pennies(), [[FAIR], [FAIR]], episodes, seed=0)


def test_a_table_of_other_populations_is_refused():
    known = evaluate(matching_pennies(), [[FAIR, HEADS], [FAIR]], 4, seed=0)
    with pytest.raises(ValueError, match=r"\(2, 1\) policies cannot be extended to populations of \(1, 2\)"):
        evaluate(matching_pennies(), [[FAIR], [FAIR, HEADS]], 4, seed=0, known=known)


def test_the_gap_is_unbiased_and_its_error_is_honest():
    """Over many samples the estimate scatters around the exact gap as its standard error says, also where two players
    deviate, whose gains share one baseline sample."""
    game = GENERAL_SUM
    populations = [[Fixed((0.9, 0.1)), Fixed((0.1, 0.9))], [Fixed((0.6, 0.2, 0.2)), Fixed((0.1, 0.8, 0.1))]]
    sigma = np.array([[0.1, 0.3], [0.5, 0.1]])
    payoffs = exact_mean(game, populations)
    assert all(gains.max() > 0.1 for gains in deviation_gains(payoffs, sigma))
    estimates = [full_gap(game, populations, sigma, [[], []], 400, seed, "gap").total for seed in range(100)]
    z = [(estimate.value - cce_gap(payoffs, sigma)) / estimate.standard_error for estimate in estimates]
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert 0.75 < np.std(z) < 1.3


def test_mixture_and_deviation_values():
    game, populations = matching_pennies(), [[HEADS, TAILS], [HEADS, TAILS]]
    matched = np.array([[0.5, 0.0], [0.0, 0.5]])
    value = mixture_value(game, populations, matched, 500, seed=0, unit="value")
    assert np.array_equal(value.mean, [1, -1])
    assert value.team.value == 0
    # The joint draw is kept: a deviator faces the other's marginal, and breaks the correlation.
    deviation = deviation_value(game, populations, matched, (1, HEADS), 4000, seed=0, unit="deviation")
    assert abs(deviation.mean[1]) < 4 * deviation.standard_error[1]


def test_the_full_gap_finds_the_best_of_responses_and_population():
    game, heads = matching_pennies(), np.array([[1.0]])
    report = full_gap(game, [[HEADS], [HEADS]], heads, [[TAILS], [FAIR, TAILS]], 1000, seed=0, unit="gap")
    assert report.chosen == [None, 2]
    assert report.total.value == 2
    assert report.total.kind == "lower bound"
    assert [gain.value for gain in report.gains] == [0, 2]


def test_the_full_gap_of_an_equilibrium_is_nothing():
    game, fair = matching_pennies(), np.array([[1.0]])
    report = full_gap(game, [[FAIR], [FAIR]], fair, [[HEADS, TAILS], [HEADS, TAILS]], 4000, seed=3, unit="gap")
    assert abs(report.total.value) <= 4 * max(report.total.standard_error, 1e-12)
