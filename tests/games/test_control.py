"""Classic control beside Gymnasium's own environments: step by step, and episode by episode."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

import games
from games.control import cart_pole, mountain_car_continuous, pendulum
from games.control.trigonometry import cosine, sine, small_cosine, small_sine
from games.lanes import GameLanes, put_like, to_numpy
from games.play import play
from games.policies import Uniform
from tests.golden_cases import select

STEP_ERROR = 1e-5
"""Between float32 here and Gymnasium's float64."""
STATES = 500


@dataclass(frozen=True)
class Rule:
    """Plays a function of the observation."""

    action: Callable[[np.ndarray], np.ndarray]
    noise_size = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation, legal, memory, noise):
        return self.action(observation), None


class Twin(NamedTuple):
    """A game of ours and Gymnasium's."""

    id: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Of the states compared."""
    state: Callable[[np.ndarray], Any]
    """Ours of numbers [B, D]."""
    good: Callable[[np.ndarray], np.ndarray]
    """A rule that plays well."""
    earns: float
    """At least this, on average over episodes."""


def at_start(state, *parts: np.ndarray):
    """A state of these motions, whose step counter is 0 and whatever the last step left is nothing."""
    nothing = np.zeros(len(parts[0]), np.float32)
    return state(*parts, nothing, nothing[:, None], nothing.astype(np.int32))


def swing_up(seen: np.ndarray) -> np.ndarray:
    """Pumps energy until upright is near, then a linear controller."""
    upright, side, speed = seen.T
    energy = speed**2 / 6 + 5 * (upright - 1)
    pumped = np.where(energy < 0, np.sign(speed) * 2, -np.sign(speed) * 2)
    held = -12 * side - 3 * speed
    return np.where(upright > 0.9, held, pumped).clip(-2, 2)[:, None].astype(np.float32)


TWINS = {
    "cart_pole": Twin(
        "CartPole-v1",
        (-2.4, -3.0, -0.21, -3.0),
        (2.4, 3.0, 0.21, 3.0),
        lambda rows: cart_pole.State(rows, np.zeros(len(rows), np.int32)),
        lambda seen: (seen @ np.array([0.1, 0.3, 2.0, 1.0], np.float32) > 0).astype(np.int64),
        499.0,
    ),
    "pendulum": Twin(
        "Pendulum-v1",
        (-np.pi, -8.0),
        (np.pi, 8.0),
        lambda rows: at_start(pendulum.State, *rows.T),
        swing_up,
        -300.0,
    ),
    "mountain_car_continuous": Twin(
        "MountainCarContinuous-v0",
        (-1.2, -0.07),
        (0.6, 0.07),
        lambda rows: at_start(mountain_car_continuous.State, *rows.T),
        lambda seen: np.where(seen[:, 1:] < 0, -1, 1).astype(np.float32),
        88.0,
    ),
}


@pytest.fixture(params=TWINS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_step_is_gymnasiums(name):
    game, twin, rng = games.make(name), TWINS[name], np.random.default_rng(0)
    rows = rng.uniform(twin.low, twin.high, (STATES, len(twin.low))).astype(np.float32)
    actions = np.array([game.action_spaces[0].sample() for _ in rows])
    after = game.step((), twin.state(rows), (actions,), np.zeros((STATES, 0), np.float32))
    env = gymnasium.make(twin.id).unwrapped
    env.reset()
    theirs = [stepped(env, row, action) for row, action in zip(rows, actions, strict=True)]
    seen, rewards, ended = zip(*theirs, strict=True)
    np.testing.assert_allclose(game.observe((), after, 0), seen, atol=STEP_ERROR)
    np.testing.assert_allclose(game.rewards((), after)[:, 0], rewards, atol=STEP_ERROR)
    np.testing.assert_array_equal(game.terminated((), after), ended)


def stepped(env: gymnasium.Env, state: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
    """What Gymnasium's environment shows, pays, and whether it ends, a step after a state."""
    env.state, env.steps_beyond_terminated = state.astype(np.float64), None
    seen, reward, terminated, *_ = env.step(action)
    return seen, float(reward), terminated


def test_spaces_and_limits_are_gymnasiums(name):
    game, env = games.make(name), gymnasium.make(TWINS[name].id)
    assert game.action_spaces[0] == env.action_space
    np.testing.assert_array_equal(game.observation_spaces[0].low, env.observation_space.low)
    np.testing.assert_array_equal(game.observation_spaces[0].high, env.observation_space.high)
    assert game.max_steps == env.spec.max_episode_steps


@pytest.mark.parametrize("case", select("rl_thresholds", check="gym"))
def test_thresholds_are_those_of_gymnasiums_registry(case):
    for id, (threshold, steps) in case["expected"]["specs"].items():
        spec = gymnasium.spec(id)
        assert (spec.reward_threshold, spec.max_episode_steps) == (threshold, steps)


@pytest.mark.parametrize("case", select("rl_thresholds", id="rl-pendulum-bounds"))
def test_rewards_of_a_pendulum_are_bounded(case):
    game = games.make("pendulum")
    state = at_start(pendulum.State, np.array([np.pi, -np.pi, 0.0]), np.array([8.0, -8.0, 0.0]))
    after = game.step((), state, (np.array([[2.0], [-2.0], [0.0]]),), np.zeros((3, 0)))
    low, high = (case["expected"][f"{end}_step_reward"] for end in ("min", "max"))
    np.testing.assert_allclose(game.rewards((), after)[:, 0], [low, low, high], atol=case["tolerance"])


@pytest.mark.parametrize("rule", ["uniform", "good"])
def test_episodes_are_like_gymnasiums(name, rule):
    """Means of returns and lengths, within 4 standard errors of their difference."""
    twin = TWINS[name]
    shorter = {"max_steps": 100} if rule == "uniform" else {}
    game = games.make(name, **shorter)
    policy = Uniform.of(game.action_spaces[0]) if rule == "uniform" else Rule(twin.good)
    ours = play(game, [[policy]], 400, 0, ["ours"])
    theirs = play(games.make(f"gymnasium:{twin.id}", **shorter), [[policy]], 10, 0, ["theirs"])
    for one, other in ((ours.returns[0, :, 0], theirs.returns[0, :, 0]), (ours.lengths[0], theirs.lengths[0])):
        error = np.hypot(one.std() / np.sqrt(len(one)), other.std() / np.sqrt(len(other)))
        assert abs(one.mean() - other.mean()) <= 4 * error
    if rule == "good":
        assert min(ours.returns.mean(), theirs.returns.mean()) > twin.earns


def test_starts_are_drawn_as_gymnasium_draws_them(name):
    """Both are uniform: minima, maxima and means of many."""
    lanes = GameLanes(games.make(name), 4000)
    lanes.reset(0)
    env = gymnasium.make(TWINS[name].id)
    theirs = np.array([env.reset(seed=seed)[0] for seed in range(1000)])
    ours = lanes.observe(0)
    for summary in (np.min, np.max, np.mean):
        np.testing.assert_allclose(summary(ours, axis=0), summary(theirs, axis=0), atol=0.05 * np.ptp(theirs))


def test_time_is_up_at_the_limit_alone(name):
    """Whoever is still going after the limit is truncated, and nobody sooner."""
    game = games.make(name, max_steps=30)
    idle = np.zeros((50, *game.action_spaces[0].shape), game.action_spaces[0].dtype)
    lanes = GameLanes(game, 50)
    lanes.reset(0)
    running = np.ones(50, bool)
    for step in range(1, 31):
        outcome = lanes.step((idle,))
        assert outcome.truncated[running].any() == (step == 30 and running.any())
        running &= ~outcome.done
    assert not running.any()


def test_what_falls_at_the_last_step_is_not_cut_short():
    game = games.make("cart_pole", max_steps=9)
    rows = np.array([[0, 0, 0.3, 0], [0, 0, 0, 0]], np.float32)
    after = game.step((), cart_pole.State(rows, np.full(2, 8, np.int32)), (np.array([0, 0]),), rows[:, :0])
    assert game.terminated((), after).tolist() == [True, False]
    assert game.truncated((), after).tolist() == [False, True]


@pytest.mark.parametrize(
    ("ours", "exact", "reach", "error"),
    [
        (sine, np.sin, 1.5 * np.pi, 1.2e-7),
        (cosine, np.cos, 2 * np.pi, 2.1e-7),
        (small_sine, np.sin, np.pi / 2, 1.2e-7),
        (small_cosine, np.cos, np.pi, 1.3e-7),
    ],
)
def test_trigonometry_is_as_exact_as_it_says_and_the_same_everywhere(xp, ours, exact, reach, error):
    x = np.linspace(-reach, reach, 100_001).astype(np.float32)
    x = x[abs(x) <= reach]
    found = ours(x)
    assert found.dtype == np.float32
    assert abs(found - exact(x.astype(np.float64))).max() <= error
    np.testing.assert_array_equal(to_numpy(ours(put_like(x, xp.put(x)))), found)


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("cart_pole", {"max_steps": 0}, "max_steps must be a whole number of at least 1"),
        ("pendulum", {"gravity": -1}, "gravity must be a finite number of at least 0"),
        ("mountain_car_continuous", {"goal_speed": 1}, "goal_speed must be a finite number"),
    ],
)
def test_values_out_of_range_are_refused(name, wrong, told):
    with pytest.raises(ValueError, match=told):
        games.make(name, **wrong)


def test_lanes_take_no_parameters(name):
    with pytest.raises(ValueError, match=f"unknown parameter of lanes of {name} 'mass'"):
        games.make(name).params(mass=2)
