"""Environments for tests of stepped lanes: seeded walks that can be slow, or come to grief."""

import ctypes
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.board import Board
from games.game import Outcome, feature_box
from games.stepping import SteppedLanes

GRIEF = 2
"""The walker's action that brings on what `Walks.grief` names."""


class Lost(Exception):
    """An error of an environment."""


def grieve(what: str) -> None:
    """Have something happen to the process, or to whoever waits for it."""
    match what:
        case "raise":
            raise Lost("no way out")
        case "leave":
            sys.exit(3)
        case "exit":
            os._exit(3)
        case "crash":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.kill(os.getpid(), signal.SIGSEGV)
        case "kill beside a child":
            if os.fork() == 0:  # which has the pipe as well
                time.sleep(5)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang in native code":
            re.match("(a+)+$", "a" * 60 + "b")
        case "sleep in native code":
            ctypes.PyDLL(None).sleep(60)  # which keeps other threads from running
        case "hang":
            time.sleep(600)


@dataclass(frozen=True)
class Walks:
    """A walker, who may not turn back at once, and a painter, who sees a picture and leaves after two steps.

    `grief` names what the walker's action `GRIEF` brings on, `when` whether at once or when the next episode begins.
    A step takes `sleep` seconds of waiting and `work` of a core.
    """

    grief: str = ""
    when: str = "step"
    sleep: float = 0.0
    work: float = 0.0
    closed: Path | None = None
    """A folder for a file per environment that was closed."""
    agents = ("walker", "painter")
    masked = (True, False)

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return (feature_box(2), Box(0.0, 1.0, (2, 3), np.float32))

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        return (Discrete(3), Box(-1.0, 1.0, (2,), np.float32))

    def episode(self) -> "Walk":
        if self.when == "make":
            grieve(self.grief)
        return Walk(self)


class Walk:
    """One environment of `Walks`."""

    def __init__(self, walks: Walks):
        self.walks, self.doomed = walks, False

    def begin(self, seed: int, row: Board) -> None:
        if self.doomed:
            grieve(self.walks.grief)
        self.generator, self.steps, self.last = np.random.default_rng(seed), 0, 0
        self._show(row)

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        time.sleep(self.walks.sleep)
        end = time.perf_counter() + self.walks.work
        while time.perf_counter() < end:
            pass
        walk, paint = actions
        if walk == GRIEF and self.walks.grief:
            if self.walks.when == "step":
                grieve(self.walks.grief)
            self.doomed = True
        self.last, self.steps = int(walk), self.steps + 1
        row.rewards[:] = self.generator.random(), np.sum(paint) if self.steps <= 2 else 0
        row.truncated[1] = self.steps >= 2
        row.terminated[0] = self.doomed or self.generator.random() < 0.2
        row.done[0] = row.terminated[0]
        self._show(row)

    def _show(self, row: Board) -> None:
        row.observations[0][:] = self.generator.random(2)
        row.observations[1][:] = self.generator.random((2, 3))
        row.legal[0][0][:] = [self.last != 1, self.last != 0 or self.steps == 0, True]
        row.alive[:] = True, self.steps < 2
        row.acting[:] = True, self.steps < 2

    def close(self) -> None:
        if self.walks.closed:
            (self.walks.closed / f"{os.getpid()}-{id(self)}").touch()


def step(lanes: SteppedLanes, walk: int = 0) -> Outcome:
    """One step of `Walks`, in which the last lane's walker does as told."""
    walks = np.zeros(lanes.num_lanes, np.int64)
    walks[-1] = walk
    return lanes.step((walks, np.zeros((lanes.num_lanes, 2), np.float32)))
