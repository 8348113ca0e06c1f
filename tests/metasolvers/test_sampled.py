"""Samples decide edges and bound rankings as often as they say, and are taken where they help."""

from statistics import NormalDist

import numpy as np
import pytest

from metasolvers import alpha_rank
from metasolvers.response_graphs import responses
from metasolvers.sampled import alpha_rank_interval, hoeffding_radius, next_profile, undecided_edges
from tests.metasolvers.test_alpharank import jordan, majority, normal

ROCK = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def peak(policies):
    """One equilibrium, one standard error above its many alternatives: an estimate seldom shows them all below it."""
    payoffs = np.zeros((2, policies, policies))
    payoffs[:, 0, 0] = 1
    return payoffs


GAMES = {
    "no difference at all": (np.zeros((2, 3, 3)), 1.0),
    "peak": (peak(5), 1.0),
    "normal": (normal((3, 3)), 0.3),
    "rock paper scissors": (np.stack([ROCK, -ROCK]), 0.3),
    "near coordination": (np.stack([np.diag([1, 1.05])] * 2), 0.05),
    "three players": (normal((2, 2, 2)), 0.3),
    "cycle": (jordan(3), 0.5),
    "deep wells": (majority(3, 2), 0.1),
}


def coverage(payoffs, standard_error, alpha, runs):
    """How often the 95 % bounds hold for all profiles at once, and for the worst profile, over simulated samples."""
    rng, truth = np.random.default_rng(0), alpha_rank(payoffs, alpha)
    errors = np.full(payoffs.shape, standard_error)
    held = []
    for _ in range(runs):
        _, low, high = alpha_rank_interval(payoffs + errors * rng.normal(size=payoffs.shape), errors, alpha)
        held.append((low <= truth + 1e-12) & (truth - 1e-12 <= high))
    return np.mean([each.all() for each in held]), np.mean(held, axis=0).min()


@pytest.mark.parametrize("name", ["no difference at all", "cycle"])
def test_bounds_cover_the_truth(name):
    together, _ = coverage(*GAMES[name], alpha=10.0, runs=10)
    assert together >= 0.95


def test_percentiles_of_resampled_rankings_do_not():
    """Why the bounds are found otherwise: the range of resampled rankings often misses the mass of the peak."""
    rng, payoffs = np.random.default_rng(0), peak(5)
    held = []
    for _ in range(10):
        seen = payoffs + rng.normal(size=payoffs.shape)
        resampled = [alpha_rank(seen + rng.normal(size=payoffs.shape), 10.0)[0, 0] for _ in range(40)]
        held.append(np.quantile(resampled, 0.975) >= alpha_rank(payoffs, 10.0)[0, 0])
    assert np.mean(held) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("name", GAMES)
def test_coverage_is_at_least_what_was_asked_for(name, alpha):
    """Over 100 samples; the printed numbers are the coverage for all profiles at once and for the worst one."""
    together, worst = coverage(*GAMES[name], alpha, runs=100)
    print(f"{name}, alpha {alpha}: {together:.3f} together, {worst:.3f} the worst profile")
    assert together >= 0.95


def test_more_episodes_shorten_the_bounds_to_the_estimate():
    payoffs = normal((2, 3))
    widths = []
    for error in (0.5, 0.05, 0.0005):
        estimate, low, high = alpha_rank_interval(payoffs, np.full(payoffs.shape, error), 1.0)
        np.testing.assert_array_equal(estimate, alpha_rank(payoffs, 1.0))
        assert (low <= estimate).all()
        assert (estimate <= high).all()
        widths.append((high - low).max())
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.2
    _, low, high = alpha_rank_interval(payoffs, np.zeros(payoffs.shape))
    np.testing.assert_array_equal(low, high)


def test_bounds_are_the_same_for_the_same_seed():
    arguments = normal((2, 3)), np.full((2, 2, 3), 0.3)
    np.testing.assert_array_equal(alpha_rank_interval(*arguments), alpha_rank_interval(*arguments))
    assert not np.array_equal(alpha_rank_interval(*arguments), alpha_rank_interval(*arguments, seed=1))


def test_undecided_edges_are_those_within_the_error_of_the_gain():
    """Gains of 0.3 with standard errors of 0.1 each: 2.1 errors of the difference."""
    mean = np.array([[[0.0, 0.0], [0.3, 0.2]], [[0.0, 0.3], [0.0, 0.0]]])
    errors = np.full(mean.shape, 0.1)
    found = undecided_edges(mean, errors)
    assert list(zip(found.first, found.second, found.player, strict=True)) == [(1, 3, 0), (2, 3, 1)]
    assert len(undecided_edges(mean, errors, confidence=0.97).first) == 4
    assert len(undecided_edges(mean, np.zeros(mean.shape)).first) == 0


def test_five_percent_of_true_ties_are_called_decided():
    payoffs = np.random.default_rng(0).normal(size=(2, 30, 30))
    share = len(undecided_edges(payoffs, np.ones(payoffs.shape)).first) / (2 * 30 * 30 * 29 / 2)
    assert share == pytest.approx(0.95, abs=0.015)


def sampled(rates, rng, choose, batch=100):
    """Play Bernoulli games for player 0 (what it wins player 1 loses) until `choose` has no more to ask."""
    wins, episodes = np.zeros(rates.shape), np.zeros(rates.shape, dtype=int)
    while True:
        won = wins / np.maximum(episodes, 1)
        mean, radius = np.stack([won, 1 - won]), hoeffding_radius(episodes, players=2, delta=0.1)
        asked = next_profile(mean, radius, episodes)
        if asked is None:
            return mean, episodes.sum()
        chosen = choose(asked, episodes)
        wins[chosen] += rng.binomial(batch, rates[chosen])
        episodes[chosen] += batch


def least_played(asked, episodes):
    return np.unravel_index(episodes.argmin(), episodes.shape)


def distinct_rates(rng):
    """Win rates [3, 3] of which no two in a row or column are nearer than 0.1."""
    while True:
        rates = rng.uniform(size=(3, 3))
        if all(np.diff(np.sort(rates, axis=axis), axis=axis).min() > 0.1 for axis in (0, 1)):
            return rates


@pytest.mark.covered_elsewhere
def test_response_graphs_are_resolved_with_fewer_episodes_than_by_playing_all_alike():
    """In 20 random games nearly every graph comes out right (a tenth may not), for less than three quarters."""
    spent, alike, wrong = 0, 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rates = distinct_rates(rng)
        mean, episodes = sampled(rates, rng, lambda asked, episodes: asked)
        wrong += not np.array_equal(responses(mean).better, responses(np.stack([rates, 1 - rates])).better)
        spent += episodes
        alike += sampled(rates, rng, least_played)[1]
    print(f"{spent} episodes against {alike}: {spent / alike:.2f}; {wrong} of 20 wrong")
    assert wrong <= 2
    assert spent < 3 / 4 * alike


def test_unknown_profiles_are_played_first_and_ties_within_indifference_are_left():
    episodes = np.array([[10, 0], [10, 10]])
    radius = hoeffding_radius(episodes, players=2, delta=0.05)
    assert radius[0, 1] == np.inf
    assert next_profile(np.zeros((2, 2, 2)), radius, episodes) == (0, 1)
    assert next_profile(np.zeros((2, 2, 2)), 0.04, 100, indifference=0.1) is None
    assert next_profile(np.zeros((2, 2, 2)), 0.04, 100, indifference=0.05) == (0, 0)
    assert next_profile(np.zeros((2, 2, 2)), 0, 100) is None
    assert next_profile(np.zeros((2, 1, 1)), np.inf, 0) is None


@pytest.mark.parametrize(("radius", "episodes"), [(np.inf, 0), (np.inf, 1), (0.1, 0)])
def test_means_may_be_nan_where_nothing_is_known(radius, episodes):
    mean, radii, played = np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), np.full((2, 2), 10)
    mean[:, 0, 1], radii[:, 0, 1], played[0, 1] = np.nan, radius, episodes
    assert next_profile(mean, radii, played) == (0, 1)
    mean[0, 1, 1] = np.nan
    with pytest.raises(ValueError, match=r"mean must be finite; got nan at \(0, 1, 1\)"):
        next_profile(mean, radii, played)


@pytest.mark.parametrize("unlike", [False, True])
def test_radii_can_follow_undecided_edges(unlike):
    """1.96 errors over sqrt(2): the same edges where errors are equal, none but those where they differ."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(2, 1, 2))
    verdicts = set()
    for spread in np.linspace(0.1, 3, 40):
        errors = spread * (rng.uniform(0.5, 1.5, size=mean.shape) if unlike else np.ones(mean.shape))
        asked = next_profile(mean, NormalDist().inv_cdf(0.975) * errors / np.sqrt(2), 1) is not None
        open_ = len(undecided_edges(mean, errors).first) > 0
        assert asked <= open_ if unlike else asked == open_
        verdicts.add(asked)
    assert verdicts == {False, True}


def test_hoeffding_radius_holds_whenever_one_looks():
    """2000 fair coins watched for 400 throws: fewer than 5 % leave it at any time; it shrinks, and has units."""
    throws = np.random.default_rng(0).integers(0, 2, (2000, 400))
    n = np.arange(1, 401)
    away = np.abs(throws.cumsum(axis=1) / n - 0.5)
    radius = np.array([hoeffding_radius(count, players=1, delta=0.05) for count in n])
    assert (away > radius / 2).any(axis=1).any()
    assert (away > radius).any(axis=1).mean() <= 0.05
    assert (np.diff(radius) < 0).all()
    np.testing.assert_allclose(hoeffding_radius(n, 2, 0.1, spread=10), 10 * hoeffding_radius(n, 2, 0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: undecided_edges(np.zeros((2, 2, 2)), np.zeros((2, 2, 3))), "of the shape of mean"),
        (lambda: undecided_edges(np.zeros((2, 1, 1)), np.full((2, 1, 1), np.nan)), "standard_error must be finite"),
        (lambda: alpha_rank_interval(np.full((2, 1, 1), np.nan), np.ones((2, 1, 1))), "mean must be finite"),
        (lambda: undecided_edges(np.zeros((2, 2, 2)), -np.ones((2, 2, 2))), "non-negative"),
        (lambda: undecided_edges(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), confidence=95), "confidence must be"),
        (lambda: alpha_rank_interval(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), samples=0), "samples must be"),
        (lambda: alpha_rank_interval(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), alpha=-1), "alpha must be"),
        (lambda: next_profile(np.zeros((2, 2, 2)), np.zeros(3), 1), "radius must broadcast"),
        (lambda: next_profile(np.zeros((2, 2, 2)), -1, 1), "radius must not be negative"),
        (lambda: next_profile(np.zeros((2, 2, 2)), 1, np.nan), "episodes must not be"),
        (lambda: next_profile(np.zeros((2, 2, 2)), 1, 1, indifference=-1), "indifference must be"),
        (lambda: hoeffding_radius(10, 2, delta=0), "delta must be"),
        (lambda: hoeffding_radius(10, 2, 0.1, spread=0), "spread"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
