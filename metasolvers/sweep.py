"""Alpha-rank as selection grows from none until the ranking has settled.

*Settled* means close to the limit, not merely still: along the way the mass may rest for decades of alpha on profiles
that stronger selection leaves (a plateau). The limit is known beforehand (`alpha_limit`), so that an intensity has
settled when its distribution, and those of all larger intensities that were tried, are within a total variation
`tolerance` of the limit. From there on, profiles whose limits differ by more than twice that are ranked as they are in
the limit. Masses are compared and never intensities, so units of payoff do not matter.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.alpharank import alpha_ranks
from metasolvers.contract import Certificate, NotConverged
from metasolvers.metagame import check_payoffs
from metasolvers.response_graphs import alpha_limit, responses
from metasolvers.single_population import Selection, alpha_limit_single, alpha_rank_single, mutant_advantages

WEAKEST = 1 / 8
"""Where sweeps start: population size * alpha * largest gain, at which all profiles are about equally likely."""
STRONGEST = 2.0**33
"""Where they give up: the rounding of payoffs counts from there on."""
TOLERANCE = 0.01
"""Mass that may be elsewhere than in the limit."""


class Sweep(NamedTuple):
    """Alpha-rank at growing intensities of selection.

    alphas: [T] intensities, ascending.
    pi: [T, ...] alpha-rank at each.
    limit: [...] where it goes.
    distance: [T] total variation between each and the limit.
    settled: the smallest of the alphas from which on all are within the tolerance; None if the last is not.
    """

    alphas: np.ndarray
    pi: np.ndarray
    limit: np.ndarray
    distance: np.ndarray
    settled: float | None


def sweep(
    payoffs: ArrayLike,
    alphas: ArrayLike | None = None,
    population_size: int = 50,
    normalize: bool = True,
    tolerance: float = TOLERANCE,
) -> Sweep:
    """Alpha-rank of payoffs [N, k_1, ..., k_N] at each of `alphas`: by default doubled until settled twice.

    Other arguments and errors as in `alpha_rank`; raises ValueError for alphas that do not ascend, or a tolerance
    outside (0, 1).

    >>> swept = sweep([[[2, 0], [0, 1]], [[2, 0], [0, 1]]])
    >>> swept.settled, swept.pi[0].round(2).tolist(), swept.pi[-1].round(2).tolist()
    (0.32, [[0.27, 0.24], [0.24, 0.25]], [[1.0, 0.0], [0.0, 0.0]])
    """
    table = check_payoffs(payoffs)
    return _sweep(
        lambda tried: alpha_ranks(table, tried, population_size, normalize),
        alpha_limit(table, population_size, normalize),
        _doubling(responses(table, normalize).gain, population_size) if alphas is None else _ascending(alphas),
        tolerance,
        patient=alphas is not None,
    )


def sweep_single(
    payoffs: ArrayLike,
    alphas: ArrayLike | None = None,
    population_size: int = 50,
    normalize: bool = True,
    selection: Selection = "local",
    tolerance: float = TOLERANCE,
) -> Sweep:
    """The same of `alpha_rank_single`, whose arguments and errors these are."""
    gain = mutant_advantages(payoffs, population_size, normalize, selection).gain
    return _sweep(
        lambda tried: (alpha_rank_single(payoffs, alpha, population_size, normalize, selection) for alpha in tried),
        alpha_limit_single(payoffs, population_size, normalize, selection),
        _doubling(gain, population_size) if alphas is None else _ascending(alphas),
        tolerance,
        patient=alphas is not None,
    )


def suggest_alpha(
    payoffs: ArrayLike, population_size: int = 50, normalize: bool = True, tolerance: float = TOLERANCE
) -> float:
    """The weakest selection, to a factor of two, at which alpha-rank of payoffs [N, k_1, ..., k_N] has settled.

    Arguments and errors as in `sweep`; raises NotConverged where no intensity is strong enough, as for payoffs that
    differ by next to nothing.

    >>> suggest_alpha([[[2, 0], [0, 1]], [[2, 0], [0, 1]]])
    0.32
    """
    return _settled("suggest_alpha", sweep(payoffs, None, population_size, normalize, tolerance), tolerance)


def suggest_alpha_single(
    payoffs: ArrayLike,
    population_size: int = 50,
    normalize: bool = True,
    selection: Selection = "local",
    tolerance: float = TOLERANCE,
) -> float:
    """The same for `alpha_rank_single`."""
    swept = sweep_single(payoffs, None, population_size, normalize, selection, tolerance)
    return _settled("suggest_alpha_single", swept, tolerance)


def total_variation(pi: ArrayLike, other: ArrayLike) -> float:
    """The mass by which two distributions of one shape differ."""
    return float(np.abs(np.subtract(pi, other)).sum() / 2)


def _sweep(
    ranks: Callable[[Iterable[float]], Iterator[np.ndarray]],
    limit: np.ndarray,
    alphas: np.ndarray,
    tolerance: float,
    patient: bool,
) -> Sweep:
    """Rank at all the alphas if patient, else until two in a row are near the limit."""
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be a share of the mass, in (0, 1); got {tolerance}")
    pi: list[np.ndarray] = []
    distance: list[float] = []
    for ranked in ranks(alphas.tolist()):
        pi.append(ranked)
        distance.append(total_variation(ranked, limit))
        if not patient and len(distance) > 1 and max(distance[-2:]) <= tolerance:
            break
    tried, far = alphas[: len(pi)], np.flatnonzero(np.array(distance) > tolerance)
    first = far[-1] + 1 if len(far) else 0
    settled = float(tried[first]) if first < len(tried) else None
    return Sweep(tried, np.array(pi), limit, np.array(distance), settled)


def _doubling(gain: np.ndarray, population_size: int) -> np.ndarray:
    """Intensities [T] from next to no selection to as strong as rounding permits, each twice the one before."""
    strength = WEAKEST * 2.0 ** np.arange(np.log2(STRONGEST / WEAKEST))
    return strength / population_size / (np.abs(gain).max(initial=0) or 1.0)


def _ascending(alphas: ArrayLike) -> np.ndarray:
    tried = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if tried.ndim != 1 or tried.size == 0 or not (np.diff(tried) > 0).all():
        raise ValueError(f"alphas must be one ascending row of intensities; got {tried}: sort them, each once")
    return tried


def _settled(solver: str, swept: Sweep, tolerance: float) -> float:
    if swept.settled is not None:
        return swept.settled
    far = Certificate("total variation from the limit", lambda payoffs, pi: total_variation(pi, swept.limit), tolerance)
    advice = (
        f"alpha = {swept.alphas[-1]:.3g} is not strong enough: payoffs differ by very little. Take alpha_limit itself, "
        f"or round the payoffs"
    )
    raise NotConverged(solver, swept.pi[-1], far, float(swept.distance[-1]), advice)
