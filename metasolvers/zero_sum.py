"""Nash equilibria of two-player zero-sum games by linear programming."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from metasolvers.metagame import check_payoffs, product

CANCEL_TOLERANCE = 1e-6
"""How far payoffs may be from summing to a constant, relative to their spread; float32 tables stay below it."""


def zero_sum_nash(payoffs: ArrayLike) -> np.ndarray:
    """Nash equilibrium of a two-player zero-sum game by linear programming [von Neumann 1928].

    payoffs [2, m, n] -> sigma [m, n], the product of both players' maximin strategies. The players' payoffs may also
    sum to a constant other than zero. Where there are several equilibria, it is a vertex of each side's optimal set.
    Raises ValueError for more players or payoffs that do not cancel; use `alpha_rank` there.

    >>> zero_sum_nash([[[3, -1], [-1, 1]], [[-3, 1], [1, -1]]]).round(4)
    array([[0.1111, 0.2222],
           [0.2222, 0.4444]])
    """
    table = check_payoffs(payoffs)
    if len(table) != 2:
        raise ValueError(f"zero_sum_nash needs two players; got {len(table)} (shape {table.shape}): use alpha_rank")
    row = _centred_row_payoffs(table)
    return product(_maximin(row))


def _centred_row_payoffs(table: np.ndarray) -> np.ndarray:
    """Player 0's payoffs [m, n] moved and scaled into [-1, 1], which changes no strategy. [2, m, n] in.

    The solver's tolerances are absolute, so payoffs of 1e-6 or 1e6 must be brought to its own scale.
    """
    low, high = table.min(axis=(1, 2), keepdims=True), table.max(axis=(1, 2), keepdims=True)
    centred = table - (low / 2 + high / 2)
    scale = np.abs(centred).max()
    # Differences lost to rounding in the table itself are no spread.
    scale = 0.0 if scale <= 4 * np.finfo(float).eps * np.abs(table).max() else scale
    if scale == 0:
        return np.zeros(table.shape[1:])
    centred = centred / scale
    total = centred.sum(axis=0)
    total -= np.median(total)  # the constant most entries agree on, so that the odd one is named
    worst = np.unravel_index(np.abs(total).argmax(), total.shape)
    if abs(total[worst]) > CANCEL_TOLERANCE:
        entry = tuple(int(index) for index in worst)
        raise ValueError(
            f"zero_sum_nash needs payoffs that cancel (or sum to a constant); at profile {entry} the players get "
            f"{table[0][worst]} and {table[1][worst]}: use alpha_rank for general-sum games"
        )
    return centred[0]


def _maximin(row: np.ndarray) -> list[np.ndarray]:
    """Strategies x [m], y [n] that maximise min_b (x @ row)[b] and minimise max_a (row @ y)[a]; row [m, n] in [-1, 1].

    min sum(w)  s.t.  w @ (row + 2)[:, b] >= 1 for every b, w >= 0: game and value are positive, w is x / value, and
    the dual solution is y / value [Dantzig 1951].
    """
    result = linprog(
        c=np.ones(len(row)),
        A_ub=-(row + 2).T,
        b_ub=-np.ones(row.shape[1]),
        method="highs-ipm",  # interior points, and from there to a vertex, which is exact to rounding
        options={"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not result.success:
        raise RuntimeError(
            f"the linear program of a finite game always has a solution, yet HiGHS says: {result.message}"
        )
    weights = (np.maximum(side, 0) for side in (result.x, -result.ineqlin.marginals))
    return [side / side.sum() for side in weights]
