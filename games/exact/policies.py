"""Policies that play from lanes as strategies over information states, and strategies as policies that play."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from games.exact.strategies import check_strategy
from games.game import Array, Legal, Policy
from games.lanes import put_like, to_numpy
from games.policies import MASS_TOLERANCE, draw, joint_probabilities
from games.tree_game import TreeGame


def observations(game: TreeGame, player: int) -> np.ndarray:
    """[I_player, D] float32 what a player observes in each of its information states."""
    nodes, states = game.tree.nodes, game.tree.states(player)
    moving = np.flatnonzero(nodes.player == player)
    node_of = np.zeros(len(game.tree.keys), np.int64)
    node_of[nodes.information[moving]] = moving  # any of a state's nodes: they look the same
    return game.sight.rows[game.sight.views[player, node_of[states]]]


def tabulate(game: TreeGame, policy: Policy, player: int) -> np.ndarray:
    """[S_player] the part of a strategy that a policy plays, from one batch of all its information states.

    Raises ValueError for a policy that has memory, plays what is not legal, or does not tell its probabilities
    (`games.policies.joint_probabilities`).
    """
    tree, states = game.tree, game.tree.states(player)
    if player not in range(tree.players):
        raise ValueError(f"player must be one of 0..{tree.players - 1}, got {player!r}")
    if not hasattr(policy, "start"):
        advice = "games.exact.openspiel.from_openspiel takes OpenSpiel's"
        raise ValueError(f"wanted a policy as in games.game.Policy, got {type(policy).__name__}; {advice}")
    if policy.start(1) is not None:
        raise ValueError(f"exact values are of policies without memory, got {policy!r}")
    own = tree.slots(player)
    row, column = np.searchsorted(states, tree.state_of[own]), tree.information.actions[own]
    legal = np.zeros((len(states), game.choices), bool)
    legal[row, column] = True
    told = joint_probabilities(policy, observations(game, player), (legal,), (game.choices,))
    wrong = np.where(legal, 0, told).sum(axis=1) > MASS_TOLERANCE
    if wrong.any():
        state = int(wrong.argmax())
        raise ValueError(f"{policy!r} plays what is not legal in {tree.keys[states[state]]!r}: {told[state]}")
    part = told[row, column]
    return part / np.bincount(row, part, len(states))[row]


class TabularPolicy:
    """Plays one player's part of a strategy. Implements `games.game.Policy`.

    `rows` [I, D] float32 are what the player observes in its information states, `table` [I, A] float64 what it plays
    there. Where it is not to act, it does anything. Raises ValueError for a table of other than distributions.
    """

    noise_size = 1

    def __init__(self, rows: np.ndarray, table: np.ndarray):
        self.rows, self.table = np.ascontiguousarray(rows, np.float32), np.asarray(table, np.float64)
        if self.rows.ndim != 2 or self.table.ndim != 2 or len(self.rows) != len(self.table):
            raise ValueError(f"wanted rows [I, D] and a table [I, A], got {self.rows.shape} and {self.table.shape}")
        if not ((abs(self.table.sum(axis=1) - 1) <= MASS_TOLERANCE) & (self.table.min(axis=1, initial=0) >= 0)).all():
            raise ValueError("every row of a table must be a distribution over actions: not negative, and of sum 1")
        keys = _keys(self.rows)
        self._keys, first = np.unique(keys, return_index=True)
        if (self.rows[first[np.searchsorted(self._keys, keys)]] != self.rows).any():
            raise ValueError("two observations have the same 64-bit key")  # one in 2^64 a pair
        # Where information states look the same, one of them decides.
        self._table = self.table[first]

    def __reduce__(self) -> tuple:
        return TabularPolicy, (self.rows, self.table)

    @classmethod
    def of(cls, game: TreeGame, player: int, part: Any) -> "TabularPolicy":
        """For a player's part [S_player].

        Raises ValueError as `check_strategy`, and where information states look the same but are played differently.
        """
        tree, own = game.tree, game.tree.slots(player)
        checked = check_strategy(tree, part, player)
        states = tree.states(player)
        table = np.zeros((len(states), game.choices))
        table[np.searchsorted(states, tree.state_of[own]), tree.information.actions[own]] = checked
        rows = observations(game, player)
        policy = cls(rows, table)
        told = policy.probabilities(rows, None)[0]
        apart = np.abs(told - table).max(axis=1, initial=0)
        if apart.max(initial=0) > MASS_TOLERANCE:
            state = tree.keys[states[apart.argmax()]]
            raise ValueError(f"player {player} cannot tell {state!r} from others by what it observes, so cannot act so")
        return policy

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        return draw(self.probabilities(observation, legal)[0], noise[:, 0]), None

    def probabilities(self, observation: Array, legal: Legal) -> tuple[Array, ...]:
        """One [B, A]. Raises ValueError for an observation of none of its information states where it is to act."""
        xp = array_namespace(observation)
        if observation.shape[1] != self.rows.shape[1]:
            raise ValueError(
                f"the policy knows observations of {self.rows.shape[1]} numbers, got {observation.shape[1]}"
            )
        if not len(self.rows):  # a player who never acts
            return (xp.broadcast_to(observation[:, :1] * 0 + 1, (observation.shape[0], self.table.shape[1])),)
        keys = _keys(xp.astype(observation, xp.float32))
        known, table = put_like((self._keys, self._table), observation)
        index = xp.clip(xp.searchsorted(known, keys), max=len(self._keys) - 1)
        strange = known[index] != keys
        if legal is not None:
            strange = strange & xp.any(legal[0], axis=1)
        if strange.any():
            lane = int(to_numpy(strange).argmax())
            raise ValueError(
                f"the policy knows {len(self.rows)} information states of its game, and {observation[lane]} is what "
                f"one observes in none of them"
            )
        return (xp.take(table, index, axis=0),)


def _keys(rows: Array) -> Array:
    """[B] int64 hashes of float32 rows [B, D], equal on all kinds of arrays: sums of products that may overflow."""
    xp = array_namespace(rows)
    odd = np.random.default_rng(0).integers(2**62, size=rows.shape[1]) * 2 + 1
    bits = xp.astype((rows + 0.0).view(xp.int32), xp.int64)  # -0 is 0
    return xp.sum(bits * put_like(odd, rows), axis=1)
