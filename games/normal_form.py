"""Normal-form games, one-shot or repeated: any payoff tensor, and the classics."""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box, Discrete

from games.game import Array, feature_box
from games.lanes import to_numpy
from games.numbers import keep, whole
from games.spelling import unknown


class Params(NamedTuple):
    table: Array  # [1 or B, K, N] float32 payoffs of the K joint actions, in C order


class State(NamedTuple):
    round: Array  # [B] int32 rounds played
    joint: Array  # [B, N] int64 last round's actions
    rewards: Array  # [B, N] float32


DILEMMA = (((3, 0), (5, 1)), ((3, 5), (0, 1)))
"""Payoffs of the prisoner's dilemma; the first action cooperates."""


MAX_ROUNDS = 2**31 - 2
"""Rounds are counted in int32."""


@dataclass(frozen=True, eq=False)
class NormalForm:
    """Any payoffs [N, k_1, ..., k_N], one-shot or repeated; by default the prisoner's dilemma.

    Players: N, at once.
    Observations: everyone's last actions, one-hot, zeros before the first round, and the share of rounds to come.
    Actions: Discrete(k_i) of player i.
    Rewards: player i earns payoffs[i] at everyone's actions, every round; returns are sums over rounds.
    Horizon: `rounds`.
    Chance: none.
    References: von Neumann & Morgenstern (1944), Theory of games and economic behavior.

    Raises ValueError for payoffs that are not a finite tensor with one axis per player after the first, for no rounds,
    and for more than `MAX_ROUNDS`.
    """

    payoffs: Any = DILEMMA
    """Kept as a read-only float64 array."""
    rounds: int = 1
    labels: tuple[str, ...] = ()
    """Names of the actions in descriptions; their numbers by default."""

    def __post_init__(self) -> None:
        payoffs = np.array(self.payoffs, np.float64)
        if payoffs.ndim < 2 or payoffs.shape[0] != payoffs.ndim - 1 or payoffs.size == 0:
            raise ValueError(f"payoffs must be [N, k_1, ..., k_N] for N players, got shape {payoffs.shape}")
        _check_finite(payoffs)
        keep(self, rounds=whole("rounds", self.rounds, 1, MAX_ROUNDS))
        if self.labels and len(self.labels) < max(payoffs.shape[1:]):
            raise ValueError(f"labels must name all {max(payoffs.shape[1:])} actions, got {len(self.labels)}")
        payoffs.setflags(write=False)
        object.__setattr__(self, "payoffs", payoffs)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        return self.payoffs.shape, self.payoffs.tobytes(), self.rounds, self.labels

    @property
    def choices(self) -> tuple[int, ...]:
        """Number of actions of every player."""
        return self.payoffs.shape[1:]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"player_{seat}" for seat in range(len(self.choices)))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return tuple(feature_box(sum(self.choices) + 1) for _ in self.choices)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return tuple(Discrete(choices) for choices in self.choices)

    @property
    def noise_sizes(self) -> tuple[int, int]:
        return 1, 0  # the starting noise is unused, but tells the number of lanes and where they live

    def params(self, **overrides: Any) -> Params:
        """`payoffs` [N, k_1, ..., k_N] for all lanes, or [B, N, k_1, ..., k_N] for a batch of games of one shape.

        Raises ValueError for another shape, and for payoffs that are not finite.
        """
        for name in overrides:
            if name != "payoffs":
                raise unknown("parameter of normal-form games", name, ["payoffs"])
        payoffs = np.asarray(overrides.get("payoffs", self.payoffs), np.float64)
        _check_finite(payoffs)
        batch = payoffs if payoffs.ndim > self.payoffs.ndim else payoffs[None]
        if batch.shape[1:] != self.payoffs.shape:
            raise ValueError(f"payoffs must keep the shape {self.payoffs.shape}, got {batch.shape[1:]}")
        table = np.moveaxis(batch.astype(np.float32), 1, -1).reshape(len(batch), -1, len(self.choices))
        return Params(table)

    def init(self, params: Params, noise: Array) -> State:
        xp, lanes, players = array_namespace(noise), noise.shape[0], len(self.choices)
        zeros = xp.zeros_like(noise[:, :1])
        return State(
            xp.astype(zeros[:, 0], xp.int32),
            xp.astype(xp.broadcast_to(zeros, (lanes, players)), xp.int64),
            xp.zeros_like(xp.broadcast_to(zeros, (lanes, players))),
        )

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        joint = xp.stack([xp.astype(action, xp.int64) for action in actions], axis=1)
        index = xp.zeros_like(joint[:, 0])
        for seat, choices in enumerate(self.choices):
            index = index * choices + joint[:, seat]
        if params.table.shape[0] == 1:
            rewards = params.table[0][index]
        else:
            rewards = params.table[xp.arange(index.shape[0], device=device(index)), index]
        return State(state.round + 1, joint, rewards)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.rewards)
        started = state.round > 0
        features = [
            (state.joint[:, player] == choice) & started
            for player, choices in enumerate(self.choices)
            for choice in range(choices)
        ]
        left = xp.astype(self.rounds - state.round, xp.float32) / self.rounds
        return xp.stack([*(xp.astype(feature, xp.float32) for feature in features), left], axis=1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return array_namespace(state.joint).ones_like(state.joint) == 1

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.round >= self.rounds

    def truncated(self, params: Params, state: State) -> Array:
        return state.round < 0  # nothing outside the rules ends these games

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        played = int(state.round[lane])
        if not played:
            return f"round 0 of {self.rounds}"
        choices = [int(choice) for choice in state.joint[lane]]
        names = [self.labels[choice] if self.labels else str(choice) for choice in choices]
        pays = [f"{float(reward):+g}" for reward in state.rewards[lane]]
        moves = ", ".join(f"{agent}: {name} ({pay})" for agent, name, pay in zip(self.agents, names, pays, strict=True))
        return f"round {played} of {self.rounds}: {moves}"

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """The payoffs with the cell that was played last lit; rows of actions where they are no matrix to look at."""
        from games import matrix_picture  # Pillow

        table = to_numpy(params.table)[lane if len(params.table) > 1 else 0]
        payoffs = np.ascontiguousarray(np.moveaxis(table.reshape(*self.choices, -1), -1, 0))
        played = int(state.round[lane])
        joint = [int(choice) for choice in state.joint[lane]] if played else None
        heading = f"Round {played} of {self.rounds}"
        return matrix_picture.frame(payoffs, self.labels, heading, joint, [float(pay) for pay in state.rewards[lane]])


def _check_finite(payoffs: np.ndarray) -> None:
    if not (np.abs(payoffs) <= np.finfo(np.float32).max).all():
        raise ValueError("payoffs must be finite in float32, in which they are paid")


def matching_pennies(players: int = 2, rounds: int = 1) -> NormalForm:
    """Each player wants to match the next one; the last wants to differ from the first.

    Players: `players`, at once.
    Observations: everyone's last actions, one-hot, zeros before the first round, and the share of rounds to come.
    Actions: Discrete(2): heads, tails.
    Rewards: 1 to who has its wish, -1 to who has not; of two players zero-sum.
    Horizon: `rounds`.
    Chance: none.
    Exact values: uniform play is the only equilibrium of a round, in which everyone earns 0.
    References: Jordan (1993), Three problems in learning mixed-strategy Nash equilibria.

    Raises ValueError for fewer than two players.
    """
    if players < 2:
        raise ValueError(f"matching pennies needs at least 2 players, got {players}")
    coins = np.indices((2,) * players)
    match = coins == np.roll(coins, -1, axis=0)
    payoffs = np.where(match, 1.0, -1.0)
    payoffs[-1] *= -1
    return NormalForm(payoffs, rounds, ("heads", "tails"))


def rock_paper_scissors(rounds: int = 1) -> NormalForm:
    """Rock beats scissors, scissors beat paper, paper beats rock.

    Players: 2, at once. Zero-sum.
    Observations: both players' last actions, one-hot, zeros before the first round, and the share of rounds to come.
    Actions: Discrete(3): rock, paper, scissors.
    Rewards: 1 for a win, -1 for a loss, 0 for a draw.
    Horizon: `rounds`.
    Chance: none.
    Exact values: uniform play is the only equilibrium of a round, in which both earn 0.
    References: Terry et al. (2021), PettingZoo: gym for multi-agent reinforcement learning; its classic/rps_v2.
    """
    row = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    return NormalForm([row, -row], rounds, ("rock", "paper", "scissors"))


def battle_of_the_sexes(rounds: int = 1) -> NormalForm:
    """Both want to meet, each at another place.

    Players: 2, at once.
    Observations: both players' last actions, one-hot, zeros before the first round, and the share of rounds to come.
    Actions: Discrete(2): opera, football.
    Rewards: where both go to one place 2 to who likes it better and 1 to the other; else nothing.
    Horizon: `rounds`.
    Chance: none.
    Exact values: a round has two pure equilibria, and one where each goes to its own place with probability 2/3 and
        both earn 2/3.
    References: Luce & Raiffa (1957), Games and decisions.
    """
    return NormalForm([[[2, 0], [0, 1]], [[1, 0], [0, 2]]], rounds, ("opera", "football"))


def blotto(soldiers: int = 5, fields: int = 3, rounds: int = 1) -> NormalForm:
    """Colonel Blotto: both divide their soldiers over the fields; whoever takes more fields wins.

    Players: 2, at once. Zero-sum.
    Observations: both players' last plans, one-hot, zeros before the first round, and the share of rounds to come.
    Actions: a plan, how many soldiers go to each field: Discrete of all there are, 21 by default.
    Rewards: 1 for more fields taken than the other, -1 for fewer, 0 for as many.
    Horizon: `rounds`.
    Chance: none.
    References: Borel (1921), La théorie du jeu et les équations intégrales à noyau symétrique gauche.

    Raises ValueError for no soldiers, or fewer than two fields.
    """
    if soldiers < 1 or fields < 2:
        raise ValueError(f"Blotto needs soldiers and at least 2 fields, got soldiers={soldiers}, fields={fields}")
    plans = np.array([plan for plan in product(range(soldiers + 1), repeat=fields) if sum(plan) == soldiers])
    taken = np.sign(plans[:, None] - plans[None]).sum(axis=2)
    labels = tuple("-".join(map(str, plan)) for plan in plans)
    return NormalForm([np.sign(taken), -np.sign(taken)], rounds, labels)
