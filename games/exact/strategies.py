"""Behavioural strategies of a game tree, and their realisation plans.

A `strategy` [S] gives every slot (a legal action of an information state) its probability: one vector holds all
players. One player's part of it, over `tree.slots(player)`, is a `part` [S_player]; a population's are [k, S_player].
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from games.policies import MASS_TOLERANCE
from games.tree import Tree


def uniform(tree: Tree) -> np.ndarray:
    """[S] every legal action with equal probability. Raises ValueError as `check_tree`."""
    check_tree(tree)
    return 1 / np.diff(tree.information.offset)[tree.state_of]


def check_tree(tree: Tree) -> None:
    """Raises ValueError for what is no tree, such as a game that has one."""
    if not isinstance(tree, Tree):
        advice = "pass its .tree" if hasattr(tree, "tree") else "games.openspiel and games.tree.Builder make them"
        raise ValueError(f"exact values are of a games.tree.Tree, got {type(tree).__name__}: {advice}")


def check_strategy(tree: Tree, strategy: ArrayLike, player: int | None = None) -> np.ndarray:
    """The strategy as float64 [S], or a player's part of one as [S_player].

    Raises ValueError for another shape, and for an information state whose probabilities are negative or do not sum to
    one; it is named.
    """
    check_tree(tree)
    array = np.asarray(strategy, np.float64)
    if array.ndim != 1:
        raise ValueError(f"wanted one strategy, a vector; got shape {array.shape}: take one after the other")
    return check_population(tree, array[None], player)[0]


def check_population(tree: Tree, strategies: ArrayLike, player: int | None = None) -> np.ndarray:
    """Strategies as float64 [k, S], or a player's parts of some as [k, S_player]; raises as `check_strategy`."""
    check_tree(tree)
    if player is not None and player not in range(tree.players):
        raise ValueError(f"player must be one of 0..{tree.players - 1}, got {player!r}")
    rows = np.asarray(strategies, np.float64)
    states = np.arange(len(tree.keys)) if player is None else tree.states(player)
    sizes = np.diff(tree.information.offset)[states]
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != sizes.sum():
        whose = "a strategy" if player is None else f"player {player}'s part of a strategy"
        got = rows.shape[1:] if len(rows) == 1 else rows.shape
        raise ValueError(
            f"{whose} must give each of {sizes.sum()} legal actions of the {len(states)} information states its "
            f"probability; got shape {got}"
        )
    if not len(states):
        return rows
    total = np.add.reduceat(rows, np.cumsum(sizes) - sizes, axis=1)
    lowest = np.minimum.reduceat(rows, np.cumsum(sizes) - sizes, axis=1)
    wrong = ~((np.abs(total - 1) <= MASS_TOLERANCE) & (lowest >= 0))  # nan is wrong too
    if wrong.any():
        row, state = np.argwhere(wrong)[0]
        raise ValueError(
            f"the probabilities of an information state must be non-negative and sum to 1; those of "
            f"{tree.keys[states[state]]!r} sum to {total[row, state]}, the smallest is {lowest[row, state]}"
        )
    return rows


def profile(tree: Tree, parts: Sequence[ArrayLike]) -> np.ndarray:
    """The strategy [S] whose players play `parts[player]` [S_player]. Raises ValueError as `check_strategy`."""
    if len(parts) != tree.players:
        raise ValueError(f"a profile has one part for each of {tree.players} players, got {len(parts)}")
    strategy = np.empty(tree.num_slots)
    for player, part in enumerate(parts):
        strategy[tree.slots(player)] = check_strategy(tree, part, player)
    return strategy


def plans(tree: Tree, strategy: np.ndarray) -> np.ndarray:
    """Realisation plans [..., S + 1] of a strategy [..., S] [von Stengel 1996].

    plan[slot] is the probability that the slot's owner makes all of its own moves up to there; plan[S] = 1.
    """
    plan = np.empty((*strategy.shape[:-1], tree.num_slots + 1))
    plan[..., -1] = 1
    for depth in tree.depths:
        plan[..., depth.slots] = strategy[..., depth.slots] * plan[..., depth.slot_parents]
    return plan


def behaviour_of_plan(tree: Tree, plan: np.ndarray) -> np.ndarray:
    """The strategy [..., S] of a plan [..., S + 1]; uniform in information states that its owner never comes to."""
    above = plan[..., tree.slot_parents]
    reached = above > 0
    return np.where(reached, plan[..., :-1] / np.where(reached, above, 1), uniform(tree))


def reach(tree: Tree, strategy: ArrayLike) -> np.ndarray:
    """[n] probability of coming to every node when all play a strategy [S]. Raises ValueError as `check_strategy`."""
    plan = plans(tree, check_strategy(tree, strategy))
    return tree.chance_reach * plan[tree.last].prod(axis=0)


def part_of_mixture(tree: Tree, player: int, parts: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """The part [S_player] that plays like drawing one of `parts` [k, S_player] by `weights` [k] before every episode.

    Each is weighed by how likely its own moves come to an information state [Kuhn 1953]; where none comes, it is
    uniform. Raises ValueError for parts or weights that are none.
    """
    rows = check_population(tree, parts, player)
    mass = np.asarray(weights, np.float64)
    if mass.shape != rows.shape[:1] or not (mass.min(initial=0) >= 0 and abs(mass.sum() - 1) <= MASS_TOLERANCE):
        raise ValueError(f"weights must be a distribution over {len(rows)} strategies, got {mass}")
    own = tree.slots(player)
    whole = np.broadcast_to(uniform(tree), (len(rows), tree.num_slots)).copy()
    whole[:, own] = rows
    return behaviour_of_plan(tree, mass @ plans(tree, whole))[own]
