"""How good a trained response is in a game with a tree: exactly, beside the best there is."""

from itertools import islice
from typing import NamedTuple

import numpy as np

from games.exact import (
    TabularPolicy,
    best_responses,
    cfr,
    expected_returns,
    part_of_mixture,
    profile,
    tabulate,
    uniform,
)
from games.game import Policy
from games.policies import joint_probabilities
from games.tree_game import TreeGame
from marl.recurrent import RecurrentPolicy

CFR_ITERATES = (1, 3, 10, 30, 100)
"""Of counterfactual regret minimisation: their average strategies, from uniform to near equilibrium, mixed evenly."""
OPPONENTS = ("uniform", "cfr")


def population(game: TreeGame, name: str) -> list[list[Policy]]:
    """For every seat the policies of one of OPPONENTS, which are mixed evenly."""
    strategies = [uniform(game.tree)]
    if name == "cfr":
        averages = list(islice(cfr(game.tree), max(CFR_ITERATES)))
        strategies = [averages[count - 1] for count in CFR_ITERATES]
    return [
        [TabularPolicy.of(game, player, strategy[game.tree.slots(player)]) for strategy in strategies]
        for player in range(game.tree.players)
    ]


class Found(NamedTuple):
    """What a response earns in expectation, and what the best one does."""

    value: float
    best: float

    @property
    def gap(self) -> float:
        return self.best - self.value


def found(game: TreeGame, policy: Policy, seat: int, populations: list[list[Policy]]) -> Found:
    """A policy's expected return in a seat against even mixtures of the others' populations, beside the best one's."""
    tree = game.tree
    parts = []
    for player, policies in enumerate(populations):
        rows = np.stack([tabulate(game, other, player) for other in policies])
        parts.append(part_of_mixture(tree, player, rows, np.full(len(rows), 1 / len(rows))))
    best = best_responses(tree, profile(tree, parts))[seat].value
    if isinstance(policy, RecurrentPolicy):
        parts[seat] = remembered(game, policy, seat)
    else:
        parts[seat] = tabulate(game, policy, seat)
    return Found(float(expected_returns(tree, profile(tree, parts))[seat]), float(best))


def remembered(game: TreeGame, policy: RecurrentPolicy, player: int) -> np.ndarray:
    """[S_player] what a policy with a recurrent core plays, once it has seen the steps that lead to each state.

    It sees a step whoever's move that is, as in lanes, and what it has seen must tell a state's histories no further
    apart: then its memory is the same after all of them. Raises ValueError where it does.
    """
    tree, nodes = game.tree, game.tree.nodes
    part, seen = np.zeros(tree.num_slots), dict[int, tuple[int, ...]]()
    for node in np.flatnonzero(nodes.player == player).tolist():
        state, views = int(nodes.information[node]), _views(game, node, player)
        if seen.setdefault(state, views) != views:
            raise ValueError(f"histories of {tree.keys[state]!r} look different in {game.name}: play episodes instead")
    for state, views in seen.items():
        slots = slice(tree.information.offset[state], tree.information.offset[state + 1])
        actions = tree.information.actions[slots]
        legal = np.zeros((1, game.choices), bool)
        legal[0, actions] = True
        memory = policy.start(1)
        for view in views:
            _, memory = policy.act(
                game.sight.rows[view][None], None, memory, np.zeros((1, policy.noise_size), np.float32)
            )
        part[slots] = joint_probabilities(policy.head, memory[0], (legal,), (game.choices,))[0, actions]
    return part[tree.slots(player)]


def _views(game: TreeGame, node: int, player: int) -> tuple[int, ...]:
    """The rows that a player has seen at a node, from the first step on."""
    nodes, views = game.tree.nodes, []
    while True:
        if nodes.player[node] >= 0:
            views.append(int(game.sight.views[player, node]))
        if not node:
            return tuple(reversed(views))
        node = int(game.tree.parents[node])
