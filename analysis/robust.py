"""Statistics of returns that a few odd episodes do not move."""

import numpy as np
from numpy.typing import ArrayLike

RESAMPLES = 2000
"""Bootstrap samples: their 95 % interval is told to about a twentieth of its width."""


def interquartile_mean(values: ArrayLike, axis: int = -1) -> np.ndarray:
    """Mean of the middle half along an axis, as of which Agarwal et al. [2021] advise for few runs.

    A quarter of the values, rounded down, is left out at either end.
    Raises ValueError for no values.

    >>> float(interquartile_mean([1, 2, 3, 100]))
    2.5
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=axis)
    number = ordered.shape[axis]
    if not number:
        raise ValueError("an interquartile mean needs at least one value")
    cut = number // 4
    return np.take(ordered, range(cut, number - cut), axis=axis).mean(axis=axis)


def bootstrap_interval(values: ArrayLike, seed: int = 0, share: float = 0.95) -> tuple[float, float]:
    """Percentile interval of the interquartile mean of independent values [E] [Efron 1979]; equal for equal seeds.

    Raises ValueError for no values, and a share outside (0, 1).
    """
    sample = np.asarray(values, np.float64)
    if not sample.size or not 0 < share < 1:
        raise ValueError(f"an interval needs values and a share in (0, 1), got {sample.size} and {share}")
    drawn = np.random.default_rng(seed).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(interquartile_mean(sample[drawn]), [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)
