"""Multi-population alpha-rank: how often evolution under selection plays each joint profile.

Every player is a population of `population_size`, all playing one policy. A mutant that earns u / alpha more than the
residents takes over its population with the fixation probability rho(u); the long-run share of each joint profile is
alpha-rank's answer [Omidshafiei et al. 2019, Scientific Reports 9:9937, doi 10.1038/s41598-019-45619-9].
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from metasolvers.markov import Graph, log_stationary
from metasolvers.metagame import check_payoffs, check_sigma


def alpha_rank(
    payoffs: ArrayLike, alpha: float = 10.0, population_size: int = 50, normalize: bool = True
) -> np.ndarray:
    """Long-run share of every joint profile: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    alpha >= 0 is the intensity of selection. With `normalize` it is per largest gain each player can make by changing
    policy alone, so that the units of payoffs, and what others hand a player, do not matter; without, per payoff unit,
    as published. By default profiles are told apart that differ by about half a percent of that largest gain.
    Every entry is accurate relative to itself, down to 1e-308.
    Raises ValueError for malformed payoffs, alpha < 0 or population_size < 2.

    >>> coordination = [[[2, 0], [0, 1]], [[2, 0], [0, 1]]]
    >>> alpha_rank(coordination).round(3)  # the better convention, nearly always
    array([[1., 0.],
           [0., 0.]])
    """
    table = check_payoffs(payoffs)
    graph, log_fixation = _fixations(table, alpha, population_size, normalize)
    return np.exp(log_stationary(graph, log_fixation)).reshape(table.shape[1:])


def transition_matrix(
    payoffs: ArrayLike, alpha: float = 10.0, population_size: int = 50, normalize: bool = True
) -> csr_array:
    """The chain alpha-rank is stationary for: sparse [K, K], rows from one joint profile in C order to the next.

    A mutation hits each of the sum(k_i - 1) deviations equally often. Arguments and errors as in `alpha_rank`.
    """
    table = check_payoffs(payoffs)
    graph, log_fixation = _fixations(table, alpha, population_size, normalize)
    deviations = max(1, sum(table.shape[1:]) - len(table))
    moves = csr_array(
        (np.exp(log_fixation) / deviations, graph.target, graph.starts), shape=(graph.size, graph.size), dtype=float
    )
    stay = csr_array((1 - moves.sum(axis=1), (np.arange(graph.size),) * 2), shape=moves.shape)
    return csr_array(moves + stay)


def stationarity(
    payoffs: ArrayLike, sigma: ArrayLike, alpha: float = 10.0, population_size: int = 50, normalize: bool = True
) -> float:
    """||sigma P - sigma||_1, by which a joint sigma [k_1, ..., k_N] fails to be alpha-rank's answer; dimensionless.

    P is the `transition_matrix`. Arguments and errors as in `alpha_rank`.
    """
    table = check_payoffs(payoffs)
    mass = check_sigma(sigma, table).ravel()
    return float(np.abs(mass @ transition_matrix(table, alpha, population_size, normalize) - mass).sum())


def fixation_edges(
    payoffs: ArrayLike, alpha: float = 10.0, population_size: int = 50, normalize: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every single-player deviation: source [E], target [E] (profiles in C order) and log fixation probability [E].

    For a response graph, draw the edges above log(1 / population_size), the probability without selection.
    Arguments and errors as in `alpha_rank`.
    """
    graph, log_fixation = _fixations(check_payoffs(payoffs), alpha, population_size, normalize)
    return graph.source, graph.target, log_fixation


def fixation_probability(u: ArrayLike, population_size: int) -> np.ndarray:
    """rho(u) = (1 - e^-u) / (1 - e^(-m u)): how likely a mutant of advantage u takes over m residents; 1/m at 0."""
    return np.exp(log_fixation_probability(u, population_size))


def log_fixation_probability(u: ArrayLike, population_size: int) -> np.ndarray:
    """log rho(u), finite and of the shape of u wherever (m - 1) u is finite. Raises ValueError for population_size < 2.

    [Omidshafiei et al. 2019, eq. 8]; rho(-u) = rho(u) e^(-(m - 1) u) keeps the exponents negative.
    """
    m = _check_population_size(population_size)
    advantage = np.asarray(u, dtype=np.float64)
    size = np.abs(advantage)
    neutral = size < np.finfo(float).tiny
    safe = np.where(neutral, 1.0, np.minimum(size, 1e3))  # both terms are log 1 from 1e3 on
    favoured = np.log(np.expm1(-safe) / np.expm1(-m * safe))
    return np.where(neutral, -np.log(m), favoured) + (m - 1) * np.minimum(advantage, 0)


def _fixations(table: np.ndarray, alpha: float, population_size: int, normalize: bool) -> tuple[Graph, np.ndarray]:
    """The graph of single-player deviations and the log fixation probability [E] of each."""
    m = _check_population_size(population_size)
    if not 0 <= alpha < np.inf:
        raise ValueError(f"alpha must be a finite intensity of selection >= 0; got {alpha}: raise it to select harder")
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        targets, gains = zip(*(_deviations(table, player, normalize) for player in range(len(table))), strict=True)
        advantage = alpha * np.concatenate(gains, axis=1)
        hardest = m * np.abs(advantage).max(initial=0)
    if not hardest < np.inf:
        raise ValueError(f"alpha * payoff differences must stay finite; got alpha={alpha}: scale the payoffs down")
    target = np.concatenate(targets, axis=1)
    profiles, degree = target.shape
    graph = Graph(np.repeat(np.arange(profiles), degree), target.ravel(), np.arange(profiles + 1) * degree)
    return graph, log_fixation_probability(advantage, m).ravel()


def _deviations(table: np.ndarray, player: int, normalize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where each of a player's other policies leads from each profile, [K, k - 1], and what it gains there."""
    profiles = np.moveaxis(np.arange(table[player].size).reshape(table.shape[1:]), player, -1)
    own = np.moveaxis(table[player], player, -1)
    policies = own.shape[-1]
    others = (np.arange(policies)[:, None] + np.arange(1, policies)) % policies
    gains = own[..., others] - own[..., None]
    if normalize:
        gains = _per_largest(gains, own)
    in_order = (table[player].size, policies - 1)
    targets, gains = (np.moveaxis(values, -2, player).reshape(in_order) for values in (profiles[..., others], gains))
    return targets, gains


def _per_largest(gains: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Gains in units of the largest of them; all zero when the differences are only rounding of the payoffs."""
    largest = np.abs(gains).max(initial=0)
    if largest <= 4 * np.finfo(float).eps * np.abs(own).max():
        return np.zeros_like(gains)
    return gains / largest


def _check_population_size(population_size: int) -> int:
    if not 2 <= population_size <= 1e15 or int(population_size) != population_size:
        raise ValueError(
            f"population_size must be a whole number from 2 (residents and a mutant) to 1e15; got {population_size}"
        )
    return int(population_size)
