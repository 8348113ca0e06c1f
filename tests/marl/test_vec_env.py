"""Lanes as environments of Stable-Baselines3: what is shown, who waits, what is forbidden, where episodes end."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.vec_env import VecCheckNan, VecMonitor

from games import make
from games.lanes import GameLanes
from games.policies import Uniform, draw_legal
from games.versus import Versus
from marl.sb3.vec_env import VecEnvView, vec_env
from tests.marl.small_games import Fixed, Lock, Patience, Wander
from tests.marl.test_collect import FIRST, Duel


def kuhn(seat, num_envs=64, seed=0):
    return vec_env(make("openspiel:kuhn_poker"), num_envs, seat, seed=seed)


def drawn(view, generator):
    """A legal choice a lane."""
    return draw_legal(view.action_masks(), generator.random(view.num_envs).astype(np.float32))


def test_the_view_passes_stable_baselines_own_referees():
    """VecCheckNan, and VecMonitor, whose returns and lengths of episodes are the view's own."""
    view = kuhn(seat=1)
    env = VecMonitor(VecCheckNan(view, raise_exception=True))
    seen, generator, episodes = env.reset(), np.random.default_rng(0), 0
    for _ in range(20):
        assert seen.shape == (64, *view.observation_space.shape)
        assert all(view.observation_space.contains(row) for row in seen)
        before = view._returns.copy(), view._lengths.copy()
        seen, rewards, dones, infos = env.step(drawn(view, generator))
        for lane in np.flatnonzero(dones):
            told = infos[lane]["episode"]
            assert told["r"] == pytest.approx(before[0][lane] + rewards[lane])
            assert told["l"] == before[1][lane] + 1
            episodes += 1
    assert episodes > 100


def test_it_shows_what_the_lanes_show():
    """Step by step, and the last observation of an episode in the infos."""
    game = make("bucket_brigade")
    opponents, sigma = [[Uniform.of(space)] for space in game.action_spaces], np.ones((1,) * 4)
    lanes = Versus(GameLanes(game, 32), opponents, sigma, [2])
    view = vec_env(game, 32, seat=2, seed=5)
    lanes.reset(5, "train")
    np.testing.assert_array_equal(view.reset(), lanes.observe(0))
    generator, ended = np.random.default_rng(0), 0
    for _ in range(60):
        actions = generator.integers(0, view.action_space.nvec, (32, 3))
        outcome = lanes.step((actions,))
        seen, rewards, dones, infos = view.step(actions)
        np.testing.assert_array_equal(seen, lanes.observe(0))
        np.testing.assert_array_equal(rewards, outcome.rewards[:, 0])
        np.testing.assert_array_equal(dones, outcome.done)
        for lane in np.flatnonzero(dones):
            np.testing.assert_array_equal(infos[lane]["terminal_observation"], lanes.final_observations(0)[lane])
            ended += 1
    assert ended


@pytest.mark.parametrize("truncates", [False, True])
def test_time_limits_are_told_from_ends(truncates):
    view = VecEnvView(GameLanes(Wander(truncates), 2))
    view.reset()
    for _ in range(3):
        *_, infos = view.step(np.zeros(2, int))
        assert infos == [{}, {}]
    *_, dones, infos = view.step(np.zeros(2, int))
    assert dones.all()
    for info in infos:
        assert info["TimeLimit.truncated"] == truncates
        assert info["terminal_observation"].tolist() == [0.5 if truncates else 1.0]
        assert (info["episode"]["r"], info["episode"]["l"]) == (4.0, 4)
    assert view.last_returns.tolist() == [4.0, 4.0]


def test_who_waits_has_one_choice_and_is_paid_meanwhile():
    view = VecEnvView(GameLanes(Patience(), 3))
    view.reset()
    assert view.action_masks().tolist() == [[True, False]] * 3
    view.step(np.ones(3, int))  # of no effect
    assert view.action_masks().tolist() == [[True, True]] * 3
    assert view.step(np.array([1, 0, 1]))[1].tolist() == [1, 0, 1]


def test_the_second_player_is_paid_when_the_first_ends_the_game():
    """In Kuhn poker a bet that is answered, or not, ends it in the move of whoever answers."""
    view, generator = kuhn(seat=1, num_envs=256), np.random.default_rng(0)
    view.reset()
    waiting = 0
    for _ in range(12):
        waits = ~view.lanes.acting[:, 0]
        _, rewards, dones, _ = view.step(drawn(view, generator))
        assert (rewards[~dones] == 0).all()
        assert (np.abs(rewards[dones]) >= 1).all()
        waiting += (waits & dones).sum()
    assert waiting > 0


def test_the_dead_end_their_episode_and_wait_for_the_next():
    view = VecEnvView(Versus(Duel(dies=True, cut=True).lanes(4), [[Fixed((0.5, 0.5))]] * 2, np.ones((1, 1)), (FIRST,)))
    view.reset()
    seen, rewards, dones, infos = view.step(np.ones(4, int))
    assert dones.all()
    assert (seen == 0).all()
    assert rewards.tolist() == [0.25] * 4
    assert infos[0]["TimeLimit.truncated"]
    assert infos[0]["terminal_observation"].tolist() == [0.5, 0.5]
    assert (view.action_masks() == [True, False]).all()
    _, rewards, dones, infos = view.step(np.ones(4, int))
    assert dones.all()  # the next episode begins
    assert (rewards == 0).all()
    assert infos == [{}] * 4
    assert view.last_returns.tolist() == [0.25] * 4


def test_forbidden_choices_become_legal_ones_drawn_uniformly():
    """Legal are the number shown and a decoy: one of them is played, and legal choices are left as they are."""
    view = VecEnvView(GameLanes(Lock((5,)), 4000))
    code = view.reset().argmax(axis=1)
    (mask,) = view.lanes.legal(0)
    both = mask.sum(axis=1) == 2  # else the decoy is the code
    forbidden = (~mask).argmax(axis=1)
    played = view._playable(np.where(both, forbidden, code)[:, None])[:, 0]
    assert mask[np.arange(4000), played].all()
    assert (played[~both] == code[~both]).all()
    assert (played[both] == code[both]).mean() == pytest.approx(0.5, abs=0.04)  # 2.5 sigma


def test_seeds_and_resets_choose_the_episodes():
    first, again, other = kuhn(0, seed=1), kuhn(0, seed=1), kuhn(0, seed=2)
    shown = first.reset()
    np.testing.assert_array_equal(again.reset(), shown)
    assert not np.array_equal(other.reset(), shown)
    assert not np.array_equal(again.reset(), shown)  # a second reset goes on to other episodes
    assert first.seed(2) == [2] * 64
    np.testing.assert_array_equal(first.reset(), kuhn(0, seed=2).reset())


def test_a_view_goes_on_from_its_state():
    straight, resumed, generator = kuhn(1), kuhn(1, seed=9), np.random.default_rng(0)
    straight.reset()
    for _ in range(3):
        straight.step(drawn(straight, generator))
    resumed.reset()
    resumed.load_state_dict(straight.state_dict())
    for _ in range(5):
        actions = drawn(straight, generator)
        seen, rewards, dones, _ = straight.step(actions)
        np.testing.assert_equal(resumed.step(actions)[:3], (seen, rewards, dones))
        np.testing.assert_equal(resumed.last_returns, straight.last_returns)


class Painted(Wander):
    """Shows where it is in every pixel of a picture."""

    observation_spaces = (Box(0.0, 1.0, (3, 4), np.float32),)

    def observe(self, params, state, seat):
        return np.broadcast_to(super().observe(params, state, seat)[..., None], (len(state.step), 3, 4))


def test_pictures_have_channels():
    view = VecEnvView(GameLanes(Painted(False), 2))
    assert view.observation_space.shape == (1, 3, 4)
    assert view.reset().tolist() == np.zeros((2, 1, 3, 4)).tolist()
    pong = make("pong", pixels=True)
    view = vec_env(pong, 2)
    assert view.observation_space.shape == view.reset().shape[1:] == pong.observation_spaces[0].shape


def test_continuous_actions_are_brought_within_bounds():
    game = make("pendulum")
    view = VecEnvView(GameLanes(game, 2))
    view.reset()
    beyond = np.nextafter(view.action_space.high, np.inf).astype(np.float64)
    view.step(np.tile(beyond, (2, 1)))  # the lanes would refuse it
    with pytest.raises(ValueError, match="only choices have masks"):
        view.action_masks()


class Broken(GameLanes):
    """Lanes that spoil what they are told to, in lane 1."""

    spoils = ""

    def observe(self, seat):
        seen = super().observe(seat).copy()
        seen[1] = np.nan if self.spoils == "observations" else seen[1]
        return seen

    def step(self, actions):
        outcome = super().step(actions)
        rewards = outcome.rewards.copy()
        rewards[1] = np.inf if self.spoils == "rewards" else rewards[1]
        return outcome._replace(rewards=rewards)

    def legal(self, seat):
        return (np.tile([[True, True], [self.spoils != "choices"] * 2, [True, True]], 1),)


@pytest.mark.parametrize(
    ("spoils", "error", "told"),
    [
        ("observations", FloatingPointError, r"walker observes \[nan\] in lane 1 at step 1"),
        ("rewards", FloatingPointError, "walker is paid inf in lane 1 at step 1"),
        ("choices", ValueError, "walker is to act in lane 1 at step 0, but has no legal choice"),
    ],
)
def test_what_cannot_be_learnt_from_is_told_with_lane_and_step(spoils, error, told):
    view = VecEnvView(Broken(Wander(True), 3))
    view.reset()
    view.lanes.spoils = spoils
    with pytest.raises(error, match=told):
        view.step(np.zeros(3, int))


def test_it_says_what_it_cannot_show():
    with pytest.raises(ValueError, match=r"one seat, got 2: let games\.versus\.Versus"):
        VecEnvView(GameLanes(make("matching_pennies"), 2))
    view = VecEnvView(GameLanes(Wander(True), 2))
    with pytest.raises(ValueError, match="of the view itself"):
        view.set_attr("seed", 3)
    with pytest.raises(ValueError, match="by its seed"):
        view.seed(None)
    assert not view.has_attr("no_such_thing")


def test_spaces_are_copies_of_the_games():
    """Stable-Baselines3 seeds the space it draws from."""
    game = make("cart_pole")
    view = vec_env(game, 2)
    assert isinstance(view.observation_space, Box)
    assert isinstance(view.action_space, Discrete)
    assert view.action_space is not view.lanes.action_spaces[0]
