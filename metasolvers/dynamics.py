"""Learning dynamics: players who adapt step by step, and the time averages of what they play.

A dynamic is a generator of every step's `Strategies`: one vector [k_i] for each of the N players, who choose
independently within a step. Over the steps their choices are correlated, so that the time average of the joint play is
a joint distribution [k_1, ..., k_N]: a coarse correlated equilibrium in the limit, for players without regret.

>>> from metasolvers.no_regret import regret_matching_plus_steps
>>> pennies = [[[3, -1], [-1, 1]], [[-3, 1], [1, -1]]]
>>> sigma = solve(regret_matching_plus_steps(pennies), pennies, tolerance=3e-3)
>>> sigma.sum(axis=1).round(1), sigma.sum(axis=0).round(1)  # in a zero-sum game the marginals are Nash strategies
(array([0.3, 0.7]), array([0.3, 0.7]))
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.contract import COARSE, NotConverged
from metasolvers.metagame import check_payoffs, check_sigma, real_array

Strategies = tuple[np.ndarray, ...]

MOST_STEPS = 1_000_000
"""Steps after which the wait for a certificate ends."""
BLOCK = 64
"""Steps that are averaged, and judged, together."""
BLOCK_ENTRIES = 2**21
"""Most numbers that the joint play of a block may take (16 MiB): blocks of large games are shorter."""


class Average(NamedTuple):
    """How far a dynamic has come.

    sigma: [k_1, ..., k_N] time average of the joint play; `independent(sigma)` is the product of average strategies.
    last: the latest step's strategies, N vectors [k_i].
    steps: how many there have been.
    """

    sigma: np.ndarray
    last: Strategies
    steps: int


def solve(
    play: Iterator[Strategies], payoffs: ArrayLike, tolerance: float = 1e-2, max_steps: int = MOST_STEPS
) -> np.ndarray:
    """The time average [k_1, ..., k_N] of joint play, once its cce_gap is within tolerance, per largest gain.

    `play` is a dynamic on these payoffs [N, k_1, ..., k_N]. Raises NotConverged, with the last average and its gap,
    when max_steps do not suffice, and ValueError for malformed payoffs, tolerance <= 0 or max_steps < 1.
    """
    table = check_payoffs(payoffs)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be a gap > 0 in units of the largest gains; got {tolerance}")
    certificate = COARSE._replace(tolerance=tolerance)
    for average in averages(islice(play, _whole(max_steps, "max_steps"))):
        gap = certificate.measure(table, average.sigma)
        if gap <= tolerance:
            return average.sigma
    advice = f"{average.steps} steps were not enough: raise max_steps or tolerance"
    name = getattr(play, "__name__", "the dynamic")  # generators have that of their function
    raise NotConverged(name.removesuffix("_steps"), average.sigma, certificate, gap, advice)


def averaged(play: Iterator[Strategies], steps: int) -> Average:
    """The `Average` of the first so many steps. Raises ValueError unless there is at least one."""
    for average in averages(islice(play, _whole(steps, "steps"))):
        latest = average
    return latest


def averages(play: Iterator[Strategies]) -> Iterator[Average]:
    """The `Average` so far, after every block of steps, for as long as the players play.

    A block's joint play is summed by one matrix product: for small games a fraction of the time of single steps.
    """
    first = next(play)
    total, steps = np.zeros([len(strategy) for strategy in first]), 0
    size = max(1, min(BLOCK, BLOCK_ENTRIES * len(first[0]) // total.size))
    block = [first, *islice(play, size - 1)]
    while block:
        total = total + _joint_sum([np.array(strategies) for strategies in zip(*block, strict=True)])
        steps += len(block)
        yield Average(total / total.sum(), block[-1], steps)
        block = list(islice(play, size))


def _joint_sum(played: Sequence[np.ndarray]) -> np.ndarray:
    """[k_1, ..., k_N] sum over the steps of the product of strategies, N arrays [steps, k_i]."""
    first, *rest = played
    others = np.ones((len(first), 1))
    for strategies in rest:
        others = (others[:, :, None] * strategies[:, None, :]).reshape(len(first), -1)
    return (first.T @ others).reshape([strategies.shape[1] for strategies in played])


def policy_values(payoffs: ArrayLike) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """The function from N strategies [k_i] to what every policy would earn against the others': N arrays [k_i].

    The tables of payoffs [N, k_1, ..., k_N] are laid out once, so that a step is a few matrix-vector products.

    >>> policy_values([[[3, 0], [0, 2]], [[2, 0], [0, 3]]])([np.array([0.5, 0.5]), np.array([0.25, 0.75])])
    [array([0.75, 1.5 ]), array([1. , 1.5])]
    """
    own_axis_first = [np.moveaxis(own, player, 0).copy() for player, own in enumerate(check_payoffs(payoffs))]

    def values(strategies: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [_against_others(own, strategies, player) for player, own in enumerate(own_axis_first)]

    return values


def _against_others(own: np.ndarray, strategies: Sequence[np.ndarray], player: int) -> np.ndarray:
    """Contract a player's payoffs [k_player, others' k...] with the others' strategies, the last axis first."""
    for other in range(len(strategies) - 1, -1, -1):
        if other != player:
            own = own.reshape(-1, len(strategies[other])) @ strategies[other]
    return own.reshape(-1)


def starting(payoffs: np.ndarray, start: Sequence[ArrayLike] | None, name: str = "start") -> Strategies:
    """The N strategies [k_i] that players start with: uniform, or those given.

    Raises ValueError, under this name, for others than one strategy a player.
    """
    sizes = payoffs.shape[1:]
    if start is None:
        return tuple(np.full(size, 1 / size) for size in sizes)
    given = [real_array(strategy, f"{name}[{player}]", "one vector [k]") for player, strategy in enumerate(start)]
    shapes = [strategy.shape for strategy in given]
    if shapes != [(size,) for size in sizes]:
        raise ValueError(
            f"{name} must hold one strategy for each player, of {sizes} policies; got shapes {shapes}: "
            f"list one vector of probabilities a player"
        )
    return tuple(check_sigma(strategy, name=f"{name}[{player}]") for player, strategy in enumerate(given))


def tilted(strategy: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """The strategy [k] with its weights multiplied by exp(exponents) [k]; what has no weight gets none."""
    below_largest = np.minimum(exponents - exponents[strategy > 0].max(), 0)
    weights = strategy * np.exp(below_largest)
    return weights / weights.sum()


def _whole(steps: int, name: str) -> int:
    if not 1 <= steps <= 1e15 or int(steps) != steps:
        raise ValueError(f"{name} must be a whole number from 1 to 1e15; got {steps}")
    return int(steps)
