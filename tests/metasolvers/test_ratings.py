"""Elo, Bradley-Terry and OpenSkill against golden values, OpenSpiel, SciPy, the library itself, and simulation."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openskill.models import PlackettLuce
from pyspiel import elo as peer
from scipy.optimize import minimize
from scipy.special import log_expit

from metasolvers.ratings import ELO, bradley_terry, elo_expected_score, elo_update, openskill_ratings
from tests.golden_cases import numbers, select

BRADLEY_TERRY = [case for case in select("elo") if "win_matrix" in case.values[0]["input"]]
ONLINE = [case for case in select("elo") if "updates" in case.values[0]["input"]]


def tournament(agents=5, games=40, seed=0):
    """Integer wins of a round robin between agents of normal strength; everybody wins and loses somewhere."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=agents)
    wins = np.triu(rng.binomial(games, 1 / (1 + np.exp(strength - strength[:, None]))), 1)
    return wins + np.tril(games - wins.T, -1)


@pytest.mark.parametrize("case", ONLINE)
def test_golden_expected_scores_and_updates(case):
    for entry in case["input"]["expected_scores"]:
        assert elo_expected_score(entry["ra"], entry["rb"]) == pytest.approx(entry["E"], abs=case["tolerance"])
    for entry in case["input"]["updates"]:
        after = elo_update(entry["ra"], entry["rb"], entry["s"], entry["K"])
        assert after == pytest.approx(entry["after"], abs=case["tolerance"])


@pytest.mark.parametrize("case", BRADLEY_TERRY)
def test_golden_ratings(case):
    expected = numbers(case["expected"]["ratings"])
    draws = case["input"].get("draw_matrix")
    found = bradley_terry(case["input"]["win_matrix"], draws, anchor=int(np.flatnonzero(expected == 0)[0]))
    np.testing.assert_allclose(found.elo, expected, atol=case["tolerance"])


def test_expected_scores_broadcast_and_do_not_overflow():
    ratings = np.array([-1e6, 0, 400, 1e6])
    expected = elo_expected_score(ratings[:, None], ratings)
    np.testing.assert_allclose(expected + expected.T, 1, rtol=1e-15)
    assert expected[2, 1] == pytest.approx(10 / 11)
    assert expected[0, 3] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"score": 2}, r"in \[0, 1\]"), ({"score": np.nan}, r"in \[0, 1\]"), ({"score": 1, "k": 0}, "k must be")],
)
def test_bad_updates(options, message):
    with pytest.raises(ValueError, match=message):
        elo_update(1500, 1500, **options)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.5])
@pytest.mark.parametrize("drawn", [0, 3])
def test_agrees_with_open_spiel(smoothing, drawn):
    """OpenSpiel's smoothing factor is our prior."""
    wins, draws = tournament(), drawn * (1 - np.eye(5, dtype=int))
    options = peer.default_elo_options()
    options.smoothing_factor = smoothing
    expected = np.array(peer.compute_ratings_from_matrices(wins.tolist(), draws.tolist(), options))
    found = bradley_terry(wins, draws, prior=smoothing).elo
    np.testing.assert_allclose(found, expected - expected.mean(), atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_general_optimiser(seed):
    """The likelihood straight from its formula, and its curvature by differences of the gradient."""
    wins = tournament(4, 15, seed) + 0.5 * (1 - np.eye(4))

    def loss(free):
        strengths = np.append(0, free) / ELO
        return -(wins * log_expit(strengths[:, None] - strengths)).sum()

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    found = bradley_terry(wins, anchor=0)
    np.testing.assert_allclose(found.elo, np.append(0, best.x), atol=0.02)
    assert loss(found.elo[1:]) <= best.fun + 1e-12
    h, eye = 0.5, np.eye(3)
    curvature = [
        [
            sum(s * t * loss(found.elo[1:] + h * (s * a + t * b)) for s in (-1, 1) for t in (-1, 1)) / (4 * h * h)
            for a in eye
        ]
        for b in eye
    ]
    np.testing.assert_allclose(found.covariance[1:, 1:], np.linalg.inv(curvature), rtol=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), anchor=st.integers(0, 3), scale=st.sampled_from([1e-6, 3.0, 1e9]))
def test_likelihood_equations_and_symmetries(seed, anchor, scale):
    """Expected wins are the wins there were; agents may be listed in any order; any agent may be the anchor."""
    wins = tournament(4, 9, seed) + 1.0 * (1 - np.eye(4))
    ratings = bradley_terry(wins)
    expected = elo_expected_score(ratings.elo[:, None], ratings.elo) * (wins + wins.T)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(expected.sum(axis=1), wins.sum(axis=1), rtol=1e-12)
    assert ratings.elo.mean() == pytest.approx(0, abs=1e-9)
    order = np.random.default_rng(seed).permutation(4)
    np.testing.assert_allclose(bradley_terry(wins[np.ix_(order, order)]).elo, ratings.elo[order], atol=1e-9)
    anchored = bradley_terry(wins, anchor=anchor)
    np.testing.assert_allclose(anchored.elo, ratings.elo - ratings.elo[anchor], atol=1e-9)
    assert anchored.interval().low[anchor] == pytest.approx(0, abs=1e-6)
    for mine, theirs in zip(ratings.differences(), anchored.differences(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    more = bradley_terry(scale * wins)
    np.testing.assert_allclose(more.elo, ratings.elo, atol=1e-8)
    np.testing.assert_allclose(more.covariance * scale, ratings.covariance, rtol=1e-8, atol=1e-8)


def test_two_agents_have_a_closed_form():
    """Odds of 3 to 1 from 40 games; the variance of log-odds is 1 / won + 1 / lost."""
    ratings = bradley_terry([[0, 30], [10, 0]], confidence=0.9)
    estimate, low, high = (part[0, 1] for part in ratings.differences())
    assert estimate == pytest.approx(ELO * np.log(3), rel=1e-12)
    assert high - estimate == pytest.approx(estimate - low)
    assert high - estimate == pytest.approx(1.6448536269514722 * ELO * np.sqrt(1 / 30 + 1 / 10), rel=1e-9)


def test_odds_beyond_any_tournament():
    chain = np.diag([1e12] * 3, 1) + np.diag([1.0] * 3, -1)
    np.testing.assert_allclose(np.diff(bradley_terry(chain).elo), -4800, rtol=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """400 tournaments of four agents, 30 games a pair: within four standard errors of 95 %, all differences counted."""
    rng = np.random.default_rng(0)
    truth = np.array([150.0, 50.0, -50.0, -150.0])
    i, j = np.triu_indices(4, 1)
    held = []
    for _ in range(400):
        wins = np.zeros((4, 4))
        wins[i, j] = rng.binomial(30, elo_expected_score(truth[i], truth[j]))
        wins[j, i] = 30 - wins[i, j]
        ratings = bradley_terry(wins)
        _, low, high = ratings.differences()
        held.append(((low <= truth[:, None] - truth) & (truth[:, None] - truth <= high))[i, j].mean())
        _, low, high = ratings.interval()
        held[-1] = (held[-1] + ((low <= truth) & (truth <= high)).mean()) / 2
    assert np.mean(held) == pytest.approx(0.95, abs=4 * np.std(held) / np.sqrt(len(held)))


def test_one_agent_alone():
    ratings = bradley_terry([[0]])
    assert (ratings.elo, ratings.covariance) == (0, 0)


@pytest.mark.parametrize(
    ("wins", "message"),
    [
        ([[0, 3], [0, 0]], r"agents \[0\] won every game"),
        ([[0, 2, 5], [3, 0, 5], [0, 0, 0]], r"agents \[2\] lost every game"),
        ([[0, 1, 0, 0], [0, 0, 1, 2], [1, 0, 0, 0], [0, 0, 0, 0]], r"agents \[3\] lost every game"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], r"agents \[0, 1\] never met agents \[2\]"),
        (np.zeros((2, 2)), r"agents \[0\] never met agents \[1\]"),
    ],
)
def test_where_no_ratings_are_most_likely_the_agents_are_named(wins, message):
    with pytest.raises(ValueError, match=message):
        bradley_terry(wins)
    ratings = bradley_terry(wins, prior=0.1)
    assert np.isfinite(ratings.interval()).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": [[0, 1], [2, 0]]}, "draws must be symmetric"),
        ({"draws": [[0]]}, "of the shape of wins"),
        ({"draws": [[0, -1], [-1, 0]]}, "draws must be non-negative"),
        ({"draws": [[1, 0], [0, 1]]}, "draws must be 0 on the diagonal"),
        ({"anchor": 2}, r"an agent, 0\.\.1"),
        ({"anchor": -1}, r"an agent, 0\.\.1"),
        ({"prior": -1}, "prior must be"),
        ({"prior": np.nan}, "prior must be"),
        ({"confidence": 95}, "confidence must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        bradley_terry([[0, 2], [1, 0]], **options)


MATCHES = [
    ([["ann"], ["bob"]], [1, 2]),
    ([["ann", "bob"], ["eve", "kim"]], [2, 1]),
    ([["kim"], ["ann"], ["eve"]], [1, 1, 2]),
]


def test_skills_are_the_librarys():
    skills = openskill_ratings(MATCHES, ["ann", "bob", "eve", "kim"], mu=30, sigma=5)
    model = PlackettLuce(mu=30, sigma=5)
    ann, bob, eve, kim = (model.rating() for _ in range(4))
    [[ann], [bob]] = model.rate([[ann], [bob]], ranks=[1, 2])
    [[ann, bob], [eve, kim]] = model.rate([[ann, bob], [eve, kim]], ranks=[2, 1])
    [[kim], [ann], [eve]] = model.rate([[kim], [ann], [eve]], ranks=[1, 1, 2])
    np.testing.assert_allclose(skills.mu, [ann.mu, bob.mu, eve.mu, kim.mu], rtol=1e-14)
    np.testing.assert_allclose(skills.sigma, [ann.sigma, bob.sigma, eve.sigma, kim.sigma], rtol=1e-14)
    np.testing.assert_allclose(skills.ordinal, skills.mu - 3 * skills.sigma, rtol=1e-14)
    assert skills.mu.argmax() == 3


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (([["ann"], ["bobb"]], [1, 2]), "did you mean 'bob'"),
        ((["ann", "bob"], [1, 2]), r"a team is a list: \['ann'\]; got the string 'ann' in match 0"),
        (([["ann"]], [1]), "two or more teams"),
        (([["ann"], []], [1, 2]), r"teams of \[1, 0\] agents"),
        (([["ann"], ["bob"]], [1]), r"ranks \[1\]"),
        (([["ann"], ["ann"]], [1, 2]), "1 of them different"),
    ],
)
def test_malformed_matches(match, message):
    with pytest.raises(ValueError, match=message):
        openskill_ratings([match], ["ann", "bob"])


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "openskill.models", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'counterplay\[openskill\]'"):
        openskill_ratings(MATCHES, ["ann", "bob", "eve", "kim"])
