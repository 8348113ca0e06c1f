"""Mountain car: an engine too weak to climb must rock the car up the hill [Moore 1990]."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games.control import pictures
from games.control.trigonometry import cosine
from games.game import Array
from games.numbers import keep, real, whole
from games.spelling import unknown

LEFT, RIGHT, GOAL = -1.2, 0.6, 0.45
"""Ends of the valley, and where the goal begins."""
TOP_SPEED, POWER, SLOPE = 0.07, 0.0015, 0.0025


class Params(NamedTuple):
    """Nothing to tabulate here: numbers of the dataclass serve as they are."""


class State(NamedTuple):
    x: Array  # [B] float32
    speed: Array  # [B] float32 per step
    force: Array  # [B] float32 of the last step
    rewards: Array  # [B, 1] float32
    steps: Array  # [B] int32 played


@dataclass(frozen=True)
class MountainCarContinuous:
    """Rock a car out of a valley with as little force as it takes, as Gymnasium's MountainCarContinuous-v0 asks.

    Players: 1, `player_0`.
    Observations: place in [-1.2, 0.6] and speed in [-0.07, 0.07].
    Actions: the force, in [-1, 1] (1,).
    Rewards: -0.1 force^2 a step, and 100 for reaching the goal at 0.45. Doing nothing earns 0.
    Horizon: until the goal is reached; truncated after `max_steps` steps.
    Chance: the place starts uniformly in [-0.6, -0.4], at rest.
    References: Moore (1990), Efficient memory-based learning for robot control, for the task; Gymnasium 1.4,
    MountainCarContinuous-v0.

    Steps are Gymnasium's within the rounding of float32; episodes are alike but not the same, since noise is keyed
    otherwise. Raises ValueError for values out of range.
    """

    goal_speed: float = 0.0
    """The slowest that counts as reaching the goal."""
    max_steps: int = 999

    agents = ("player_0",)
    noise_sizes = (1, 0)
    render_fps = 30

    def __post_init__(self) -> None:
        speed = real("goal_speed", self.goal_speed, -TOP_SPEED, TOP_SPEED)
        keep(self, goal_speed=speed, max_steps=whole("max_steps", self.max_steps))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        low, high = np.array([[LEFT, -TOP_SPEED], [RIGHT, TOP_SPEED]], np.float32)
        return (Box(low, high, dtype=np.float32),)

    @property
    def action_spaces(self) -> tuple[Box, ...]:
        return (Box(-1, 1, (1,), np.float32),)

    def params(self, **overrides: Any) -> Params:
        for name in overrides:
            raise unknown("parameter of lanes of mountain_car_continuous", name, [])
        return Params()

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        nothing = xp.zeros_like(noise)
        none = xp.astype(nothing[:, 0], xp.int32)
        return State(noise[:, 0] * 0.2 - 0.6, nothing[:, 0], nothing[:, 0], nothing, none)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp, force = array_namespace(state.x), actions[0][:, 0]
        speed = state.speed + (force * POWER - cosine(state.x * 3) * SLOPE)
        speed = speed.clip(-TOP_SPEED, TOP_SPEED)
        x = (state.x + speed).clip(LEFT, RIGHT)
        speed = xp.where((x <= LEFT) & (speed < 0), 0.0, speed)  # the wall on the left stops the car
        reached = xp.astype(self._reached(x, speed), xp.float32)
        rewards = reached * 100 - force * force * 0.1
        return State(x, speed, force, rewards[:, None], state.steps + 1)

    def _reached(self, x: Array, speed: Array) -> Array:
        return (x >= GOAL) & (speed >= self.goal_speed)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        return array_namespace(state.x).stack([state.x, state.speed], axis=1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.steps[:, None] >= 0

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return self._reached(state.x, state.speed)

    def truncated(self, params: Params, state: State) -> Array:
        return (state.steps >= self.max_steps) & ~self.terminated(params, state)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        x, speed, force = (float(part[lane]) for part in state[:3])
        told = f"step {int(state.steps[lane])}: car at {x:+.4f}, speed {speed:+.5f}"
        return told + f"; force {force:+.3f}, reward {float(state.rewards[lane, 0]):+.3f}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [420, 720, 3]."""
        x, speed, force = (float(part[lane]) for part in state[:3])
        told = f"Step {int(state.steps[lane])} of {self.max_steps}"
        return pictures.mountain_car(x, speed, force, (LEFT, RIGHT, GOAL), told)
