"""Nash equilibria of two-player zero-sum games by linear programming."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import csr_array

from metasolvers.contract import NASH, Certificate, certified
from metasolvers.metagame import check_payoffs, nash_conv, product
from metasolvers.selection import IllConditioned, interior, max_entropy_conic, max_entropy_inside

CANCEL_TOLERANCE = 1e-6
"""How far payoffs may be from summing to a constant, relative to their spread; float32 tables stay below it."""
MARGIN = 1e-9
"""Mass and payoffs closer than this, of payoffs in [-1, 1], are not told apart."""


EXACT = 1e-11
"""Gap, of payoffs in [-1, 1], that is only rounding."""


def zero_sum_nash(payoffs: ArrayLike) -> np.ndarray:
    """Nash equilibrium of a two-player zero-sum game by linear programming [von Neumann 1928].

    payoffs [2, m, n] -> sigma [m, n], the product of both players' maximin strategies. The players' payoffs may also
    sum to a constant other than zero. Where there are several equilibria, it is a vertex of each side's optimal set:
    `max_entropy_nash` picks the same one in whatever order the policies are listed.
    Raises ValueError for more players or payoffs that do not cancel; use `logit_nash` there.

    >>> zero_sum_nash([[[3, -1], [-1, 1]], [[-3, 1], [1, -1]]]).round(4)
    array([[0.1111, 0.2222],
           [0.2222, 0.4444]])
    """
    sigma = product(maximin(payoffs, "zero_sum_nash"))
    return certified("zero_sum_nash", payoffs, sigma, ZERO_SUM, NEAR_TIES)


def maximin(payoffs: ArrayLike, solver: str) -> tuple[np.ndarray, np.ndarray]:
    """Both players' maximin strategies [m], [n]. Raises ValueError as `zero_sum_nash`, in the name of the solver."""
    return _maximin(_cancelled(payoffs, solver))


def max_entropy_nash(payoffs: ArrayLike) -> np.ndarray:
    """The equilibrium of a two-player zero-sum game in which both players mix the most [Balduzzi et al. 2018].

    payoffs [2, m, n] -> sigma [m, n], the product of both players' maximin strategies of the largest entropy. There is
    one: symmetric games get symmetric answers, and copies of a policy share alike. The players' payoffs may also sum to
    a constant other than zero. Ties are exact, up to rounding: among payoffs that differ by less than about 1e-6 of
    their spread, the answer is still an equilibrium, but maybe not the most mixed one.
    Raises ValueError as `zero_sum_nash` does, and NotConverged where such near ties leave no equilibrium to be found.

    >>> rock_twice = np.array([[0, 0, -1, 1], [0, 0, -1, 1], [1, 1, 0, -1], [-1, -1, 1, 0]])
    >>> max_entropy_nash([rock_twice, -rock_twice]).sum(axis=1).round(4)
    array([0.1667, 0.1667, 0.3333, 0.3333])
    """
    row = _cancelled(payoffs, "max_entropy_nash")
    first, second = _maximin(row)
    if not _unique(row, first, second):
        first, second = _most_mixed(row, (first @ row).min(), (row @ second).max())
    sigma = product([first, second])
    return certified("max_entropy_nash", payoffs, sigma, ZERO_SUM, NEAR_TIES)


def zero_sum_gap(payoffs: ArrayLike, sigma: ArrayLike) -> float:
    """NashConv of a product sigma [m, n], per spread, in the game that payoffs [2, m, n] are up to CANCEL_TOLERANCE.

    Payoffs in single precision cancel to 1e-7 only, and so no strategy is an equilibrium of theirs to more digits.
    Raises ValueError as `zero_sum_nash` does, and for a correlated sigma.
    """
    row = _cancelled(payoffs, "zero_sum_gap")
    return nash_conv([row, -row], sigma) / 2


ZERO_SUM = Certificate("nash_conv / spread", zero_sum_gap, NASH.tolerance, NASH.concept)
NEAR_TIES = "its payoffs nearly tie: round them to what they tell"


def _cancelled(payoffs: ArrayLike, solver: str) -> np.ndarray:
    """Player 0's payoffs [m, n] moved and scaled into [-1, 1], which changes no strategy. [2, m, n] in.

    Where the players' differ by rounding, it is the mean of what either says.
    Solvers' tolerances are absolute, so payoffs of 1e-6 or 1e6 must be brought to their own scale. Raises ValueError,
    in the name of the solver, for games that are not of two players or not zero-sum.
    """
    table = check_payoffs(payoffs)
    if len(table) != 2:
        raise ValueError(f"{solver} needs two players; got {len(table)} (shape {table.shape}): use logit_nash")
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
            f"{solver} needs payoffs that cancel (or sum to a constant); at profile {entry} the players get "
            f"{table[0][worst]} and {table[1][worst]}: use logit_nash for general-sum games"
        )
    return (centred[0] - centred[1]) / 2


def _maximin(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strategies x [m], y [n] that maximise min_b (x @ row)[b] and minimise max_a (row @ y)[a]; row [m, n] in [-1, 1].

    Interior points, and from there to a vertex, are fastest; payoffs that nearly tie may need the simplex.
    """
    found = [(np.full(len(row), 1 / len(row)), np.full(row.shape[1], 1 / row.shape[1]))]
    for method in ("highs-ipm", "highs-ds"):
        found += _solved(row, method)
        if _gap(row, found[-1]) <= EXACT:
            return found[-1]
    return min(found, key=lambda pair: _gap(row, pair))


def _gap(row: np.ndarray, pair: tuple[np.ndarray, np.ndarray]) -> float:
    x, y = pair
    return float((row @ y).max() - (x @ row).min())


def _solved(row: np.ndarray, method: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pair of strategies that HiGHS finds by this method, if it does.

    min sum(w)  s.t.  w @ (row + 2)[:, b] >= 1 for every b, w >= 0: game and value are positive, w is x / value, and
    the dual solution is y / value [Dantzig 1951].
    """
    exact = {"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = linprog(np.ones(len(row)), -(row + 2).T, -np.ones(row.shape[1]), method=method, options=exact)
    if not result.success:
        return []
    x, y = (np.maximum(side, 0) for side in (result.x, -result.ineqlin.marginals))
    return [(x / x.sum(), y / y.sum())]


def _unique(row: np.ndarray, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether these strategies [m], [n] are surely the only maximin ones of row [m, n].

    They are where all others would earn less than the value, and the equations of those played are regular.
    """
    played, met = first > MARGIN, second > MARGIN
    worse, better = row @ second < (row @ second).max() - MARGIN, first @ row > (first @ row).min() + MARGIN
    if (played == worse).any() or (met == better).any() or played.sum() != met.sum():
        return False
    equations = np.pad(row[np.ix_(played, met)], (0, 1), constant_values=1.0)
    equations[-1, -1] = 0
    return bool(np.linalg.cond(equations) < 1 / MARGIN)


def _most_mixed(row: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Both players' maximin strategies of the largest entropy; row [m, n] with a value between low and high."""
    m, n = row.shape
    try:
        positive, loose = interior(_optimality(row))
        first = max_entropy_inside(_beside(row, ~loose[:n]), positive[:m], loose[:n])
        second = max_entropy_inside(_beside(-row.T, ~loose[n : n + m]), positive[m : m + n], loose[n : n + m])
    except IllConditioned:
        first = max_entropy_conic(csr_array(row.T - low))
        second = max_entropy_conic(csr_array(high - row))
    return first, second


def _optimality(row: np.ndarray) -> csr_array:
    """Rows on weights (x, y, v+, v-) >= 0 that hold where x and y are maximin strategies of row [m, n], of value v.

    x @ row - v >= 0 for every column, v - row @ y >= 0 for every row, and sum(x) = sum(y).
    """
    m, n = row.shape
    value = np.array([[1.0, -1.0]])
    return csr_array(
        np.block(
            [
                [row.T, np.zeros((n, n)), np.tile(-value, (n, 1))],
                [np.zeros((m, m)), -row, np.tile(value, (m, 1))],
                [np.ones((1, m)), -np.ones((1, n)), 0 * value],
                [-np.ones((1, m)), np.ones((1, n)), 0 * value],
            ]
        )
    )


def _beside(own: np.ndarray, tight: np.ndarray) -> csr_array:
    """Rows that the maximin strategies of own [m, n] fulfil, given which columns hold all of them to the value.

    One of these, and there always is one, stands in for the value, which is known to rounding only.
    """
    return csr_array((own - own[:, [tight.argmax()]]).T)
