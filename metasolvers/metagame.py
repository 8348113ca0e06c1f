"""Meta-games: payoff tensors, joint meta-strategies, and what a deviation from them gains.

`payoffs` is [N, k_1, ..., k_N]: axis 0 the player, then every player's policy index. `sigma` is a joint distribution
[k_1, ..., k_N]. Gains are in the payoffs' own units and *restricted*: they deviate to the policies in the table.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

MASS_TOLERANCE = 1e-6
"""How far a distribution's sum may be from one; rounding of float32 input stays below it."""
JOIN = "join independent strategies with product(strategies)"

ROUNDING = 1e-13
"""Payoffs of a player that differ by no more than this share of its largest one are equal: 0.1 + 0.2 and 0.3."""
LARGEST = 4e307
"""Largest payoff; sums and differences of four of them are finite."""


def check_payoffs(payoffs: ArrayLike, name: str = "payoffs") -> np.ndarray:
    """The payoff tensor as float64 [N, k_1, ..., k_N], N >= 1 and every k_i >= 1; a copy unless it already is one.

    Raises ValueError, under this name, for ragged, non-numeric, complex, empty or non-finite payoffs and for a wrong
    number of axes.
    """
    table = real_array(payoffs, name, "one array [N, k_1, ..., k_N]")
    players = table.shape[0] if table.ndim else 0
    if table.ndim < 2 or table.ndim != players + 1:
        raise ValueError(
            f"{name} must be [N, k_1, ..., k_N], one axis of policies for each of the N players on axis 0; "
            f"got shape {table.shape}: stack the players' tables with np.stack(tables)"
        )
    if np.abs(table).max(initial=0) > LARGEST:
        raise ValueError(f"payoffs must be within +-{LARGEST:g}, where differences stay finite: scale the payoffs down")
    if table.size == 0:
        raise ValueError(
            f"{name} must have at least one policy per player; got shape {table.shape}: add a first policy"
        )
    return table


def check_sigma(sigma: ArrayLike, payoffs: np.ndarray | None = None, name: str = "sigma") -> np.ndarray:
    """The joint distribution as float64 [k_1, ..., k_N], matched against `payoffs` [N, k_1, ..., k_N] when given.

    Raises ValueError, under this name, for what is no distribution, or one of another shape.
    """
    joint = real_array(sigma, name, "one joint distribution [k_1, ..., k_N]", f"pad it, or {JOIN}")
    if payoffs is not None and joint.shape != payoffs.shape[1:]:
        raise ValueError(
            f"{name} must be a joint distribution of shape {payoffs.shape[1:]}, like one player's payoffs; "
            f"got {joint.shape}: {JOIN}"
        )
    if joint.size == 0 or joint.min() < 0 or abs(joint.sum() - 1) > MASS_TOLERANCE:
        lowest = joint.min() if joint.size else "none"
        raise ValueError(
            f"{name} must be non-negative and sum to 1; got smallest entry {lowest} and sum {joint.sum()}: "
            f"divide non-negative weights by their sum{f', or {JOIN}' if joint.ndim > 1 else ''}"
        )
    return joint


def marginal(sigma: ArrayLike, player: int) -> np.ndarray:
    """One player's distribution over policies [k_player] under a joint sigma [k_1, ..., k_N].

    Raises ValueError for a player who is not there.

    >>> marginal([[0.5, 0.0], [0.25, 0.25]], player=1)
    array([0.75, 0.25])
    """
    joint = check_sigma(sigma)
    if not 0 <= player < joint.ndim:
        raise ValueError(f"player must be in 0..{joint.ndim - 1} for sigma of shape {joint.shape}; got {player}")
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis != player))


def product(marginals: Sequence[ArrayLike]) -> np.ndarray:
    """The joint distribution [k_1, ..., k_N] of independent strategies, `marginals[player]` of shape [k_player].

    Raises ValueError when there is none, or one is no distribution over a player's policies.
    """
    factors = [check_sigma(strategy, name=f"marginals[{player}]") for player, strategy in enumerate(marginals)]
    if not factors or any(factor.ndim != 1 for factor in factors):
        raise ValueError(
            f"marginals must hold one vector per player; got shapes {[factor.shape for factor in factors]}: "
            f"pass [marginal(sigma, player) for every player]"
        )
    return reduce(np.multiply.outer, factors)


def independent(sigma: ArrayLike) -> np.ndarray:
    """The product [k_1, ..., k_N] of a joint sigma's marginals: the same policies, chosen independently.

    Of a coarse correlated equilibrium of a two-player zero-sum game it is a Nash equilibrium.
    """
    joint = check_sigma(sigma)
    return product([marginal(joint, player) for player in range(joint.ndim)])


def is_product(sigma: ArrayLike) -> bool:
    """Whether a joint sigma is the product of its marginals: the players choose independently.

    >>> is_product([[0.5, 0.0], [0.0, 0.5]])
    False
    """
    return _from_product(check_sigma(sigma)) <= MASS_TOLERANCE


def _from_product(joint: np.ndarray) -> float:
    """L1 distance of a joint distribution from the product of its marginals."""
    return float(np.abs(joint - independent(joint)).sum())


def expected_payoffs(payoffs: ArrayLike, sigma: ArrayLike) -> np.ndarray:
    """What every player earns in expectation, [N], when the profile is drawn from the joint sigma."""
    table = check_payoffs(payoffs)
    joint = check_sigma(sigma, table)
    return table.reshape(len(table), -1) @ joint.ravel()


def deviation_gains(payoffs: ArrayLike, sigma: ArrayLike) -> tuple[np.ndarray, ...]:
    """What a player gains who ignores the draw from sigma and always plays one policy: N arrays [k_player].

    gains[i][a] = E_{s ~ sigma}[payoffs[i](a, s_{-i}) - payoffs[i](s)]; the others' policies stay correlated
    [Moulin & Vial 1978, coarse correlated equilibrium].
    """
    table = check_payoffs(payoffs)
    joint = check_sigma(sigma, table)
    values = expected_payoffs(table, joint)
    gains = []
    for player, own in enumerate(table):
        others = joint.sum(axis=player, keepdims=True)
        rest = tuple(axis for axis in range(joint.ndim) if axis != player)
        gains.append((own * others).sum(axis=rest) - values[player])
    return tuple(gains)


def cce_gap(payoffs: ArrayLike, sigma: ArrayLike) -> float:
    """Sum over players of the best deviation's gain from a joint sigma; 0 exactly in coarse correlated equilibria.

    A player whom every deviation hurts stays, for a gain of 0: one player's loss makes up for no other's gain.

    >>> chicken = [[[0, 7], [2, 6]], [[0, 2], [7, 6]]]
    >>> cce_gap(chicken, [[0, 1 / 3], [1 / 3, 1 / 3]])  # a correlated equilibrium, as traffic lights are
    0.0
    """
    return float(sum(max(gains.max(), 0.0) for gains in deviation_gains(payoffs, sigma)))


def ce_gap(payoffs: ArrayLike, sigma: ArrayLike) -> float:
    """Sum over players and policies of the best swap's gain from a joint sigma; 0 exactly in correlated equilibria.

    A player told to play a may play b instead: E_{s ~ sigma}[1(s_i = a) (payoffs[i](b, s_{-i}) - payoffs[i](s))] for
    the best b of each a [Aumann 1974]. At least `cce_gap`.

    >>> rps = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> always_the_same = np.eye(3) / 3
    >>> cce_gap([rps, -rps], always_the_same), ce_gap([rps, -rps], always_the_same)  # told rock, paper wins
    (0.0, 2.0)
    """
    table = check_payoffs(payoffs)
    joint = check_sigma(sigma, table)
    gap = 0.0
    for player, own in enumerate(table):
        told, earned = (np.moveaxis(values, player, 0).reshape(joint.shape[player], -1) for values in (joint, own))
        playing = told @ earned.T  # [a, b] earnings of b where told a
        gap += float((playing.max(axis=1) - playing.diagonal()).sum())
    return gap


def nash_conv(payoffs: ArrayLike, sigma: ArrayLike) -> float:
    """Sum over players of the best response's gain against a product sigma; 0 exactly at Nash equilibria.

    Raises ValueError when sigma is correlated: its deviations say nothing about Nash, ask `cce_gap`.

    >>> nash_conv([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]], product([[0.75, 0.25], [0.5, 0.5]]))
    0.5
    """
    joint = check_sigma(sigma, check_payoffs(payoffs))
    apart = _from_product(joint)
    if apart > MASS_TOLERANCE:
        raise ValueError(
            f"nash_conv is asked of a product of independent strategies; this sigma is {apart:.3g} (L1) from the "
            f"product of its marginals: use cce_gap(payoffs, sigma)"
        )
    return cce_gap(payoffs, joint)


def exploitability(payoffs: ArrayLike, sigma: ArrayLike) -> float:
    """`nash_conv` per player: in a two-player zero-sum game, how far the average side is from its maximin value."""
    return nash_conv(payoffs, sigma) / np.ndim(sigma)


def payoff_spread(payoffs: ArrayLike) -> float:
    """The largest difference between two payoffs of one player; 0 where it is only rounding of them.

    >>> payoff_spread([[[0, 5]], [[-100, -98]]])
    5.0
    """
    table = check_payoffs(payoffs).reshape(len(np.asarray(payoffs)), -1)
    spreads = table.max(axis=1) - table.min(axis=1)
    real = spreads > 4 * np.finfo(float).eps * np.abs(table).max(axis=1)
    return float(np.where(real, spreads, 0.0).max())


def in_units_of_spread(payoffs: ArrayLike) -> np.ndarray:
    """Every player's payoffs moved and scaled into [-1/2, 1/2]; zeros where they differ by rounding alone.

    Neither changes what a player prefers, so that tolerances, rates and temperatures can be without units.
    """
    table = check_payoffs(payoffs)
    axes = tuple(range(1, table.ndim))
    low, high = table.min(axis=axes, keepdims=True), table.max(axis=axes, keepdims=True)
    half = high / 2 - low / 2  # the spread itself may be beyond float64
    real = half > 2 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    centred = np.where(real, table - (low / 2 + high / 2), 0.0)
    return centred / np.where(real, half, 1.0) / 2


def in_units_of_gain(payoffs: ArrayLike) -> np.ndarray:
    """The equivalent game in which nobody is handed anything by others, and every player's largest gain is 1.

    From each of a player's payoffs the middle of what its policies would earn there is taken; what is left, in
    [-1/2, 1/2], is per largest gain that the player can make by changing policy alone, and 0 where that is rounding. No
    gain changes but for its unit, so that tolerances, rates and step sizes can be without units.

    >>> in_units_of_gain([[[5, 1000], [10, 1001]], [[5, 10], [0, 1]]]).tolist()
    [[[-0.5, -0.1], [0.5, 0.1]], [[-0.5, 0.5], [-0.1, 0.1]]]
    """
    table = check_payoffs(payoffs)
    unit = np.zeros_like(table)
    for player, own in enumerate(table):
        low, high = own.min(axis=player, keepdims=True), own.max(axis=player, keepdims=True)
        largest = (high - low).max()
        if largest > ROUNDING * np.abs(own).max():
            unit[player] = (own - (low / 2 + high / 2)) / largest
    return unit


def real_array(values: ArrayLike, name: str, wanted: str, ragged: str = "pad or fill it") -> np.ndarray:
    """Any real, finite array-like as float64. Raises ValueError for others; `ragged` is what to do about those."""
    array = float_array(values, name, wanted, ragged)
    if not np.isfinite(array).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; got {array[where]} at {where}: evaluate or drop that entry")
    return array


def float_array(values: ArrayLike, name: str, wanted: str, ragged: str = "pad or fill it") -> np.ndarray:
    """The same of numbers that need not be finite; the one place where foreign numbers come in."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must be {wanted}; got masked entries: fill them")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # the last of tensors that require gradients
        raise ValueError(f"{name} must be {wanted}; got ragged or unreadable nesting: {ragged} ({error})") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be {wanted} of real numbers; got dtype {array.dtype}: convert it to float first")
    return array.astype(np.float64, copy=False)
