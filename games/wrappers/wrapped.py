"""A game around another one, which it delegates to."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games import game as contracts
from games.channel import Placement
from games.game import Array, Game, Legal, Pictured, Talking
from games.numbers import keep


class Params(NamedTuple):
    inner: contracts.Params
    own: Any = ()  # the wrapper's: nested tuples of [1 or B, ...]


class State(NamedTuple):
    inner: contracts.State
    own: Any = ()  # the wrapper's: nested tuples of [B, ...]


@dataclass(frozen=True)
class Wrapped:
    """`game` as it is: a wrapper overrides what it changes, and nothing else.

    Its own uniforms are the last columns of the noise, and what it adds to observations comes after what was there, so
    that the game itself, and who reads it, find all where it was. `frame` and `channels` are there
    where the game has them. Raises ValueError for what is no `games.game.Game`.
    """

    game: Game

    def __post_init__(self) -> None:
        if not isinstance(self.game, Game) or isinstance(self.game, type):
            raise ValueError(
                f"only a games.game.Game can be wrapped, got {type(self.game).__name__}: "
                "wrap other environments before they become lanes, e.g. by SuperSuit"
            )
        # Whether there are pictures, and whether agents talk, must show in the object itself: protocols look there.
        if isinstance(self.game, Pictured):
            keep(self, frame=partial(_frame, self.game))
        if isinstance(self.game, Talking):
            keep(self, channels=self.heard(self.game.channels))
        if hasattr(self.game, "render_fps"):
            keep(self, render_fps=self.game.render_fps)

    @property
    def agents(self) -> tuple[str, ...]:
        return self.game.agents

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return self.game.observation_spaces

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        return self.game.action_spaces

    @property
    def own_noise(self) -> tuple[int, int]:
        """Uniforms that the wrapper itself needs to start, and for a step."""
        return 0, 0

    @property
    def noise_sizes(self) -> tuple[int, int]:
        (start, step), (own_start, own_step) = self.game.noise_sizes, self.own_noise
        return start + own_start, step + own_step

    def params(self, **overrides: Any) -> Params:
        return Params(self.game.params(**overrides))

    def heard(self, channels: tuple[Placement, ...]) -> tuple[Placement, ...]:
        """The game's channels, as they are placed now."""
        return channels

    def begin(self, params: Params, inner: contracts.State, noise: Array) -> Any:
        """The wrapper's part of a starting state, from the game's and its own uniforms."""
        return ()

    def go_on(self, params: Params, own: Any, inner: contracts.State, noise: Array) -> Any:
        """The wrapper's part of the next state, from its last one, the game's next one and its own uniforms."""
        return ()

    def init(self, params: Params, noise: Array) -> State:
        columns = self.game.noise_sizes[0]
        inner = self.game.init(params.inner, noise[:, :columns])
        return State(inner, self.begin(params, inner, noise[:, columns:]))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        columns = self.game.noise_sizes[1]
        inner = self.game.step(params.inner, state.inner, actions, noise[:, :columns])
        return State(inner, self.go_on(params, state.own, inner, noise[:, columns:]))

    def observe(self, params: Params, state: State, seat: int) -> Array:
        return self.game.observe(params.inner, state.inner, seat)

    def legal(self, params: Params, state: State, seat: int) -> Legal:
        return self.game.legal(params.inner, state.inner, seat)

    def acting(self, params: Params, state: State) -> Array:
        return self.game.acting(params.inner, state.inner)

    def rewards(self, params: Params, state: State) -> Array:
        return self.game.rewards(params.inner, state.inner)

    def terminated(self, params: Params, state: State) -> Array:
        return self.game.terminated(params.inner, state.inner)

    def truncated(self, params: Params, state: State) -> Array:
        return self.game.truncated(params.inner, state.inner)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        return self.game.describe(params.inner, state.inner, lane)


def _frame(game: Pictured, params: Params, state: State, lane: int = 0) -> np.ndarray:
    return game.frame(params.inner, state.inner, lane)


def check_features(game: Game, what: str) -> None:
    """Raises ValueError for a game where somebody sees pictures: there is no place for `what` in them."""
    for agent, space in zip(game.agents, game.observation_spaces, strict=True):
        if len(space.shape) != 1:
            raise ValueError(f"{what} is added to features [D], but {agent} observes {list(space.shape)}")
