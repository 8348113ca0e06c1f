"""Symmetric games of N players, from how many of them play each policy: who earns what, and where nobody would change.

All seats are alike, so that one mixture x [k] stands for everybody. `payoffs` are [N, k, ..., k], or the sorted table
[N, C(k + N - 1, N)] of `metasolvers.symmetric`, which is small where the tensor would not be: 20 players of 3 policies
have 231 profiles, not 3 billion.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from metasolvers.contract import Certificate, certified
from metasolvers.metagame import check_sigma, in_units_of_gain
from metasolvers.quantal import Earnings, equilibrium
from metasolvers.symmetric import group_sizes, one_group, profile_index, sorted_profiles, symmetric_table

TOLERANCE = 1e-8
"""Regret that rounding may leave in a symmetric equilibrium, in units of the largest gain."""


class Against(NamedTuple):
    """What each of k policies earns against N - 1 others, by how many of these play what."""

    counts: np.ndarray  # [M, k]
    ways: np.ndarray  # [M] in which the others can divide so
    payoffs: np.ndarray  # [k, M]

    def earned(self, x: np.ndarray) -> np.ndarray:
        """[k] in expectation, when each of the others mixes by x [k]."""
        return self.payoffs @ (self.ways * np.prod(x**self.counts, axis=1))

    def regret(self, x: np.ndarray) -> float:
        """What the best policy earns more than x [k]."""
        earned = self.earned(x)
        return float(max(earned.max() - x @ earned, 0.0))

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """[k, k] derivatives of what is earned by the entries of x."""
        fewer = np.maximum(self.counts[:, None] - np.eye(len(x), dtype=np.int64), 0)  # [M, k, k], one less of axis 1
        return self.payoffs @ (self.ways[:, None] * self.counts * np.prod(x**fewer, axis=2))


def strategy_payoffs(payoffs: ArrayLike, mixture: ArrayLike) -> np.ndarray:
    """What each policy earns, [k], against N - 1 others who all mix by `mixture` [k].

    Raises ValueError for malformed payoffs, games that are not symmetric, and what is no mixture of the k policies.

    >>> hawk_dove = np.array([[-1, 4], [0, 2]])
    >>> strategy_payoffs(np.stack([hawk_dove, hawk_dove.T]), [0.5, 0.5])
    array([1.5, 1. ])
    """
    table = symmetric_table(payoffs)
    return _against(table).earned(_mixture(table, mixture))


def symmetric_replicator_field(payoffs: ArrayLike, mixture: ArrayLike) -> np.ndarray:
    """d/dt x [k] of the replicator dynamics of one population whose members meet N at a time: x_a (u_a - x @ u).

    Arguments and errors as in `strategy_payoffs` [Taylor & Jonker 1978, Mathematical Biosciences 40:145].
    """
    table = symmetric_table(payoffs)
    x = _mixture(table, mixture)
    earned = _against(table).earned(x)
    return x * (earned - x @ earned)


def symmetric_regret(payoffs: ArrayLike, mixture: ArrayLike) -> float:
    """The most that one player gains by leaving a mixture that everybody plays; 0 exactly in symmetric equilibria.

    Arguments and errors as in `strategy_payoffs`.
    """
    table = symmetric_table(payoffs)
    x = _mixture(table, mixture)
    return _against(table).regret(x)


def symmetric_nash(payoffs: ArrayLike) -> np.ndarray:
    """A mixture [k] that is a Nash equilibrium when everybody plays it; each symmetric game has one [Nash 1951].

    It is at the end of the principal logit branch (see `metasolvers.quantal`). Raises ValueError as `strategy_payoffs`
    does, and NotConverged where its `symmetric_regret` is above 1e-8 of the largest gain.

    >>> hawk_dove = np.array([[-1, 4], [0, 2]])
    >>> symmetric_nash(np.stack([hawk_dove, hawk_dove.T])).round(6)
    array([0.666667, 0.333333])
    """
    table = symmetric_table(payoffs)
    raw = _against(table)
    against = raw._replace(payoffs=in_units_of_gain(np.stack([raw.payoffs, np.zeros_like(raw.payoffs)]))[0])
    game = Earnings((len(against.payoffs),), lambda x: (against.earned(x[0]), against.slopes(x[0])))
    (mixture,) = equilibrium(game)
    regret = Certificate("symmetric_regret / largest gain", lambda *_: against.regret(mixture), TOLERANCE)
    return certified("symmetric_nash", table, mixture, regret, "the game is degenerate to rounding")


def _mixture(table: np.ndarray, mixture: ArrayLike) -> np.ndarray:
    """[k]. Raises ValueError for what is no distribution over the game's policies."""
    x = check_sigma(mixture, name="mixture")
    (policies,) = group_sizes(table, one_group(len(table)))
    if x.shape != (policies,):
        raise ValueError(f"mixture must be one distribution over the {policies} policies; got shape {x.shape}")
    return x


def _against(table: np.ndarray) -> Against:
    """A sorted table [N, C(k + N - 1, N)] from the side of one player."""
    seats = len(table)
    (policies,) = group_sizes(table, one_group(seats))
    others = sorted_profiles(seats - 1, policies)  # [M, N - 1]
    counts = (others[:, :, None] == np.arange(policies)).sum(axis=1)
    ways = np.rint(np.exp(gammaln(seats) - gammaln(counts + 1).sum(axis=1)))
    own = np.arange(policies)[:, None, None]
    everybody = np.broadcast_to(others, (policies, *others.shape))
    profiles = np.sort(np.concatenate([everybody, np.broadcast_to(own, (policies, len(others), 1))], axis=2), axis=2)
    seat = (profiles == own).argmax(axis=2)
    return Against(counts, ways, table[seat, profile_index(profiles)])
