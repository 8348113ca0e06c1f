"""Replicator dynamics: policies grow in proportion to how much more they earn than their population's average.

With one population a player, dx_ia/dt = x_ia (v_ia - x_i . v_i), where v_ia is what policy a earns against the others'
current strategies [Taylor & Jonker 1978; Weibull 1995, sections 3.1 and 5.2]. Times are in units of 1 / payoff.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from metasolvers.dynamics import Strategies, averaged, policy_values, starting, tilted
from metasolvers.metagame import check_payoffs, check_sigma, in_units_of_gain, independent, product, real_array

Values = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def replicator(payoffs: ArrayLike, time: float = 100.0) -> np.ndarray:
    """Where the replicator dynamics leads from uniform strategies: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    The product of the strategies at a time that is measured in 1 / largest gain of each player. Where they have
    come to rest, that is a Nash equilibrium; they need not, as around the mixed equilibrium of a zero-sum game.
    Raises ValueError for malformed payoffs or a time that is not finite and >= 0.

    >>> replicator([[[3, 0], [5, 1]], [[3, 5], [0, 1]]]).round(4)  # the prisoner's dilemma
    array([[0., 0.],
           [0., 1.]])
    """
    (strategies,) = replicator_path(in_units_of_gain(payoffs), [time])
    return product(strategies)


def projected_replicator(payoffs: ArrayLike, dt: float = 0.2, gamma: float = 1e-6, steps: int = 500) -> np.ndarray:
    """Product of average strategies of projected replicator dynamics: payoffs [N, k_1, ..., k_N] -> sigma.

    The average of `steps` steps of `projected_replicator_steps`, on payoffs in units of each player's largest gain,
    from uniform strategies: the meta-strategy of [Lanctot et al. 2017]. Errors as there, and ValueError for steps < 1.
    """
    return independent(averaged(projected_replicator_steps(in_units_of_gain(payoffs), dt, gamma), steps).sigma)


def replicator_field(payoffs: ArrayLike, strategies: Sequence[ArrayLike]) -> Strategies:
    """The velocity of every player's strategy: payoffs [N, k_1, ..., k_N], N strategies [k_i] -> N arrays [k_i].

    Raises ValueError for malformed payoffs or strategies.
    """
    table = check_payoffs(payoffs)
    current = starting(table, strategies, "strategies")
    return tuple(x * growth for x, growth in zip(current, _growth(policy_values(table), current), strict=True))


def replicator_field_single(matrix: ArrayLike, strategy: ArrayLike) -> np.ndarray:
    """The velocity [k] of one population whose members meet each other: matrix [k, k] holds what the row policy earns.

    Raises ValueError for a matrix that is not square, or no strategy [k].

    >>> hawk_dove = [[-1, 4], [0, 2]]
    >>> replicator_field_single(hawk_dove, [0.5, 0.5])
    array([ 0.125, -0.125])
    """
    values_of, x = _one_population(matrix, strategy, "strategy")
    (growth,) = _growth(values_of, [x])
    return x * growth


def replicator_path(
    payoffs: ArrayLike, times: ArrayLike, start: Sequence[ArrayLike] | None = None
) -> Iterator[Strategies]:
    """Yield the N strategies [k_i] at ascending times >= 0, from `start` (uniform ones) at time 0.

    Raises ValueError for malformed payoffs, times or start.
    """
    table = check_payoffs(payoffs)
    return _integrated(policy_values(table), starting(table, start), _ascending(times))


def replicator_path_single(matrix: ArrayLike, times: ArrayLike, start: ArrayLike) -> Iterator[np.ndarray]:
    """Yield one population's strategy [k] at ascending times >= 0, from `start` [k] at time 0; matrix is [k, k].

    Raises ValueError for a matrix that is not square, malformed times or start.
    """
    values_of, x = _one_population(matrix, start, "start")
    return (strategy for (strategy,) in _integrated(values_of, (x,), _ascending(times)))


def projected_replicator_steps(
    payoffs: ArrayLike, dt: float = 1e-3, gamma: float = 1e-6, start: Sequence[ArrayLike] | None = None
) -> Iterator[Strategies]:
    """Yield strategies that take Euler steps dt of the replicator dynamics, without end.

    After each step they are projected to probabilities of at least gamma, so that no policy is lost. They start with
    `start`, or uniform. Raises ValueError for malformed payoffs or start, and for dt or gamma that do not work.
    [Lanctot et al. 2017, arXiv:1711.00832, section 3.1]
    """
    table = check_payoffs(payoffs)
    if not 0 < dt < np.inf:
        raise ValueError(f"dt must be a finite step > 0, in units of 1 / payoff; got {dt}")
    values_of, strategies = policy_values(table), starting(table, start)
    floor = _checked_floor(gamma, max(table.shape[1:]))
    while True:
        yield strategies
        growth = _growth(values_of, strategies)
        strategies = tuple(_projected(x + dt * x * rate, floor) for x, rate in zip(strategies, growth, strict=True))


def project_simplex(vector: ArrayLike, floor: float = 0.0) -> np.ndarray:
    """The distribution [k] with entries of at least `floor` that is nearest to a vector [k] in Euclidean distance.

    It is max(vector - shift, floor) for one shift, found by sorting [Duchi et al. 2008, ICML, figure 1].
    Raises ValueError unless 0 <= floor <= 1 / k.

    >>> project_simplex([0.4, 0.7, 0.6], floor=0.2).round(4)
    array([0.2 , 0.45, 0.35])
    """
    values = np.asarray(vector, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"a finite vector [k] can be projected to the simplex; got {vector!r}")
    return _projected(values - values.max(), _checked_floor(floor, len(values)))  # large ones lose no digits


def _projected(values: np.ndarray, floor: float) -> np.ndarray:
    size = len(values)
    descending = np.sort(values)[::-1] - floor
    shifts = (descending.cumsum() - (1 - size * floor)) / np.arange(1, size + 1)
    above = int(np.count_nonzero(descending > shifts))  # so many entries, the largest, stay above the floor
    return np.maximum(values - shifts[max(above - 1, 0)], floor)


def _checked_floor(floor: float, size: int) -> float:
    if not 0 <= floor * size <= 1:
        raise ValueError(f"the smallest probability must be in [0, 1 / {size}] for {size} policies; got {floor}")
    return floor


def _growth(values_of: Values, strategies: Sequence[np.ndarray]) -> list[np.ndarray]:
    """How fast the logarithm of each probability grows: N arrays [k_i]."""
    return [values - values @ x for values, x in zip(values_of(strategies), strategies, strict=True)]


def _integrated(values_of: Values, start: Strategies, times: np.ndarray) -> Iterator[Strategies]:
    """The strategies at the times, by Runge-Kutta of order 8 with an error of about 1e-10 in their logarithms.

    What is integrated is log(x / start): bounded in speed and nearly linear where policies die out. Probabilities stay
    positive, their sum stays 1, and what is absent at the start stays so.
    """
    ends = np.cumsum([len(x) for x in start])[:-1]

    def strategies(logs: np.ndarray) -> Strategies:
        return tuple(tilted(x, exponents) for x, exponents in zip(start, np.split(logs, ends), strict=True))

    def speed(_: float, logs: np.ndarray) -> np.ndarray:
        return np.concatenate(_growth(values_of, strategies(logs)))

    logs, now = np.zeros(sum(len(x) for x in start)), 0.0
    for time in times:
        if time > now:
            path = solve_ivp(speed, (now, time), logs, method="DOP853", rtol=1e-10, atol=1e-10)
            if not path.success:
                raise ArithmeticError(f"the replicator equation could not be followed to time {time}: {path.message}")
            logs, now = path.y[:, -1], time
        yield strategies(logs)


def _ascending(times: ArrayLike) -> np.ndarray:
    at = np.asarray(times, dtype=np.float64)
    if at.ndim != 1 or not (np.isfinite(at) & (at >= 0)).all() or (np.diff(at) < 0).any():
        raise ValueError(f"times must be a list of finite times >= 0 in ascending order; got {times!r}")
    return at


def _one_population(matrix: ArrayLike, strategy: ArrayLike, name: str) -> tuple[Values, np.ndarray]:
    """The values of a population's policies as a function of its strategies, of which there is one; and that one."""
    table, x = real_array(matrix, "matrix", "one matrix [k, k]"), check_sigma(strategy, name=name)
    if x.ndim != 1 or table.shape != (x.size, x.size):
        raise ValueError(
            f"a population needs a matrix [k, k] and {name} [k]; got shapes {table.shape} and {x.shape}: "
            f"several populations are given by payoffs [N, k_1, ..., k_N]"
        )
    return lambda strategies: [table @ strategies[0]], x
