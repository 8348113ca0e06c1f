"""Cart-pole: a pole is to be kept upright by pushing the cart it stands on [Barto, Sutton & Anderson 1983]."""

from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete

from games.control import pictures
from games.control.trigonometry import small_cosine, small_sine
from games.game import Array
from games.numbers import keep, whole
from games.spelling import unknown

GRAVITY, TOTAL_MASS, POLE_MASS, HALF_LENGTH = 9.8, 1.1, 0.1, 0.5
"""In m/s^2, kg, kg and m; the cart weighs 1 kg."""
FORCE, SECONDS = 10.0, 0.02
"""Newtons of a push, and how long it lasts."""
EDGE, TILT = 2.4, 12 * pi / 180
"""How far the cart may be from the middle, and the pole from upright: in m and radians."""
START = 0.05


class Params(NamedTuple):
    """Nothing to tabulate here: Gymnasium's constants serve as they are."""


class State(NamedTuple):
    motion: Array  # [B, 4] float32: metres right of the middle, their speed; radians right of upright, their speed
    steps: Array  # [B] int32 played


@dataclass(frozen=True)
class CartPole:
    """Push a cart left or right so that the pole on it does not fall, as Gymnasium's CartPole-v1 asks.

    Players: 1, `player_0`.
    Observations: the cart's place and speed, the pole's angle and angular speed; bounded as Gymnasium says.
    Actions: 0 pushes left, 1 right, with 10 N for 0.02 s.
    Rewards: 1 a step, that of the fall too.
    Horizon: until the pole leans by 12 degrees or the cart is 2.4 m off; truncated after `max_steps` steps.
    Chance: all four start uniformly in [-0.05, 0.05].
    References: Barto, Sutton & Anderson (1983), Neuronlike adaptive elements that can solve difficult learning control
    problems; Gymnasium 1.4, CartPole-v1.

    Steps are Gymnasium's within the rounding of float32, in which states are kept here; episodes are alike but not the
    same, since noise is keyed otherwise. Raises ValueError for values out of range.
    """

    max_steps: int = 500

    agents = ("player_0",)
    noise_sizes = (4, 0)
    render_fps = 50

    def __post_init__(self) -> None:
        keep(self, max_steps=whole("max_steps", self.max_steps))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        high = np.array([2 * EDGE, np.inf, 2 * TILT, np.inf], np.float32)
        return (Box(-high, high, dtype=np.float32),)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return (Discrete(2),)

    def params(self, **overrides: Any) -> Params:
        for name in overrides:
            raise unknown("parameter of lanes of cart_pole", name, [])
        return Params()

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        return State((noise * 2 - 1) * START, xp.zeros_like(noise[:, 0], dtype=xp.int32))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(state.motion)
        _, speed, angle, spin = (state.motion[:, i] for i in range(4))
        push = xp.astype(actions[0] * 2 - 1, xp.float32) * (FORCE / TOTAL_MASS)
        sine, cosine, share = small_sine(angle), small_cosine(angle), POLE_MASS * HALF_LENGTH / TOTAL_MASS
        pushed = push + spin * spin * sine * share
        inertia = 4 / 3 * HALF_LENGTH - cosine * cosine * share
        turned = (sine * GRAVITY - cosine * pushed) / inertia
        changes = (speed, pushed - turned * cosine * share, spin, turned)
        return State(state.motion + xp.stack(changes, axis=1) * SECONDS, state.steps + 1)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        return state.motion

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.steps[:, None] >= 0

    def rewards(self, params: Params, state: State) -> Array:
        xp = array_namespace(state.motion)
        return xp.astype(state.steps[:, None] > 0, xp.float32)

    def terminated(self, params: Params, state: State) -> Array:
        return (abs(state.motion[:, 0]) > EDGE) | (abs(state.motion[:, 2]) > TILT)

    def truncated(self, params: Params, state: State) -> Array:
        return (state.steps >= self.max_steps) & ~self.terminated(params, state)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        x, speed, angle, spin = (float(part) for part in state.motion[lane])
        cart, pole = f"cart at {x:+.3f} m, {speed:+.3f} m/s", f"pole at {angle:+.4f} rad, {spin:+.3f} rad/s"
        return f"step {int(state.steps[lane])}: {cart}; {pole}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [420, 720, 3]."""
        x, _, angle, _ = (float(part) for part in state.motion[lane])
        return pictures.cart_pole(x, angle, EDGE, TILT, int(state.steps[lane]), self.max_steps)
