"""Meta-games known from samples: which deviations are decided, how far to trust a ranking, what to play next.

`mean` and `standard_error` are [N, k_1, ..., k_N], as of a table of simulated episodes. Profiles are sampled
independently of each other; within a profile the players' payoffs may depend on each other.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from metasolvers.alpharank import alpha_rank
from metasolvers.comparisons import Interval
from metasolvers.metagame import check_payoffs, float_array
from metasolvers.response_graphs import Profile, deviations, profiles

MARGIN = 1e-6
"""Mass by which bounds are widened: more than the search for them has been seen to miss."""


class Undecided(NamedTuple):
    """Pairs of profiles between which a deviation may gain or lose, each pair once.

    first, second: [U] both profiles' places in C order, first < second.
    player: [U] who deviates.
    """

    first: np.ndarray
    second: np.ndarray
    player: np.ndarray


def undecided_edges(mean: ArrayLike, standard_error: ArrayLike, confidence: float = 0.95) -> Undecided:
    """The deviations whose gain the samples do not tell from zero at this (two-sided) confidence, each on its own.

    An edge is undecided while its gain is no more than z = 1.96 (for 0.95) times the gain's own standard error, which
    is the root of the sum of both payoffs' squared errors. That is less than the sum of two radii by which
    `next_profile` judges; see there for radii that agree. What is known without error is decided, ties included.
    Raises ValueError for malformed or unlike tables, negative standard errors, or a confidence outside (0, 1).

    >>> mean, error = [[[1.0], [1.1]], [[0.0], [0.0]]], [[[0.1], [0.1]], [[0.0], [0.0]]]
    >>> len(undecided_edges(mean, error).first), len(undecided_edges(mean, np.divide(error, 10)).first)
    (1, 0)
    """
    table, error = _estimates(mean, standard_error)
    first, second, player, gain = _pairs(table)
    own = error.reshape(len(error), -1)
    reach = _quantile(confidence, 1) * np.hypot(own[player, first], own[player, second])
    open_ = (np.abs(gain) <= reach) & (reach > 0)
    return Undecided(first[open_], second[open_], player[open_])


def alpha_rank_interval(
    mean: ArrayLike,
    standard_error: ArrayLike,
    alpha: float = 10.0,
    population_size: int = 50,
    normalize: bool = True,
    confidence: float = 0.95,
    samples: int = 100,
    seed: int = 0,
) -> Interval:
    """Alpha-rank's mass of every joint profile with its bounds, [k_1, ..., k_N] each, from payoffs with normal errors.

    The estimate is alpha-rank of the means. With probability `confidence` all payoffs at once are within a box of z
    standard errors (Sidak); the bounds are the range of alpha-rank over that box, so that they hold for all profiles
    together. The range is searched for: at the centre, in `samples` random tables, and for each profile in the two
    corners where all payoffs move as, over these tables, they go with its mass, and the two where everybody earns more,
    or less, who plays as in the profile.
    Percentiles of resampled rankings would be shorter, but miss the truth where a ranking turns on small differences;
    these bounds are conservative: of nominal 95 % intervals all covered, in 24 settings of 100 simulated tables each (8
    games, 3 alphas), and with large errors they say next to nothing. `tests/metasolvers/test_sampled.py` simulates it.
    Raises ValueError as `undecided_edges` and `alpha_rank` do, and for fewer than 2 samples.

    >>> mean = [[[1.0, 0.0], [0.0, 0.9]], [[1.0, 0.0], [0.0, 0.9]]]
    >>> estimate, low, high = alpha_rank_interval(mean, np.full((2, 2, 2), 0.05))
    >>> low.round(2).tolist(), high.round(2).tolist()  # either convention may be the better one
    ([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    table, error = _estimates(mean, standard_error)
    if samples < 2:
        raise ValueError(f"samples must be how many random tables to rank, at least 2; got {samples}")
    box = _quantile(confidence, int(np.count_nonzero(error))) * error

    def rank(place: np.ndarray) -> np.ndarray:
        return alpha_rank(table + place * box, alpha, population_size, normalize)

    estimate = rank(np.zeros(table.shape))
    draws = np.random.default_rng(seed).uniform(-1, 1, (samples, *table.shape))
    drawn = np.stack([rank(place) for place in draws])
    towards = [*_towards(draws, drawn), *_favouring(table.shape)]
    found = np.stack([estimate, *drawn, *(rank(sign * place) for place in towards for sign in (1, -1))])
    margin = MARGIN if error.any() else 0.0
    low, high = found.min(axis=0) - margin, found.max(axis=0) + margin
    return Interval(estimate, np.maximum(low, 0), np.minimum(high, 1))


def next_profile(mean: ArrayLike, radius: ArrayLike, episodes: ArrayLike, indifference: float = 0.0) -> Profile | None:
    """The profile to play next so as to decide every edge of the response graph; None once all are.

    An edge is undecided while the intervals mean +- radius (broadcast to [N, k_1, ..., k_N]) of its two payoffs
    overlap, unless the gain is known to be within `indifference`: without one, ties are sampled for ever. Where nothing
    is known, the radius is inf or `episodes` 0, and the mean may be NaN. Of the profiles with undecided edges, one with
    the fewest `episodes` [k_1, ..., k_N] is played, and of these one with the most such edges
    [Rowland et al. 2019, NeurIPS, ResponseGraphUCB].

    Both radii add up, as `hoeffding_radius` wants it. With radius = 1.96 * standard_error more edges are undecided than
    by `undecided_edges`, whose errors add up in squares; with 1.96 * standard_error / sqrt(2) the same ones, as far as
    an edge's two errors are equal, and fewer the more they differ.

    Raises ValueError for malformed or unlike tables, or a negative indifference.

    >>> episodes = np.array([[400, 400], [400, 400]])
    >>> mean = [[[0.9, 0.6], [0.2, 0.5]], [[0.1, 0.4], [0.8, 0.5]]]  # win rates of both players
    >>> next_profile(mean, hoeffding_radius(episodes, players=2, delta=0.1), episodes)
    (0, 1)
    """
    table, around, played = _known(mean, radius, episodes)
    if not indifference >= 0:
        raise ValueError(f"indifference must be a gain that does not matter, at least 0; got {indifference}")
    first, second, player, gain = _pairs(table)
    reach = around[player, first] + around[player, second]
    open_ = (np.abs(gain) <= reach) & (reach > 0) & (np.abs(gain) + reach > indifference)
    if not open_.any():
        return None
    edges = np.bincount(np.concatenate([first[open_], second[open_]]), minlength=played.size)
    candidates = np.flatnonzero(edges)
    best = candidates[np.lexsort((-edges[candidates], played[candidates]))[:1]]
    return profiles(best, table.shape[1:])[0]


def hoeffding_radius(episodes: ArrayLike, players: int, delta: float, spread: float = 1.0) -> np.ndarray:
    """Radius [k_1, ..., k_N] around the mean returns of bounded games, which differ by no more than `spread`.

    With probability 1 - delta all payoffs are within it at once, and however often one looks: delta is divided among
    the payoffs, and for each one by 6 / (pi n)^2 among its numbers of episodes n [Hoeffding 1963]. inf for none.
    Raises ValueError for a delta outside (0, 1) or a spread that is not positive.
    """
    played = np.asarray(episodes, dtype=np.float64)
    if not 0 < delta < 1 or not 0 < spread < np.inf or players < 1:
        raise ValueError(
            f"delta must be an error probability in (0, 1), spread and players positive; got {delta}, {spread} "
            f"and {players}"
        )
    n = np.maximum(played, 1)
    radius = spread * np.sqrt(np.log(np.pi**2 * n**2 * played.size * players / (3 * delta)) / (2 * n))
    return np.where(played > 0, radius, np.inf)


def _towards(draws: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """[K, N, k_1, ..., k_N] corners of 1 and -1: how payoffs go with the rank of each profile's mass in the draws."""
    ranks = drawn.reshape(len(drawn), -1).argsort(axis=0).argsort(axis=0) - (len(drawn) - 1) / 2
    return np.where(np.tensordot(ranks.T, draws, axes=1) >= 0, 1.0, -1.0)


def _favouring(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """For each profile the corner [N, k_1, ..., k_N] where players earn more, 1, who play as in it; others less, -1."""
    played = np.indices(shape[1:])
    for profile in np.ndindex(shape[1:]):
        yield np.where(played == np.reshape(profile, (-1, *[1] * len(profile))), 1.0, -1.0)


def _pairs(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every deviation once: profiles first [P] < second [P], the player [P], and the gain [P] on the way up."""
    graph, player = deviations(table.shape[1:])
    once = graph.source < graph.target
    first, second, player = graph.source[once], graph.target[once], player[once]
    own = table.reshape(len(table), -1)
    return first, second, player, own[player, second] - own[player, first]


def _estimates(mean: ArrayLike, standard_error: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 [N, k_1, ..., k_N]."""
    table = check_payoffs(mean, "mean")
    error = check_payoffs(standard_error, "standard_error")
    if error.shape != table.shape or (error < 0).any():
        raise ValueError(
            f"standard_error must be non-negative and of the shape of mean, {table.shape}; got shape {error.shape} and "
            f"smallest entry {error.min():g}"
        )
    return table, error


def _known(mean: ArrayLike, radius: ArrayLike, episodes: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means [N, k_1, ..., k_N], radii [N, K] and episodes [K]; 0 +- inf where means are NaN and nothing is known."""
    means = float_array(mean, "mean", "one array [N, k_1, ..., k_N]")
    around, played = _like(radius, means.shape, "radius"), _like(episodes, means.shape[1:], "episodes")
    unknown = np.isnan(means) & (np.isinf(around) | (played == 0))
    table = check_payoffs(np.where(unknown, 0.0, means), "mean")
    return table, np.where(unknown, np.inf, around).reshape(len(table), -1), played.ravel()


def _like(values: ArrayLike, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Non-negative numbers, broadcast to the shape."""
    array = np.asarray(values, dtype=np.float64)
    try:
        spread = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to {shape}; got shape {array.shape}") from None
    if not (spread >= 0).all():
        raise ValueError(f"{name} must not be negative or NaN; got {spread.min()}")
    return spread


def _quantile(confidence: float, intervals: int) -> float:
    """z such that as many independent normal deviates are all within +-z with this probability."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a probability in (0, 1); got {confidence}: 0.95 is usual")
    return float(norm.isf((1 - confidence ** (1 / max(intervals, 1))) / 2))
