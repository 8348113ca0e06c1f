"""Whom best responses are trained against: from the empirical game to joint distributions, one a response.

PSRO [Lanctot et al. 2017] asks for one response a player, to the whole meta-strategy; others of its family for one to
what each of some policies meets. A function of this kind, and a meta-solver, are what tells the members apart.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from games.spelling import unknown
from games.versus import Populations
from metasolvers import marginal
from metasolvers.heuristics import rectified_weights

PLAYED = 1e-9
"""Policies of no larger probability are never played, but for rounding."""


class Target(NamedTuple):
    """What one best response is trained against, and is to improve on."""

    sigma: np.ndarray  # [k_1, ..., k_N] joint distribution; the others' part is played, the player's own improved on
    own: int | None = None
    """The player's policy that training may go on from; its latest for None."""
    populations: Populations | None = None
    """Whose policies sigma is of; the populations for None."""


Targets = Callable[[np.ndarray, np.ndarray, int], list[Target]]
"""(payoffs [N, k_1, ..., k_N], sigma [k_1, ..., k_N], player) -> a target for every response."""


def mixture(payoffs: np.ndarray, sigma: np.ndarray, player: int) -> list[Target]:
    """One response, to the meta-strategy.

    With a Nash equilibrium as sigma this is the double oracle algorithm, with a uniform one fictitious play; PRD,
    alpha-PSRO, and JPSRO with coarse correlated equilibria [Marris et al. 2021, arXiv:2106.09435], which cannot know
    what it was told to play, are meta-solvers with it too.
    """
    return [Target(sigma)]


def recommendations(payoffs: np.ndarray, sigma: np.ndarray, player: int) -> list[Target]:
    """A response for each policy k that the player is ever told to play, to what the others play then: sigma(. | k).

    JPSRO with correlated equilibria [Marris et al. 2021, arXiv:2106.09435]. Where players choose independently, being
    told tells nothing, and all of these are responses to the same.

    >>> sigma = np.array([[0.5, 0.25], [0.0, 0.25]])
    >>> [(target.own, target.sigma.round(2).tolist()) for target in recommendations(np.zeros((2, 2, 2)), sigma, 0)]
    [(0, [[0.67, 0.33], [0.0, 0.0]]), (1, [[0.0, 0.0], [0.0, 1.0]])]
    """
    told = []
    for policy, probability in enumerate(marginal(sigma, player)):
        if probability > PLAYED:
            given = np.zeros_like(sigma)
            mass = sigma.take(policy, axis=player)
            np.moveaxis(given, player, 0)[policy] = mass / mass.sum()
            told.append(Target(given, policy))
    return told


def rectified(payoffs: np.ndarray, sigma: np.ndarray, player: int) -> list[Target]:
    """A response for each policy of the Nash equilibrium, to those of the other's that it does not lose to.

    PSRO_rN [Balduzzi et al. 2019, arXiv:1901.08106, algorithm 4]; the equilibrium is that of the payoffs, as of the
    meta-solver zero_sum_nash. Raises ValueError for more than two players, or payoffs that do not cancel.

    >>> rock_paper_scissors = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> payoffs = np.stack([rock_paper_scissors, -rock_paper_scissors])
    >>> [target.sigma[target.own].round(2).tolist() for target in rectified(payoffs, np.full((3, 3), 1 / 9), 0)]
    [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    found = []
    for policy, weights in enumerate(rectified_weights(payoffs)[player]):
        if weights.any():
            met = np.zeros(payoffs.shape[1:])
            np.moveaxis(met, player, 0)[policy] = weights
            found.append(Target(met, policy))
    return found


class Entry(NamedTuple):
    """Registered targets, and the games they are for."""

    find: Targets
    takes: Literal["any", "zero_sum"] = "any"


TARGETS: dict[str, Entry] = {
    "mixture": Entry(mixture),
    "recommendations": Entry(recommendations),
    "rectified": Entry(rectified, takes="zero_sum"),
}


def targets(name: str) -> Entry:
    """The targets of that name. Raises ValueError, with near matches, for one that is not registered."""
    if name not in TARGETS:
        raise unknown("targets", name, TARGETS)
    return TARGETS[name]
