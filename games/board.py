"""The board of lanes that are stepped one by one: what they show, in arrays that are written in place."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.game import factors

Zeros = Callable[[tuple[int, ...], type], np.ndarray]


class Seats(Protocol):
    """What seats there are, how they see and how they act."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the N seats."""

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        """One a seat, float32: features (D_seat,), or a picture."""

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        """One a seat; Discrete from 0."""

    @property
    def masked(self) -> tuple[bool, ...]:
        """Whether a seat's actions may be illegal."""


class Board(NamedTuple):
    """What all lanes show, in arrays that are written in place; or a single lane's rows of them, without axis B."""

    observations: tuple[np.ndarray, ...]  # a seat: [B, *shape] float32
    finals: tuple[np.ndarray, ...]  # a seat: [B, *shape] float32, what it saw last, where it ended in the last step
    legal: tuple[tuple[np.ndarray, ...] | None, ...]  # a seat: one [B, A_f] bool a factor, None where all is legal
    acting: np.ndarray  # [B, N] bool
    alive: np.ndarray  # [B, N] bool
    rewards: np.ndarray  # [B, N] float32
    terminated: np.ndarray  # [B, N] bool; stays until the episode is over for everyone
    truncated: np.ndarray  # [B, N] bool; likewise
    done: np.ndarray  # [B] bool

    @classmethod
    def of(cls, source: Seats, lanes: int, zeros: Zeros = np.zeros) -> "Board":
        """For so many lanes; `zeros(shape, dtype)` makes the arrays, for example in shared memory."""
        seats = (lanes, len(source.agents))
        shapes = [(lanes, *space.shape) for space in source.observation_spaces]
        legal = tuple(
            tuple(zeros((lanes, n), np.bool_) for n in factors(space)) if masked else None
            for space, masked in zip(source.action_spaces, source.masked, strict=True)
        )
        return cls(
            tuple(zeros(shape, np.float32) for shape in shapes),
            tuple(zeros(shape, np.float32) for shape in shapes),
            legal,
            zeros(seats, np.bool_),
            zeros(seats, np.bool_),
            zeros(seats, np.float32),
            zeros(seats, np.bool_),
            zeros(seats, np.bool_),
            zeros((lanes,), np.bool_),
        )

    def rows(self, lanes: slice) -> "Board":
        """Views of some lanes."""
        return self._view(lanes)

    def row(self, lane: int) -> "Board":
        """Views of one lane, without the axis of lanes; `done` is [1]."""
        return self._view(lane)._replace(done=self.done[lane : lane + 1])

    def _view(self, lanes: int | slice) -> "Board":
        legal = tuple(None if masks is None else tuple(mask[lanes] for mask in masks) for masks in self.legal)
        observations, finals = (tuple(part[lanes] for part in parts) for parts in (self.observations, self.finals))
        rest = (self.acting, self.alive, self.rewards, self.terminated, self.truncated, self.done)
        return Board(observations, finals, legal, *(part[lanes] for part in rest))


def blank_actions(source: Seats, lanes: int, zeros: Zeros = np.zeros) -> tuple[np.ndarray, ...]:
    """An array a seat, as `Host.step` takes them: [B] or [B, factors] int64, or [B, D] float32."""
    return tuple(
        zeros((lanes, *(space.shape or ())), np.float32 if isinstance(space, Box) else np.int64)
        for space in source.action_spaces
    )
