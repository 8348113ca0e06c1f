"""Players without regret, and fictitious play: what they play on average.

In every step each player sees what all its policies would have earned against the others' current strategies, and all
update at once. The *regret* of a policy is how much more it would have earned over all steps than what was played. When
the largest regret per step vanishes, the time average of the joint play becomes a coarse correlated equilibrium, for
any number of players; in two-player zero-sum games its marginals become Nash strategies. Payoffs are measured in units
of each player's largest gain, which changes no answer.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.contract import COARSE
from metasolvers.dynamics import MOST_STEPS, Strategies, averaged, policy_values, solve, starting, tilted
from metasolvers.metagame import in_units_of_gain

SMALL_GAP = COARSE._replace(tolerance=1e-2)
"""What time averages promise: they come close at a rate of 1 / sqrt(steps) for sure, and often of 1 / steps."""
ROUNDING = 1e-13
"""Regrets per step, and differences of values, that may be rounding, in units of a player's largest gain."""


def regret_matching(
    payoffs: ArrayLike, tolerance: float = SMALL_GAP.tolerance, max_steps: int = MOST_STEPS
) -> np.ndarray:
    """Coarse correlated equilibrium by regret matching: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    The time average of the joint play of `regret_matching_steps`, once its cce_gap is within
    tolerance, each player's gain per its largest one.
    Raises NotConverged when max_steps do not suffice, and ValueError for malformed payoffs or options.

    >>> regret_matching([[[3, 0], [5, 1]], [[3, 5], [0, 1]]]).round(2)  # the prisoner's dilemma: both defect
    array([[0.  , 0.  ],
           [0.  , 0.99]])
    """
    return solve(regret_matching_steps(payoffs), payoffs, tolerance, max_steps)


def regret_matching_plus(
    payoffs: ArrayLike, tolerance: float = SMALL_GAP.tolerance, max_steps: int = MOST_STEPS
) -> np.ndarray:
    """Coarse correlated equilibrium by regret matching+: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    The time average of the joint play of `regret_matching_plus_steps`. Arguments and errors as in `regret_matching`.
    """
    return solve(regret_matching_plus_steps(payoffs), payoffs, tolerance, max_steps)


def hedge(
    payoffs: ArrayLike,
    rate: float | None = None,
    tolerance: float = SMALL_GAP.tolerance,
    max_steps: int = MOST_STEPS,
) -> np.ndarray:
    """Coarse correlated equilibrium by multiplicative weights: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    The time average of the joint play of `hedge_steps`, whose `rate` it takes. Other arguments and errors as in
    `regret_matching`.
    """
    return solve(hedge_steps(payoffs, rate), payoffs, tolerance, max_steps)


def fictitious_play(payoffs: ArrayLike, steps: int = 1000) -> np.ndarray:
    """Time average of joint fictitious play: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    See `fictitious_play_steps`, of which it takes so many. The marginals become a Nash equilibrium in two-player
    zero-sum games [Robinson 1951] and in potential games [Monderer & Shapley 1996, J. Econ. Theory 68]; elsewhere play
    may cycle without end [Shapley 1964], and nothing is promised.
    Raises ValueError for malformed payoffs or steps < 1.
    """
    return averaged(fictitious_play_steps(payoffs), steps).sigma


def regret_matching_steps(payoffs: ArrayLike, start: Sequence[ArrayLike] | None = None) -> Iterator[Strategies]:
    """Yield the strategies of players who play each policy in proportion to its positive regret, without end.

    They start with `start`, N strategies [k_i], or the uniform ones, which they also play while there is no regret.
    The regrets per step are at most sqrt(k_i / steps) of the largest gain.
    Raises ValueError for malformed payoffs or start. [Hart & Mas-Colell 2000, Econometrica 68:1127, unconditional]
    """
    yield from _matching(payoffs, start, lambda regrets: regrets)


def regret_matching_plus_steps(payoffs: ArrayLike, start: Sequence[ArrayLike] | None = None) -> Iterator[Strategies]:
    """Yield the strategies of `regret_matching_steps` whose regrets, whenever they fall below zero, are set to zero.

    A policy is taken up again as soon as it pays, and the bound of regret matching holds all the same.
    [Tammelin 2014, arXiv:1407.5042; Farina, Kroer & Sandholm 2021, AAAI 35]
    """
    yield from _matching(payoffs, start, lambda regrets: np.maximum(regrets, 0.0))


def hedge_steps(
    payoffs: ArrayLike, rate: float | None = None, start: Sequence[ArrayLike] | None = None
) -> Iterator[Strategies]:
    """Yield strategies whose weights are start * exp(rate * earnings of each policy so far), without end.

    Earnings are in units of each player's largest gain.

    Without a rate it is sqrt(8 log(k_i) / step), for which the regrets per step vanish as sqrt(2 log(k_i) / steps); a
    constant one leaves rate / 8, and is best at sqrt(8 log(k_i) / steps) where the number of steps is known.
    Raises ValueError for malformed payoffs or start, or a rate that is not positive.
    [Freund & Schapire 1999, Games Econ. Behav. 29:79; Cesa-Bianchi & Lugosi 2006, theorems 2.2 and 2.3]
    """
    if rate is not None and not 0 < rate < np.inf:
        raise ValueError(f"rate must be a finite number > 0 per largest gain, or None; got {rate}")
    table = in_units_of_gain(payoffs)
    values_of, first = policy_values(table), starting(table, start)
    earned = [np.zeros(len(strategy)) for strategy in first]
    scales = [np.sqrt(8 * np.log(len(strategy))) for strategy in first]
    strategies, step = first, 0
    while True:
        yield strategies
        step += 1
        for total, values in zip(earned, values_of(strategies), strict=True):
            total += values
        rates = [scale / np.sqrt(step) for scale in scales] if rate is None else [rate] * len(scales)
        strategies = tuple(tilted(prior, eta * total) for prior, eta, total in zip(first, rates, earned, strict=True))


def fictitious_play_steps(payoffs: ArrayLike, start: Sequence[ArrayLike] | None = None) -> Iterator[Strategies]:
    """Yield best responses to the average strategy of each other player, all at once and without end.

    Ties are broken evenly: all the best policies are equally likely. `start` and errors as in `regret_matching_steps`.
    [Brown 1951; for N players, who believe that the others choose independently, Monderer & Shapley 1996]
    """
    table = in_units_of_gain(payoffs)
    values_of, strategies = policy_values(table), starting(table, start)
    totals, step = [np.zeros(len(strategy)) for strategy in strategies], 0
    while True:
        yield strategies
        step += 1
        for total, strategy in zip(totals, strategies, strict=True):
            total += strategy
        beliefs = [total / step for total in totals]
        best = [values >= values.max() - ROUNDING for values in values_of(beliefs)]
        strategies = tuple(chosen / np.count_nonzero(chosen) for chosen in best)


def _matching(
    payoffs: ArrayLike, start: Sequence[ArrayLike] | None, kept: Callable[[np.ndarray], np.ndarray]
) -> Iterator[Strategies]:
    """Strategies in proportion to positive regrets, of which `kept` is remembered."""
    table = in_units_of_gain(payoffs)
    values_of, strategies = policy_values(table), starting(table, start)
    regrets, step = [np.zeros(len(strategy)) for strategy in strategies], 0
    while True:
        yield strategies
        step += 1
        earned = zip(regrets, values_of(strategies), strategies, strict=True)
        regrets = [kept(regret + (values - values @ strategy)) for regret, values, strategy in earned]
        strategies = tuple(_proportional(regret - ROUNDING * step) for regret in regrets)


def _proportional(regrets: np.ndarray) -> np.ndarray:
    """The strategy [k] in proportion to positive regrets; uniform where there are none."""
    positive = np.maximum(regrets, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regrets), 1 / len(regrets))
