"""Counterfactual regret minimisation, as generators of average strategies."""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from games.exact.strategies import plans, uniform
from games.exact.values import fold, others_reach, slot_payoffs
from games.tree import Tree


def cfr(tree: Tree) -> Iterator[np.ndarray]:
    """Counterfactual regret minimisation [Zinkevich et al. 2007]: the average strategy [S] after every iteration.

    Players update one after the other. In two-player zero-sum games the average comes ever closer to an equilibrium; in
    others it need not.
    """
    return _averages(tree, lambda regrets: regrets, lambda iteration: 1.0)


def cfr_plus(tree: Tree) -> Iterator[np.ndarray]:
    """CFR+ [Tammelin 2014]: the average strategy [S] after every iteration.

    As `cfr`, but regrets stay above zero, and iteration t has weight t in the average.

    >>> from itertools import islice
    >>> from games import make
    >>> from games.exact import nash_conv
    >>> kuhn = make("openspiel:kuhn_poker").tree
    >>> *_, average = islice(cfr_plus(kuhn), 100)
    >>> nash_conv(kuhn, average) < 0.01
    True
    """
    return _averages(tree, lambda regrets: np.maximum(regrets, 0), float)


def _averages(
    tree: Tree, kept: Callable[[np.ndarray], np.ndarray], weight: Callable[[int], float]
) -> Iterator[np.ndarray]:
    """Average strategies, of what is kept of the regrets after each update, and a weight for every iteration."""
    even = uniform(tree)
    regrets, total = np.zeros(tree.num_slots), np.zeros(tree.num_slots)
    owns = [tree.slots(player) for player in range(tree.players)]
    for iteration in count(1):
        for own in owns:
            strategy = _shares(tree, np.maximum(regrets, 0), even)  # regret matching [Hart & Mas-Colell 2000]
            gains, own_reach = _regrets(tree, strategy)
            regrets[own] = kept(regrets[own] + gains[own])
            total[own] += weight(iteration) * (own_reach * strategy)[own]
        yield _shares(tree, total, even)


def _regrets(tree: Tree, strategy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[S] counterfactual regrets of every slot, and [S] how likely its owner's moves come to its state."""
    plan = plans(tree, strategy)
    earned = slot_payoffs(tree, others_reach(tree, plan))

    def worth(values: np.ndarray, slots: slice, starts: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values * strategy[slots], starts)

    values = fold(tree, earned, worth)
    offset = tree.information.offset[:-1]
    return values - np.add.reduceat(values * strategy, offset)[tree.state_of], plan[tree.slot_parents]


def _shares(tree: Tree, weights: np.ndarray, even: np.ndarray) -> np.ndarray:
    """[S] non-negative weights as shares of their information state's; `even` ones where all are zero."""
    total = np.add.reduceat(weights, tree.information.offset[:-1])[tree.state_of]
    return np.divide(weights, total, out=even.copy(), where=total > 0)
