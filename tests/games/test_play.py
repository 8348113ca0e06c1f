import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes
from games.normal_form import matching_pennies
from games.play import play, play_mixture
from games.policies import Uniform

GAME = BucketBrigade("hard")
PROFILES = [
    [policy(name, GAME) for name in names]
    for names in (["uniform"] * 4, ["specialist", "spread", "genome hero", "uniform"], ["always_rest"] * 4)
]
UNITS = ["payoff/0", "payoff/1", "payoff/2"]


def test_results_do_not_depend_on_batching():
    together = play(GAME, PROFILES, 50, 1, UNITS)
    assert together.returns.shape == (3, 50, 4)
    assert together.lengths.shape == (3, 50)
    one_by_one = play(GAME, PROFILES, 50, 1, UNITS, max_lanes=1)
    backwards = play(GAME, PROFILES[::-1], 50, 1, UNITS[::-1])
    for a, b, c in zip(together, one_by_one, backwards, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c[::-1])


def test_all_kinds_of_arrays_play_the_same(xp):
    profile = [policy(name, GAME) for name in ("genome_full hero", "spread", "genome_full liar", "uniform")]
    here, there = (
        play(game, [profile], 30, 0, ["a"]) for game in (GAME, lambda lanes: GameLanes(GAME, lanes, put=xp.put))
    )
    np.testing.assert_array_equal(there.returns, here.returns)
    np.testing.assert_array_equal(there.lengths, here.lengths)


def test_each_lane_counts_its_first_episode_only():
    rest = [policy("always_rest", GAME)] * 4
    played = play(BucketBrigade("trivial_cooperation"), [rest], 7, 0, ["a"])
    assert (played.lengths == 13).all()
    np.testing.assert_allclose(played.returns, 13 * 100.5)


def test_games_without_chance_play_several_profiles():
    game = matching_pennies(rounds=3)
    uniform = Uniform.of(game.action_spaces[0])
    played = play(game, [[uniform, uniform]] * 2, 20, 0, ["a", "b"])
    np.testing.assert_array_equal(played.returns.sum(axis=2), 0)
    assert (played.lengths == 3).all()
    assert (played.returns[0] != played.returns[1]).any()


def test_the_seed_and_the_units_name_decide():
    first = play(GAME, PROFILES[:1], 30, 1, ["a"]).returns
    np.testing.assert_array_equal(first, play(GAME, PROFILES[:1], 30, 1, ["a"]).returns)
    assert (first != play(GAME, PROFILES[:1], 30, 2, ["a"]).returns).any()
    assert (first != play(GAME, PROFILES[:1], 30, 1, ["b"]).returns).any()


def test_a_pure_mixture_plays_like_its_profile():
    sigma = np.zeros((2, 1, 1, 1))
    sigma[1] = 1
    populations = [[policy("uniform", GAME), PROFILES[1][0]], *([player] for player in PROFILES[1][1:])]
    mixed = play_mixture(GAME, populations, sigma, 40, 3, "a")
    pure = play(lambda lanes: GameLanes(GAME, lanes), [PROFILES[1]], 40, 3, ["a"])
    np.testing.assert_array_equal(mixed.returns, pure.returns[0])
    np.testing.assert_array_equal(mixed.lengths, pure.lengths[0])


def test_episodes_that_do_not_end_are_an_error():
    with pytest.raises(ValueError, match="did not end within 12 steps"):
        play(GAME, PROFILES[:1], 3, 0, ["a"], max_steps=12)


@pytest.mark.parametrize("seats", [3, 5])
def test_a_profile_is_one_policy_a_seat(seats):
    with pytest.raises(ValueError, match=f"one policy for each of 4 seats, got {seats}"):
        play(GAME, [PROFILES[0], [PROFILES[0][0]] * seats], 3, 0, ["a", "b"])


def test_every_profile_needs_a_name():
    with pytest.raises(ValueError, match="a unit name of its own"):
        play(GAME, PROFILES, 3, 0, ["a", "b", "a"])
