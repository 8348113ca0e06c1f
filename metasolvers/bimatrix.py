"""All Nash equilibria of small two-player games, degenerate ones too; pure equilibria of any game.

Every float is a fraction, and `vertex_enumeration` and `pure_equilibria` calculate with those fractions: payoffs are
taken at their word, a tie is a tie and 700 against 700.005 is none. A table made of thirds holds the floats nearest to
them; where its equilibria depend on ties between sums of such payoffs, multiply it by the common denominator first.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from metasolvers.metagame import check_payoffs, in_units_of_gain

Strategies = tuple[np.ndarray, ...]
"""One mixed strategy a player, [k_player]."""

MAX_VERTICES = 50_000
"""The largest number of vertices that `vertex_enumeration` is ready for, both players' together."""
SUPPORTED = 1e-7
"""The least probability that `support_enumeration` tells from none."""


def pure_equilibria(payoffs: ArrayLike) -> np.ndarray:
    """The profiles [E, N] of any game in which nobody earns less than by any other policy; in C order.

    >>> pure_equilibria([[[3, 0], [0, 2]], [[2, 0], [0, 3]]]).tolist()
    [[0, 0], [1, 1]]
    """
    table = check_payoffs(payoffs)
    best = [own == own.max(axis=player, keepdims=True) for player, own in enumerate(table)]
    return np.argwhere(np.all(best, axis=0))


def vertex_enumeration(payoffs: ArrayLike) -> list[Strategies]:
    """All extreme equilibria (x [m], y [n]) of a two-player game, those of its first policies first.

    payoffs [2, m, n]. The vertices of both best-response polyhedra are found in exact arithmetic; an equilibrium is a
    pair in which every policy is unplayed or a best response [Mangasarian 1964; von Stengel 2002, Handbook of Game
    Theory 3, theorem 2.14]. All other equilibria are mixtures of these: see `equilibrium_components`.
    product((x, y)) makes a sigma of one.
    Raises ValueError for other than two players, and for games that may have more than `MAX_VERTICES`.

    >>> [(x.tolist(), y.tolist()) for x, y in vertex_enumeration([[[3, 3], [2, 5]], [[3, 3], [2, 6]]])]
    [([1.0, 0.0], [1.0, 0.0]), ([1.0, 0.0], [0.6666666666666666, 0.3333333333333333]), ([0.0, 1.0], [0.0, 1.0])]
    """
    row, column, pairs = _extreme(payoffs)
    return [(row[i], column[j]) for i, j in pairs]


def equilibrium_components(payoffs: ArrayLike) -> list[list[Strategies]]:
    """The connected sets of equilibria of a two-player game, each by its extreme equilibria; single ones are isolated.

    Extreme equilibria are connected by those they share a strategy with [Jansen 1981; Avis et al. 2010, Economic Theory
    42:9, doi 10.1007/s00199-009-0449-x]. Arguments and errors as in `vertex_enumeration`.

    >>> [len(component) for component in equilibrium_components([[[3, 3], [2, 5]], [[3, 3], [2, 6]]])]
    [2, 1]
    """
    row, column, pairs = _extreme(payoffs)
    size = len(row) + len(column)
    met = coo_array((np.ones(len(pairs)), (pairs[:, 0], len(row) + pairs[:, 1])), shape=(size, size))
    _, component = connected_components(met, directed=False)
    numbers = component[pairs[:, 0]]
    return [[(row[i], column[j]) for i, j in pairs[numbers == number]] for number in dict.fromkeys(numbers.tolist())]


def support_enumeration(payoffs: ArrayLike) -> Iterator[Strategies]:
    """Equilibria (x [m], y [n]), one for each pair of supports that has any, small and balanced supports first.

    payoffs [2, m, n]. Supports need not be of one size, so degenerate games are no exception: of a set of equilibria
    with equal supports comes the one whose least probability is largest. Each pair costs two linear programs in floats,
    unless a policy is dominated, and there are (2^m - 1)(2^n - 1): to find all, prefer `vertex_enumeration`; to find
    one, take the first, which is quick where small supports do [Porter, Nudelman & Shoham 2008, Games and Economic
    Behavior 63:642]. Probabilities below `SUPPORTED` count as none.
    product((x, y)) makes a sigma of one.
    Raises ValueError for other than two players.

    >>> x, y = next(support_enumeration([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]))
    >>> x.tolist(), y.tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """
    row, column = in_units_of_gain(two_players(payoffs, "support_enumeration"))
    return _supports(row, column.T)


def two_players(payoffs: ArrayLike, solver: str) -> np.ndarray:
    """The payoffs [2, m, n], checked. Raises ValueError for other than two players, in the name of `solver`."""
    table = check_payoffs(payoffs)
    if len(table) != 2:
        raise ValueError(f"{solver} needs two players; got {len(table)} (shape {table.shape}): use logit_nash")
    return table


def _extreme(payoffs: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices of both players, [V, m] and [W, n], and which of them are equilibria together, [E, 2]."""
    table = two_players(payoffs, "vertex_enumeration")
    _check_size(*table.shape[1:])
    row, row_labels = _vertices(_integers(table[1].T))
    column, column_labels = _vertices(_integers(table[0]))
    row_missing = (~row_labels).astype(np.float32)
    column_missing = (~np.roll(column_labels, table.shape[1], axis=1)).astype(np.float32)
    return row, column, np.argwhere(row_missing @ column_missing.T == 0)


def _check_size(rows: int, columns: int) -> None:
    """By the upper bound theorem [McMullen 1970] for polytopes of a player's dimension with m + n facets."""
    most = sum(
        comb(rows + columns - (own + 1) // 2, other) + comb(rows + columns - (own + 2) // 2, other)
        for own, other in ((rows, columns), (columns, rows))
    )
    if most > MAX_VERTICES:
        raise ValueError(
            f"vertex_enumeration takes games with up to {MAX_VERTICES} vertices; {rows}x{columns} may have {most}: "
            f"use mixed_integer_nash for one equilibrium, or drop policies"
        )


def _integers(own: np.ndarray) -> np.ndarray:
    """Payoffs [a, b] as Python integers >= 0 in the same exact proportions, once each column has lost its least.

    What all of a player's policies earn alike against a column of the other changes no best response.
    """
    ratios = [[value.as_integer_ratio() for value in line] for line in own.tolist()]
    unit = max(denominator for line in ratios for _, denominator in line)  # all are powers of two
    exact = np.array([[above * (unit // below) for above, below in line] for line in ratios], dtype=object)
    exact -= exact.min(axis=0)
    return exact // (np.gcd.reduce(exact, axis=None) or 1)


def _vertices(own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices x [V, b] of {(x, v): x >= 0, sum x = 1, own @ x <= v} and which constraints are tight, [V, b + a].

    The double description method on the cone over that polyhedron: rays of the constraints so far are cut by one more
    at a time, and the edges across it give new rays [Motzkin et al. 1953; Fukuda & Prodon 1996].
    """
    policies = own.shape[1]
    rays = np.eye(policies + 1, dtype=np.int64).astype(object)  # (x, v), v >= 0: no entry of own is negative
    tight = rays == 0
    for constraint in -own:
        slack = rays[:, :-1] @ constraint + rays[:, -1]
        inside, outside = _edges(tight, slack, policies)
        crossing = slack[inside, None] * rays[outside] - slack[outside, None] * rays[inside]
        crossing //= np.gcd.reduce(crossing, axis=1, keepdims=True)
        kept = slack >= 0
        common = tight[inside] & tight[outside]
        rays = np.vstack([rays[kept], crossing])
        tight = np.block([[tight[kept], slack[kept, None] == 0], [common, np.ones((len(common), 1), bool)]])
    bounded = ~tight[:, :policies].all(axis=1)  # all but the ray along v
    rays, tight = rays[bounded, :policies], np.delete(tight[bounded], policies, axis=1)
    strategies = (rays / rays.sum(axis=1, keepdims=True)).astype(np.float64)
    order = np.lexsort(-strategies.T[::-1])
    return strategies[order], tight[order]


def _edges(tight: np.ndarray, slack: np.ndarray, policies: int) -> tuple[np.ndarray, np.ndarray]:
    """Adjacent rays on both sides of a constraint, in pairs: no third ray shares their common tight constraints."""
    incidence = tight.astype(np.float32)
    beyond = np.flatnonzero(slack < 0)
    inside, outside = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for ray in np.flatnonzero(slack > 0):
        common = incidence[beyond] * incidence[ray]
        size = common.sum(axis=1)
        likely = size >= policies - 1
        sharing = (common[likely] @ incidence.T == size[likely, None]).sum(axis=1)
        adjacent = beyond[likely][sharing == 2]
        inside.append(np.full(len(adjacent), ray))
        outside.append(adjacent)
    return np.concatenate(inside), np.concatenate(outside)


def _supports(row: np.ndarray, column: np.ndarray) -> Iterator[Strategies]:
    """Equilibria by their supports; row [m, n] and column [n, m] are what each player's policies earn."""
    row_best, column_best = _undominated(row), _undominated(column)
    sizes = product(*(range(1, policies + 1) for policies in row.shape))
    for rows, columns in sorted(sizes, key=lambda size: (abs(size[0] - size[1]), sum(size))):
        for played in combinations(range(row.shape[1]), columns):
            for playing in combinations(np.flatnonzero(row_best(played)).tolist(), rows):
                if not column_best(playing)[list(played)].all():
                    continue
                y = _making_best(row, playing, played)
                x = None if y is None else _making_best(column, played, playing)
                if x is not None and y is not None:
                    yield x, y


def _undominated(own: np.ndarray) -> Callable[[tuple[int, ...]], np.ndarray]:
    """others -> [a] whether no policy of own [a, b] earns more than this one against each of those others' policies."""

    @cache
    def undominated(others: tuple[int, ...]) -> np.ndarray:
        against = own[:, others]
        worse = np.all(against[:, None] < against, axis=2)
        return ~np.any(worse, axis=1)

    return undominated


def _making_best(own: np.ndarray, best: tuple[int, ...], support: tuple[int, ...]) -> np.ndarray | None:
    """A strategy y [b] of exactly that support against which `best` are best responses, own [a, b]; None without one.

    max t  s.t.  (own @ y)[i] = v for best i, <= v for the others, y_j >= t on the support, sum(y) = 1.
    """
    played, tied = list(support), np.isin(np.arange(len(own)), best)
    gains = np.hstack([own[:, played], -np.ones((len(own), 1)), np.zeros((len(own), 1))])  # (y, v, t)
    least = np.hstack([-np.eye(len(played)), np.zeros((len(played), 1)), np.ones((len(played), 1))])
    result = linprog(
        c=np.append(np.zeros(len(played) + 1), -1.0),
        A_ub=np.vstack([gains[~tied], least]),
        b_ub=np.zeros((~tied).sum() + len(played)),
        A_eq=np.vstack([gains[tied], np.append(np.ones(len(played)), [0.0, 0.0])]),
        b_eq=np.append(np.zeros(tied.sum()), 1.0),
        bounds=[(0, None)] * len(played) + [(None, None), (0, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None or result.x[-1] < SUPPORTED:
        return None
    strategy = np.zeros(own.shape[1])
    strategy[played] = result.x[:-2]
    return strategy / strategy.sum()
