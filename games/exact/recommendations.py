"""What can be gained in the whole game by players who are told which policy of a joint mixture to play.

`parts[player]` [k_player, S_player] are a population's strategies; `sigma` is a joint distribution [k_1, ..., k_N],
from which a profile is drawn. Everyone is told its own policy k, and knows the others to play sigma(. | k).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from games.exact.populations import checked_populations, drawn_reach, own_moves, payoff_table
from games.exact.values import Response, responses_to
from games.tree import Tree
from games.versus import checked_sigma


def recommended_responses(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> list[dict[int, Response]]:
    """By player, for every own policy k that sigma ever draws, the best response to the others' sigma(. | k).

    These are the responses of JPSRO with correlated equilibria [Marris et al. 2021, arXiv:2106.09435]. To a product
    sigma they are all `mixture_responses`. Raises ValueError for a sigma that does not fit, and as `check_strategy`.
    """
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    moves = own_moves(tree, checked_populations(tree, parts))
    told: list[dict[int, Response]] = [{} for _ in parts]
    for k in range(max(joint.shape)):  # everyone's k-th policy in one go
        given = [_given(joint, player, k) for player in range(tree.players)]
        reach = np.stack([drawn_reach(moves, others, player) for player, others in enumerate(given)])
        for player, response in enumerate(responses_to(tree, reach)):
            if given[player].any():
                told[player][k] = response
    return told


def recommendation_gains(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> np.ndarray:
    """[N] what every player gains who, after each recommendation, plays the best response to what it tells.

    sum_k P(k) max(0, best response's value given k - value of playing k). Their sum is the full game's CE gap
    [Aumann 1974]: at least its CCE gap (`mixture_gains`), and for a product sigma its NashConv; exact. Raises
    ValueError as `recommended_responses`.

    >>> from games import make
    >>> chicken, drive, swerve = make("openspiel:matrix_cd").tree, [1, 0], [0, 1]
    >>> recommendation_gains(chicken, [[drive, swerve]] * 2, [[0, 1 / 2], [1 / 2, 0]])  # traffic lights
    array([0., 0.])
    """
    return np.array([sum(gains.values()) for gains in gains_when_told(tree, parts, sigma)])


def gains_when_told(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> list[dict[int, float]]:
    """By player and policy told, the terms of `recommendation_gains`."""
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    table, gains = payoff_table(tree, parts), []
    for player, told in enumerate(recommended_responses(tree, parts, joint)):
        mass, own = (np.moveaxis(array, player, 0) for array in (joint, table[player]))
        earned = {k: float(mass[k].sum()) * response.value for k, response in told.items()}
        gains.append({k: max(best - float((mass[k] * own[k]).sum()), 0.0) for k, best in earned.items()})
    return gains


def _given(joint: np.ndarray, player: int, k: int) -> np.ndarray:
    """The others' distribution [k of the others ...] given that a player draws policy k; zeros where it never does."""
    if k >= joint.shape[player]:
        return np.zeros(joint.shape[:player] + joint.shape[player + 1 :])
    mass = joint.take(k, axis=player)
    return mass / (mass.sum() or 1)
