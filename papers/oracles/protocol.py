"""The protocol: episodes played by a final policy, the clock, and a learning curve of few points."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

EPISODES = 100
"""Fresh episodes that a final policy plays."""
SEEDS = (0, 1, 2, 3, 4)
FRESH = 1_000_000
"""Added to a seed for the episodes that the final policy plays."""
POINTS = 50
"""Points of a learning curve."""

Curve = list[tuple[int, float]]
"""(steps, return) as a training went."""


class Measured(NamedTuple):
    """What became of one training."""

    score: float
    """What the bar is on."""
    details: dict[str, Any]
    """Of the score: returns of episodes, or exact values."""
    curve: Curve


def watch(curve: Curve, metrics: Mapping[str, float], name: str = "return") -> None:
    """Add to the curve what a learner tells of an update, once it has finished an episode."""
    if np.isfinite(metrics.get(name, np.nan)):
        curve.append((int(metrics["steps"]), float(metrics[name])))


class Watch:
    """Seconds spent inside a `with`: by the clock on the wall, and of the processor by this process."""

    def __enter__(self) -> "Watch":
        self._started = (time.perf_counter(), time.process_time())
        return self

    def __exit__(self, *unused: Any) -> None:
        self.wall = time.perf_counter() - self._started[0]
        self.cpu = time.process_time() - self._started[1]


def curve(ended: Sequence[tuple[int, float]], steps: int, points: int = POINTS) -> dict[str, list[float]]:
    """A learning curve: mean return of the training episodes that ended in each of `points` equal parts of the steps.

    ended: (environment steps taken so far, undiscounted return) of each episode. Empty parts are left out.
    """
    found: dict[str, list[float]] = {"steps": [], "return": [], "episodes": []}
    parts: dict[int, list[float]] = {}
    for step, value in ended:
        parts.setdefault(min((step - 1) * points // steps, points - 1), []).append(value)
    for part, values in sorted(parts.items()):
        found["steps"].append((part + 1) * steps / points)
        found["return"].append(round(float(np.mean(values)), 4))
        found["episodes"].append(len(values))
    return found


def thinned(points: Sequence[tuple[int, float]], most: int = POINTS) -> dict[str, list[float]]:
    """At most so many of a learning curve's points (steps, return), evenly spread, the last one among them."""
    every = -(-len(points) // most) if points else 1
    kept = list(points)[::-1][::every][::-1]
    return {"steps": [step for step, _ in kept], "return": [round(value, 4) for _, value in kept]}
