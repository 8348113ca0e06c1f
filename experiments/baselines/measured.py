"""A row's NashConv against its CPU seconds and environment steps, while the clock stands still for measuring."""

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import process_time
from typing import Any

from analysis.comparison import SOLVED

Measure = Callable[[], float]
"""NashConv of what is there."""
FIRST, NEXT = 0.01, 1.3
"""Seconds until the second measurement, and how many times as many until each one after that."""
AGAIN = 0.2
"""Seconds after which the end of the time is told again: Python ignores exceptions in finalisers."""


@dataclass
class Tally:
    """What a row tells of itself beside NashConv."""

    steps: int | None = None
    """Of the environment, as far as there are any."""
    settings: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """Whatever else belongs to the line of results."""

    def training(self) -> Callable[[Mapping[str, float]], None]:
        """What to tell of a training's updates, whose steps are added to those so far."""
        before = self.steps or 0

        def count(metrics: Mapping[str, float]) -> None:
            if self.steps is not None:
                self.steps = before + int(metrics["steps"])

        return count


class Spent(BaseException):
    """The time is over. (No Exception, for libraries catch these.)"""


class Clock:
    """CPU seconds of this process inside its `with` blocks, in the main thread; there it raises Spent at the limit."""

    def __init__(self, limit: float):
        self.limit, self.seconds = limit, 0.0

    def __enter__(self) -> None:
        if self.seconds >= self.limit:  # the timer only notices blocks of some milliseconds
            raise Spent
        self._before = signal.signal(signal.SIGPROF, self._end)
        self._start = process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit - self.seconds, AGAIN)

    def __exit__(self, *unused: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)
        self.seconds += process_time() - self._start

    def _end(self, *unused: Any) -> None:
        raise Spent


@dataclass
class Course:
    """How a row went."""

    points: list[tuple[float, int | None, float]] = field(default_factory=list)
    """(CPU seconds, environment steps, NashConv)"""
    ended: str = "its own end"
    seconds: float = 0.0
    """Of the processor, without measuring."""
    measuring: float = 0.0


def watch(row: Iterator[Measure], tally: Tally, limit: float) -> Course:
    """Let a row go on for `limit` CPU seconds, or until its NashConv is SOLVED, and measure ever more seldom.

    What it came to last is measured too, unless it has not come to anything.
    """
    clock, course, due = Clock(limit), Course(), 0.0
    last: tuple[float, int | None, Measure] | None = None
    try:
        while True:
            with clock:
                measure = next(row, None)
            if measure is None:
                break
            last = (clock.seconds, tally.steps, measure)
            if clock.seconds >= due:
                due, last = max(FIRST, NEXT * clock.seconds), None
                _measure(course, clock.seconds, tally.steps, measure)
                if course.points[-1][-1] <= SOLVED:
                    course.ended = f"NashConv of {SOLVED:g}"
                    break
    except Spent:
        course.ended = "its time"
    if last is not None:
        _measure(course, *last)
    course.seconds = clock.seconds
    return course


def _measure(course: Course, seconds: float, steps: int | None, measure: Measure) -> None:
    start = process_time()
    value = max(float(measure()), 0.0)  # rounding may leave an equilibrium just below
    course.points.append((round(seconds, 6), steps, float(f"{value:.5g}")))
    course.measuring += process_time() - start
