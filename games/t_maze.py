"""The T-maze: what is seen at the start tells where to turn at the end."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete

from games.canvas import DIM, GREEN, INK, ORANGE, SKY_BLUE, WHITE, Canvas, Colour, mixed
from games.game import Array
from games.numbers import keep, real, whole
from games.spelling import unknown

FORWARD, BACK, LEFT, RIGHT = range(4)
"""Actions."""
SIGHTS = ("the cue: left", "the cue: right", "corridor", "junction")
"""Features of an observation; one of them is 1."""
WIDEST = 60
"""The longest corridor whose cells are shown one by one."""


class Params(NamedTuple):
    """Nothing to tabulate here: numbers of the dataclass serve as they are."""


class State(NamedTuple):
    position: Array  # [B] int64 cells from the start
    goal: Array  # [B] int64 LEFT or RIGHT
    turned: Array  # [B] int64 the side taken at the junction, or 0
    steps: Array  # [B] int64 played
    rewards: Array  # [B, 1] float32
    blur: Array | None = None  # [B, 4] uniforms; None where observations are clear


@dataclass(frozen=True)
class TMaze:
    """A cue at the start of a corridor tells on which side of the junction at its end the goal lies.

    Players: 1, `player_0`.
    Observations: [cue left, cue right, corridor, junction], one of them 1. The cue is seen in the first step only.
    Actions: 0 forward, 1 back, 2 left, 3 right.
    Rewards: 1 for the goal, 0 for the other side, and -`bump` for walking into a wall.
    Horizon: ends at the turn; truncated after `max_steps`, by default 4 (`length` + 1).
    Chance: the cue's side, evenly; `blur` adds uniform noise in [-blur, blur] to all that is seen.
    Exact values: `optimum` with a memory, `best_without_memory`.
    References: Bakker (2002), Reinforcement learning with long short-term memory; Osband et al. (2020), Behaviour
    suite for reinforcement learning, "memory length".

    Raises ValueError for values out of range.
    """

    length: int = 10
    """Steps from the start to the junction."""
    bump: float = 0.1
    blur: float = 0.0
    """Below 0.5, so that what is seen can be told apart."""
    max_steps: int | None = None

    agents = ("player_0",)

    def __post_init__(self) -> None:
        keep(self, length=whole("length", self.length, 1, 2**28), bump=real("bump", self.bump, 0))
        keep(self, blur=real("blur", self.blur, 0, below=0.5))
        if self.max_steps is not None:
            keep(self, max_steps=whole("max_steps", self.max_steps, self.length + 1))

    @property
    def limit(self) -> int:
        """Steps after which an episode is truncated."""
        return 4 * (self.length + 1) if self.max_steps is None else self.max_steps

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        blur = np.float32(self.blur)
        return (Box(0 - blur, 1 + blur, (len(SIGHTS),), np.float32),)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return (Discrete(4),)

    @property
    def noise_sizes(self) -> tuple[int, int]:
        """The cue's side; what blurs each feature."""
        blurred = len(SIGHTS) if self.blur else 0
        return 1 + blurred, blurred

    @property
    def optimum(self) -> float:
        """The best expected return: remember the cue, walk to the junction, turn to the goal."""
        return 1.0

    @property
    def best_without_memory(self) -> float:
        """The best expected return of policies that know nothing but what they see.

        At the junction they turn left equally often whatever the cue was, so no more than half of the turns are right.
        """
        return 0.5

    def params(self, **overrides: Any) -> Params:
        for name in overrides:
            raise unknown("parameter of lanes of t_maze", name, [])
        return Params()

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        nothing = xp.zeros_like(noise[:, 0], dtype=xp.int64)
        goal = LEFT + xp.astype(noise[:, 0] >= 0.5, xp.int64)
        return State(nothing, goal, nothing, nothing, xp.zeros_like(noise[:, :1]), self._blurred(noise[:, 1:]))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp, (action,) = array_namespace(state.rewards), actions
        at_junction = state.position == self.length
        turns = at_junction & (action >= LEFT)
        ahead, back = (action == FORWARD) & ~at_junction, (action == BACK) & (state.position > 0)
        position = state.position + xp.astype(ahead, xp.int64) - xp.astype(back, xp.int64)
        found, bumped = turns & (action == state.goal), ~(turns | ahead | back)
        reward = xp.astype(found, xp.float32) - xp.astype(bumped, xp.float32) * self.bump
        turned = xp.astype(turns, xp.int64) * action
        return State(position, state.goal, turned, state.steps + 1, reward[:, None], self._blurred(noise))

    def _blurred(self, noise: Array) -> Array | None:
        return noise if self.blur else None

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.rewards)
        cue, junction = state.steps == 0, state.position == self.length
        told = [cue & (state.goal == LEFT), cue & (state.goal == RIGHT), ~cue & ~junction, ~cue & junction]
        seen = xp.astype(xp.stack(told, axis=1), xp.float32)
        return seen if state.blur is None else seen + (state.blur * 2 - 1) * self.blur

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.rewards == state.rewards

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.turned > 0

    def truncated(self, params: Params, state: State) -> Array:
        return (state.steps >= self.limit) & (state.turned == 0)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        position, turned = int(state.position[lane]), int(state.turned[lane])
        cells = f"cell {position} of {self.length} "
        if self.length <= WIDEST:
            cells = "." * (self.length + 1) if turned else "." * position + "@" + "." * (self.length - position)
        told = f"turned {_side(turned)}" if turned else self._sight(state, lane)
        goal, reward = _side(int(state.goal[lane])), float(state.rewards[lane, 0])
        return f"step {int(state.steps[lane])}: {cells}| {told}; the goal is {goal}, reward {reward:+g}"

    def _sight(self, state: State, lane: int) -> str:
        """What is seen, in words."""
        if int(state.steps[lane]) == 0:
            return f"the cue says {_side(int(state.goal[lane]))}"
        return "sees the " + SIGHTS[2 + (int(state.position[lane]) == self.length)]

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [400, 960, 3]."""
        position, turned, goal = (int(part[lane]) for part in (state.position, state.turned, state.goal))
        canvas = Canvas(960, 400)
        _maze(canvas, self.length)
        cue_lit = int(state.steps[lane]) == 0
        _sign(canvas, _x(0, self.length), MIDDLE - 92, goal, SKY_BLUE if cue_lit else mixed(DIM, INK, 0.6))
        end = _x(self.length, self.length)
        canvas.glow(end, _arm(goal), 70, GREEN, 0.6)
        _star(canvas, end, _arm(goal), 22, GREEN)
        x, y = (end, _arm(turned)) if turned else (_x(position, self.length), MIDDLE)
        canvas.disc(x, y, 20, INK)
        canvas.disc(x, y, 17, ORANGE if float(state.rewards[lane, 0]) < 0 else WHITE)
        reward = float(state.rewards[lane, 0])
        canvas.text(160, 44, "T-MAZE", 15, DIM, "lm", bold=True)
        canvas.text(160, 82, f"Step {int(state.steps[lane])} of {self.limit}", 30, anchor="lm")
        canvas.text(60, 322, f"turned {_side(turned)}" if turned else self._sight(state, lane), 22, anchor="lm")
        canvas.text(60, 354, f"reward {reward:+g}", 18, GREEN if reward > 0 else ORANGE if reward < 0 else DIM, "lm")
        return canvas.pixels()


MIDDLE, ARM, HALF = 200.0, 118.0, 30.0
"""Of the picture: the corridor's height, how far the arms reach from it, and half a corridor's width."""


def _side(action: int) -> str:
    return "left" if action == LEFT else "right"


def _x(position: int, length: int) -> float:
    """Where a cell's middle lies across the picture."""
    return 90 + 750 * position / length


def _arm(side: int) -> float:
    """The height of an arm's end: who walks to the right has left above."""
    return MIDDLE + (ARM if side == RIGHT else -ARM)


def _maze(canvas: Canvas, length: int) -> None:
    wall, floor, end = mixed(DIM, INK, 0.35), mixed(DIM, INK, 0.78), _x(length, length)
    for edge, colour in ((5, wall), (0, floor)):
        half = HALF + edge
        canvas.box(_x(0, length) - half, MIDDLE - half, end + half, MIDDLE + half, colour, 6)
        canvas.box(end - half, MIDDLE - ARM - half, end + half, MIDDLE + ARM + half, colour, 6)
    if length <= WIDEST:
        for position in range(length):
            canvas.disc(_x(position, length), MIDDLE, 2.5, wall)


def _sign(canvas: Canvas, x: float, y: float, side: int, colour: Colour) -> None:
    """An arrow to the goal's side, on a board."""
    canvas.box(x - 3, y, x + 3, MIDDLE - HALF - 5, colour)
    canvas.box(x - 24, y - 24, x + 24, y + 24, colour, 8)
    tip = 15 if side == RIGHT else -15
    canvas.polygon([(x, y + tip), (x - 14, y), (x + 14, y)], INK)
    canvas.line([(x, y), (x, y - tip)], INK, 7)


def _star(canvas: Canvas, x: float, y: float, radius: float, colour: Colour) -> None:
    turns = np.linspace(-np.pi / 2, 1.5 * np.pi, 11)[:-1]
    reach = [radius if corner % 2 == 0 else 0.45 * radius for corner in range(10)]
    points = [(x + r * float(np.cos(turn)), y + r * float(np.sin(turn))) for r, turn in zip(reach, turns, strict=True)]
    canvas.polygon(points, colour)
