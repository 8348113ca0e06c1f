"""Iterated elimination of strictly dominated policies."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from metasolvers.metagame import check_payoffs, in_units_of_gain

TIE = 1e-9
"""A dominated policy is worse by more than this share of its player's largest gain, whatever the others play."""


def iterated_elimination(payoffs: ArrayLike) -> np.ndarray:
    """Uniform over the profiles that survive iterated elimination: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    See `survivors`. Raises ValueError for malformed payoffs.

    >>> iterated_elimination([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])  # the prisoner's dilemma
    array([[0., 0.],
           [0., 1.]])
    """
    table = check_payoffs(payoffs)
    left = np.ix_(*survivors(table))
    sigma = np.zeros(table.shape[1:])
    sigma[left] = 1 / sigma[left].size
    return sigma


def survivors(payoffs: ArrayLike) -> tuple[np.ndarray, ...]:
    """The policies of each player that survive: payoffs [N, k_1, ..., k_N] -> N ascending arrays of indices.

    Dominated policies of all players are taken out until there are none; the order does not matter [Osborne &
    Rubinstein 1994, section 4.2]. Raises ValueError for malformed payoffs.
    """
    table = in_units_of_gain(payoffs)
    left = [np.arange(policies) for policies in table.shape[1:]]
    while True:
        lost = [_dominated(np.moveaxis(own[np.ix_(*left)], player, 0)) for player, own in enumerate(table)]
        if not np.concatenate(lost).any():
            return tuple(left)
        left = [policies[~gone] for policies, gone in zip(left, lost, strict=True)]


def dominated(payoffs: ArrayLike, player: int) -> np.ndarray:
    """Which of a player's policies are strictly dominated: payoffs [N, k_1, ..., k_N] -> [k_player] bool.

    Those that a mixture of the others beats whatever the other players play, by more than TIE of the player's largest
    gain; one that merely does as well dominates weakly, which does not count.
    Raises ValueError for malformed payoffs or a player who is not there.

    >>> dominated([[[3, 0], [0, 3], [1, 1]], [[1, 0], [0, 1], [2, 3]]], player=0)  # the mean of the others earns 1.5
    array([False, False,  True])
    """
    table = in_units_of_gain(payoffs)
    if not 0 <= player < len(table):
        raise ValueError(f"player must be in 0..{len(table) - 1} for payoffs of shape {table.shape}; got {player}")
    return _dominated(np.moveaxis(table[player], player, 0))


def _dominated(own: np.ndarray) -> np.ndarray:
    """Which policies of own [k, others' k...] are dominated, [k]: by another one, or else by a mixture."""
    rows = own.reshape(len(own), -1)
    short = rows.max(axis=0) - rows
    lost = np.array([bool((rows > row + TIE).all(axis=1).any()) for row in rows])
    for policy in map(int, np.flatnonzero((short > TIE).all(axis=1) & ~lost)):
        if not _best_on_average(rows, policy, np.argsort(short[policy])):
            others = ~lost & (np.arange(len(rows)) != policy)
            lost[policy] = _margin(rows[others], rows[policy]) > TIE
    return lost


def _best_on_average(rows: np.ndarray, policy: int, columns: np.ndarray) -> bool:
    """Whether no row [k, n] is better than that of the policy on average over some of the first columns.

    Then it is a best response to a belief, so that nothing dominates it: this spares nearly all linear programs.
    """
    sums = rows[:, columns].cumsum(axis=1)
    return bool((sums <= sums[policy]).all(axis=0).any())


def _margin(rows: np.ndarray, row: np.ndarray) -> float:
    """How much more than row [n] the best mixture of rows [k, n] earns at least: a lower bound found by it.

    max t  s.t.  (x @ rows)[b] >= row[b] + t for every b, sum(x) = 1, x >= 0  [Conitzer & Sandholm 2005, EC, section 3].
    """
    policies, columns = rows.shape
    result = linprog(
        c=np.append(np.zeros(policies), -1.0),
        A_ub=np.hstack([-rows.T, np.ones((columns, 1))]),
        b_ub=-row,
        A_eq=np.append(np.ones(policies), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * policies + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not result.success:
        raise RuntimeError(f"the linear program of a mixture always has a solution, yet HiGHS says: {result.message}")
    mixture = np.maximum(result.x[:policies], 0)
    return float((mixture / mixture.sum() @ rows - row).min())
