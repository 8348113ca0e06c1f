import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes
from games.normal_form import matching_pennies
from games.play import FEW_LANES, play, play_mixture
from games.policies import Uniform
from tests.games.stepped import Episode, Stepped
from tests.games.turns import Turns

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


class Late:
    """Implements `games.game.Policy`: plays `then` from an episode's third step on, 0 before."""

    noise_size = 0

    def __init__(self, then):
        self.then = then

    def start(self, lanes):
        return (np.zeros(lanes, np.int64),)

    def act(self, observation, legal, memory, noise):
        (steps,) = memory
        return np.where(steps < 2, 0, self.then), (steps + 1,)


STEPPED = Stepped(Turns(rounds=3))
TURNS = [Uniform.of(space) for space in STEPPED.action_spaces]


@pytest.mark.parametrize("episodes", [1, 5, 16, 17, 50])
def test_environments_play_several_episodes_a_lane(episodes):
    """In a unit's lanes, one after the other: the numbers are those of the episodes of its lanes, in order."""
    played = play(STEPPED, [TURNS, TURNS], episodes, 3, ["a", "b"])
    assert played.returns.shape == (2, episodes, 2)
    assert (played.lengths == 3).all()
    alone = play(STEPPED, [TURNS], episodes, 3, ["b"])
    np.testing.assert_array_equal(alone.returns[0], played.returns[1])
    few = min(episodes, FEW_LANES)
    first = play(STEPPED.lanes, [TURNS], few, 3, ["a"])
    np.testing.assert_array_equal(played.returns[0, :few], first.returns[0])
    assert Episode.opened == 0


def test_each_episode_starts_with_fresh_memories_and_a_new_cast():
    """The first of two players acts in steps 0 and 2 of 4; to play 1 pays 1, half of the time."""
    game, late, never = Stepped(Turns(rounds=4)), Late(1), Late(0)
    alone = play(game, [[late, never]], 400, 0, ["a"]).returns[0, :, 0]
    assert (set(alone), alone.mean()) == ({0, 1}, pytest.approx(0.5, abs=0.1))
    mixed = play_mixture(game, [[late, never], [never]], [[0.5], [0.5]], 400, 0, "a").returns
    assert mixed[:, 0].mean() == pytest.approx(0.25, abs=0.1)
    np.testing.assert_array_equal(mixed[:, 1], 0)


def test_lanes_are_closed_whatever_happens():
    with pytest.raises(ValueError, match="did not end within 2 steps"):
        play(STEPPED, [TURNS], 40, 0, ["a"], max_steps=2)
    with pytest.raises(ValueError, match="one policy for each of 2 seats"):
        play(STEPPED, [TURNS * 2], 40, 0, ["a"])
    assert Episode.opened == 0
