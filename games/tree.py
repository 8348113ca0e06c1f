"""Finite games as flat arrays: what exact values, and play by table look-up, are computed from."""

from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

CHANCE, TERMINAL = -1, -2
"""Who moves where no seat does."""


class Nodes(NamedTuple):
    """The n nodes of a game tree, level by level, the children of a node side by side."""

    player: np.ndarray  # [n] int8 the seat that moves, CHANCE or TERMINAL
    information: np.ndarray  # [n] int32 the information state of who moves; -1 where no seat does
    first: np.ndarray  # [n + 1] int32: the children of h are first[h], ..., first[h + 1] - 1
    chance: np.ndarray  # [n] float64 probability of the move that led here where chance made it; 1 elsewhere
    rewards: np.ndarray  # [n, N] float64 paid for coming here
    joint: np.ndarray  # [n] bool: who moves here does so at once with whoever moved before, and cannot see that move
    levels: np.ndarray  # [L + 1] int32: level l is levels[l], ..., levels[l + 1] - 1


class Information(NamedTuple):
    """The I information states, in the order of their owners' own moves: by depth, then by owner.

    A *slot* is one legal action of one information state; slots are numbered in the order of the states.
    """

    owner: np.ndarray  # [I] int8
    offset: np.ndarray  # [I + 1] int32: the slots of state i are offset[i], ..., offset[i + 1] - 1
    actions: np.ndarray  # [S] int32 number of the action, increasing within a state
    parent: np.ndarray  # [I] int32 slot of the owner's last move before; S where there was none
    levels: np.ndarray  # [M + 1] int32: states of depth d (own moves before) are levels[d], ..., levels[d + 1] - 1


class Depth(NamedTuple):
    """The information states before which their owners have moved equally often."""

    slots: slice
    starts: np.ndarray  # first slot of every state, counted from the first of the slice
    slot_parents: np.ndarray  # parent of every slot's state
    parents: np.ndarray  # the different parents of these states, in order
    groups: np.ndarray  # the first state, counted from the first of this depth, below each of these parents


class Payoffs(NamedTuple):
    """The E nodes of a tree that pay anybody."""

    node: np.ndarray  # [E] int
    last: np.ndarray  # [N, E] int32 slot of every player's last move before; S where there was none
    weighted: np.ndarray  # [N, E] float64 rewards times the probability of the chance moves before


class Tree:
    """A finite extensive-form game [Kuhn 1953].

    Moves made at once are nodes one below the other, marked `joint`; chance moves in a row are one node, each of whose
    children is a path of them. `keys[i]` names information state i.

    Raises ValueError where the owner of an information state would have to forget (no perfect recall).
    """

    def __init__(self, nodes: Nodes, information: Information, keys: Sequence[str]):
        self.nodes, self.information, self.keys = nodes, information, tuple(keys)

    def __reduce__(self) -> tuple:
        return Tree, (self.nodes, self.information, self.keys)

    @property
    def players(self) -> int:
        return self.nodes.rewards.shape[1]

    @property
    def num_nodes(self) -> int:
        return len(self.nodes.player)

    @property
    def num_slots(self) -> int:
        return len(self.information.actions)

    @property
    def num_actions(self) -> int:
        """One more than the largest number of an action."""
        return int(self.information.actions.max(initial=0)) + 1

    @cached_property
    def parents(self) -> np.ndarray:
        """[n] int32 every node's parent; the root is its own."""
        counts = np.diff(self.nodes.first)
        return np.concatenate([[0], np.repeat(np.arange(self.num_nodes), counts)]).astype(np.int32)

    @cached_property
    def depth_first(self) -> np.ndarray:
        """[n] the nodes in depth-first order, children in the order of their moves."""
        first, order, stack = self.nodes.first.tolist(), [], [0]
        while stack:
            node = stack.pop()
            order.append(node)
            stack += range(first[node + 1] - 1, first[node] - 1, -1)
        return np.array(order)

    @cached_property
    def last(self) -> np.ndarray:
        """[N, n] int32 slot of every player's last move before a node; S where there was none."""
        nodes, parents = self.nodes, self.parents
        last = np.full((self.players, self.num_nodes), self.num_slots, np.int32)
        for begin, end in zip(nodes.levels[1:-1], nodes.levels[2:], strict=True):
            children = np.arange(begin, end)
            above = parents[begin:end]
            last[:, begin:end] = last[:, above]
            moved = nodes.player[above] >= 0
            above, children = above[moved], children[moved]
            slots = self.information.offset[nodes.information[above]] + (children - nodes.first[above])
            last[nodes.player[above], children] = slots
        return last

    @cached_property
    def chance_reach(self) -> np.ndarray:
        """[n] probability of the chance moves on the way to a node."""
        reach = self.nodes.chance.copy()
        for begin, end in zip(self.nodes.levels[1:-1], self.nodes.levels[2:], strict=True):
            reach[begin:end] *= reach[self.parents[begin:end]]
        return reach

    @cached_property
    def payoffs(self) -> Payoffs:
        """What is paid where, and after whose moves."""
        node = np.flatnonzero(self.nodes.rewards.any(axis=1))
        weighted = self.nodes.rewards[node].T * self.chance_reach[node]
        return Payoffs(node, self.last[:, node], weighted)

    @cached_property
    def paid_slots(self) -> np.ndarray:
        """[N * E] for every player and node that pays, the player's last slot; S + player where there was none."""
        last = self.payoffs.last
        return np.where(last < self.num_slots, last, self.num_slots + np.arange(self.players)[:, None]).ravel()

    @cached_property
    def depths(self) -> list[Depth]:
        """The information states by depth."""
        information, depths = self.information, []
        for begin, end in zip(information.levels[:-1], information.levels[1:], strict=True):
            slots = slice(int(information.offset[begin]), int(information.offset[end]))
            parent = information.parent[begin:end]
            groups = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]]))
            starts = information.offset[begin:end] - slots.start
            depths.append(Depth(slots, starts, self.slot_parents[slots], parent[groups], groups))
        return depths

    @cached_property
    def owner_of(self) -> np.ndarray:
        """[S] int8 whose every slot is."""
        return np.repeat(self.information.owner, np.diff(self.information.offset))

    @cached_property
    def state_of(self) -> np.ndarray:
        """[S] int32 information state of every slot."""
        return np.repeat(np.arange(len(self.keys), dtype=np.int32), np.diff(self.information.offset))

    @cached_property
    def slot_parents(self) -> np.ndarray:
        """[S] the parent of every slot's information state."""
        return self.information.parent[self.state_of]

    def slots(self, player: int) -> np.ndarray:
        """The slots of a player, in order."""
        return np.flatnonzero(self.owner_of == player)

    def states(self, player: int) -> np.ndarray:
        """The information states of a player, in order."""
        return np.flatnonzero(self.information.owner == player)

    @cached_property
    def rank(self) -> np.ndarray:
        """[I, A] int32 place of an action among the legal ones of a state; -1 where it is not legal."""
        rank = np.full((len(self.keys), self.num_actions), -1, np.int32)
        offset = self.information.offset
        rank[self.state_of, self.information.actions] = np.arange(self.num_slots) - offset[self.state_of]
        return rank


def same_trees(one: Tree, other: Tree) -> bool:
    """Whether two trees have equal nodes and information states, of equal names."""
    pairs = [*zip(one.nodes, other.nodes, strict=True), *zip(one.information, other.information, strict=True)]
    return one.keys == other.keys and all(np.array_equal(mine, yours) for mine, yours in pairs)


class Builder:
    """A tree in the making: nodes in depth-first order, the children of a node in the order of their moves.

    A coin is tossed, and the first player, who does not see it, bets 2 at even odds on heads, or does not:

    >>> from games import exact
    >>> builder = Builder(players=1)
    >>> coin = builder.node(CHANCE, depth=0, children=2)
    >>> for chance, won in ((0.6, 2.0), (0.4, -2.0)):
    ...     bets = builder.node(0, depth=1, children=2, chance=chance)
    ...     builder.inform(bets, "before the toss", legal=(0, 1))
    ...     for reward in (0.0, won):
    ...         builder.pay(builder.node(TERMINAL, depth=2, children=0), np.array([reward]))
    >>> tree = builder.tree()
    >>> round(exact.best_responses(tree, exact.uniform(tree))[0].value, 9)
    0.4

    Whoever moves at once with others has a node below the other's for each of its moves, with `joint=True`.
    `games.tree_game.TreeGame` plays a tree in lanes; what seats see there is by node in level order, not in the order
    in which nodes are added.
    """

    def __init__(self, players: int):
        self.players = players
        self.player, self.information, self.depth, self.children = array("b"), array("i"), array("i"), array("i")
        self.chance, self.joint = array("d"), array("b")
        self.paid: dict[int, np.ndarray] = {}
        self.keys: dict[tuple[int, str], int] = {}
        self.legal: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return len(self.player)

    def node(self, player: int, depth: int, children: int, chance: float = 1.0, joint: bool = False) -> int:
        """Add a node, `chance` being the probability of the move to it where chance makes that; its number."""
        self.player.append(player)
        self.information.append(-1)
        self.depth.append(depth)
        self.children.append(children)
        self.chance.append(chance)
        self.joint.append(joint)
        return len(self.player) - 1

    def pay(self, node: int, rewards: np.ndarray) -> None:
        """Pay rewards [N] for coming to a node, once. Raises ValueError for another shape, or the second time."""
        if np.shape(rewards) != (self.players,) or node in self.paid:
            raise ValueError(f"node {node} pays each of {self.players} players once, got shape {np.shape(rewards)}")
        self.paid[node] = rewards

    def inform(self, node: int, key: str, legal: Sequence[int]) -> None:
        """Name the information state of who moves at a node.

        Raises ValueError where it was named before with other legal actions.
        """
        owner = self.player[node]
        state = self.keys.setdefault((owner, key), len(self.legal))
        if state == len(self.legal):
            self.legal.append(tuple(legal))
        elif self.legal[state] != tuple(legal):
            raise ValueError(
                f"player {owner} must have the same legal actions wherever it knows {key!r}, "
                f"got {self.legal[state]} and {tuple(legal)}"
            )
        self.information[node] = state

    def tree(self, remember: bool = False) -> Tree:
        """The tree; its nodes are in `level_order`.

        Where somebody would have to forget its own moves, `remember` makes several information states of one, which
        changes nothing in games where everything is seen. Raises ValueError otherwise, and for what is no tree: numbers
        of children that are not there, chance that does not sum to one, moves without information state.
        """
        self._check()
        depth, rewards = np.array(self.depth), np.zeros((len(self), self.players))
        rewards[list(self.paid)] = list(self.paid.values()) or np.zeros((0, self.players))
        order = level_order(depth)
        nodes = Nodes(
            player=np.array(self.player)[order],
            information=np.array(self.information)[order],
            first=np.concatenate([[1], 1 + np.cumsum(np.array(self.children)[order])]).astype(np.int32),
            chance=np.array(self.chance)[order],
            rewards=rewards[order],
            joint=np.array(self.joint)[order].astype(bool),
            levels=np.concatenate([[0], np.cumsum(np.bincount(depth))]).astype(np.int32),
        )
        owners, keys = [owner for owner, _ in self.keys], [key for _, key in self.keys]
        if remember:
            nodes, states = _split(nodes, self.legal)
            owners, keys = [owners[i] for i in states], [keys[i] for i in states]
            return arranged(nodes, owners, [self.legal[i] for i in states], keys)
        return arranged(nodes, owners, self.legal, keys)

    def _check(self) -> None:
        """Raises ValueError for what is no tree."""
        if not self.player:
            raise ValueError("a tree has at least one node, its root")
        open_nodes: list[list[float]] = []  # on the path to a node: its number, children to come, chance so far
        for node, (player, depth, children) in enumerate(zip(self.player, self.depth, self.children, strict=True)):
            while open_nodes and not open_nodes[-1][1]:
                self._check_chance(*open_nodes.pop())
            if depth != len(open_nodes) or (node and not open_nodes):
                wanted = f"depth {len(open_nodes)}" if open_nodes else "nothing more"
                raise ValueError(f"node {node} comes at depth {depth}, where {wanted} is to come")
            if not TERMINAL <= player < self.players or (player == TERMINAL) != (children == 0):
                raise ValueError(f"node {node} has player {player} and {children} children: only ends have none")
            if player >= 0 and (self.information[node] < 0 or len(self.legal[self.information[node]]) != children):
                raise ValueError(f"node {node} of player {player} needs inform() of a legal action for each child")
            if open_nodes:
                open_nodes[-1][1] -= 1
                open_nodes[-1][2] += self.chance[node]
            open_nodes.append([node, children, 0.0])
        for number, missing, chance in reversed(open_nodes):
            if missing:
                raise ValueError(f"node {number:.0f} lacks {missing:.0f} of its children")
            self._check_chance(number, missing, chance)

    def _check_chance(self, node: float, _: float, chance: float) -> None:
        if self.player[int(node)] == CHANCE and abs(chance - 1) > 1e-9:
            raise ValueError(
                f"the outcomes of chance at node {node:.0f} must have probabilities of sum 1, got {chance}"
            )


def level_order(depth: np.ndarray) -> np.ndarray:
    """[n] the order of a tree's levels, of nodes whose depths come in depth-first order.

    That keeps siblings together, in the order of their parents.
    """
    return np.argsort(depth, kind="stable")


def arranged(nodes: Nodes, owners: Sequence[int], legal: Sequence[tuple[int, ...]], keys: Sequence[str]) -> Tree:
    """The tree whose information states come in any order.

    Raises ValueError where some owner would have to forget.
    """
    sizes = np.array([len(actions) for actions in legal], np.int32)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    actions = np.fromiter((action for some in legal for action in some), np.int32, offset[-1])
    unordered = Information(np.array(owners, np.int8), offset, actions, np.zeros(0, np.int32), np.zeros(0, np.int32))
    parent = _parents(Tree(nodes, unordered, keys))
    order, depth = _by_own_moves(parent, unordered)
    renumbered = np.argsort(order)
    new_offset = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int32)
    old_slots = np.concatenate([np.arange(offset[i], offset[i + 1]) for i in order]) if len(order) else np.arange(0)
    new_slots = np.append(np.argsort(old_slots), len(old_slots)).astype(np.int32)
    information = Information(
        owner=unordered.owner[order],
        offset=new_offset,
        actions=actions[old_slots],
        parent=new_slots[parent[order]],
        levels=np.concatenate([[0], np.cumsum(np.bincount(depth))]).astype(np.int32),
    )
    states = np.where(nodes.information < 0, -1, renumbered[nodes.information] if len(order) else -1)
    return Tree(nodes._replace(information=states.astype(np.int32)), information, [keys[i] for i in order])


def _parents(tree: Tree) -> np.ndarray:
    """[I] the slot of the owner's last move before each state."""
    moving = np.flatnonzero(tree.nodes.player >= 0)
    states, last = tree.nodes.information[moving], tree.last[tree.nodes.player[moving], moving]
    parent = np.zeros(len(tree.keys), np.int32)
    parent[states] = last
    wrong = np.flatnonzero(parent[states] != last)
    if len(wrong):
        state = states[wrong[0]]
        raise ValueError(
            f"exact values need perfect recall, but player {tree.information.owner[state]} forgets its own moves: "
            f"its information state {tree.keys[state]!r} is reached after different ones"
        )
    return parent


def _by_own_moves(parent: np.ndarray, information: Information) -> tuple[np.ndarray, np.ndarray]:
    """Order of the states by depth, owner and parent, and [I] depths; a state's parents come in the order before."""
    state_of = np.repeat(np.arange(len(parent)), np.diff(information.offset))
    depth, pending = np.zeros(len(parent), np.int64), parent < len(state_of)
    above = np.where(pending, state_of[np.minimum(parent, max(len(state_of) - 1, 0))], 0) if len(parent) else parent
    while True:
        deeper = np.where(pending, depth[above] + 1, 0)
        if (deeper == depth).all():
            break
        depth = deeper
    place = np.zeros(len(parent), np.int64)
    order: list[int] = []
    slot_rank = np.arange(len(state_of)) - information.offset[state_of]
    for level in range(int(depth.max(initial=-1)) + 1):
        states = np.flatnonzero(depth == level)
        # By the new place of the parent's state, then by its slot within it.
        parents = np.minimum(parent[states], max(len(state_of) - 1, 0))
        first = place[above[states]] if level else np.zeros(len(states))
        second = slot_rank[parents] if level else np.zeros(len(states))
        states = states[np.lexsort((second, first, information.owner[states]))]
        place[states] = len(order) + np.arange(len(states))
        order += states.tolist()
    return np.array(order, np.int64), depth


def _split(nodes: Nodes, legal: Sequence[tuple[int, ...]]) -> tuple[Nodes, np.ndarray]:
    """The nodes with an information state for every (state, own last move), and [I] the state that each was before.

    Level by level, for the moves of a level's states tell those of later levels apart.
    """
    sizes = np.array([len(actions) for actions in legal], np.int64)
    parents = np.concatenate([[0], np.repeat(np.arange(len(nodes.player)), np.diff(nodes.first))])
    last = np.full((nodes.rewards.shape[1], len(nodes.player)), -1)  # own last move: a number of its own
    information, offsets = nodes.information.copy(), np.zeros(len(nodes.player), np.int64)
    before: list[int] = []
    moves = 0
    for begin, end in zip(nodes.levels[:-1], nodes.levels[1:], strict=True):
        level = np.arange(begin, end)
        if begin:
            last[:, level] = last[:, parents[level]]
            moved = level[nodes.player[parents[level]] >= 0]
            above = parents[moved]
            last[nodes.player[above], moved] = offsets[above] + moved - nodes.first[above]
        deciding = level[nodes.player[level] >= 0]
        told = np.stack([nodes.information[deciding], last[nodes.player[deciding], deciding]])
        states, place = np.unique(told, axis=1, return_inverse=True)
        information[deciding] = len(before) + place.ravel()
        starts = moves + np.concatenate([[0], np.cumsum(sizes[states[0]])])
        offsets[deciding], moves = starts[place.ravel()], starts[-1]
        before += states[0].tolist()
    return nodes._replace(information=information), np.array(before, np.int64)
