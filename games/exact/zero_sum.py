"""Equilibria of two-player zero-sum games by one linear program over realisation plans."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array

from games.exact.populations import places, sequence_payoffs
from games.exact.strategies import behaviour_of_plan, check_tree, plans, profile, uniform
from games.tree import TERMINAL, Tree

CANCEL_TOLERANCE = 1e-9
"""How far what an episode pays to both may be from a constant, in units of the largest payoff."""


class Equilibrium(NamedTuple):
    """An equilibrium, and what it is worth."""

    value: float
    """What the first player earns."""
    strategy: np.ndarray  # [S]


def zero_sum_equilibrium(tree: Tree) -> Equilibrium:
    """A Nash equilibrium of a two-player zero-sum game by linear programming [Koller, Megiddo & von Stengel 1996].

    Both players' realisation plans are the `maximin` of the payoffs over their sequences. Payoffs may also sum to a
    constant other than zero. Raises ValueError for more players, or payoffs that do not cancel.

    >>> from games import make
    >>> round(zero_sum_equilibrium(make("openspiel:kuhn_poker").tree).value * 18, 9)
    -1.0
    """
    check_zero_sum(tree)
    first, second = (plan_constraints(tree, player) for player in range(2))
    solved = maximin(sequence_payoffs(tree)[0], first, second)
    parts = [part_of_plan(tree, player, plan) for player, plan in enumerate((solved.own, solved.other))]
    return Equilibrium(solved.value, profile(tree, parts))


class Constraints(NamedTuple):
    """What may be played: every x >= 0 with matrix @ x = total."""

    matrix: csr_array
    total: np.ndarray


class Maximin(NamedTuple):
    """The solution of `maximin`, up to the solver's rounding."""

    value: float
    own: np.ndarray  # [m]
    other: np.ndarray  # [n] the other's part of the equilibrium: the dual solution


def maximin(payoffs: csr_array, own: Constraints, other: Constraints) -> Maximin:
    """The x that earns most against the worst y: max over x of min over y of x @ payoffs [m, n] @ y.

    max e' q  s.t.  x allowed by `own`,  F' q <= payoffs' x,  where F y = e are the constraints of the `other`.
    """
    scale = np.abs(payoffs.data).max(initial=0) or 1.0  # the solver's tolerances are absolute
    (m, n), rows = payoffs.shape, other.matrix.shape[0]
    result = linprog(
        c=np.concatenate([np.zeros(m), -other.total]),
        A_ub=block_array([[-payoffs.T / scale, other.matrix.T]], format="csr"),
        b_ub=np.zeros(n),
        A_eq=block_array([[own.matrix, csr_array((own.matrix.shape[0], rows))]], format="csr"),
        b_eq=own.total,
        bounds=[(0, None)] * m + [(None, None)] * rows,
        method="highs",
    )
    if not result.success:
        raise RuntimeError(
            f"the linear program of a finite game always has a solution, yet HiGHS says: {result.message}"
        )
    return Maximin(float(-result.fun * scale), result.x[:m], -result.ineqlin.marginals)


def check_zero_sum(tree: Tree) -> None:
    """Raises ValueError unless the game is of two players, whose payoffs cancel or sum to a constant in every episode.

    >>> from games import make
    >>> check_zero_sum(make("openspiel:kuhn_poker").tree)
    """
    check_tree(tree)
    if tree.players != 2:
        raise ValueError(f"zero-sum games of two players are wanted, got a game of {tree.players}")
    nodes = tree.nodes
    total = nodes.rewards.sum(axis=1)
    for begin, end in zip(nodes.levels[1:-1], nodes.levels[2:], strict=True):
        total[begin:end] += total[tree.parents[begin:end]]
    ends = total[nodes.player == TERMINAL]
    if np.ptp(ends) > CANCEL_TOLERANCE * np.abs(nodes.rewards).max():
        raise ValueError(
            f"zero-sum games are wanted, whose payoffs cancel, or sum to a constant; here episodes pay both players "
            f"between {ends.min():g} and {ends.max():g} together"
        )


def plan_constraints(tree: Tree, player: int) -> Constraints:
    """F [1 + I_player, S_player + 1] and e: x is a plan of the player's sequences where F x = e and x >= 0."""
    own, states = tree.slots(player), tree.states(player)
    row_of = np.searchsorted(states, tree.state_of[own])
    parents = places(tree, player)[tree.information.parent[states]]
    rows = np.concatenate([[0], 1 + row_of, 1 + np.arange(len(states))])
    columns = np.concatenate([[len(own)], np.arange(len(own)), parents])
    signs = np.concatenate([[1.0], np.ones(len(own)), -np.ones(len(states))])
    start = np.zeros(1 + len(states))
    start[0] = 1
    return Constraints(csr_array((signs, (rows, columns)), shape=(1 + len(states), len(own) + 1)), start)


def part_of_plan(tree: Tree, player: int, plan: np.ndarray) -> np.ndarray:
    """The part [S_player] of a plan [S_player + 1] over the player's own sequences, without the solver's rounding."""
    own, whole = tree.slots(player), plans(tree, uniform(tree))
    whole[np.append(own, tree.num_slots)] = np.maximum(plan, 0)
    strategy = behaviour_of_plan(tree, whole)
    total = np.add.reduceat(strategy, tree.information.offset[:-1])
    return (strategy / total[tree.state_of])[own]
