"""The rules of Pong as pure functions on a batch of lanes.

The court is the square [-1, 1] x [-1, 1], x to the right and y up; the paddles' fronts move along its left and right
edge. Nothing here tells left from right but a sign, so that a mirrored state plays as the mirror image to the last bit.
"""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete

from games.game import Array
from games.numbers import keep, real, whole
from games.pong.pixels import SHAPE, pixels
from games.spelling import unknown

STAY, UP, DOWN = range(3)


class Params(NamedTuple):
    """All [1 or B] float32."""

    serve_speed: Array
    speed_up: Array
    top_speed: Array
    paddle_speed: Array
    reach: Array
    steepest: Array
    wobble: Array
    edge: Array  # furthest that a paddle's centre gets from the middle
    per_reach: Array  # 1 / reach
    per_top_speed: Array  # 1 / top_speed
    per_top_rise: Array  # 1 / (top_speed * steepest)


class Places(NamedTuple):
    """Where things are; all [B] float32."""

    x: Array  # of the ball
    y: Array
    left: Array  # y of the paddles' centres
    right: Array


class State(NamedTuple):
    now: Places
    before: Places  # a step ago; at the start of an episode where they are now
    dx: Array  # [B] float32 the ball's velocity per step; 0 between a point and the serve after it
    dy: Array  # [B] float32
    point: Array  # [B] float32 of the last step: 1 to the left player, -1 to the right one, or 0
    left_points: Array  # [B] int32
    right_points: Array  # [B] int32
    steps: Array  # [B] int32


@dataclass(frozen=True)
class Pong:
    """Two paddles return a ball that gets faster; who misses it loses a point [Alcorn, Atari 1972].

    Players: two, `player_0` on the left and `player_1` on the right, at once. Zero-sum.
    Actions: Discrete(3): stay, up, down.
    Observations: 8 features in [-1, 1]: own paddle, other paddle, ball x, y, its velocity dx, dy, own and other points.
        With `pixels` pictures [2, 40, 40] in [0, 1]: the court now and a step before. Both are mirrored: everyone sees
        itself on the left, so one policy plays either side.
    Rewards: 1 for a point won, -1 for one lost.
    Horizon: first to `points` points; truncated after `max_steps` steps.
    Chance: side, height and angle of serves; a little of the angle of returns.
    References: Alcorn (1972), Pong, Atari; Bellemare et al. (2013), The arcade learning environment, for Pong as a task
    for learners. The rules are our own.

    Lengths are in halves of the court, speeds in these per step. The ball bounces off the upper and lower wall. Where
    it hits a paddle decides how steeply it leaves: straight from the centre, at slope +-`steepest` from the ends. Each
    hit makes it faster; its speed is the one across the court. After a point it is served from the middle line.

    Raises ValueError for values out of range.
    """

    points: int = 3
    max_steps: int = 1000
    pixels: bool = False
    serve_speed: float = 0.08
    speed_up: float = 1.15
    """Factor of the ball's speed at every hit ..."""
    top_speed: float = 0.2
    """... up to this one."""
    paddle_speed: float = 0.08
    reach: float = 0.18
    """How far from a paddle's centre it still returns the ball."""
    steepest: float = 1.0
    """Largest slope of the ball after a hit."""
    wobble: float = 0.2
    """Largest difference that chance makes to the slope after a hit."""

    agents = ("player_0", "player_1")
    render_fps = 15
    noise_sizes = (3, 3)  # side, height and slope of a serve; the last also turns the ball when it is hit

    def __post_init__(self) -> None:
        for name in ("points", "max_steps"):
            keep(self, **{name: whole(name, getattr(self, name))})
        if not isinstance(self.pixels, bool):
            raise ValueError(f"pixels must be True or False, got {self.pixels!r}")
        keep(self, **{name: real(name, getattr(self, name)) for name in DYNAMICS})
        self.params()

    @property
    def observation_spaces(self) -> tuple[Box, Box]:
        space = Box(0.0, 1.0, SHAPE, np.float32) if self.pixels else Box(-1.0, 1.0, (8,), np.float32)
        return (space, space)

    @property
    def action_spaces(self) -> tuple[Discrete, Discrete]:
        return (Discrete(3), Discrete(3))

    def params(self, **overrides: Any) -> Params:
        """The dynamics (`DYNAMICS`), each a number or one per lane. Raises ValueError for values out of range."""
        for name in overrides:
            if name not in DYNAMICS:
                raise unknown("parameter of Pong's dynamics", name, DYNAMICS)
        given = {name: overrides.get(name, getattr(self, name)) for name in DYNAMICS}
        values = {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in given.items()}
        _check(values)
        reach, top, steepest = values["reach"], values["top_speed"], values["steepest"]
        table = values | {
            "edge": 1 - reach,
            "per_reach": 1 / reach,
            "per_top_speed": 1 / top,
            "per_top_rise": 1 / (top * steepest),
        }
        return Params(*(table[name].astype(np.float32) for name in Params._fields))

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        x, y, dx, dy = _served(params, noise)
        nothing = xp.zeros_like(x)
        places, none = Places(x, y, nothing, nothing), xp.zeros_like(x, dtype=xp.int32)
        return State(places, places, dx, dy, nothing, none, none, none)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        left, right = (
            _moved(params, paddle, action)
            for paddle, action in zip((state.now.left, state.now.right), actions, strict=True)
        )
        x, y, dx, dy = state.now.x, state.now.y, state.dx, state.dy
        to_left, speed = dx < 0, abs(dx)
        ahead = 1 - xp.where(to_left, 0 - x, x)  # up to the line that the ball flies to
        reached = (dx != 0) & (ahead <= speed)
        part = xp.where(reached, ahead / xp.where(reached, speed, 1.0), 1.0)  # of the step, before it is there
        x = xp.where(reached & to_left, -1.0, xp.where(reached, 1.0, x + dx))
        y = y + dy * part
        dy = xp.where(abs(y) > 1, -dy, dy)
        y = xp.where(y > 1, 2 - y, xp.where(y < -1, -2 - y, y))
        offset = (y - xp.where(to_left, left, right)) * params.per_reach
        hit, missed = reached & (abs(offset) <= 1), reached & (abs(offset) > 1)
        faster = xp.minimum(speed * params.speed_up, params.top_speed)
        slope = _within(offset * params.steepest + _signed(noise[:, 2]) * params.wobble, params.steepest)
        dx = xp.where(hit, xp.where(to_left, faster, -faster), dx)
        dy = xp.where(hit, slope * faster, dy)
        point = xp.astype(missed & ~to_left, xp.float32) - xp.astype(missed & to_left, xp.float32)
        # The ball stands where it was missed; the next step serves.
        dx, dy = xp.where(missed, 0.0, dx), xp.where(missed, 0.0, dy)
        serves = state.point != 0
        if serves.any():
            flight = zip(_served(params, noise), (x, y, dx, dy), strict=True)
            x, y, dx, dy = (xp.where(serves, new, old) for new, old in flight)
        return State(
            Places(x, y, left, right),
            state.now,
            dx,
            dy,
            point,
            state.left_points + xp.astype(point > 0, xp.int32),
            state.right_points + xp.astype(point < 0, xp.int32),
            state.steps + 1,
        )

    def observe(self, params: Params, state: State, seat: int) -> Array:
        """[B, 8], or [B, 2, 40, 40] with `pixels`."""
        xp, seen = array_namespace(state.dx), state if seat == 0 else mirrored(state)
        if self.pixels:
            return xp.stack([pixels(params.reach, places) for places in (seen.now, seen.before)], axis=1)
        now = seen.now
        velocity = [seen.dx * params.per_top_speed, seen.dy * params.per_top_rise]
        points = [xp.astype(count, xp.float32) * (1 / self.points) for count in (seen.left_points, seen.right_points)]
        # Rounding may take a quotient just beyond its bound.
        return xp.stack([now.left, now.right, now.x, now.y, *velocity, *points], axis=1).clip(-1, 1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        xp = array_namespace(state.dx)
        return xp.stack([state.steps, state.steps], axis=1) >= 0

    def rewards(self, params: Params, state: State) -> Array:
        return array_namespace(state.point).stack([state.point, 0 - state.point], axis=1)

    def terminated(self, params: Params, state: State) -> Array:
        return (state.left_points >= self.points) | (state.right_points >= self.points)

    def truncated(self, params: Params, state: State) -> Array:
        return (state.steps >= self.max_steps) & ~self.terminated(params, state)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        x, y, left, right = (float(place[lane]) for place in state.now)
        dx, dy = float(state.dx[lane]), float(state.dy[lane])
        score = f"{int(state.left_points[lane])}:{int(state.right_points[lane])}"
        ball = f"({x:+.2f}, {y:+.2f}) moving ({dx:+.3f}, {dy:+.3f})"
        return f"step {int(state.steps[lane])}, {score}: ball at {ball}, paddles at {left:+.2f} and {right:+.2f}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [480, 640, 3]."""
        from games.pong.picture import frame  # Pillow

        return frame(self, params, state, lane)


DYNAMICS = tuple(field.name for field in fields(Pong) if field.type is float)
"""Parameters that may differ from lane to lane."""


def mirrored(state: State) -> State:
    """The state seen from behind: left is right, so the seats have changed places."""

    def turned(places: Places) -> Places:
        return Places(0 - places.x, places.y, places.right, places.left)  # which never makes a -0.0

    now, before = turned(state.now), turned(state.before)
    return State(
        now, before, 0 - state.dx, state.dy, 0 - state.point, state.right_points, state.left_points, state.steps
    )


def _check(values: dict[str, np.ndarray]) -> None:
    """Raises ValueError for the first value that makes no game."""
    top, steepest = values["top_speed"], values["steepest"]
    ranges = {
        "serve_speed": (values["serve_speed"] > 0) & (values["serve_speed"] <= top),
        "speed_up": values["speed_up"] >= 1,
        "top_speed": top <= 1,
        "paddle_speed": (values["paddle_speed"] > 0) & (values["paddle_speed"] <= 1),
        "reach": (values["reach"] >= 0.1) & (values["reach"] < 1),
        "steepest": (steepest > 0) & (top * steepest <= 1),  # one wall a step at most
        "wobble": (values["wobble"] >= 0) & (values["wobble"] <= steepest),
    }
    wanted = (
        "0 < serve_speed <= top_speed <= 1, speed_up >= 1, 0 < paddle_speed <= 1, 0.1 <= reach < 1, "
        "0 < steepest <= 1 / top_speed and 0 <= wobble <= steepest"
    )
    for name, within in ranges.items():
        if not within.all():
            raise ValueError(f"Pong wants {wanted}; got {name}={values[name].tolist()}")


SERVE_HEIGHT, SERVE_SLOPE = 0.5, 0.7
"""How far from the middle, and how steeply, the ball is served at most; the slope in shares of the steepest."""


def _served(params: Params, noise: Array) -> tuple[Array, Array, Array, Array]:
    """x, y, dx, dy [B] of a serve from noise [B, 3]."""
    xp = array_namespace(noise)
    speed = params.serve_speed + xp.zeros_like(noise[:, 0])
    dx = xp.where(noise[:, 0] < 0.5, -speed, speed)
    y = _signed(noise[:, 1]) * SERVE_HEIGHT
    return xp.zeros_like(y), y, dx, _signed(noise[:, 2]) * SERVE_SLOPE * params.steepest * speed


def _moved(params: Params, paddle: Array, action: Array) -> Array:
    xp = array_namespace(paddle)
    way = xp.astype(action == UP, xp.float32) - xp.astype(action == DOWN, xp.float32)
    return _within(paddle + way * params.paddle_speed, params.edge)


def _signed(uniform: Array) -> Array:
    """Uniforms in [0, 1) as ones in [-1, 1)."""
    return uniform * 2 - 1


def _within(value: Array, bound: Array) -> Array:
    """The nearest value in [-bound, bound]."""
    xp = array_namespace(value)
    return xp.maximum(xp.minimum(value, bound), -bound)
