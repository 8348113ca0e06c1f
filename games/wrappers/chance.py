"""Bad luck: observations that are missed, and actions that are repeated."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box

from games import game as contracts
from games.game import Array, Game
from games.numbers import real
from games.wrappers.wrapped import Params, State, Wrapped


def flickering(game: Game, p: float = 0.5) -> Game:
    """Each observation is blank, all zeros, with probability p, of every seat and step apart [Hausknecht & Stone 2015].

    Raises ValueError for a p out of [0, 1].
    """
    return Flickering(game, real("p", p, 0, 1))


@dataclass(frozen=True)
class Flickering(Wrapped):
    """Carries [B, N] bool, whose observation is blank; see `flickering`."""

    p: float

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        spaces = self.game.observation_spaces
        return tuple(Box(np.minimum(space.low, 0), np.maximum(space.high, 0), dtype=np.float32) for space in spaces)

    @property
    def own_noise(self) -> tuple[int, int]:
        return len(self.agents), len(self.agents)

    def begin(self, params: Params, inner: contracts.State, noise: Array) -> Array:
        return noise < self.p

    def go_on(self, params: Params, own: Array, inner: contracts.State, noise: Array) -> Array:
        return noise < self.p

    def observe(self, params: Params, state: State, seat: int) -> Array:
        seen = super().observe(params, state, seat)
        xp = array_namespace(seen)
        blank = state.own[:, seat].reshape(-1, *(1,) * (seen.ndim - 1))
        return xp.where(blank, xp.zeros_like(seen), seen)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        blind = [agent for agent, blank in zip(self.agents, state.own[lane], strict=True) if bool(blank)]
        return super().describe(params, state, lane) + (f"\n(blank for {', '.join(blind)})" if blind else "")


class Last(NamedTuple):
    """What everyone did when it acted last."""

    actions: tuple[Array, ...]  # one a seat, as `Game.step` takes them
    acted: Array  # [B, N] bool


def sticky_actions(game: Game, p: float = 0.25) -> Game:
    """Whoever acts repeats its last action with probability p, whatever it chooses now [Machado et al. 2018].

    Where that is illegal by now, or nothing has been done yet, the choice stands. Raises ValueError for a p out of
    [0, 1].
    """
    return StickyActions(game, real("p", p, 0, 1))


@dataclass(frozen=True)
class StickyActions(Wrapped):
    """Carries `Last`; see `sticky_actions`."""

    p: float

    @property
    def own_noise(self) -> tuple[int, int]:
        return 0, len(self.agents)

    def begin(self, params: Params, inner: contracts.State, noise: Array) -> Last:
        xp, acting = array_namespace(noise), self.game.acting(params.inner, inner)
        kept = tuple(
            xp.zeros(
                (acting.shape[0], *(space.shape or ())),
                dtype=xp.float32 if isinstance(space, Box) else xp.int64,
                device=device(acting),
            )
            for space in self.action_spaces
        )
        return Last(kept, xp.zeros_like(acting))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        columns, acting = self.game.noise_sizes[1], self.acting(params, state)
        last: Last = state.own
        played, kept = [], []
        for seat, (action, before) in enumerate(zip(actions, last.actions, strict=True)):
            repeats = acting[:, seat] & last.acted[:, seat] & (noise[:, columns + seat] < self.p)
            for allowed in self._allowed(params, state, seat, before):
                repeats = repeats & allowed
            played.append(_choose(repeats, before, action))
            kept.append(_choose(acting[:, seat], played[-1], before))
        inner = self.game.step(params.inner, state.inner, tuple(played), noise[:, :columns])
        return State(inner, Last(tuple(kept), last.acted | acting))

    def _allowed(self, params: Params, state: State, seat: int, action: Array) -> list[Array]:
        """One [B] bool a factor: whether its choice is legal."""
        xp, rows = array_namespace(action), action.reshape(action.shape[0], -1)
        lanes = xp.arange(action.shape[0], device=device(action))
        masks = self.legal(params, state, seat) or ()
        return [mask[lanes, rows[:, factor]] for factor, mask in enumerate(masks)]


def _choose(lanes: Array, new: Array, old: Array) -> Array:
    """`new` on lanes [B] bool, else `old`; [B] or [B, factors]."""
    return array_namespace(new).where(lanes if new.ndim == 1 else lanes[:, None], new, old)
