"""Batches of any finite game, played by table look-up in its tree."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete

from games.game import Array
from games.spelling import unknown
from games.tree import CHANCE, TERMINAL, Tree, same_trees


class Sight(NamedTuple):
    """What the seats see at the nodes of a tree; equal views are one row."""

    rows: np.ndarray  # [R, D] float32
    views: np.ndarray  # [N, n] int32 the row a seat sees at a node


class Params(NamedTuple):
    """The tree as tables; every leaf is [1, ...]. Nodes where only chance or nobody moves are never stood at."""

    first: Array  # [1, n + 1] int64 first child
    turn: Array  # [1, N, n] int64 1 + the information state in which a seat acts; 0 where it does not
    rank: Array  # [1, (I + 1) * A] int64 place of an action among the legal ones; of state 0 and illegal actions: 0
    legal: Array  # [1, A, I + 1] bool; none in state 0
    rows: Array  # [1, R, D] float32
    views: Array  # [1, N, n] int64
    rewards: Array  # [1, n, N] float32
    ended: Array  # [1, n] bool
    outcomes: Array  # [1, n] float32 number of outcomes of a chance node; 0 elsewhere
    keep: Array  # [1, n] float32 of a chance node's child: the share of its draws that stay with it
    alias: Array  # [1, n] int64 the sibling that the other draws go to


class State(NamedTuple):
    node: Array  # [B] int64


class TreeGame:
    """N players in a finite tree; `choices` numbers the actions. Chance is drawn by the alias method [Walker 1977].

    `look` gives what the seats see, when first asked for. `text` tells a state in words, given the number of the child
    that was taken at every node on the way there. Both are functions of modules, so that they can be sent to workers.
    Games are equal where their names, their trees and what is `seen` are.
    """

    def __init__(
        self,
        name: str,
        tree: Tree,
        choices: int,
        look: Callable[[], Sight],
        text: Callable[[tuple[int, ...]], str],
        seen: str = "",
    ):
        self.name, self.tree, self.choices, self.look, self.text, self.seen = name, tree, choices, look, text, seen

    def __reduce__(self) -> tuple:
        return TreeGame, (self.name, self.tree, self.choices, self.look, self.text, self.seen)

    @cached_property
    def sight(self) -> Sight:
        """What the seats see. Raises ValueError where `look` does not give every seat a row at every node."""
        sight, wanted = self.look(), (self.tree.players, self.tree.num_nodes)
        if sight.views.shape != wanted or sight.rows.ndim != 2 or sight.views.max() >= len(sight.rows):
            raise ValueError(
                f"{self.name} needs views {wanted} of rows [R, D], got {sight.views.shape} of {sight.rows.shape}"
            )
        return sight

    def __repr__(self) -> str:
        return f"TreeGame({self.name!r}, seen={self.seen!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or (other.name, other.seen) != (self.name, self.seen):
            return False
        return other.tree is self.tree or same_trees(other.tree, self.tree)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"player_{seat}" for seat in range(self.tree.players))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        rows = self.sight.rows
        low, high = np.minimum(rows.min(axis=0), 0), np.maximum(rows.max(axis=0), 1)
        return (Box(low, high, dtype=np.float32),) * self.tree.players

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return (Discrete(self.choices),) * self.tree.players

    @cached_property
    def noise_sizes(self) -> tuple[int, int]:
        """One for a start, though it may not need it: noise tells the number of lanes. One a step if chance moves."""
        return 1, int((self.tree.nodes.player[1:] == CHANCE).any())

    def params(self, **overrides: Any) -> Params:
        """The tables. Raises ValueError for overrides: a tree is one game."""
        for name in overrides:
            raise unknown(f"parameter of {self.name}", name, [])
        return self._tables

    @cached_property
    def _tables(self) -> Params:
        tree, nodes = self.tree, self.tree.nodes
        rank = np.full((len(tree.keys) + 1, self.choices), -1, np.int64)
        rank[1:, : tree.num_actions] = tree.rank
        keep, alias = alias_tables(tree)
        tables = (
            nodes.first.astype(np.int64),
            _turns(tree),
            np.maximum(rank, 0).ravel(),
            (rank >= 0).T.copy(),
            self.sight.rows,
            self.sight.views.astype(np.int64),
            nodes.rewards.astype(np.float32),
            nodes.player == TERMINAL,
            np.where(nodes.player == CHANCE, np.diff(nodes.first), 0).astype(np.float32),
            keep.astype(np.float32),
            alias,
        )
        return Params(*(table[None] for table in tables))

    @cached_property
    def _even(self) -> bool:
        """Whether chance moves to all children of a node alike, so that none has an alias."""
        return bool((self._tables.alias[0] == np.arange(self.tree.num_nodes)).all())

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        root = xp.zeros_like(noise[:, 0], dtype=xp.int64)
        return State(self._after_chance(params, root, noise[:, 0]))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        node = self.after_moves(params, state, actions)
        return State(self._after_chance(params, node, noise[:, 0]) if self.noise_sizes[1] else node)

    def after_moves(self, params: Params, state: State, actions: tuple[Array, ...]) -> Array:
        """[B] the nodes that actions lead to, at some of which chance is to move."""
        xp = array_namespace(state.node)
        first, rank, node = params.first[0], params.rank[0], state.node
        for seat, action in enumerate(actions):
            turn = params.turn[0, seat][state.node]
            child = first[node] + rank[turn * self.choices + action]
            node = xp.where(turn > 0, child, node)
        return node

    def _after_chance(self, params: Params, node: Array, uniforms: Array) -> Array:
        """Where chance leads to from the nodes at which it moves; the others stay: no chance, and their own alias."""
        xp = array_namespace(node)
        outcomes = params.outcomes[0][node]
        place = uniforms * outcomes
        # Rounding may bring the largest uniform up to the number of outcomes.
        whole = xp.minimum(xp.floor(place), outcomes - 1)
        child = xp.where(outcomes > 0, params.first[0][node] + xp.astype(whole, xp.int64), node)
        if self._even:
            return child
        return xp.where(place - whole < params.keep[0][child], child, params.alias[0][child])

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.node)
        return xp.take(params.rows[0], params.views[0, seat][state.node], axis=0)

    def legal(self, params: Params, state: State, seat: int) -> tuple[Array, ...]:
        xp = array_namespace(state.node)
        # Column-major, as `Uniform` is fastest on: a choice's mask is contiguous.
        return (xp.take(params.legal[0], params.turn[0, seat][state.node], axis=1).T,)

    def acting(self, params: Params, state: State) -> Array:
        xp = array_namespace(state.node)
        return xp.take(params.turn[0], state.node, axis=1).T > 0

    def rewards(self, params: Params, state: State) -> Array:
        return array_namespace(state.node).take(params.rewards[0], state.node, axis=0)

    def terminated(self, params: Params, state: State) -> Array:
        return params.ended[0][state.node]

    def truncated(self, params: Params, state: State) -> Array:
        return state.node < 0  # nothing outside the rules ends these games

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        node = int(state.node[lane])
        pays = ", ".join(
            f"{agent} {float(pay):+g}" for agent, pay in zip(self.agents, params.rewards[0, node], strict=True)
        )
        return f"{self.text(self._path(node))}\nrewards: {pays}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """The state's text on a page, beside who is to move and what the last step paid."""
        from games.lettering import Player, page  # Pillow

        node = int(state.node[lane])
        ended = bool(params.ended[0, node])
        players = []
        for seat, agent in enumerate(self.agents):
            acts = int(params.turn[0, seat, node]) > 0
            players.append(Player(agent, "to move" if acts else "", float(params.rewards[0, node, seat]), acts))
        path = self._path(node)
        heading = "The end" if ended else f"Move {len(path)}"
        return page(self.name, heading, self.text(path), players)

    def _path(self, node: int) -> tuple[int, ...]:
        """The number of the child that was taken at every node on the way to one."""
        path = []
        while node:
            above = int(self.tree.parents[node])
            path.append(node - int(self.tree.nodes.first[above]))
            node = above
        return tuple(reversed(path))


def _turns(tree: Tree) -> np.ndarray:
    """[N, n] 1 + the information state in which a seat acts when the game stands at a node."""
    nodes = tree.nodes
    turn = np.zeros((tree.players, tree.num_nodes), np.int64)
    standing = np.flatnonzero((nodes.player >= 0) & ~nodes.joint)
    at = standing
    while len(at):
        turn[nodes.player[at], standing] = nodes.information[at] + 1
        below = nodes.first[at]  # whoever moves at the same time stands at every child
        more = nodes.joint[below]
        standing, at = standing[more], below[more]
    return turn


def alias_tables(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """[n] shares kept and [n] siblings otherwise taken of the children of chance nodes [Walker 1977; Vose 1991]."""
    nodes, parents = tree.nodes, tree.parents
    keep, alias = np.ones(tree.num_nodes), np.arange(tree.num_nodes)
    drawn = np.flatnonzero(nodes.player[parents[1:]] == CHANCE) + 1
    number = np.diff(nodes.first)[parents[drawn]]
    uneven = abs(nodes.chance[drawn] * number - 1) > 1e-12
    for node in np.unique(parents[drawn[uneven]]):  # most chance is even, and keeps everything
        children = range(nodes.first[node], nodes.first[node + 1])
        shares = dict(zip(children, (nodes.chance[children] * len(children)).tolist(), strict=True))
        small = [child for child, share in shares.items() if share < 1]
        large = [child for child, share in shares.items() if share >= 1]
        while small and large:
            child, giver = small.pop(), large[-1]
            keep[child], alias[child] = shares[child], giver
            shares[giver] -= 1 - shares[child]
            if shares[giver] < 1:
                small.append(large.pop())
    return keep, alias
