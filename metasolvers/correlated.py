"""Correlated and coarse correlated equilibria: the best for an objective, the flattest, the most mixed.

A mediator draws a joint profile and tells every player its own part. In a correlated equilibrium (CE) nobody gains by
playing something else than told [Aumann 1974]; in a coarse one (CCE) nobody gains by deciding for one policy before
being told [Moulin & Vial 1978]. Both are distributions under linear constraints. Meta-solvers for PSRO, as in JPSRO
[Marris et al. 2021, Multi-agent training beyond zero-sum with correlated equilibrium meta-solvers].
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from metasolvers.contract import COARSE, CORRELATED, Certificate, certified
from metasolvers.metagame import check_payoffs
from metasolvers.selection import max_entropy, max_gini, max_linear

Constraints = Callable[[np.ndarray], csr_array]


def max_welfare_ce(payoffs: ArrayLike) -> np.ndarray:
    """A CE of the largest sum of payoffs: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    It is a vertex of the set of CE; where several are best, the order of policies decides. Raises ValueError for
    malformed payoffs, and NotConverged with the answer and its ce_gap where payoffs are too close to ties for it to be
    exact.

    >>> chicken = [[[0, 7], [2, 6]], [[0, 2], [7, 6]]]  # dare or yield; both daring costs most
    >>> max_welfare_ce(chicken)
    array([[0.  , 0.25],
           [0.25, 0.5 ]])
    """
    return _best("max_welfare_ce", payoffs, _welfare(payoffs), _conditional, CORRELATED)


def max_welfare_cce(payoffs: ArrayLike) -> np.ndarray:
    """A CCE of the largest sum of payoffs: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    It is a vertex of the set of CCE; where several are best, the order of policies decides. Raises ValueError for
    malformed payoffs, and NotConverged with the answer and its cce_gap where payoffs are too close to ties for it to be
    exact.
    """
    return _best("max_welfare_cce", payoffs, _welfare(payoffs), _coarse, COARSE)


def best_ce(payoffs: ArrayLike, objective: ArrayLike) -> np.ndarray:
    """A CE of the largest expected objective [k_1, ..., k_N], by linear programming: payoffs -> sigma [k_1, ..., k_N].

    It is a vertex of the set of CE; where several are best, the order of policies decides. Minus an objective gives the
    worst. Raises ValueError for malformed payoffs or objectives, and NotConverged with the answer and its ce_gap where
    payoffs are too close to ties for it to be exact.

    >>> battle_of_the_sexes = np.array([[[3, 0], [0, 2]], [[2, 0], [0, 3]]])
    >>> best_ce(battle_of_the_sexes, -battle_of_the_sexes[0]).round(2)  # the first player's worst
    array([[0.24, 0.36],
           [0.16, 0.24]])
    """
    return _best("best_ce", payoffs, objective, _conditional, CORRELATED)


def best_cce(payoffs: ArrayLike, objective: ArrayLike) -> np.ndarray:
    """A CCE of the largest expected objective [k_1, ..., k_N]; all else as in `best_ce`, with the cce_gap."""
    return _best("best_cce", payoffs, objective, _coarse, COARSE)


def max_gini_ce(payoffs: ArrayLike) -> np.ndarray:
    """The CE of the largest Gini impurity 1 - sum sigma^2, which is unique [Marris et al. 2021].

    payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N]. Raises ValueError for malformed payoffs, and NotConverged with
    the answer and its ce_gap where payoffs are too close to ties for it to be exact.
    """
    return _selected("max_gini_ce", payoffs, max_gini, _conditional, CORRELATED)


def max_gini_cce(payoffs: ArrayLike) -> np.ndarray:
    """The CCE of the largest Gini impurity 1 - sum sigma^2, which is unique [Marris et al. 2021].

    payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N]. Raises ValueError for malformed payoffs, and NotConverged with
    the answer and its cce_gap where payoffs are too close to ties for it to be exact.
    """
    return _selected("max_gini_cce", payoffs, max_gini, _coarse, COARSE)


def max_entropy_ce(payoffs: ArrayLike) -> np.ndarray:
    """The CE of the largest entropy - sum sigma log sigma, which is unique [Ortiz, Schapire & Kakade 2007].

    payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N]; every profile that some CE plays has mass. Ties are
    exact, up to rounding, as in `max_entropy_nash`. Raises ValueError for malformed payoffs, and
    NotConverged with the answer and its ce_gap where payoffs are too close to ties for it to be exact.

    >>> chicken = [[[0, 7], [2, 6]], [[0, 2], [7, 6]]]
    >>> max_entropy_ce(chicken).round(4)
    array([[0.1483, 0.2967],
           [0.2967, 0.2583]])
    """
    return _selected("max_entropy_ce", payoffs, max_entropy, _conditional, CORRELATED)


def max_entropy_cce(payoffs: ArrayLike) -> np.ndarray:
    """The CCE of the largest entropy - sum sigma log sigma, which is unique [Ortiz, Schapire & Kakade 2007].

    payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N]; every profile that some CCE plays has mass. Ties are exact, up
    to rounding, as in `max_entropy_nash`. Raises ValueError for malformed payoffs, and NotConverged with the answer and
    its cce_gap where payoffs are too close to ties for it to be exact.
    """
    return _selected("max_entropy_cce", payoffs, max_entropy, _coarse, COARSE)


def _welfare(payoffs: ArrayLike) -> np.ndarray:
    return check_payoffs(payoffs).sum(axis=0)


def _best(
    solver: str, payoffs: ArrayLike, objective: ArrayLike, constraints: Constraints, certificate: Certificate
) -> np.ndarray:
    table = check_payoffs(payoffs)
    value = np.asarray(objective, dtype=np.float64)
    if value.shape != table.shape[1:] or not np.isfinite(value).all():
        raise ValueError(
            f"objective must hold a finite number for every joint profile, {table.shape[1:]}; got shape {value.shape}: "
            f"pass one like one player's payoffs"
        )
    return _selected(solver, table, lambda rows: max_linear(rows, value.ravel()), constraints, certificate)


def _selected(
    solver: str,
    payoffs: ArrayLike,
    select: Callable[[csr_array], np.ndarray],
    constraints: Constraints,
    certificate: Certificate,
) -> np.ndarray:
    table = check_payoffs(payoffs)
    _, exponent = np.frexp(np.abs(table).max())
    sigma = select(constraints(np.ldexp(table, -exponent))).reshape(table.shape[1:])  # neither tiny nor huge numbers
    return certified(solver, table, sigma, certificate, "some payoffs nearly tie: round them to what they tell")


def _conditional(table: np.ndarray) -> csr_array:
    """CE: a row for every policy told and other one played, over profiles [K]: what obeying earns more there."""
    blocks = []
    for player in range(len(table)):
        own, profiles = _by_policy(table, player)
        told, played = np.nonzero(~np.eye(len(own), dtype=bool))
        blocks.append(_sparse(_earned(own[told], own[played]), profiles[told], table[0].size))
    return csr_array(vstack(blocks))


def _coarse(table: np.ndarray) -> csr_array:
    """CCE: a row for every policy that a player may decide for, over profiles [K]: what obeying earns more there."""
    blocks = []
    for player in range(len(table)):
        own, profiles = _by_policy(table, player)
        gains = np.stack([_earned(own, decided).ravel() for decided in own])
        blocks.append(_sparse(gains, np.tile(profiles.ravel(), (len(own), 1)), table[0].size))
    return csr_array(vstack(blocks))


def _by_policy(table: np.ndarray, player: int) -> tuple[np.ndarray, np.ndarray]:
    """A player's payoffs [k, K / k] by own policy, and the numbers of their profiles in C order, likewise."""
    numbers = np.arange(table[player].size).reshape(table.shape[1:])
    own, profiles = (
        np.moveaxis(values, player, 0).reshape(values.shape[player], -1) for values in (table[player], numbers)
    )
    return own, profiles


def _earned(obeying: np.ndarray, deviating: np.ndarray) -> np.ndarray:
    """obeying - deviating, and 0 where that is only rounding of the payoffs."""
    gains = obeying - deviating
    return np.where(np.abs(gains) <= 4 * np.finfo(float).eps * np.abs(obeying).max(initial=0), 0.0, gains)


def _sparse(values: np.ndarray, columns: np.ndarray, size: int) -> csr_array:
    """Rows [m, size] whose entries in these columns [m, c] are the values [m, c]."""
    count, width = values.shape
    starts = np.arange(count + 1) * width
    rows = csr_array((values.ravel(), columns.ravel(), starts), shape=(count, size))
    rows.eliminate_zeros()
    return rows
