"""Games of skill: what every family promises, and what makes each the game it is."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.normal_form import blotto
from metasolvers.hodge import disc_components, hodge
from metasolvers.ratings import bradley_terry
from metasolvers.skill_games import FAMILIES, divisions, elo_game, mixture, skill_game

every_family = pytest.mark.parametrize("family", FAMILIES)
SEEDED = [family for family in FAMILIES if family != "rock_paper_scissors"]


@every_family
@settings(max_examples=20, deadline=None)
@given(k=st.integers(3, 12), seed=st.integers(0, 2**40))
def test_antisymmetric_and_the_same_for_the_same_seed(family, k, seed):
    matrix = skill_game(family, k, seed)
    assert matrix.shape == (k, k)
    assert matrix.dtype == np.float64
    assert np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix, -matrix.T)
    np.testing.assert_array_equal(matrix, skill_game(family, k, seed))


@pytest.mark.parametrize("family", SEEDED)
def test_another_seed_gives_another_game(family):
    assert (skill_game(family, 8, 0) != skill_game(family, 8, 1)).any()


@every_family
@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_a_game_has_policies(family, k):
    with pytest.raises(ValueError, match="k must be a whole number"):
        skill_game(family, k)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "mixture"])
def test_one_policy_plays_itself(family):
    np.testing.assert_array_equal(skill_game(family, 1), [[0]])


@settings(max_examples=20, deadline=None)
@given(k=st.integers(3, 12), seed=st.integers(0, 2**40), share=st.floats(0, 1))
def test_mixtures_have_the_share_asked_for(k, seed, share):
    matrix = mixture(k, seed, share)
    assert hodge(matrix).transitive_share == pytest.approx(share, abs=1e-9)
    assert (matrix**2).sum() == pytest.approx(k * (k - 1))


def test_two_policies_have_no_cycles():
    assert hodge(mixture(2, transitive=1)).transitive_share == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 3 policies; got k=2"):
        mixture(2)


def test_random_matrices_are_as_transitive_as_gradients_are_many():
    """k - 1 of the k (k - 1) / 2 dimensions are gradients."""
    shares = [hodge(skill_game("random_antisymmetric", 10, seed)).transitive_share for seed in range(200)]
    assert np.mean(shares) == pytest.approx(0.2, abs=4 * np.std(shares) / np.sqrt(len(shares)))


def test_discs_have_rank_two_and_stay_within_one():
    matrix = skill_game("disc", 50)
    assert len(disc_components(matrix).sizes) == 1
    assert np.abs(matrix).max() <= 1


def test_elo_games_are_what_ratings_explain_and_noise_is_what_they_do_not():
    """Win probabilities (1 + A) / 2 have exact Bradley-Terry ratings, in the order of the mean scores."""
    matrix = elo_game(6, seed=0, spread=200)
    ratings = bradley_terry((1 + matrix) / 2 * (1 - np.eye(6))).elo
    expected = np.tanh((ratings[:, None] - ratings) * np.log(10) / 800)
    np.testing.assert_allclose(matrix, expected, atol=1e-9)
    noisy = elo_game(6, seed=0, spread=200, noise=0.3)
    assert hodge(noisy).cyclic_share > hodge(matrix).cyclic_share
    assert np.std((noisy - matrix)[np.triu_indices(6, 1)]) == pytest.approx(0.3, rel=0.5)
    assert hodge(elo_game(6, seed=0, spread=1e-3)).transitive_share == pytest.approx(1)


def test_skill_makes_random_games_transitive():
    shares = [hodge(skill_game("random_game_of_skill", 20, 0, skill=skill)).transitive_share for skill in (0, 1, 10)]
    assert shares == sorted(shares)
    assert shares[2] > 0.95


@pytest.mark.parametrize("k", [3, 4, 5, 8])
def test_circles_are_cyclic_and_everybody_is_alike(k):
    matrix = skill_game("rock_paper_scissors", k)
    np.testing.assert_array_equal(hodge(matrix).ratings, 0)
    for shift in range(k):
        np.testing.assert_array_equal(np.roll(matrix, (shift, shift), (0, 1)), matrix)
    assert ((matrix > 0).sum(axis=1) == (k - 1) // 2).all()


@pytest.mark.parametrize(("soldiers", "fields"), [(5, 3), (2, 4), (3, 2)])
def test_all_of_blotto_is_the_game_of_that_name(soldiers, fields):
    """The one that is played, built by another enumeration."""
    k = comb(soldiers + fields - 1, soldiers)
    matrix = skill_game("blotto", k, soldiers=soldiers, fields=fields)
    np.testing.assert_array_equal(matrix, blotto(soldiers, fields).payoffs[0])
    np.testing.assert_array_equal(divisions(soldiers, fields).sum(axis=1), soldiers)
    with pytest.raises(ValueError, match=f"in {k} ways; got k={k + 1}"):
        skill_game("blotto", k + 1, soldiers=soldiers, fields=fields)


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("disk", {}, "did you mean 'disc'"),
        ("???", {}, "'blotto' or 'disc' or .* or 'rock_paper_scissors'"),
        ("mixture", {"transitive": 1.5}, r"share in \[0, 1\]"),
        ("mixture", {"transitive": np.nan}, r"share in \[0, 1\]"),
        ("elo", {"spread": -1}, "0 or more"),
        ("elo", {"noise": np.inf}, "must be finite"),
        ("blotto", {"soldiers": 0}, "needs soldiers"),
        ("blotto", {"fields": 1}, "at least 2 fields"),
    ],
)
def test_bad_options(family, options, message):
    with pytest.raises(ValueError, match=message):
        skill_game(family, 3, **options)
