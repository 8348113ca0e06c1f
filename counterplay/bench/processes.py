"""Lanes in worker processes: how much sooner two play slow environments than one, and what a step costs; wall-clock."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from counterplay.bench.row import Row
from games.board import Board
from games.game import feature_box
from games.processes import hosting
from games.stepping import SteppedLanes

TAKEN = 1e-3
"""Seconds that a slow environment takes for a step."""
LANES, STEPS = 8, 50
ROUNDS = 3


def rows() -> Iterator[Row]:
    """Best of some rounds that take turns, for other load on the machine only ever slows them."""
    for what, slow in (("waits", Slow(waits=TAKEN)), ("computes", Slow(computes=TAKEN))):
        one, two = _rates(slow, 1, 2)
        name = f"process lanes, an env that {what} 1 ms: 2 workers"
        yield Row(name, two, "lane-steps/s", "1 worker", one, two / one, ">= 1.8")
    here, one = (1e6 * LANES / rate for rate in _rates(Slow(), 0, 1))
    name = f"process lanes, a step of {LANES} that takes no time"
    yield Row(name, one, "us", "no worker process", here, here / one, "", f"{one - here:.0f} us for the worker")


def _rates(slow: "Slow", *workers: int) -> list[float]:
    """Lane-steps per second for each number of workers."""
    made = [SteppedLanes(slow, LANES, hosting(number)) for number in workers]
    try:
        for lanes in made:
            lanes.reset(0)
            _seconds(lanes)
        return [LANES * STEPS / min(times) for times in zip(*(map(_seconds, made) for _ in range(ROUNDS)), strict=True)]
    finally:
        for lanes in made:
            lanes.close()


def _seconds(lanes: SteppedLanes) -> float:
    """Of some steps."""
    actions, start = (np.zeros(LANES, np.int64),), time.perf_counter()
    for _ in range(STEPS):
        lanes.step(actions)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Slow:
    """An endless environment of one agent whose step waits, or keeps a core busy, for so many seconds."""

    waits: float = 0.0
    computes: float = 0.0
    agents = ("player",)
    masked = (False,)

    @property
    def observation_spaces(self) -> tuple[Box]:
        return (feature_box(8),)

    @property
    def action_spaces(self) -> tuple[Discrete]:
        return (Discrete(2),)

    def episode(self) -> "Episode":
        return Episode(self)


class Episode(NamedTuple):
    """The one that never ends."""

    slow: Slow

    def begin(self, seed: int, row: Board) -> None:
        row.alive[:] = row.acting[:] = True

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        if self.slow.waits:
            time.sleep(self.slow.waits)
        end = time.thread_time() + self.slow.computes
        while time.thread_time() < end:
            pass
        row.observations[0][:] = actions[0]
        row.rewards[:] = 1

    def close(self) -> None:
        pass
