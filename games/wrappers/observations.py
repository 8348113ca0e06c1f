"""What agents see: scaled, with what they saw before, or marked with who they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games import game as contracts
from games.channel import Placement
from games.game import Array, Game
from games.numbers import real, whole
from games.wrappers.measured import Moments, Numbers
from games.wrappers.wrapped import Params, State, Wrapped, check_features


def normalised(game: Game, moments: Moments | None = None, clip: float = 10.0) -> Game:
    """Observations less their means, divided by their deviations and clipped to [-clip, clip].

    `moments(game, episodes, seed)` measures them; what never varies is not divided. Without moments each feature is
    scaled from its bounds to [0, 1]. Raises ValueError for moments of other observations, for bounds that are not
    finite, and for a clip that is not positive.
    """
    clip = real("clip", clip, float(np.finfo(np.float32).tiny))
    if moments is not None:
        sizes = [int(np.prod(space.shape)) for space in game.observation_spaces]
        for name, numbers in zip(Moments._fields, moments, strict=True):
            if [len(each) for each in numbers] != sizes:
                raise ValueError(f"{name} must be of {sizes} features, got {[len(each) for each in numbers]}")
            if not all(np.isfinite(each).all() for each in numbers):
                raise ValueError(f"{name} must be finite, got {numbers}")
        if any(width < 0 for each in moments.deviations for width in each):
            raise ValueError(f"deviations must not be negative, got {moments.deviations}")
        widths = tuple(tuple(width or 1.0 for width in each) for each in moments.deviations)
        return Normalised(game, moments.means, widths, -clip, clip)
    for agent, space in zip(game.agents, game.observation_spaces, strict=True):
        if not space.is_bounded():
            raise ValueError(f"{agent} observes {space}, without finite bounds to scale by: give moments")
    lows = tuple(tuple(space.low.ravel().tolist()) for space in game.observation_spaces)
    spans = tuple(tuple((space.high - space.low).ravel().tolist()) for space in game.observation_spaces)
    return Normalised(game, lows, tuple(tuple(span or 1.0 for span in each) for each in spans), 0.0, 1.0)


@dataclass(frozen=True)
class Normalised(Wrapped):
    """(observation - centre) / width, clipped to [low, high]; see `normalised`."""

    centres: tuple[Numbers, ...]
    widths: tuple[Numbers, ...]
    low: float
    high: float

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        # The very arithmetic of `observe`, so that the bounds are of what comes out of it.
        bounds = (
            [self._scaled(bound[None], table)[0] for bound in (space.low, space.high)]
            for space, table in zip(self.game.observation_spaces, self._tables, strict=True)
        )
        return tuple(Box(low, high, dtype=np.float32) for low, high in bounds)

    @property
    def _tables(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """(centre, width) of every seat, [1, *shape] float32 each."""
        seats = zip(self.game.observation_spaces, self.centres, self.widths, strict=True)
        return tuple(
            (
                np.array(centre, np.float32).reshape(1, *space.shape),
                np.array(width, np.float32).reshape(1, *space.shape),
            )
            for space, centre, width in seats
        )

    def _scaled(self, seen: Array, table: tuple[Array, Array]) -> Array:
        centre, width = table
        return ((seen - centre) / width).clip(self.low, self.high)

    def params(self, **overrides: Any) -> Params:
        return Params(self.game.params(**overrides), self._tables)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        return self._scaled(super().observe(params, state, seat), params.own[seat])


MOST_FRAMES = 1024


def stacked(game: Game, frames: int = 4) -> Game:
    """What was seen in the last `frames` steps in one observation, the newest first [Mnih et al. 2015].

    Features become [frames * D], pictures [frames, height, width] or [frames * channels, height, width]. Before
    anything else was seen it is the first observation, over and over. Raises ValueError for no frames.
    """
    return Stacked(game, whole("frames", frames, 1, MOST_FRAMES))


@dataclass(frozen=True)
class Stacked(Wrapped):
    """Carries the stack of every seat; see `stacked`."""

    frames: int

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        bounds = (
            [np.concatenate([_layered(bound[None])[0]] * self.frames) for bound in (space.low, space.high)]
            for space in self.game.observation_spaces
        )
        return tuple(Box(low, high, dtype=np.float32) for low, high in bounds)

    def heard(self, channels: tuple[Placement, ...]) -> tuple[Placement, ...]:
        """Older frames have copies of the messages."""
        return tuple(
            channel._replace(columns={seat: self._copies(seat, heard) for seat, heard in channel.columns.items()})
            for channel in channels
        )

    def _copies(self, seat: int, heard: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, list[tuple[int, int]]]:
        size = self.game.observation_spaces[seat].shape[0]
        return {
            speaker: [(a + frame * size, b + frame * size) for frame in range(self.frames) for a, b in spans]
            for speaker, spans in heard.items()
        }

    def begin(self, params: Params, inner: contracts.State, noise: Array) -> tuple[Array, ...]:
        seen = [_layered(self.game.observe(params.inner, inner, seat)) for seat in range(len(self.agents))]
        return tuple(array_namespace(each).concat([each] * self.frames, axis=1) for each in seen)

    def go_on(self, params: Params, own: tuple, inner: contracts.State, noise: Array) -> tuple[Array, ...]:
        stacks = []
        for seat, stack in enumerate(own):
            seen = _layered(self.game.observe(params.inner, inner, seat))
            stacks.append(array_namespace(seen).concat([seen, stack[:, : -seen.shape[1]]], axis=1))
        return tuple(stacks)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        return state.own[seat]


def _layered(seen: Array) -> Array:
    """Observations [B, ...] with an axis to stack them along after the first; flat pictures gain one."""
    return seen[:, None] if seen.ndim == 3 else seen


def agent_indicator(game: Game) -> Game:
    """The seat's number one-hot after what it sees, which is filled up with zeros to the largest observation.

    So all seats have one observation space, and one network can play them all [Gupta et al. 2017]. Raises ValueError
    where somebody observes pictures.
    """
    check_features(game, "the indicator")
    return AgentIndicator(game)


@dataclass(frozen=True)
class AgentIndicator(Wrapped):
    """See `agent_indicator`."""

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        seats, spaces = len(self.agents), self.game.observation_spaces
        widest = max(space.shape[0] for space in spaces)
        padded = [[np.pad(end, (0, widest - len(end))) for end in (space.low, space.high)] for space in spaces]
        low = np.append(np.min([low for low, _ in padded], axis=0), np.zeros(seats, np.float32))
        high = np.append(np.max([high for _, high in padded], axis=0), np.ones(seats, np.float32))
        return tuple(Box(low, high, dtype=np.float32) for _ in range(seats))

    def observe(self, params: Params, state: State, seat: int) -> Array:
        seen = super().observe(params, state, seat)
        nothing = array_namespace(seen).zeros_like(seen[:, :1])
        missing = max(space.shape[0] for space in self.game.observation_spaces) - seen.shape[1]
        marks = [nothing + (each == seat) for each in range(len(self.agents))]
        return array_namespace(seen).concat([seen, *[nothing] * missing, *marks], axis=1)
