"""Matchmakers: against which snapshots of a pool a learner plays; functions from what is known to a distribution."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Standing(NamedTuple):
    """What is known of the k snapshots of a pool, oldest first, and of the learner that is to meet them."""

    win_rates: np.ndarray  # [k] how often the learner beats each of them
    ratings: np.ndarray  # [k] in Elo points
    rating: float  # the learner's
    turn: int  # how often a match was made before


Matchmaker = Callable[[Standing], np.ndarray]
"""[k] float64 probabilities of the snapshots, k >= 1."""

WINDOW = 100.0
"""Elo points: a win in 0.36 to 0.64 of the games is to be expected."""


def random(standing: Standing) -> np.ndarray:
    """Every snapshot as often as another: fictitious self-play [Heinrich et al. 2015].

    >>> random(Standing(np.array([0.9, 0.5]), np.array([0.0, 300.0]), 300.0, turn=0))
    array([0.5, 0.5])
    """
    return _weighted(np.ones(len(standing.win_rates)))


def round_robin(standing: Standing) -> np.ndarray:
    """One snapshot after the other."""
    snapshots = len(standing.win_rates)
    return _weighted(np.arange(snapshots) == standing.turn % snapshots)


def self_play(standing: Standing) -> np.ndarray:
    """The latest snapshot."""
    snapshots = len(standing.win_rates)
    return _weighted(np.arange(snapshots) == snapshots - 1)


def fitness_window(standing: Standing) -> np.ndarray:
    """Snapshots rated within WINDOW of the learner, all alike; where there are none, those rated nearest to it.

    >>> fitness_window(Standing(np.array([0.9, 0.6, 0.5]), np.array([0.0, 250.0, 280.0]), 300.0, turn=0))
    array([0. , 0.5, 0.5])
    """
    gap = np.abs(standing.ratings - standing.rating)
    return _weighted(gap <= max(WINDOW, gap.min()))


def pfsp_hard(standing: Standing) -> np.ndarray:
    """Prioritised fictitious self-play against who is hardest to beat: (1 - p)^2 [Vinyals et al. 2019, methods].

    >>> pfsp_hard(Standing(np.array([1.0, 0.75, 0.5]), np.zeros(3), 0.0, turn=0))
    array([0. , 0.2, 0.8])
    """
    return _weighted((1 - standing.win_rates) ** 2)


def pfsp_variance(standing: Standing) -> np.ndarray:
    """Prioritised fictitious self-play against one's equals: p (1 - p) [Vinyals et al. 2019, methods]."""
    return _weighted(standing.win_rates * (1 - standing.win_rates))


MATCHMAKERS: dict[str, Matchmaker] = {
    matchmaker.__name__: matchmaker
    for matchmaker in (fitness_window, pfsp_hard, pfsp_variance, random, round_robin, self_play)
}


def _weighted(weights: np.ndarray) -> np.ndarray:
    """Probabilities in proportion to weights; the same for all where every weight is 0."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
