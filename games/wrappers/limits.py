"""When an episode is over."""

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games import game as contracts
from games.game import Array, Game
from games.numbers import whole
from games.wrappers.wrapped import Params, State, Wrapped, check_features


def time_limit(game: Game, steps: int, aware: bool = False) -> Game:
    """Truncates episodes after so many steps; `aware` adds the share still to come to what is seen [Pardo et al. 2018].

    Raises ValueError for no steps, and for `aware` where somebody observes pictures.
    """
    if aware:
        check_features(game, "the time")
    return TimeLimit(game, whole("steps", steps), aware)


@dataclass(frozen=True)
class TimeLimit(Wrapped):
    """Carries [B] int64 steps played; see `time_limit`."""

    steps: int
    aware: bool

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        spaces = self.game.observation_spaces
        if not self.aware:
            return spaces
        zero, one = np.float32(0), np.float32(1)
        return tuple(Box(np.append(space.low, zero), np.append(space.high, one), dtype=np.float32) for space in spaces)

    def begin(self, params: Params, inner: contracts.State, noise: Array) -> Array:
        xp = array_namespace(noise)
        return xp.zeros_like(self.game.terminated(params.inner, inner), dtype=xp.int64)

    def go_on(self, params: Params, own: Array, inner: contracts.State, noise: Array) -> Array:
        return own + 1

    def observe(self, params: Params, state: State, seat: int) -> Array:
        seen = super().observe(params, state, seat)
        if not self.aware:
            return seen
        xp = array_namespace(seen)
        left = xp.astype(self.steps - state.own, xp.float32) / self.steps
        return xp.concat([seen, left[:, None]], axis=1)

    def truncated(self, params: Params, state: State) -> Array:
        limited = super().truncated(params, state) | (state.own >= self.steps)
        return limited & ~self.terminated(params, state)
