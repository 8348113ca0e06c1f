"""Hodge decomposition of an evaluation matrix into a transitive part and a cyclic one.

A = grad(r) + rot, with grad(r)[i, j] = r_i - r_j and no net flow out of any agent in rot [Balduzzi et al. 2018,
Re-evaluating evaluation; Jiang et al. 2011, Statistical ranking and combinatorial Hodge theory]. The parts are
orthogonal: their squared norms add up to that of A.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr

from metasolvers.comparisons import check_antisymmetric, check_square

ROUNDING = 1e-12
"""Discs smaller than this share of the largest are taken for rounding."""


class Hodge(NamedTuple):
    """A = transitive + curl + harmonic, three antisymmetric matrices [k, k] that are 0 for pairs never compared.

    ratings: [k] r, of mean 0 and in the units of A.
    transitive: [k, k] r_i - r_j.
    curl: [k, k] cycles made of cycles of three agents.
    harmonic: [k, k] cycles around holes of the comparison graph alone; 0 where every pair was compared.
    weights: [k, k] how much each pair counted.
    """

    ratings: np.ndarray
    transitive: np.ndarray
    curl: np.ndarray
    harmonic: np.ndarray
    weights: np.ndarray

    @property
    def cyclic(self) -> np.ndarray:
        """What no ratings explain, [k, k]."""
        return self.curl + self.harmonic

    @property
    def transitive_norm(self) -> float:
        """Square root of the weighted sum of squares over all [k, k] entries: Frobenius' norm where all weigh 1."""
        return _norm(self.transitive, self.weights)

    @property
    def cyclic_norm(self) -> float:
        """The same of the cyclic part."""
        return _norm(self.cyclic, self.weights)

    @property
    def transitive_share(self) -> float:
        """transitive_norm^2 / (transitive_norm^2 + cyclic_norm^2), in [0, 1]; 0 where A is 0."""
        return _share(self.transitive_norm, self.cyclic_norm)

    @property
    def cyclic_share(self) -> float:
        """cyclic_norm^2 / (transitive_norm^2 + cyclic_norm^2), in [0, 1]; 0 where A is 0."""
        return _share(self.cyclic_norm, self.transitive_norm)


def hodge(matrix: ArrayLike, weights: ArrayLike | None = None) -> Hodge:
    """Decompose an antisymmetric A [k, k] by weighted least squares on the graph of compared pairs.

    weights [k, k], symmetric: how much each pair counts, such as its number of games; pairs of weight 0 were not
    compared, and their entries of A count for nothing (write 0 there). By default all pairs count alike. A win matrix
    is decomposed by hodge(advantages_of_wins(wins), weights=wins + wins.T).
    Raises ValueError for an A that is not antisymmetric, for weights that are negative or not symmetric, and for agents
    never compared, not even through others.

    >>> rock_paper_scissors_with_a_champion = [[0, -1, 1, -2], [1, 0, -1, -2], [-1, 1, 0, -2], [2, 2, 2, 0]]
    >>> found = hodge(rock_paper_scissors_with_a_champion)
    >>> found.ratings, round(found.cyclic_share, 3)
    (array([-0.5, -0.5, -0.5,  1.5]), 0.2)
    """
    table = check_antisymmetric(matrix)
    counted = np.ones_like(table) if weights is None else _check_weights(weights, table)
    np.fill_diagonal(counted, 0)
    compared = counted > 0
    size = np.abs(table[compared]).max(initial=0) or 1.0
    known = np.where(compared, table / size, 0.0)
    ratings = _ratings(known, counted)
    transitive = np.where(compared, ratings[:, None] - ratings, 0.0)
    cyclic = known - transitive
    curl = cyclic if compared.sum() == len(table) * (len(table) - 1) else _local_cycles(cyclic, counted)
    return Hodge(ratings * size, transitive * size, curl * size, (cyclic - curl) * size, counted)


class Discs(NamedTuple):
    """A as a sum of disc games, the largest first: A = sum over c of x_c y_c^T - y_c x_c^T for (x_c, y_c) = points.

    sizes: [c] singular values of A, each of which stands there twice: rank(A) = 2 c.
    points: [c, k, 2] where each agent is in the plane of each disc; it beats those a quarter turn ahead of it most.
    """

    sizes: np.ndarray
    points: np.ndarray


def disc_components(matrix: ArrayLike) -> Discs:
    """The real Schur decomposition of an antisymmetric A [k, k]: planes in which agents play disc games.

    The first plane embeds agents so that the disc game played there is the best approximation of A of rank 2
    [Balduzzi et al. 2018]. A plane is known up to a turn, and set so that the farthest agent lies on the
    positive x axis. Raises ValueError for an A that is not antisymmetric.

    >>> sizes, points = disc_components([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> sizes.round(3), np.hypot(*points[0].T).round(3)  # an equilateral triangle
    (array([1.732]), array([1.075, 1.075, 1.075]))
    """
    table = check_antisymmetric(matrix)
    size = np.abs(table).max() or 1.0
    # i A is Hermitian, with eigenvalues +-s; a + i b of eigenvalue s > 0 has A a = s b, A b = -s a.
    values, vectors = np.linalg.eigh(1j * (table / size))
    large = np.flatnonzero(values > ROUNDING * max(values.max(), 0))[::-1]
    sizes, points = values[large], np.sqrt(2 * values[large]) * vectors[:, large]
    farthest = np.abs(points).argmax(axis=0)[None]
    # x and y are b and a; turned by a common phase, which changes no product x y^T - y x^T.
    planes = np.conj(points * 1j)
    planes = planes * np.exp(-1j * np.angle(np.take_along_axis(planes, farthest, axis=0)))
    planes = planes * np.sqrt(size)
    return Discs(sizes * size, np.stack([planes.real, planes.imag], axis=-1).transpose(1, 0, 2))


def _ratings(known: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """r [k] of mean 0 that minimises sum of weights (known - grad r)^2: the graph's Laplacian equation."""
    agents = len(known)
    scaled = weights / (weights.max() or 1.0)
    laplacian = np.diag(scaled.sum(axis=1)) - scaled
    anchored = laplacian + (np.trace(laplacian) or 1.0) / agents**2  # all may rise together: fixed at mean 0
    ratings = np.linalg.solve(anchored, (scaled * known).sum(axis=1))
    return ratings - ratings.mean()


def _local_cycles(cyclic: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The part of a cyclic flow [k, k] that circulates in triangles: its projection on the adjoint of curl.

    Flows have the inner product of the weights, under which curl's adjoint is W^-1 C^T, C [triangles, edges].
    """
    source, target = np.nonzero(np.triu(weights))
    root = np.sqrt(weights[source, target])
    adjoint = csr_array(_curl(weights > 0, source, target).T / root[:, None])
    flow = cyclic[source, target] * root
    # Where lsqr ends, the rest is orthogonal to every triangle to 1e-13 of the norms (istop 2), or gone (0, 1).
    potential, why, *_ = lsqr(adjoint, flow, atol=1e-13, btol=1e-13, conlim=0, iter_lim=100 * len(source))
    if why > 2:
        raise ArithmeticError(f"local cycles did not settle: weights up to {weights.max():g} are too far apart")
    local = np.zeros_like(cyclic)
    local[source, target] = adjoint @ potential / root
    return local - local.T


def _curl(compared: np.ndarray, source: np.ndarray, target: np.ndarray) -> csr_array:
    """[triangles, edges] that sums a flow around every triangle i < j < k: f_ij + f_jk - f_ik."""
    edge = np.zeros(compared.shape, int)
    edge[source, target] = np.arange(len(source))
    third = compared[source] & compared[target] & (np.arange(len(compared)) > target[:, None])
    first, k = np.nonzero(third)
    columns = np.stack([first, edge[target[first], k], edge[source[first], k]], axis=1)
    signs = np.tile([1.0, 1.0, -1.0], len(first))
    return csr_array((signs, columns.ravel(), 3 * np.arange(len(first) + 1)), shape=(len(first), len(source)))


def _check_weights(weights: ArrayLike, table: np.ndarray) -> np.ndarray:
    counted = check_square(weights, "weights").copy()
    if counted.shape != table.shape or counted.min() < 0 or (counted != counted.T).any():
        raise ValueError(
            f"weights must be symmetric, non-negative and of the matrix's shape {table.shape}; got shape "
            f"{counted.shape}, smallest {counted.min():g}: count the games of a pair once for both, wins + wins.T"
        )
    np.fill_diagonal(counted, 0)
    groups, label = connected_components(counted > 0, connection="weak")
    if groups > 1:
        met, others = np.flatnonzero(label == label[0]), np.flatnonzero(label != label[0])
        raise ValueError(
            f"agents {met.tolist()} were never compared with agents {others.tolist()}, not even through others: "
            f"compare them, or decompose each group alone"
        )
    return counted


def _norm(part: np.ndarray, weights: np.ndarray) -> float:
    size = np.abs(part).max() or 1.0
    return float(size * np.sqrt((weights * (part / size) ** 2).sum()))


def _share(part: float, other: float) -> float:
    size = max(part, other) or 1.0
    return (part / size) ** 2 / ((part / size) ** 2 + (other / size) ** 2) if part or other else 0.0
