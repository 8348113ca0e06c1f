"""Contextual bandits: which arm pays in which context?"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike

from games.canvas import DIM, GREEN, INK, ORANGE, SKY_BLUE, WHITE, Canvas, Colour, mixed
from games.game import Array, feature_box
from games.noise import Noise, Purpose
from games.numbers import keep, whole
from games.policies import draw_any
from games.spelling import unknown

LEFT, TOP, WIDTH, HEIGHT = 130.0, 150.0, 790.0, 380.0
"""Where the picture shows the table of means."""


class Params(NamedTuple):
    means: Array  # [1 or B, contexts * arms] float32 probabilities of reward 1


MOST_MEANS = 2**24
"""Entries of a table."""


class State(NamedTuple):
    round: Array  # [B] int64 rounds played
    context: Array  # [B] int64 shown now
    played: Array  # [B] int64 context of the last round
    arm: Array  # [B] int64 pulled there
    rewards: Array  # [B, 1] float32


@dataclass(frozen=True, eq=False)
class Bandit:
    """In every round a context is shown and one arm is pulled, which pays 1 with a probability of that context's.

    Players: 1, `player_0`.
    Observations: the context, one-hot [`contexts`].
    Actions: the arm, Discrete(`arms`).
    Rewards: 1 with probability `means[context, arm]`, else 0.
    Horizon: `horizon` rounds.
    Chance: contexts, evenly and independently; rewards.
    Exact values: `optimum`, `uniform_value`, `value` of any policy without memory.
    References: Robbins (1952), Some aspects of the sequential design of experiments; Langford & Zhang (2007), The
    epoch-greedy algorithm for contextual multi-armed bandits.

    Raises ValueError for sizes below 1, and means that are not [contexts, arms] probabilities.

    >>> Bandit(contexts=2, arms=2, horizon=10, means=[[0.25, 0.75], [1.0, 0.0]]).optimum
    8.75
    """

    contexts: int = 4
    arms: int = 5
    horizon: int = 20
    means: Any = None
    """[contexts, arms], kept as a read-only float64 array; by default uniforms drawn from `seed`."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("contexts", "arms", "horizon"):
            keep(self, **{name: whole(name, getattr(self, name))})
        keep(self, seed=whole("seed", self.seed, 0, 2**64 - 1))
        if self.contexts * self.arms > MOST_MEANS:
            raise ValueError(f"contexts times arms must be at most {MOST_MEANS:,}, got {self.contexts * self.arms:,}")
        means = self.means
        if means is None:
            means = Noise(self.seed, ["means of a bandit"]).draw(Purpose.INIT, 0, self.contexts, self.arms)
        table = self._checked(means, 2)
        table.setflags(write=False)
        object.__setattr__(self, "means", table)

    def _checked(self, means: ArrayLike, *dims: int) -> np.ndarray:
        table = np.array(means, np.float64)
        if table.ndim not in dims or table.shape[-2:] != (self.contexts, self.arms):
            raise ValueError(f"means must be [contexts, arms] = {[self.contexts, self.arms]}, got {list(table.shape)}")
        if not ((table >= 0) & (table <= 1)).all():
            raise ValueError(f"means must be probabilities, got {table.min()} to {table.max()}")
        return table

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        return self.means.shape, self.means.tobytes(), self.horizon

    @property
    def agents(self) -> tuple[str, ...]:
        return ("player_0",)

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return (feature_box(self.contexts),)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return (Discrete(self.arms),)

    @property
    def noise_sizes(self) -> tuple[int, int]:
        return 1, 2  # a context; the reward, and the next context

    @property
    def optimum(self) -> float:
        """The best expected return: in every context the best of its arms."""
        return float(self.horizon * self.means.max(axis=1).mean())

    @property
    def uniform_value(self) -> float:
        """The expected return of pulling any arm equally often."""
        return float(self.horizon * self.means.mean())

    def value(self, probabilities: ArrayLike) -> float:
        """The expected return of pulling arms with these probabilities [contexts, arms]."""
        return float(self.horizon * (np.asarray(probabilities) * self.means).sum(axis=1).mean())

    def params(self, **overrides: Any) -> Params:
        """`means` [contexts, arms] for all lanes, or [B, contexts, arms].

        Raises ValueError for another shape, and means that are no probabilities.
        """
        for name in overrides:
            if name != "means":
                raise unknown("parameter of bandits", name, ["means"])
        table = self._checked(overrides.get("means", self.means), 2, 3)
        return Params(table.reshape(-1, self.contexts * self.arms).astype(np.float32))

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        nothing = xp.zeros_like(noise[:, 0], dtype=xp.int64)
        return State(nothing, draw_any(self.contexts, noise[:, 0]), nothing, nothing, xp.zeros_like(noise[:, :1]))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp, arm = array_namespace(noise), actions[0]
        index = state.context * self.arms + arm
        if params.means.shape[0] == 1:
            mean = params.means[0][index]
        else:
            mean = params.means[xp.arange(index.shape[0], device=device(index)), index]
        reward = xp.astype(noise[:, :1] < mean[:, None], xp.float32)
        return State(state.round + 1, draw_any(self.contexts, noise[:, 1]), state.context, arm, reward)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.rewards)
        return xp.astype(xp.stack([state.context == context for context in range(self.contexts)], axis=1), xp.float32)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.rewards == state.rewards

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.round >= self.horizon

    def truncated(self, params: Params, state: State) -> Array:
        return state.round < 0  # nothing outside the rules ends an episode

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        now = f"round {int(state.round[lane])} of {self.horizon}"
        told = self._told(state, lane)
        shown = "" if int(state.round[lane]) == self.horizon else f"; now context {int(state.context[lane])}"
        return f"{now}: {told}{shown}" if told else now + shown

    def _told(self, state: State, lane: int) -> str:
        """The last round in words."""
        if not int(state.round[lane]):
            return ""
        arm, context = int(state.arm[lane]), int(state.played[lane])
        return f"arm {arm} in context {context} paid {float(state.rewards[lane, 0]):g}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [600, 960, 3]; means as bars, the context shown now, the last arm pulled."""
        table = [float(mean) for mean in params.means[lane if params.means.shape[0] > 1 else 0]]
        played = int(state.round[lane])
        now = int(state.context[lane]) if played < self.horizon else None
        last = (int(state.played[lane]), int(state.arm[lane])) if played else None
        canvas = Canvas(960, 600)
        canvas.text(36, 44, "BANDIT", 15, DIM, "lm", bold=True)
        canvas.text(36, 86, f"Round {played} of {self.horizon}", 30, anchor="lm")
        won = float(state.rewards[lane, 0]) > 0
        canvas.text(924, 86, self._told(state, lane), 20, GREEN if won else ORANGE, "rm")
        high, wide = HEIGHT / self.contexts, WIDTH / self.arms
        if now is not None:
            canvas.box(24, TOP + now * high, 936, TOP + (now + 1) * high, mixed(SKY_BLUE, INK, 0.75), 8)
        for context in range(self.contexts):
            y = TOP + (context + 0.5) * high
            if high >= 14:
                canvas.text(36, y, f"context {context}", min(15, 0.7 * high), WHITE if context == now else DIM, "lm")
            for arm in range(self.arms):
                shade = (GREEN if won else ORANGE) if last == (context, arm) else mixed(DIM, INK, 0.45)
                _bar(canvas, LEFT + arm * wide, y, wide, high, table[context * self.arms + arm], shade)
        if wide >= 14:
            for arm in range(self.arms):
                canvas.text(LEFT + (arm + 0.45) * wide, TOP + HEIGHT + 24, f"arm {arm}"[-int(wide / 8) :], 15, DIM)
        return canvas.pixels()


def _bar(canvas: Canvas, x: float, y: float, wide: float, high: float, mean: float, colour: Colour) -> None:
    """How likely an arm pays, as a bar that is full at 1, and as a number where there is room."""
    length, half = 0.9 * wide, min(14.0, 0.4 * high)
    canvas.box(x, y - half, x + length, y + half, mixed(DIM, INK, 0.8), min(6.0, half / 2))
    canvas.box(x, y - half, x + length * mean, y + half, colour, min(6.0, half / 2))
    if wide >= 60 and half >= 8:
        canvas.text(x + length - 8, y, f"{mean:.2f}", 13, WHITE, "rm")
