"""Behavioural strategies of a game tree, and their realisation plans.

A `strategy` [S] gives every slot (a legal action of an information state) its probability: one vector holds all
players. One player's part of it, over `tree.slots(player)`, is a `part` [S_player]; leading axes are batches.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from games.tree import Tree

MASS_TOLERANCE = 1e-6
"""How far the probabilities of an information state may be from summing to one."""


def uniform(tree: Tree) -> np.ndarray:
    """[S] every legal action with equal probability."""
    return 1 / np.diff(tree.information.offset)[tree.state_of]


def check_strategy(tree: Tree, strategy: ArrayLike, player: int | None = None) -> np.ndarray:
    """The strategy as float64 [..., S], or a player's part of one as [..., S_player].

    Raises ValueError for another shape, and for an information state whose probabilities are negative or do not sum to
    one; it is named.
    """
    array = np.asarray(strategy, np.float64)
    states = np.arange(len(tree.keys)) if player is None else tree.states(player)
    sizes = np.diff(tree.information.offset)[states]
    if array.ndim == 0 or array.shape[-1] != sizes.sum():
        whose = "a strategy" if player is None else f"player {player}'s part of a strategy"
        raise ValueError(
            f"{whose} must give each of {sizes.sum()} legal actions of the {len(states)} information states its "
            f"probability, got shape {array.shape}"
        )
    if not len(states) or not array.size:
        return array
    total = np.add.reduceat(array, np.cumsum(sizes) - sizes, axis=-1)
    lowest = np.minimum.reduceat(array, np.cumsum(sizes) - sizes, axis=-1)
    wrong = ~((np.abs(total - 1) <= MASS_TOLERANCE) & (lowest >= 0))  # nan is wrong too
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"the probabilities of an information state must be non-negative and sum to 1; those of "
            f"{tree.keys[states[where[-1]]]!r} sum to {total[where]}, the smallest is {lowest[where]}"
        )
    return array


def profile(tree: Tree, parts: Sequence[ArrayLike]) -> np.ndarray:
    """The strategy [S] whose players play `parts[player]` [S_player]. Raises ValueError as `check_strategy`."""
    if len(parts) != tree.players:
        raise ValueError(f"a profile has one part for each of {tree.players} players, got {len(parts)}")
    strategy = np.empty(tree.num_slots)
    for player, part in enumerate(parts):
        checked = check_strategy(tree, part, player)
        if checked.ndim != 1:
            raise ValueError(f"a profile takes one strategy a player, got shape {checked.shape} from player {player}")
        strategy[tree.slots(player)] = checked
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


def behaviour(tree: Tree, plan: np.ndarray) -> np.ndarray:
    """The strategy [..., S] of a plan [..., S + 1]; uniform in information states that its owner never comes to."""
    above = plan[..., tree.slot_parents]
    reached = above > 0
    return np.where(reached, plan[..., :-1] / np.where(reached, above, 1), uniform(tree))


def reach(tree: Tree, strategy: ArrayLike) -> np.ndarray:
    """[n] probability of coming to every node when all play a strategy [S]. Raises ValueError as `check_strategy`."""
    plan = plans(tree, check_strategy(tree, strategy))
    return tree.chance_reach * plan[tree.last].prod(axis=0)


def mixed(tree: Tree, player: int, parts: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """The part [S_player] that plays like drawing one of `parts` [k, S_player] by `weights` [k] before every episode.

    Each is weighed by how likely its own moves come to an information state [Kuhn 1953]; where none comes, it is
    uniform. Raises ValueError for parts or weights that are none.
    """
    rows = np.atleast_2d(check_strategy(tree, parts, player))
    mass = np.asarray(weights, np.float64)
    if mass.shape != rows.shape[:1] or not (mass.min(initial=0) >= 0 and abs(mass.sum() - 1) <= MASS_TOLERANCE):
        raise ValueError(f"weights must be a distribution over {len(rows)} strategies, got {mass}")
    own = tree.slots(player)
    whole = np.broadcast_to(uniform(tree), (len(rows), tree.num_slots)).copy()
    whole[:, own] = rows
    return behaviour(tree, mass @ plans(tree, whole))[own]
