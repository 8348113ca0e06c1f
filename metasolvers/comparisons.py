"""Agents compared in pairs: tables of wins, how often one beats another, and antisymmetric matrices of advantage.

A win matrix [k, k] holds how many games the agent of the row won against the agent of the column, draws being half a
win for each. An evaluation matrix A [k, k] is antisymmetric: A[i, j] = -A[j, i] is what agent i earns against agent j.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from metasolvers.metagame import check_payoffs, float_array, real_array

CANCEL_TOLERANCE = 1e-6
"""How far A[i, j] + A[j, i] may be from 0, relative to the largest entry; float32 tables stay below it."""


SQUARE = "one square matrix [k, k], a row and a column for every agent"


class Interval(NamedTuple):
    """Estimates with the ends of their confidence intervals, three arrays of one shape.

    estimate: what is most likely, or measured.
    low, high: the ends.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def win_matrix(games: Iterable[tuple[Hashable, Hashable, float]], agents: Sequence[Hashable]) -> np.ndarray:
    """Match records -> wins [k, k], rows and columns in the order of `agents`.

    A game is (first, second, score): 1 where the first agent won, 0.5 for a draw, 0 where it lost.
    Raises ValueError for agents that are not listed, or listed twice, who play themselves, for what is no such game,
    and for scores not in [0, 1].

    >>> win_matrix([("ann", "bob", 1), ("bob", "ann", 0.5)], agents=["ann", "bob"])
    array([[0. , 1.5],
           [0.5, 0. ]])
    """
    index = agent_index(agents)
    wins = np.zeros((len(index), len(index)))
    for number, game in enumerate(games):
        first, second, score = _record(game, number)
        i, j = (position(agent, index) for agent in (first, second))
        if i == j:
            raise ValueError(f"a game needs two agents; in game {number}, {first!r} plays itself: leave that game out")
        if not 0 <= score <= 1:
            raise ValueError(
                f"the score of game {number} must be the first agent's, 1 for a win, 0.5 for a draw, 0 for a loss; "
                f"got {score}: rescale it into [0, 1]"
            )
        wins[i, j] += score
        wins[j, i] += 1 - score
    return wins


def wins_of_payoffs(payoffs: ArrayLike, games: ArrayLike = 1, win: float = 1.0, loss: float = -1.0) -> np.ndarray:
    """A payoff table [2, k, k] of one population in both seats -> wins [k, k], those from either seat added up.

    Payoffs are means over `games` (a number, or [k, k]) of what pays `win` to one player and `loss` to the other, or
    is shared out between them; games of a policy against itself are left out.
    Raises ValueError for payoffs that are not [2, k, k], do not sum to win + loss or leave [loss, win], and for counts
    of games that are negative or not [k, k].

    >>> wins_of_payoffs([[[0.0, 0.5], [0.0, 0.0]], [[0.0, -0.5], [0.0, 0.0]]], games=20)
    array([[ 0., 25.],
           [15.,  0.]])
    """
    first, second = _both_seats(payoffs)
    if not win > loss:
        raise ValueError(f"a win must be worth more than a loss; got win={win}, loss={loss}")
    scores = (np.stack([first, second]) - loss) / (win - loss)
    off = np.maximum(np.abs(scores - 0.5) - 0.5, np.abs(scores.sum(axis=0) - 1))
    if off.max() > CANCEL_TOLERANCE:
        _, i, j = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            f"payoffs must lie between loss={loss:g} and win={win:g} and sum to win + loss; at profile "
            f"({int(i)}, {int(j)}) the players get {first[i, j]:g} and {second[i, j]:g}: say what a win and a loss pay"
        )
    played = real_array(games, "games", "one number of games, or one for every profile [k, k]")
    if played.shape not in ((), first.shape) or played.min() < 0:
        raise ValueError(f"games must be non-negative, one number or [k, k] = {first.shape}; got {games!r}")
    counted = np.clip(scores, 0, 1) * played
    wins = counted[0] + counted[1].T
    np.fill_diagonal(wins, 0)
    return wins


def advantages(payoffs: ArrayLike) -> np.ndarray:
    """A payoff table [2, k, k] of one population in both seats -> the antisymmetric evaluation matrix A [k, k].

    A[i, j] is what policy i earns more than policy j, halved, where each sits in each seat half of the time; for
    symmetric zero-sum games that is the first player's payoff. Raises ValueError for payoffs that are not [2, k, k].

    >>> advantages([[[0, 3], [1, 0]], [[0, -3], [-1, 0]]])
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    first, second = _both_seats(payoffs)
    lead = (first - second) / 4
    return lead - lead.T


def advantages_of_wins(wins: ArrayLike) -> np.ndarray:
    """A win matrix [k, k] -> the antisymmetric A [k, k]: how often the row's agent beats the column's, less 1/2.

    Pairs that never met have 0, and would count as even: give `hodge` the numbers of games as weights, and they count
    for nothing. Raises ValueError for what is no win matrix.

    >>> from metasolvers.hodge import hodge
    >>> games = [("ann", "bob", 1), ("ann", "bob", 1), ("ann", "bob", 0.5), ("bob", "eve", 1), ("eve", "bob", 0.5)]
    >>> wins = win_matrix(games, agents=["ann", "bob", "eve"])  # ann and eve never met
    >>> hodge(advantages_of_wins(wins), weights=wins + wins.T).ratings.round(3)
    array([ 0.306, -0.028, -0.278])
    """
    return np.nan_to_num(win_probabilities(wins).estimate - 0.5)


def win_probabilities(wins: ArrayLike, confidence: float = 0.95) -> Interval:
    """How often the row's agent beats the column's, [k, k], with the score interval of each pair [Wilson 1927].

    Where two agents never met, and on the diagonal, the estimate is NaN and the interval [0, 1]. Draws vary less than
    wins and losses do, so that with draws the intervals are wide rather than narrow.
    Raises ValueError for what is no win matrix, and for a confidence not in (0, 1).

    >>> estimate, low, high = win_probabilities([[0, 8], [2, 0]])
    >>> f"{estimate[0, 1]:.2f} in [{low[0, 1]:.2f}, {high[0, 1]:.2f}]"
    '0.80 in [0.49, 0.94]'
    """
    won, z = check_wins(wins), quantile(confidence)
    games = won + won.T
    safe = np.where(games > 0, games, 1.0)
    centre = (won + z**2 / 2) / (games + z**2)
    reach = z * np.sqrt(won * (won.T / safe) + z**2 / 4) / (games + z**2)
    estimate = np.where(games > 0, won / safe, np.nan)
    return Interval(estimate, np.maximum(centre - reach, 0), np.minimum(centre + reach, 1))


def quantile(confidence: float) -> float:
    """z of a two-sided normal interval: 1.96 for 0.95. Raises ValueError for a confidence not in (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a share in (0, 1), such as 0.95; got {confidence}")
    return float(ndtri(0.5 + confidence / 2))


def two_player(matrix: ArrayLike, name: str = "matrix") -> np.ndarray:
    """The zero-sum game [2, m, n] in which the row player earns matrix [m, n].

    Raises ValueError, under this name, for what is no matrix of finite real numbers, or has no entry.
    """
    row = real_array(matrix, name, "one matrix [m, n]")
    if row.ndim != 2 or row.size == 0:
        raise ValueError(f"{name} must be [m, n] with at least one row and one column; got shape {row.shape}")
    return np.stack([row, -row])


def check_wins(wins: ArrayLike, name: str = "wins") -> np.ndarray:
    """The win matrix as float64 [k, k].

    Raises ValueError, under this name, for what is ragged, complex, not finite, empty, not square, negative or not 0 on
    its diagonal.
    """
    won = check_square(wins, name)
    if won.min() < 0:
        i, j = _worst(-won)
        raise ValueError(f"{name} must be non-negative counts; got {won[i, j]:g} at ({i}, {j})")
    if won.diagonal().any():
        agent = int(np.abs(won.diagonal()).argmax())
        raise ValueError(
            f"{name} must be 0 on the diagonal; got {won[agent, agent]:g} at ({agent}, {agent}): games of an agent "
            f"against itself compare nobody, leave them out"
        )
    return won


def check_antisymmetric(matrix: ArrayLike) -> np.ndarray:
    """The evaluation matrix A as float64 [k, k], made exactly antisymmetric: (A - A^T) / 2.

    NaN on the diagonal, where nobody plays, counts as 0. Raises ValueError for what else is not finite, for what is
    ragged, complex, empty or not square, and, with the worst entry, where A[i, j] + A[j, i] is more than
    CANCEL_TOLERANCE of the largest entry.
    """
    table = float_array(matrix, "matrix", SQUARE)
    if table.ndim == 2:
        itself = np.eye(len(table), table.shape[1], dtype=bool)
        table = np.where(np.isnan(table) & itself, 0.0, table)
    table = check_square(table, "matrix")
    size = np.abs(table).max() or 1.0
    scaled = table / size
    i, j = _worst(np.abs(scaled + scaled.T))
    if abs(scaled[i, j] + scaled[j, i]) > CANCEL_TOLERANCE:
        raise ValueError(
            f"matrix must be antisymmetric, A[i, j] = -A[j, i]; got {table[i, j]:g} at ({i}, {j}) and {table[j, i]:g} "
            f"at ({j}, {i}): take advantages_of_wins(wins) of a win matrix, advantages(payoffs) of a payoff table"
        )
    return (table - table.T) / 2


def check_square(matrix: ArrayLike, name: str) -> np.ndarray:
    """A matrix of finite real numbers as float64 [k, k], k >= 1. Raises ValueError, with its name, for any other."""
    table = real_array(matrix, name, SQUARE)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
        raise ValueError(
            f"{name} must be [k, k], a row and a column for every agent, k >= 1; got shape {table.shape}: "
            f"list the same agents on both sides"
        )
    return table


def agent_index(agents: Sequence[Hashable]) -> dict[Any, int]:
    """Each agent's place in the list. Raises ValueError for an empty list, and for agents listed twice."""
    index = {agent: place for place, agent in enumerate(agents)}
    if len(index) != len(agents) or not index:
        raise ValueError(f"agents must be at least one, each listed once; got {list(agents)}")
    return index


def position(agent: Hashable, index: Mapping[Any, int]) -> int:
    """An agent's place. Raises ValueError, with the nearest names, for one that is not there."""
    if agent not in index:
        names = {str(known): known for known in index}
        near = [names[name] for name in get_close_matches(str(agent), names)] or list(index)
        raise ValueError(f"no agent {agent!r}: did you mean {' or '.join(map(repr, near))}?")
    return index[agent]


def _record(game: Sequence, number: int) -> tuple[Hashable, Hashable, float]:
    """The two agents and the score of a game."""
    try:
        first, second, score = game
        return first, second, float(score)
    except (TypeError, ValueError):
        raise ValueError(
            f"game {number} must be (first agent, second agent, score), the score a number; got {game!r}: write "
            f"('ann', 'bob', 1) where ann won"
        ) from None


def _both_seats(payoffs: ArrayLike) -> np.ndarray:
    table = check_payoffs(payoffs)
    if len(table) != 2 or table.shape[1] != table.shape[2]:
        raise ValueError(
            f"payoffs must be [2, k, k], the same k policies in both seats; got shape {table.shape}: "
            f"evaluate one population against itself"
        )
    return table


def _worst(values: np.ndarray) -> tuple[int, int]:
    i, j = np.unravel_index(values.argmax(), values.shape)
    return int(i), int(j)
