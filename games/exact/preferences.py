"""Preference-based best responses: what beats most of the cases drawn from a mixture, by however little.

A best response by value may gain much in a few cases. Alpha-rank asks how often deviations gain, and some of its
policies are never found by value-based responses to it [Muller et al. 2020, arXiv:1909.12823].
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from games.exact.populations import checked_populations, own_moves, payoff_table, places
from games.exact.strategies import check_tree
from games.tree import Tree
from games.versus import checked_sigma

MOST_PURE = 100_000
"""Pure strategies of a player that are tried, one after the other."""
ROUNDING = 1e-12
"""Payoffs that differ by no more than this share of the largest reward are equal."""
BLOCK = 4096
"""Pure strategies that are compared at once."""


class Preferred(NamedTuple):
    """A preference-based best response, and how often it is preferred."""

    value: float
    """Probability, by sigma, of a profile in which it earns strictly more than the player's own policy."""
    part: np.ndarray  # [S_player] pure: the first action where its own moves never lead


def preference_response(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike, player: int) -> Preferred:
    """The pure s for which payoff(s, others) > payoff(k, others) in most profiles (k, others) of sigma.

    The oracle PBR of alpha-PSRO [Muller et al. 2020, arXiv:1909.12823]. Of several such s it is one that plays like
    none of the player's own strategies, if there is one, which convergence needs there (a novelty-bound oracle); of
    these the one that earns most against sigma. `parts` and sigma are as in `mixture_responses`. Raises ValueError as
    there, and as `check_enumerable`.

    >>> from games import make
    >>> rps = make("openspiel:matrix_rps").tree
    >>> preference_response(rps, [[[1, 0, 0]], [[1, 0, 0]]], [[1]], player=0)
    Preferred(value=1.0, part=array([0., 1., 0.]))
    """
    check_enumerable(tree, player)
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    plans, table = checked_populations(tree, parts), payoff_table(tree, parts)
    mass, held = (_by_policy(array, player) for array in (joint, table[player]))
    own, met = mass.any(axis=1), mass.any(axis=0)
    mass, held = mass[np.ix_(own, met)], held[np.ix_(own, met)]
    earned = _sequence_payoffs(tree, plans, player)[met]
    pure = pure_plans(tree, player)
    threshold = held + ROUNDING * np.abs(tree.nodes.rewards).max()
    preferred, value = np.empty(len(pure)), np.empty(len(pure))
    for begin in range(0, len(pure), BLOCK):
        block = slice(begin, begin + BLOCK)
        paid = pure[block] @ earned.T  # [block, profiles of the others]
        preferred[block] = sum(
            ((paid > bar) * weights).sum(axis=1) for bar, weights in zip(threshold, mass, strict=True)
        )
        value[block] = paid @ mass.sum(axis=0)
    best = np.flatnonzero(preferred >= preferred.max() - ROUNDING)
    known = {plan.tobytes() for plan in plans[player]}
    new = np.array([pure[i].astype(float).tobytes() not in known for i in best])
    best = best[new] if new.any() else best
    chosen = best[np.argmax(value[best])]
    return Preferred(float(preferred[chosen]), _part(tree, player, pure[chosen]))


def check_enumerable(tree: Tree, player: int) -> None:
    """Raises ValueError for a player with more than `MOST_PURE` pure strategies, and tells how many there are."""
    number = count_pure(tree, player)
    if number > MOST_PURE:
        told = f"{number}" if number < 10**12 else f"about 1e{len(str(number)) - 1}"
        raise ValueError(
            f"a preference-based best response is found among all pure strategies, of at most {MOST_PURE}; player "
            f"{player} has {told}: take best responses by value"
        )


def count_pure(tree: Tree, player: int) -> int:
    """Number of a player's reduced pure strategies: those that differ only where its own moves never lead are one.

    >>> from games import make
    >>> kuhn = make("openspiel:kuhn_poker").tree
    >>> count_pure(kuhn, 0), count_pure(kuhn, 1)  # (bet, or pass and then bet or pass)^3, 2^6
    (27, 64)
    """
    below = _states_below(tree, player)

    def plays(slot: int) -> int:
        return math.prod(sum(map(plays, slots)) for slots in below.get(slot, []))

    return plays(tree.num_slots)


def pure_plans(tree: Tree, player: int) -> np.ndarray:
    """Realisation plans [count_pure, S_player + 1] bool of a player's reduced pure strategies, over its own sequences.

    The first comes first that plays the first action in the first information state. Ask `check_enumerable` before.
    """
    below, place = _states_below(tree, player), places(tree, player)
    nothing = np.zeros((1, len(tree.slots(player)) + 1), bool)

    def plays(slot: int) -> np.ndarray:
        """All that can be played from a slot on, the slot included."""
        ways = [np.concatenate([plays(after) for after in slots]) for slots in below.get(slot, [])]
        rows = reduce(lambda some, more: (some[:, None] | more).reshape(-1, more.shape[1]), ways, nothing).copy()
        rows[:, place[slot]] = True
        return rows

    return plays(tree.num_slots)


def _states_below(tree: Tree, player: int) -> dict[int, list[range]]:
    """By slot (S before the first move), the slots of each of the player's information states that come next.

    Raises ValueError as `check_tree`, and for a player who is not there.
    """
    check_tree(tree)
    if player not in range(tree.players):
        raise ValueError(f"player must be one of 0..{tree.players - 1}, got {player!r}")
    below: dict[int, list[range]] = {}
    parent, offset = tree.information.parent.tolist(), tree.information.offset.tolist()
    for state in tree.states(player).tolist():
        below.setdefault(parent[state], []).append(range(offset[state], offset[state + 1]))
    return below


def _by_policy(array: np.ndarray, player: int) -> np.ndarray:
    """[k_player, profiles of the others, in C order] of an array [k_1, ..., k_N]."""
    return np.moveaxis(array, player, 0).reshape(array.shape[player], -1)


def _sequence_payoffs(tree: Tree, plans: Sequence[np.ndarray], player: int) -> np.ndarray:
    """[profiles of the others, in C order, S_player + 1] what a player is paid after its own sequences."""
    payoffs, moves = tree.payoffs, own_moves(tree, plans)
    others = [moves[other] for other in range(tree.players) if other != player]
    reach = reduce(lambda some, more: (some[:, None] * more).reshape(-1, more.shape[1]), others, np.ones((1, 1)))
    place = places(tree, player)[payoffs.last[player]]
    paid = payoffs.weighted[player] * reach
    return np.stack([np.bincount(place, row, len(tree.slots(player)) + 1) for row in paid])


def _part(tree: Tree, player: int, plan: np.ndarray) -> np.ndarray:
    """The part [S_player] of a pure plan."""
    part, place = np.zeros(len(plan) - 1), places(tree, player)
    for states in _states_below(tree, player).values():
        for slots in states:
            own = place[slots]
            part[own[np.argmax(plan[own])]] = 1  # the first, where none is played
    return part
