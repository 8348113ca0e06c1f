"""A small game with turns, masks, chance and unlike seats, on all kinds of arrays; nothing in the registry has them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete

from games.game import Array, feature_box


class Params(NamedTuple):
    pay: Array  # [1 or B] float32


class State(NamedTuple):
    round: Array  # [B] int64
    action: Array  # [B] int64 the last one played
    rewards: Array  # [B, 2] float32


@dataclass(frozen=True)
class Turns:
    """Two players take turns; who plays 1 earns `pay`, half of the time. In the first round only 0 is legal."""

    rounds: int = 4
    pay: float = 1.0

    agents = ("player_0", "player_1")

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return feature_box(2), feature_box(1)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        return Discrete(2), Discrete(2)

    @property
    def noise_sizes(self) -> tuple[int, int]:
        return 1, 1

    def params(self, **overrides: Any) -> Params:
        return Params(np.array([self.pay], np.float32))

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        nothing = xp.zeros_like(xp.astype(noise[:, 0], xp.int64))
        return State(nothing, nothing, xp.zeros_like(xp.concat([noise, noise], axis=1)))

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        second = state.round % 2
        action = xp.where(second == 1, actions[1], actions[0])
        earned = params.pay * xp.astype((action == 1) & (noise[:, 0] < 0.5), xp.float32)
        rewards = xp.stack([earned * xp.astype(second == seat, xp.float32) for seat in range(2)], axis=1)
        return State(state.round + 1, action, rewards)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.rewards)
        features = [xp.astype(state.round, xp.float32) / self.rounds, xp.astype(state.action, xp.float32)]
        return xp.stack(features[: 2 - seat], axis=1).clip(0, 1)

    def legal(self, params: Params, state: State, seat: int) -> tuple[Array, ...]:
        xp = array_namespace(state.round)
        acts = self.acting(params, state)[:, seat]
        return (xp.stack([acts, acts & (state.round > 0)], axis=1),)

    def acting(self, params: Params, state: State) -> Array:
        xp = array_namespace(state.round)
        return xp.stack([state.round % 2 == seat for seat in range(2)], axis=1)

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.round >= self.rounds

    def truncated(self, params: Params, state: State) -> Array:
        return state.round < 0

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        return f"round {int(state.round[lane])}: {int(state.action[lane])}"


@dataclass(frozen=True)
class Bids(Turns):
    """The first player's action is a number: beyond 0.5 it counts as 1."""

    @property
    def action_spaces(self) -> tuple[Box, Discrete]:
        return Box(0.25, 1.0, (1,), np.float32), Discrete(2)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        return super().step(params, state, (xp.astype(actions[0][:, 0] > 0.5, xp.int64), actions[1]), noise)

    def legal(self, params: Params, state: State, seat: int) -> tuple[Array, ...] | None:
        return super().legal(params, state, seat) if seat else None
