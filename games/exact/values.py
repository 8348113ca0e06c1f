"""Exact values of strategies in a game tree, of any number of players and general-sum.

Everything is asked of realisation plans: a sweep down the players' own moves makes them, the nodes that pay are looked
up, and a sweep up gives every information state its value. Values are undiscounted sums over an episode, per player.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from games.exact.strategies import check_strategy, plans
from games.tree import Tree


class Response(NamedTuple):
    """A best response, and what it earns."""

    value: float
    part: np.ndarray  # [S_player] pure: the first best action of every information state


def expected_returns(tree: Tree, strategy: ArrayLike) -> np.ndarray:
    """[N] what everyone earns when all play a strategy [S]. Raises ValueError as `check_strategy`.

    >>> from games import make
    >>> from games.exact import uniform
    >>> kuhn = make("openspiel:kuhn_poker").tree
    >>> expected_returns(kuhn, uniform(kuhn))
    array([ 0.125, -0.125])
    """
    payoffs = tree.payoffs
    return payoffs.weighted @ plans(tree, check_strategy(tree, strategy))[payoffs.last].prod(axis=0)


def best_responses(tree: Tree, strategy: ArrayLike) -> list[Response]:
    """Every player's best response to the others' play of a strategy [S]. Raises ValueError as `check_strategy`."""
    return responses_to(tree, others_reach(tree, plans(tree, check_strategy(tree, strategy))))


def deviation_gains(tree: Tree, strategy: ArrayLike) -> np.ndarray:
    """[N] what a best response earns more than a player's own part of the strategy [S], the others' staying.

    Raises ValueError as `check_strategy`.
    """
    plan = plans(tree, check_strategy(tree, strategy))
    earned = slot_payoffs(tree, others_reach(tree, plan))
    best = _players(tree, earned, fold(tree, earned, _best))
    played = earned[: tree.num_slots] * plan[:-1]
    own = np.bincount(tree.owner_of, played, tree.players) + earned[tree.num_slots :]
    return np.maximum(best - own, 0)  # rounding may leave an equilibrium just below


def nash_conv(tree: Tree, strategy: ArrayLike) -> float:
    """Sum over players of `deviation_gains`: 0 exactly at Nash equilibria.

    >>> from games import make
    >>> from games.exact import uniform
    >>> leduc = make("openspiel:leduc_poker").tree
    >>> round(nash_conv(leduc, uniform(leduc)), 6)
    4.747222
    """
    return float(deviation_gains(tree, strategy).sum())


def exploitability(tree: Tree, strategy: ArrayLike) -> float:
    """`nash_conv` per player; for constant-sum games, where it is how far the average player is from its value."""
    return nash_conv(tree, strategy) / tree.players


def others_reach(tree: Tree, plan: np.ndarray) -> np.ndarray:
    """[N, E] for every player, the probability of the others' moves to each node that pays."""
    moves = plan[tree.payoffs.last]
    if len(moves) == 2:
        return moves[::-1]
    return np.stack([np.delete(moves, player, axis=0).prod(axis=0) for player in range(len(moves))])


def slot_payoffs(tree: Tree, reach: np.ndarray) -> np.ndarray:
    """[S + N] what is paid to its owner after a slot and before the owner's next move; the last N, before any move.

    `reach` [N, E] is the probability of the others' moves; the owner's own moves are taken as made.
    """
    return np.bincount(tree.paid_slots, (tree.payoffs.weighted * reach).ravel(), tree.num_slots + tree.players)


def fold(tree: Tree, earned: np.ndarray, value: Callable[[np.ndarray, slice, np.ndarray], np.ndarray]) -> np.ndarray:
    """[S] value of every slot, and what can be earned after it, its owner's later moves included.

    `value(values of the slots, those slots, first slot of each state)` says what an information state is worth.
    """
    values = earned[: tree.num_slots].copy()
    for depth in reversed(tree.depths[1:]):
        worth = value(values[depth.slots], depth.slots, depth.starts)
        values[depth.parents] += np.add.reduceat(worth, depth.groups)
    return values


def responses_to(tree: Tree, reach: np.ndarray) -> list[Response]:
    """Every player's best response, given the probability [N, E] of the others' moves to each node that pays.

    Being linear, that may come from a correlated mixture too.
    """
    earned = slot_payoffs(tree, reach)
    values = fold(tree, earned, _best)
    best = _players(tree, earned, values)
    pure = _first_best(tree, values)
    return [Response(float(best[player]), pure[tree.slots(player)]) for player in range(tree.players)]


def _best(values: np.ndarray, slots: slice, starts: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(values, starts)


def _players(tree: Tree, earned: np.ndarray, values: np.ndarray) -> np.ndarray:
    """[N] value of the whole game to players who choose their best slots."""
    total = earned[tree.num_slots :].copy()
    if tree.depths:
        first = tree.depths[0]
        worth = np.maximum.reduceat(values[first.slots], first.starts)
        np.add.at(total, tree.information.owner[: len(worth)], worth)
    return total


def _first_best(tree: Tree, values: np.ndarray) -> np.ndarray:
    """[S] 1 for the first slot of the highest value in each information state, 0 for the others."""
    best = np.maximum.reduceat(values, tree.information.offset[:-1])[tree.state_of] if len(values) else values
    candidates = np.flatnonzero(values == best)
    _, first = np.unique(tree.state_of[candidates], return_index=True)
    pure = np.zeros(tree.num_slots)
    pure[candidates[first]] = 1
    return pure
