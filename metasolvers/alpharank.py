"""Multi-population alpha-rank: how often evolution under selection plays each joint profile.

Every player is a population of `population_size`, all playing one policy. A mutant that earns u / alpha more than the
residents takes over its population with the fixation probability rho(u); the long-run share of each joint profile is
alpha-rank's answer [Omidshafiei et al. 2019, Scientific Reports 9:9937, doi 10.1038/s41598-019-45619-9].
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from metasolvers.contract import Certificate, Concept, NotConverged
from metasolvers.markov import ACCURACY, BLOCK, Graph, NotSettled, imbalance, log_stationary
from metasolvers.metagame import ROUNDING, check_payoffs, check_sigma


def alpha_rank(
    payoffs: ArrayLike, alpha: float = 10.0, population_size: int = 50, normalize: bool = True
) -> np.ndarray:
    """Long-run share of every joint profile: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    alpha >= 0 is the intensity of selection. With `normalize` it is per largest gain each player can make by changing
    policy alone, so that the units of payoffs, and what others hand a player, do not matter; without, per payoff unit,
    as published. By default profiles are told apart that differ by about half a percent of that largest gain.
    Every entry is accurate relative to itself, down to 1e-308, however large the game: about 50 bytes for each of the
    K * sum(k_i - 1) deviations from K profiles. Raises ValueError for malformed payoffs, alpha < 0 or
    population_size < 2, and NotConverged rather than return what has not settled.

    >>> coordination = [[[2, 0], [0, 1]], [[2, 0], [0, 1]]]
    >>> alpha_rank(coordination).round(3)  # the better convention, nearly always
    array([[1., 0.],
           [0., 0.]])
    """
    return next(alpha_ranks(payoffs, [alpha], population_size, normalize))


def alpha_ranks(
    payoffs: ArrayLike, alphas: Iterable[float], population_size: int = 50, normalize: bool = True
) -> Iterator[np.ndarray]:
    """`alpha_rank` at one alpha after the other, each from where the last one points: logs are nearly linear in alpha.

    Many times faster than one by one where the chain rests in many places. Arguments and errors as there.
    """
    table = check_payoffs(payoffs)
    graph, gains = _deviations(table, normalize)
    slope = None
    for alpha in alphas:
        log_fixation = _log_fixation(gains, alpha, population_size)
        try:
            log_mass = log_stationary(graph, log_fixation, start=None if slope is None else alpha * slope)
        except NotSettled as unsettled:
            sigma = unsettled.mass.reshape(table.shape[1:])
            left = unsettled.step
            certificate = Certificate("step still to make in a log", lambda *_, left=left: left, ACCURACY)
            raise NotConverged("alpha_rank", sigma, certificate, left, f"lower alpha; {unsettled}") from None
        sigma = np.exp(log_mass).reshape(table.shape[1:])
        residual = _stationarity(graph, log_fixation, sigma)
        if not residual <= STATIONARY.tolerance:
            raise NotConverged("alpha_rank", sigma, STATIONARY, residual, "lower alpha")
        yield sigma
        slope = log_mass / alpha if alpha else None


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
    sigma = check_sigma(sigma, table)
    return _stationarity(*_fixations(table, alpha, population_size, normalize), sigma)


def _stationarity(graph: Graph, log_fixation: np.ndarray, sigma: np.ndarray) -> float:
    """A mutation hits each of a profile's deviations equally often."""
    return imbalance(graph, log_fixation, sigma.ravel()) * graph.size / max(1, len(log_fixation))


STATIONARY = Certificate("stationarity", stationarity, 1e-10, Concept.ALPHA_RANK)


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
    result = np.empty(advantage.shape)
    flat, logs = advantage.ravel(), result.reshape(-1)
    for start in range(0, len(flat), BLOCK):
        block = flat[start : start + BLOCK]
        size = np.clip(np.abs(block), np.finfo(float).tiny, 1e3)  # 1 / m comes out below, and log 1 from 1e3 on
        logs[start : start + BLOCK] = np.log(np.expm1(-size) / np.expm1(-m * size)) + (m - 1) * np.minimum(block, 0)
    return result


def _fixations(table: np.ndarray, alpha: float, population_size: int, normalize: bool) -> tuple[Graph, np.ndarray]:
    """The graph of single-player deviations and the log fixation probability [E] of each."""
    graph, gains = _deviations(table, normalize)
    return graph, _log_fixation(gains, alpha, population_size)


def _log_fixation(gains: np.ndarray, alpha: float, population_size: int) -> np.ndarray:
    m = _check_population_size(population_size)
    if not 0 <= alpha < np.inf:
        raise ValueError(f"alpha must be a finite intensity of selection >= 0; got {alpha}: raise it to select harder")
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        advantage = alpha * gains
        hardest = m * max(advantage.max(initial=0), -advantage.min(initial=0))
    if not hardest < np.inf:
        raise ValueError(f"alpha * payoff differences must stay finite; got alpha={alpha}: scale the payoffs down")
    return log_fixation_probability(advantage, m)


def _deviations(table: np.ndarray, normalize: bool) -> tuple[Graph, np.ndarray]:
    """Where every single-player deviation leads, by the profile it leaves and then by player; and its gains [E]."""
    profiles, degree = table[0].size, sum(table.shape[1:]) - len(table)
    index = np.int32 if profiles * degree < 2**31 else np.int64  # half the memory, and half the time to read it
    target, gains = np.empty((profiles, degree), index), np.empty((profiles, degree))
    after = 0
    for player, policies in enumerate(table.shape[1:]):
        here, after = after, after + policies - 1
        place = np.arange(profiles, dtype=index).reshape(table.shape[1:])
        target[:, here:after] = _elsewhere(place, player)
        gains[:, here:after] = _gains(table[player], player, normalize)
    starts = np.arange(profiles + 1, dtype=index) * index(degree)
    return Graph(np.repeat(np.arange(profiles, dtype=index), degree), target.ravel(), starts), gains.ravel()


def _elsewhere(values: np.ndarray, player: int) -> np.ndarray:
    """[K, k - 1] of values [k_1, ..., k_N] at every profile, where the player moves to each other policy instead."""
    own = np.moveaxis(values, player, -1)
    policies = own.shape[-1]
    others = (np.arange(policies)[:, None] + np.arange(1, policies)) % policies
    return np.moveaxis(own[..., others], -2, player).reshape(values.size, policies - 1)


def _gains(own: np.ndarray, player: int, normalize: bool) -> np.ndarray:
    """[K, k - 1] that the player gains there, of payoffs [k_1, ..., k_N]; in units of the largest with `normalize`.

    They are all zero when the differences are only rounding of the payoffs.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinite gains are refused
        gains = _elsewhere(own, player)
        gains -= own.reshape(-1, 1)
        if not normalize:
            return gains
        largest = max(gains.max(initial=0), -gains.min(initial=0))
        if largest <= ROUNDING * np.abs(own).max():
            return np.zeros_like(gains)
        return gains / largest


def _check_population_size(population_size: int) -> int:
    if not 2 <= population_size <= 1e15 or int(population_size) != population_size:
        raise ValueError(
            f"population_size must be a whole number from 2 (residents and a mutant) to 1e15; got {population_size}"
        )
    return int(population_size)
