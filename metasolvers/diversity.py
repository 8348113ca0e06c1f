"""How diverse a population is, and how well one does against another."""

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.comparisons import check_antisymmetric, two_player
from metasolvers.metagame import check_sigma, expected_payoffs
from metasolvers.nash_averaging import nash_averaging
from metasolvers.zero_sum import zero_sum_nash


def effective_diversity(matrix: ArrayLike, p: ArrayLike | None = None) -> float:
    """d = p^T max(A, 0) p = 1/2 sum over i, j of |A[i, j]| p_i p_j, in the units of A.

    How much the agents of an equilibrium p [k] of the antisymmetric A [k, k] exploit one another: 0 where one agent
    beats all others. By default p is the equilibrium of maximum entropy [Balduzzi et al. 2019, Open-ended learning in
    symmetric zero-sum games, arXiv 1901.08106]. Raises ValueError for an A that is not antisymmetric, and for a p that
    is no distribution over its agents.

    >>> round(effective_diversity([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]), 6)
    0.333333
    """
    table = check_antisymmetric(matrix)
    mass = nash_averaging(table).p if p is None else check_sigma(p, name="p")
    if mass.shape != table.shape[:1]:
        raise ValueError(f"p must be one distribution over the {len(table)} agents, [k]; got shape {mass.shape}")
    return float(mass @ np.maximum(table, 0) @ mass)


def expected_cardinality(matrix: ArrayLike) -> float:
    """Tr(I - (L + I)^-1) for L = M M^T: the expected size of a sample from a determinantal point process of kernel L.

    M [m, n] is what m policies earn against n opponents. With the singular values s of M it is the sum of
    s^2 / (1 + s^2), between 0 and the rank of M: policies with like payoffs count once at most, orthogonal ones each
    for itself. The measure depends on the units of M [Perez-Nieves et al. 2021, Modelling behavioural diversity for
    learning in open-ended games, arXiv 2103.07927]. Raises ValueError for what is no matrix.

    >>> round(expected_cardinality([[3, 0], [0, 3]]), 3), round(expected_cardinality([[3, 0], [3, 0]]), 3)
    (1.8, 0.947)
    """
    table = two_player(matrix)[0]
    spectrum = np.linalg.svd(table, compute_uv=False)
    rounding = spectrum.max() * max(table.shape) * np.finfo(float).eps
    return float(np.square(spectrum / np.hypot(1, spectrum))[spectrum > rounding].sum())


def relative_population_performance(matrix: ArrayLike) -> float:
    """v = p^T A q for an equilibrium (p, q) of the zero-sum game between two populations, in the units of A.

    A [m, n] is what the policies of the first population, the rows, earn against those of the second; positive where
    the first population is ahead. Every equilibrium has the same v, and further policies never lower it for their own
    side [Balduzzi et al. 2019, arXiv 1901.08106]. Raises ValueError for what is no matrix.

    >>> round(relative_population_performance([[1, -1], [0, 0.5]]), 6)
    0.2
    """
    game = two_player(matrix)
    return float(expected_payoffs(game, zero_sum_nash(game))[0])
