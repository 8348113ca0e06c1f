"""Equilibria of two-player zero-sum games by one linear program over realisation plans."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array

from games.exact.populations import places, sequence_payoffs
from games.exact.strategies import behaviour_of_plan, check_tree
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

    max q_0  s.t.  x a realisation plan of the first player,  F' q <= A' x,
    where F x_1 = e says that x_1 is a plan of the second player: its plan is the dual solution. Payoffs may also sum
    to a constant other than zero. Raises ValueError for more players, or payoffs that do not cancel.

    >>> from games import make
    >>> round(zero_sum_equilibrium(make("openspiel:kuhn_poker").tree).value * 18, 9)
    -1.0
    """
    check_zero_sum(tree)
    payoffs = sequence_payoffs(tree)[0]
    scale = np.abs(payoffs.data).max(initial=0) or 1.0  # the solver's tolerances are absolute
    (plan, start), (other, other_start) = (_plan_constraints(tree, player) for player in range(2))
    sequences, states = payoffs.shape[0], other.shape[0]
    result = linprog(
        c=np.concatenate([np.zeros(sequences), -other_start]),
        A_ub=block_array([[-payoffs.T / scale, other.T]], format="csr"),
        b_ub=np.zeros(payoffs.shape[1]),
        A_eq=block_array([[plan, csr_array((plan.shape[0], states))]], format="csr"),
        b_eq=start,
        bounds=[(0, None)] * sequences + [(None, None)] * states,
        method="highs",
    )
    if not result.success:
        raise RuntimeError(
            f"the linear program of a finite game always has a solution, yet HiGHS says: {result.message}"
        )
    whole = np.zeros(tree.num_slots + 1)
    for player, own in enumerate((result.x[:sequences], -result.ineqlin.marginals)):
        whole[np.append(tree.slots(player), tree.num_slots)] = np.maximum(own, 0)
    return Equilibrium(float(-result.fun * scale), _normalised(tree, behaviour_of_plan(tree, whole)))


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


def _plan_constraints(tree: Tree, player: int) -> tuple[csr_array, np.ndarray]:
    """F [1 + I_player, S_player + 1] and e: x is a plan of the player's sequences where F x = e and x >= 0."""
    own, states = tree.slots(player), tree.states(player)
    row_of = np.searchsorted(states, tree.state_of[own])
    parents = places(tree, player)[tree.information.parent[states]]
    rows = np.concatenate([[0], 1 + row_of, 1 + np.arange(len(states))])
    columns = np.concatenate([[len(own)], np.arange(len(own)), parents])
    signs = np.concatenate([[1.0], np.ones(len(own)), -np.ones(len(states))])
    start = np.zeros(1 + len(states))
    start[0] = 1
    return csr_array((signs, (rows, columns)), shape=(1 + len(states), len(own) + 1)), start


def _normalised(tree: Tree, strategy: np.ndarray) -> np.ndarray:
    """The strategy without the solver's rounding."""
    total = np.add.reduceat(strategy, tree.information.offset[:-1])
    return strategy / total[tree.state_of]
