"""The mixtures of two populations that lose least in the whole game, not only among the policies found."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from games.exact.populations import checked_populations, sequence_payoffs
from games.exact.zero_sum import Constraints, check_zero_sum, maximin, plan_constraints
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
    check_zero_sum(tree)
    plans = checked_populations(tree, parts)
    first, second = sequence_payoffs(tree)
    weights = [_safest(tree, 0, plans[0], first), _safest(tree, 1, plans[1], second.T)]
    return np.multiply.outer(*weights)


def _safest(tree: Tree, player: int, plans: np.ndarray, payoffs: csr_array) -> np.ndarray:
    """[k] the weights of a player's strategies that earn most against a best response; payoffs [own, other's]."""
    mixture = Constraints(csr_array(np.ones((1, len(plans)))), np.ones(1))
    weights = np.maximum(maximin(csr_array(plans @ payoffs), mixture, plan_constraints(tree, 1 - player)).own, 0)
    return weights / weights.sum()
