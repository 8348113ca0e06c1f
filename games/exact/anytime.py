"""The mixtures of two populations that lose least in the whole game, not only among the policies found."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from games.exact.populations import checked_populations, sequence_payoffs
from games.exact.zero_sum import Constraints, Maximin, check_zero_sum, maximin, part_of_plan, plan_constraints
from games.tree import Tree


def least_exploitable(tree: Tree, parts: Sequence[ArrayLike]) -> np.ndarray:
    """Sigma [k_0, k_1] of least NashConv in a two-player zero-sum game, of all products over these populations.

    Either player mixes its strategies `parts[player]` [k_player, S_player] so that it earns most against the best
    response of the whole game: the restricted distribution of anytime double oracle and anytime PSRO [McAleer et al.
    2022, arXiv:2201.07700]. NashConv never rises as populations grow. One linear program a player, over the weights.
    Raises ValueError as `check_zero_sum` and `check_strategy`.

    >>> from games import make
    >>> rps = make("openspiel:matrix_rps").tree
    >>> rock, paper = [1, 0, 0], [0, 1, 0]
    >>> least_exploitable(rps, [[rock, paper], [rock]])  # among these paper wins, but scissors would beat it
    array([[0.33333333],
           [0.66666667]])
    """
    weights = [np.maximum(_held(tree, parts, player).own, 0) for player in range(tree.players)]
    return np.multiply.outer(*(mass / mass.sum() for mass in weights))


def free_opponent(tree: Tree, parts: Sequence[ArrayLike], player: int) -> np.ndarray:
    """The part [S_other] that the other one plays where only this player is held to its population.

    It is the other's part of an equilibrium of that game, of which `least_exploitable` is this player's. A best
    response to it gains, and so is new, unless the population is as good as all strategies: anytime double oracle adds
    these [McAleer et al. 2022, arXiv:2201.07700]. Best responses to the other's mixture may all be known before that.
    Raises ValueError as `least_exploitable`.

    >>> from games import make
    >>> rps = make("openspiel:matrix_rps").tree
    >>> free_opponent(rps, [[[1, 0, 0]], [[1, 0, 0]]], 0).tolist()  # who can only play rock meets paper
    [0.0, 1.0, 0.0]
    """
    return part_of_plan(tree, 1 - player, _held(tree, parts, player).other)


def _held(tree: Tree, parts: Sequence[ArrayLike], player: int) -> Maximin:
    """The equilibrium between a player's mixtures and all that the other could play."""
    check_zero_sum(tree)
    plan = checked_populations(tree, parts)[player]
    first, second = sequence_payoffs(tree)
    payoffs = second.T if player else first
    mixtures = Constraints(csr_array(np.ones((1, len(plan)))), np.ones(1))
    return maximin(csr_array(plan @ payoffs), mixtures, plan_constraints(tree, 1 - player))
