"""The rules of a Game as OpenSpiel wants them: chance moves of their own, and one number for an action."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box

from games.game import Game, State, factors
from games.lanes import tree_leaves
from games.tree import CHANCE
from games.tree_game import State as Standing
from games.tree_game import TreeGame

PROBES = 256
"""Starts that are compared, to see whether chance moves there."""


class Shared:
    """What never changes, so that copies of states share it."""

    def __copy__(self) -> "Shared":
        return self

    def __deepcopy__(self, memo: dict) -> "Shared":
        return self


@dataclass(frozen=True, eq=False)
class Pending(Shared):
    """Everybody has moved, and chance is to."""

    state: State = None  # None at the start
    actions: tuple[np.ndarray, ...] = ()
    drawn: tuple[int, ...] = ()  # outcomes so far of a chance that takes several moves
    node: int = 0  # of a tree


class Chance(Protocol):
    """The kernel of a game, taken apart into moves of players and of chance."""

    def begin(self) -> State | Pending:
        """Where an episode starts, if chance has no part in that."""

    def moved(self, state: State, actions: tuple[np.ndarray, ...]) -> State | Pending:
        """Where actions, one [1] or [1, factors] a seat, lead to."""

    def outcomes(self, pending: Pending) -> list[tuple[int, float]]:
        """(outcome, probability) of the next move of chance."""

    def resolve(self, pending: Pending, outcome: int) -> State | Pending:
        """Where an outcome leads to."""

    @property
    def moves(self) -> tuple[int, int]:
        """Chance moves of a start and of a step, at most."""

    @property
    def most(self) -> int:
        """Outcomes of a chance move, at most."""

    @property
    def explicit(self) -> bool:
        """Whether all outcomes are told."""


class Uniforms:
    """Chance that uniforms decide. What needs none is exact.

    By default all uniforms of a step are drawn in one move of chance, which has one outcome, as OpenSpiel's sampled
    games have it. With `grid` each uniform is a move of chance, of so many outcomes alike: (i + 1/2) / grid.
    """

    def __init__(self, game: Game, params: Any, grid: int | None, seed: int):
        self.game, self.params, self.grid, self.generator = game, params, grid, np.random.default_rng(seed)
        start, step = game.noise_sizes
        noise = np.random.default_rng(0).random((PROBES, start), np.float32)
        leaves = tree_leaves(game.init(params, noise))
        self.columns = (0 if all((leaf == leaf[:1]).all() for leaf in leaves) else start, step)

    def begin(self) -> State | Pending:
        return Pending() if self.columns[0] else self.game.init(self.params, _zeros(self.game.noise_sizes[0]))

    def moved(self, state: State, actions: tuple[np.ndarray, ...]) -> State | Pending:
        if self.columns[1]:
            return Pending(state, actions)
        return self.game.step(self.params, state, actions, _zeros(0))

    def outcomes(self, pending: Pending) -> list[tuple[int, float]]:
        return [(outcome, 1 / self.most) for outcome in range(self.most)]

    def resolve(self, pending: Pending, outcome: int) -> State | Pending:
        starts, drawn = pending.state is None, (*pending.drawn, outcome)
        columns = self.columns[not starts]
        if self.grid is None:
            noise = self.generator.random((1, columns), np.float32)
        elif len(drawn) < columns:
            return Pending(pending.state, pending.actions, drawn)
        else:
            noise = ((np.array([drawn]) + 0.5) / self.grid).astype(np.float32)
        if starts:
            return self.game.init(self.params, noise)
        return self.game.step(self.params, pending.state, pending.actions, noise)

    @property
    def moves(self) -> tuple[int, int]:
        start, step = self.columns
        return (start, step) if self.grid else (min(start, 1), min(step, 1))

    @property
    def most(self) -> int:
        return self.grid or 1

    @property
    def explicit(self) -> bool:
        return self.grid is not None or not any(self.columns)


class TreeMoves:
    """Chance of a finite tree, by its probabilities."""

    moves, explicit = (1, 1), True

    def __init__(self, game: TreeGame, params: Any):
        self.game, self.params = game, params

    @property
    def most(self) -> int:
        """Of chance moves in a row, which are one here."""
        nodes = self.game.tree.nodes
        return int(np.diff(nodes.first)[nodes.player == CHANCE].max(initial=1))

    def begin(self) -> State | Pending:
        return self._at(0)

    def moved(self, state: State, actions: tuple[np.ndarray, ...]) -> State | Pending:
        return self._at(int(self.game.after_moves(self.params, state, actions)[0]))

    def outcomes(self, pending: Pending) -> list[tuple[int, float]]:
        nodes = self.game.tree.nodes
        return list(enumerate(nodes.chance[nodes.first[pending.node] : nodes.first[pending.node + 1]].tolist()))

    def resolve(self, pending: Pending, outcome: int) -> State | Pending:
        return self._at(int(self.game.tree.nodes.first[pending.node]) + outcome)

    def _at(self, node: int) -> State | Pending:
        return Pending(node=node) if self.game.tree.nodes.player[node] == CHANCE else Standing(np.array([node]))


def _zeros(columns: int) -> np.ndarray:
    return np.zeros((1, columns), np.float32)


class Actions:
    """All combinations of a seat's factors, numbered in C order; a Box has `bins` evenly spaced values a dimension.

    Raises ValueError for a Box without bins, or for more than `MOST` of them.
    """

    MOST = 1_000_000

    def __init__(self, agent: str, space: Any, bins: int | None):
        self.values: np.ndarray | None = None  # [bins, D]
        if isinstance(space, Box):
            if bins is None:
                raise ValueError(f"OpenSpiel's actions are numbers, but {agent} acts in {space}: give a number of bins")
            self.values = np.linspace(space.low, space.high, bins, dtype=np.float32)
        self.sizes = factors(space) if self.values is None else (bins,) * self.values.shape[1]
        self.flat, self.number = space.shape == (), prod(self.sizes)
        if self.number > self.MOST:
            raise ValueError(f"OpenSpiel lists all actions, but {agent} has {self.number:,}: at most {self.MOST:,}")

    def row(self, action: int) -> np.ndarray:
        """[1], [1, factors] or [1, D], as a kernel takes it."""
        if self.flat:
            return np.array([action])
        choices = np.unravel_index(action, self.sizes)
        return np.array([choices]) if self.values is None else self.values[choices, np.arange(len(choices))][None]

    def legal(self, masks: tuple[np.ndarray, ...] | None) -> list[int]:
        """The numbers of legal actions, from one [1, A_f] mask a factor."""
        if masks is None:
            return list(range(self.number))
        allowed = np.ones(1, bool)
        for mask in masks:
            allowed = (allowed[:, None] & mask[0]).ravel()
        return np.flatnonzero(allowed).tolist()

    def text(self, action: int) -> str:
        return str(action) if self.flat else "-".join(map(str, np.unravel_index(action, self.sizes)))


class Rules(Shared):
    """Everything that states of one game share."""

    def __init__(self, game: Game, grid: int | None, bins: int | None, seed: int, max_steps: int):
        self.game, self.max_steps, self.params = game, max_steps, game.params()
        self.seats = range(len(game.agents))
        self.actions = [Actions(*pair, bins) for pair in zip(game.agents, game.action_spaces, strict=True)]
        self.chance: Chance
        self.shared_names = False  # of information states of several seats
        if isinstance(game, TreeGame):
            self.chance = TreeMoves(game, self.params)
            owners = game.tree.information.owner.tolist()
            self.shared_names = len(set(zip(owners, game.tree.keys, strict=True))) > len(set(game.tree.keys))
        else:
            self.chance = Uniforms(game, self.params, grid, seed)

    @cached_property
    def start(self) -> "Moment | Pending":
        begun = self.chance.begin()
        return begun if isinstance(begun, Pending) else Moment(self, begun, None, ())

    def play(self, moment: "Moment", chosen: tuple[int | None, ...]) -> "Moment | Pending":
        """Where the seats' actions lead to; those of seats that do not act are None."""
        rows = tuple(self.actions[seat].row(chosen[seat] or 0) for seat in self.seats)
        return self._settled(moment, chosen, self.chance.moved(moment.state, rows))

    def draw(self, moment: "Moment | None", chosen: tuple, pending: Pending, outcome: int) -> "Moment | Pending":
        """Where an outcome of chance leads to."""
        return self._settled(moment, chosen, self.chance.resolve(pending, outcome))

    def _settled(self, moment: "Moment | None", chosen: tuple, led: State | Pending) -> "Moment | Pending":
        return led if isinstance(led, Pending) else Moment(self, led, moment, chosen)


class Moment(Shared):
    """A state in which players are to move, or the episode is over, and how it was come by."""

    def __init__(self, rules: Rules, state: State, before: "Moment | None", chosen: tuple[int | None, ...]):
        game, params = rules.game, rules.params
        self.rules, self.state, self.before, self.chosen = rules, state, before, chosen
        self.steps: int = before.steps + 1 if before else 0
        self.rewards: list[float] = [float(reward) for reward in game.rewards(params, state)[0]]
        earned = before.returns if before else [0.0] * len(self.rewards)
        self.returns: list[float] = [sum(pair) for pair in zip(earned, self.rewards, strict=True)]
        ended = bool(game.terminated(params, state)[0] or game.truncated(params, state)[0])
        self.over = ended or self.steps >= rules.max_steps
        acting = game.acting(params, state)[0]
        self.acting = () if self.over else tuple(seat for seat in rules.seats if acting[seat])

    def legal(self, seat: int) -> list[int]:
        return self.rules.actions[seat].legal(self.rules.game.legal(self.rules.params, self.state, seat))

    def observation(self, seat: int) -> np.ndarray:
        """[D] float32, pictures flattened."""
        return self.rules.game.observe(self.rules.params, self.state, seat)[0].ravel()

    def seen(self, seat: int) -> str:
        """The observation, and what is legal, as text: floats to the last bit."""
        seen = " ".join(f"{value:.9g}" for value in self.observation(seat).tolist())
        if seat not in self.acting:
            return f"[{seen}]"
        legal = self.legal(seat)
        return (
            f"[{seen}] of {','.join(map(str, legal))}" if len(legal) < self.rules.actions[seat].number else f"[{seen}]!"
        )

    def known(self, seat: int) -> str:
        """All that a seat has seen and done, which names its information state; no other seat's has this name."""
        rules = self.rules
        if isinstance(rules.game, TreeGame) and seat in self.acting:
            key = rules.game.tree.keys[int(rules.params.turn[0, seat][self.state.node[0]]) - 1]
            return f"{seat}: {key}" if rules.shared_names else key
        parts = [part for moment in self.back() for part in moment._parts(seat)]
        return f"{seat}: {' '.join(reversed(parts))}"

    def _parts(self, seat: int) -> Iterator[str]:
        yield self.seen(seat)
        if self.chosen and self.chosen[seat] is not None:
            yield f"plays {self.chosen[seat]}"

    def back(self) -> Iterator["Moment"]:
        """This moment and those before it, to the start."""
        moment: Moment | None = self
        while moment is not None:
            yield moment
            moment = moment.before
