"""Pendulum: a hanging rod is to be swung up and kept upright by a motor too weak to lift it at once."""

from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games.control import pictures
from games.control.trigonometry import PI, cosine, sine
from games.game import Array
from games.numbers import keep, real, whole
from games.spelling import unknown

SECONDS, TOP_SPEED, TORQUE = 0.05, 8.0, 2.0
"""Of a step; the fastest in radians per second, and the strongest push in N m."""


class Params(NamedTuple):
    """Nothing to tabulate here: numbers of the dataclass serve as they are."""


class State(NamedTuple):
    angle: Array  # [B] float32 radians from upright, in [-pi, pi]
    speed: Array  # [B] float32 radians per second
    torque: Array  # [B] float32 of the last step
    rewards: Array  # [B, 1] float32
    steps: Array  # [B] int32 played


@dataclass(frozen=True)
class Pendulum:
    """Swing a rod up and keep it upright with little torque, as Gymnasium's Pendulum-v1 asks.

    Players: 1, `player_0`.
    Observations: cosine and sine of the angle from upright, in [-1, 1], and the angular speed in [-8, 8].
    Actions: the torque, in [-2, 2] (1,), for 0.05 s.
    Rewards: -(angle^2 + 0.1 speed^2 + 0.001 torque^2), of the state the step starts in; at best 0, at worst -16.3.
    Horizon: truncated after `max_steps` steps; nothing ends it sooner.
    Chance: the angle starts uniformly in [-pi, pi], the speed in [-1, 1].
    References: Doya (2000), Reinforcement learning in continuous time and space, for the task; Gymnasium 1.4,
    Pendulum-v1.

    Steps are Gymnasium's within the rounding of float32, in which states are kept here; episodes are alike but not the
    same, since noise is keyed otherwise. Raises ValueError for values out of range.
    """

    gravity: float = 10.0
    """In m/s^2; the rod is 1 m long and weighs 1 kg."""
    max_steps: int = 200

    agents = ("player_0",)
    noise_sizes = (2, 0)
    render_fps = 30

    def __post_init__(self) -> None:
        keep(self, gravity=real("gravity", self.gravity, 0, 1000), max_steps=whole("max_steps", self.max_steps))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        high = np.array([1, 1, TOP_SPEED], np.float32)
        return (Box(-high, high, dtype=np.float32),)

    @property
    def action_spaces(self) -> tuple[Box, ...]:
        return (Box(-TORQUE, TORQUE, (1,), np.float32),)

    def params(self, **overrides: Any) -> Params:
        for name in overrides:
            raise unknown("parameter of lanes of pendulum", name, [])
        return Params()

    def init(self, params: Params, noise: Array) -> State:
        xp, signed = array_namespace(noise), noise * 2 - 1
        nothing = xp.zeros_like(noise[:, :1])
        none = xp.astype(nothing[:, 0], xp.int32)
        return State(signed[:, 0] * PI, signed[:, 1], nothing[:, 0], nothing, none)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp, angle, torque = array_namespace(state.angle), state.angle, actions[0][:, 0]
        costs = angle * angle + state.speed * state.speed * 0.1 + torque * torque * 0.001
        pull = sine(angle) * (1.5 * self.gravity) + torque * 3.0
        speed = (state.speed + pull * SECONDS).clip(-TOP_SPEED, TOP_SPEED)
        angle = angle + speed * SECONDS
        angle = xp.where(angle > PI, angle - 2 * pi, xp.where(angle < -PI, angle + 2 * pi, angle))
        return State(angle, speed, torque, 0 - costs[:, None], state.steps + 1)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.angle)
        # Rounding may take either just beyond 1.
        place = [part.clip(-1, 1) for part in (cosine(state.angle), sine(state.angle))]
        return xp.stack([*place, state.speed], axis=1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.steps[:, None] >= 0

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.steps < 0  # by the rules it never ends

    def truncated(self, params: Params, state: State) -> Array:
        return state.steps >= self.max_steps

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        angle, speed, torque = (float(part[lane]) for part in state[:3])
        told = f"step {int(state.steps[lane])}: {angle:+.3f} rad from upright, {speed:+.3f} rad/s"
        return told + f"; torque {torque:+.3f}, reward {float(state.rewards[lane, 0]):+.3f}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [420, 720, 3]."""
        angle, speed, torque = (float(part[lane]) for part in state[:3])
        return pictures.pendulum(angle, speed, torque, TORQUE, int(state.steps[lane]), self.max_steps)
