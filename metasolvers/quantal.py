"""Logit quantal response equilibria of N players, and the Nash equilibrium that they lead to.

Player i plays policy a with probability proportional to exp(rationality * u_ia), where u_ia is what a earns against the
others' equilibrium strategies [McKelvey & Palfrey 1995, Games and Economic Behavior 10:6]. The principal branch begins
at rationality 0, where everybody plays everything alike, and ends at a Nash equilibrium.

It is followed point by point in z = (log-probabilities of all policies [K], rationality per payoff spread) along its
arc, so that it may turn back and probabilities may vanish [Turocy 2005, Games and Economic Behavior 51:243]. Where
symmetry makes it fork, it goes straight on: a game that treats players or policies alike gets an answer that does.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from metasolvers.bimatrix import Strategies
from metasolvers.contract import NASH, Certificate, certified
from metasolvers.metagame import check_payoffs, in_units_of_gain, payoff_spread, product

RESOLVED = 1e8
"""Rationality per payoff spread where a path ends: gains of 1e-7 spreads are then acted upon, and rounding is not."""
BEYOND = 1e12
"""How far `logit_nash` goes on where the end of a path is no equilibrium yet."""
FIRST_STEP = 0.1
MAX_STEPS = 10_000
"""Steps after which a path is given up."""
FARTHEST = 0.01
"""By how much a step may miss a log-probability; with 0.1, other branches that pass close by are mistaken for it."""
RESIDUAL = 1e-6
"""How far, in log-probabilities, an answer may be from the quantal response to it."""
SUPPORTS = (1e-3, 1e-5, 1e-7)
"""Probabilities from which on policies are tried as the support of the equilibrium at the end of a path."""


class Point(NamedTuple):
    """A quantal response equilibrium.

    rationality: per payoff unit.
    strategies: every player's, [k_player]; product(strategies) makes a sigma of them.
    """

    rationality: float
    strategies: Strategies


class Earnings(NamedTuple):
    """A game as the path sees it: what policies earn, in units in which payoffs differ by about 1."""

    sizes: tuple[int, ...]  # k_i
    of: Callable[[Strategies], tuple[np.ndarray, np.ndarray]]
    """Strategies -> what every policy earns against them, [K], and the derivatives by all probabilities, [K, K]."""


def logit_path(payoffs: ArrayLike) -> Iterator[Point]:
    """The principal branch of payoffs [N, k_1, ..., k_N], point by point, from rationality 0 to 1e8 / payoff spread.

    product(point.strategies) makes a sigma of a point.
    Raises ValueError for malformed payoffs, and NotConverged where the branch is lost on the way.

    >>> dilemma = [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]
    >>> defects = [point.strategies[0][1] for point in logit_path(dilemma)]
    >>> float(defects[0]), float(defects[-1])
    (0.5, 1.0)
    """
    table = check_payoffs(payoffs)
    spread = payoff_spread(table) or 1.0
    branch = _branch("logit_path", table, RESOLVED)
    return (Point(float(z[-1] / spread), _strategies(table.shape[1:], z)) for z in branch)


def quantal_response(payoffs: ArrayLike, rationality: float) -> np.ndarray:
    """Quantal response equilibrium of the principal branch: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    `rationality` is per payoff unit, as published; where the branch passes it more than once, the first time counts.
    Up to 1e8 / `payoff_spread` it is within reach; beyond, rounding counts for more than payoffs do, and the branch may
    be lost: see `logit_nash` for where it ends.
    Raises ValueError for malformed payoffs and negative rationality, and NotConverged where the branch is lost.

    >>> quantal_response([[3, 2, 0]], rationality=np.log(2)).round(4)  # one player: probabilities double per unit
    array([0.6154, 0.3077, 0.0769])
    """
    table = check_payoffs(payoffs)
    if not 0 <= rationality < np.inf:
        raise ValueError(
            f"rationality must be finite and >= 0, per payoff unit; got {rationality}: see also logit_nash"
        )
    *_, z = _branch("quantal_response", table, rationality * payoff_spread(table))
    return product(_strategies(table.shape[1:], z))


def logit_nash(payoffs: ArrayLike) -> np.ndarray:
    """Nash equilibrium at the end of the principal branch: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    Here rationality is per largest gain of each player: neither its units nor what others hand it matter. The end of
    the path tells who plays what; there, all that is played is made to earn the same by Newton's method.
    Raises ValueError for malformed payoffs, and NotConverged where no answer has a small enough `nash_conv`.

    >>> logit_nash([[[3, 0], [0, 2]], [[3, 0], [0, 2]]])  # the equilibrium that risks less
    array([[1., 0.],
           [0., 0.]])
    """
    unit = in_units_of_gain(payoffs)
    sigma = product(equilibrium(_game(unit)))
    advice = "the game is degenerate to rounding; try mixed_integer_nash for two players"
    return certified("logit_nash", unit, sigma, NASH, advice)


def equilibrium(game: Earnings) -> Strategies:
    """The best Nash equilibrium that is found at the end of a game's principal branch."""
    for z in _path(game, BEYOND):
        if z[-1] >= RESOLVED:
            found = _polished(game, z)
            if _gap(game, found) <= NASH.tolerance:
                return found
    return _polished(game, z)


def _gap(game: Earnings, strategies: Strategies) -> float:
    """Sum over players of what the best policy earns more than the strategy."""
    earned, _ = game.of(strategies)
    return float(
        sum(
            max(earned[part].max() - strategy @ earned[part], 0.0)
            for part, strategy in zip(_parts(game.sizes), strategies, strict=True)
        )
    )


def _game(unit: np.ndarray) -> Earnings:
    """A table of payoffs [N, k_1, ..., k_N] whose spread is 1."""
    return Earnings(unit.shape[1:], partial(_earned, unit))


def _unit_spread(table: np.ndarray) -> np.ndarray:
    """Payoffs in units of their spread; one unit for all players, as they share the rationality."""
    spread = payoff_spread(table)
    if not spread:
        return np.zeros_like(table)
    return (table - table.min(axis=tuple(range(1, table.ndim)), keepdims=True)) / spread


def _parts(sizes: tuple[int, ...]) -> list[slice]:
    """Where each player's policies stand among all K."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _strategies(sizes: tuple[int, ...], z: np.ndarray) -> Strategies:
    return tuple(np.exp(log_softmax(z[part])) for part in _parts(sizes))


def _branch(solver: str, table: np.ndarray, end: float) -> Iterator[np.ndarray]:
    """The path up to a rationality, and NotConverged, in the name of `solver`, where it does not get there."""
    game = _game(_unit_spread(table))
    for z in _path(game, end):
        yield z
    left = np.abs(_equations(game, np.append(z[:-1], end))[0]).max()
    residual = Certificate("residual of the log-probabilities", lambda *_: float(left), RESIDUAL)
    sigma = product(_strategies(game.sizes, z))
    advice = (
        f"the branch was lost at {z[-1]:.3g} per payoff spread (rounding allows for up to {RESOLVED:.0e}): "
        f"use logit_nash for the Nash equilibrium that it leads to"
    )
    certified(solver, table, sigma, residual, advice)


def _path(game: Earnings, end: float) -> Iterator[np.ndarray]:
    """Points z [K + 1] of the principal branch from rationality 0 to `end`, unless it is lost before.

    Steps go on in the direction of the last one, and are twice as long at most: as long as they miss by a third of
    FARTHEST. The first time that one would pass the end, it lands there.
    """
    z = np.concatenate([*(np.full(policies, -np.log(policies)) for policies in game.sizes), [0.0]])
    yield z
    up = np.append(np.zeros(len(z) - 1), 1.0)
    along, step = up, FIRST_STEP
    for _ in range(MAX_STEPS):
        if z[-1] == end:
            return
        landing = along[-1] > 0 and z[-1] + step * along[-1] >= end
        length = (end - z[-1]) / along[-1] if landing else step
        found, missed = _corrected(game, z + length * along, up if landing else along)
        if found is not None:
            moved = found - z
            length = np.linalg.norm(moved)
            along, z = moved / length, found
            yield z
        elif length < 1e-10 * max(1, z[-1]):
            return
        step = length * np.clip(np.sqrt(FARTHEST / 3 / missed), 0.5, 2.0)


def _corrected(game: Earnings, z: np.ndarray, across: np.ndarray) -> tuple[np.ndarray | None, float]:
    """The point of the branch near z on the plane normal to `across`, by Newton's method; and how far z missed it.

    No point where it is farther than FARTHEST. Log-probabilities below -1 are measured relative to themselves.
    """
    missed = 0.0
    for iteration in range(8):
        off, slopes = _equations(game, z)
        if np.abs(off).max() <= 1e-10 + 8 * np.finfo(float).eps * abs(z[-1]):
            return z, max(missed, 1e-9)
        rows = np.vstack([slopes, across])
        size = np.abs(rows).max(axis=1)
        try:
            move = np.linalg.solve(rows / size[:, None], np.append(-off, 0.0) / size)
        except np.linalg.LinAlgError:
            break
        farthest = (np.abs(move) / np.maximum(1, np.abs(z)))[:-1].max()
        missed = max(missed, farthest)
        if not farthest <= FARTHEST / 2**iteration:
            break
        z = z + move
    return None, max(missed, FARTHEST)


def _equations(game: Earnings, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is 0 on the branch, [K], and its derivative by z, [K, K + 1].

    log p_a - log p_r - rationality (u_a - u_r) for a player's policies a, and 1 - sum(p) for r, the one played most:
    against that one, differences lose no digits.
    """
    logs, rationality, parts = z[:-1], z[-1], _parts(game.sizes)
    played = np.exp(logs)
    earned, per = game.of(tuple(played[part] for part in parts))
    off = np.empty(len(logs))
    slopes = np.column_stack([np.eye(len(logs)) - rationality * per * played, -earned])
    for part in parts:
        most = part.start + logs[part].argmax()
        off[part] = logs[part] - logs[most] - rationality * (earned[part] - earned[most])
        slopes[part] -= slopes[most].copy()
        off[most] = 1 - played[part].sum()
        slopes[most, part] = -played[part]
    return off, slopes


def _earned(unit: np.ndarray, strategies: Strategies) -> tuple[np.ndarray, np.ndarray]:
    """What every policy earns against the others, [K], and the derivative by all probabilities, [K, K]."""
    parts, axes = _parts(unit.shape[1:]), list(range(unit.ndim))
    if len(unit) == 1:
        return unit[0], np.zeros((unit.size, unit.size))
    per = np.zeros((parts[-1].stop,) * 2)
    for i, j in combinations(range(len(unit)), 2):
        others: list = [term for k in axes[:-1] if k not in (i, j) for term in (strategies[k], [k + 1])]
        pairs = np.einsum(unit, axes, *others, [0, i + 1, j + 1])  # [N, k_i, k_j]
        per[parts[i], parts[j]], per[parts[j], parts[i]] = pairs[i], pairs[j].T
    following = zip(parts, [*parts[1:], parts[0]], [*strategies[1:], strategies[0]], strict=True)
    return np.concatenate([per[part, other] @ strategy for part, other, strategy in following]), per


def _polished(game: Earnings, z: np.ndarray) -> Strategies:
    """The most exact of the equilibria close to the end of a path."""
    end = _strategies(game.sizes, z)
    equalised = [_equalised(game, np.concatenate(end), least) for least in SUPPORTS]
    candidates = [strategies for strategies in (*equalised, end) if strategies is not None]
    return min(candidates, key=partial(_gap, game))


def _equalised(game: Earnings, start: np.ndarray, least: float) -> Strategies | None:
    """Strategies near `start` in which the policies of at least that probability earn the same, and are all.

    None where that takes one far away. Newton's method with the smallest moves, so that copies stay alike.
    """
    support = start >= least
    player = np.repeat(np.arange(len(game.sizes)), game.sizes)[support]
    owner = np.float64(player[:, None] == np.arange(len(game.sizes)))  # [S, N]
    played = np.where(support, start, 0.0)
    for _ in range(20):
        earned, per = game.of(tuple(played[part] for part in _parts(game.sizes)))
        mean = owner.T @ earned[support] / owner.sum(axis=0)
        off = np.concatenate([earned[support] - owner @ mean, owner.T @ played[support] - 1])
        rows = np.block([[per[np.ix_(support, support)], -owner], [owner.T, np.zeros((len(game.sizes),) * 2)]])
        move = np.linalg.lstsq(rows, -off, rcond=1e-10)[0][: len(player)]
        played[support] += move
        if not np.abs(move).max() > 1e-15 or np.abs(played - start).max() > 10 * max(least, 1e-3):
            break
    if np.abs(played - start).max() > 10 * max(least, 1e-3) or played.min() < -1e-9:
        return None
    return tuple(np.maximum(played[part], 0) / np.maximum(played[part], 0).sum() for part in _parts(game.sizes))
