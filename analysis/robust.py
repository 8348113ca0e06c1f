"""The interquartile mean and its confidence interval, by which few runs are judged [Agarwal et al. 2021]."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

RESAMPLES = 20_000
"""By default."""


class Interval(NamedTuple):
    """An interquartile mean, and where it lies with 95 % confidence."""

    iqm: float
    low: float
    high: float


def iqm(scores: ArrayLike) -> float:
    """Mean of the middle half of all scores: a quarter of them, rounded down, is left out at either end.

    Raises ValueError for no scores.

    >>> iqm([1, 2, 3, 100])
    2.5
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=None)
    if not len(ordered):
        raise ValueError("an interquartile mean is of at least one score, got none")
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def interval(scores: ArrayLike, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Percentile interval of the `iqm` of scores [R, T], by the stratified bootstrap: R runs are redrawn in each task.

    scores [R] are of one task. Raises ValueError for no scores.
    """
    table = np.asarray(scores, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    runs, tasks = table.shape
    drawn = np.random.default_rng(seed).integers(runs, size=(resamples, runs, tasks))
    again = np.sort(table[drawn, np.arange(tasks)].reshape(resamples, -1), axis=1)
    cut = runs * tasks // 4
    means = again[:, cut : runs * tasks - cut].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(iqm(table), float(low), float(high))
