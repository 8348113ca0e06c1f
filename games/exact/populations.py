"""Exact values of whole populations: payoff tables, and what can be gained against mixtures of their strategies.

`parts[player]` [k_player, S_player] are a population's strategies; `sigma` is a joint distribution [k_1, ..., k_N].
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from games.exact.strategies import check_population, part_of_mixture, plans, profile, uniform
from games.exact.values import Response, responses_to
from games.policies import MASS_TOLERANCE
from games.tree import Tree
from games.versus import checked_sigma


def sequence_payoffs(tree: Tree) -> tuple[csr_array, csr_array]:
    """Both players' payoff matrices over sequences, [S_0 + 1, S_1 + 1] each: x_0 @ A_i @ x_1 is what player i earns.

    The sequences of a player are its slots in order, and last the empty one: `own_plans`. Raises ValueError for games
    that are not of two players [von Stengel 1996].
    """
    if tree.players != 2:
        raise ValueError(f"sequence-form matrices are of two players, got a game of {tree.players}: use payoff_table")
    rows, columns = (places(tree, player)[tree.payoffs.last[player]] for player in range(2))
    shape = tuple(len(tree.slots(player)) + 1 for player in range(2))
    first, second = (csr_array((paid, (rows, columns)), shape=shape) for paid in tree.payoffs.weighted)
    return first, second


def own_plans(tree: Tree, player: int, parts: ArrayLike) -> np.ndarray:
    """Realisation plans [k, S_player + 1] of one player's strategies [k, S_player], over its own sequences."""
    rows = check_population(tree, parts, player)
    own = tree.slots(player)
    whole = np.broadcast_to(uniform(tree), (len(rows), tree.num_slots)).copy()
    whole[:, own] = rows
    return plans(tree, whole)[:, np.append(own, tree.num_slots)]


def payoff_table(tree: Tree, parts: Sequence[ArrayLike]) -> np.ndarray:
    """Exact payoffs [N, k_1, ..., k_N] of populations: for two players, one sparse product.

    Raises ValueError as `check_strategy`.
    """
    populations = checked_populations(tree, parts)
    if tree.players == 2:
        return np.stack([populations[0] @ (paid @ populations[1].T) for paid in sequence_payoffs(tree)])
    moves = own_moves(tree, populations)
    sizes = [len(population) for population in populations]
    table = np.empty((tree.players, *sizes))
    for profile_of_first in np.ndindex(*sizes[:-1]):
        seen = np.prod([moves[player][i] for player, i in enumerate(profile_of_first)], axis=0)
        table[(slice(None), *profile_of_first)] = (tree.payoffs.weighted * seen) @ moves[-1].T
    return table


def mixture_responses(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> list[Response]:
    """Every player's best response to the others' mixture, which may be correlated; who responds is told no draws.

    Raises ValueError for a sigma that does not fit, and as `check_strategy`.
    """
    _check_number(tree, parts)
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    moves = own_moves(tree, checked_populations(tree, parts))
    reach = [drawn_reach(moves, joint.sum(axis=player), player) for player in range(tree.players)]
    return responses_to(tree, np.stack(reach))


def mixture_gains(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> np.ndarray:
    """[N] what every player gains by its best response to sigma over what it earns in sigma.

    Their sum is the full game's CCE gap, and for a product sigma its NashConv; exact. Raises ValueError as
    `mixture_responses`.
    """
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    responses = mixture_responses(tree, parts, joint)
    earned = (payoff_table(tree, parts) * joint).reshape(tree.players, -1).sum(axis=1)
    return np.maximum([response.value for response in responses] - earned, 0)


def behaviour_of_mixture(tree: Tree, parts: Sequence[ArrayLike], sigma: ArrayLike) -> np.ndarray:
    """The strategy [S] that plays like drawing everyone's strategy from a product sigma before every episode.

    Raises ValueError for a correlated sigma, which no strategies of independent players play: ask `mixture_gains` what
    deviations from it gain.
    """
    _check_number(tree, parts)
    joint = checked_sigma([np.asarray(population) for population in parts], sigma)
    axes = range(joint.ndim)
    marginals = [joint.sum(axis=tuple(axis for axis in axes if axis != player)) for player in axes]
    independent = marginals[0]
    for marginal in marginals[1:]:
        independent = np.multiply.outer(independent, marginal)
    apart = float(np.abs(joint - independent).sum())
    if apart > MASS_TOLERANCE:
        raise ValueError(
            f"independent players can only play a product of their own mixtures; this sigma is {apart:.3g} (L1) from "
            f"the product of its marginals: use mixture_gains or mixture_responses, which keep it correlated"
        )
    return profile(tree, [part_of_mixture(tree, player, parts[player], marginals[player]) for player in axes])


def checked_populations(tree: Tree, parts: Sequence[ArrayLike]) -> list[np.ndarray]:
    """Everyone's realisation plans [k_player, S_player + 1]. Raises ValueError as `check_strategy`."""
    _check_number(tree, parts)
    return [own_plans(tree, player, population) for player, population in enumerate(parts)]


def _check_number(tree: Tree, parts: Sequence[ArrayLike]) -> None:
    if len(parts) != tree.players:
        raise ValueError(f"there must be a population for each of {tree.players} players, got {len(parts)}")


def places(tree: Tree, player: int) -> np.ndarray:
    """[S + 1] where a slot stands among its player's own sequences; only the player's slots, and S, have a place."""
    own = tree.slots(player)
    places = np.zeros(tree.num_slots + 1, np.int64)
    places[own], places[-1] = np.arange(len(own)), len(own)
    return places


def own_moves(tree: Tree, populations: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For every player [k, E], the probability of its own moves to each node that pays; of plans [k, S_player + 1]."""
    return [
        population[:, places(tree, player)[tree.payoffs.last[player]]] for player, population in enumerate(populations)
    ]


def drawn_reach(moves: Sequence[np.ndarray], drawn: np.ndarray, player: int) -> np.ndarray:
    """[E] probability of the other players' `own_moves` when their strategies are drawn together.

    `drawn` [k of the others ...] is their joint distribution.
    """
    reach = drawn[..., None]
    for other in reversed([other for other in range(len(moves)) if other != player]):
        reach = (reach * moves[other]).sum(axis=-2)
    return np.broadcast_to(reach, moves[0].shape[1:])
