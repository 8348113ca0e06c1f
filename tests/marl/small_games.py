"""Little games and players with answers known by heart."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.game import Array, feature_box
from marl.networks import policy_outputs


@dataclass(frozen=True)
class Fixed:
    """Plays the same mixture always (NumPy only)."""

    mixture: tuple[float, ...]
    noise_size: int = 1

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        return np.searchsorted(np.cumsum(self.mixture)[:-1], noise[:, 0], side="right"), None


class Shown(NamedTuple):
    code: Array  # [B, F]
    decoy: Array  # [B, F]
    rewards: Array  # [B, 1]


@dataclass(frozen=True)
class Lock:
    """One seat, one step: each wheel set to the number shown pays 1; legal are that number and a decoy."""

    wheels: tuple[int, ...] = (5, 3)
    agents = ("dialler",)
    noise_sizes = (4, 0)
    best = 2.0

    @property
    def observation_spaces(self):
        return (feature_box(sum(self.wheels)),)

    @property
    def action_spaces(self):
        return (MultiDiscrete(self.wheels),)

    def params(self):
        return None

    def init(self, params, noise):
        sizes = np.array(self.wheels)
        code = (noise[:, :2] * sizes).astype(np.int64)
        decoy = (noise[:, 2:] * sizes).astype(np.int64)
        return Shown(code, decoy, np.zeros((len(noise), 1), np.float32))

    def step(self, params, state, actions, noise):
        return state._replace(rewards=(actions[0] == state.code).sum(axis=1, keepdims=True).astype(np.float32))

    def observe(self, params, state, seat):
        return np.concatenate(_one_hot(state.code, self.wheels), axis=1).astype(np.float32)

    def legal(self, params, state, seat):
        pairs = zip(_one_hot(state.code, self.wheels), _one_hot(state.decoy, self.wheels), strict=True)
        return tuple(code | decoy for code, decoy in pairs)

    def acting(self, params, state):
        return np.ones((len(state.code), 1), bool)

    def rewards(self, params, state):
        return state.rewards

    def terminated(self, params, state):
        return np.ones(len(state.code), bool)

    def truncated(self, params, state):
        return np.zeros(len(state.code), bool)

    def describe(self, params, state, lane=0):
        return str(state.code[lane])


class Step(NamedTuple):
    step: Array  # [B]


@dataclass(frozen=True)
class FourSteps:
    """What games of one seat and two idle actions share: the fourth step is the last, by the rules or by a limit."""

    truncates: bool
    noise_sizes = (1, 0)

    @property
    def action_spaces(self):
        return (Discrete(2),)

    def params(self):
        return None

    def legal(self, params, state, seat):
        return None

    def acting(self, params, state):
        return np.ones((len(state.step), 1), bool)

    def terminated(self, params, state):
        return (state.step == 4) & (not self.truncates)

    def truncated(self, params, state):
        return (state.step == 4) & self.truncates

    def describe(self, params, state, lane=0):
        return str(state.step[lane])


@dataclass(frozen=True)
class Wander(FourSteps):
    """One seat, two idle actions; every step pays 1 and the fourth is the last, by the rules or by a limit."""

    agents = ("walker",)

    @property
    def observation_spaces(self):
        return (feature_box(1),)

    def init(self, params, noise):
        return Step(np.zeros(len(noise), np.int64))

    def step(self, params, state, actions, noise):
        return Step(state.step + 1)

    def observe(self, params, state, seat):
        # A walker that cannot tell where it is when cut: the value must then be the same everywhere.
        seen = 0.5 + 0 * state.step if self.truncates else state.step / 4
        return seen[:, None].astype(np.float32)

    def rewards(self, params, state):
        return (state.step[:, None] > 0).astype(np.float32)


class Turn(NamedTuple):
    step: Array  # [B]
    rewards: Array  # [B, 1]


@dataclass(frozen=True)
class Patience:
    """One seat that may act in every second step only: then action 1 pays 1, four times an episode."""

    agents = ("waiter",)
    noise_sizes = (1, 0)

    @property
    def observation_spaces(self):
        return (feature_box(1),)

    @property
    def action_spaces(self):
        return (Discrete(2),)

    def params(self):
        return None

    def init(self, params, noise):
        return Turn(np.zeros(len(noise), np.int64), np.zeros((len(noise), 1), np.float32))

    def step(self, params, state, actions, noise):
        pays = self.acting(params, state)[:, 0] & (actions[0] == 1)
        return Turn(state.step + 1, pays[:, None].astype(np.float32))

    def observe(self, params, state, seat):
        return (state.step[:, None] / 8).astype(np.float32)

    def legal(self, params, state, seat):
        return (np.broadcast_to(self.acting(params, state), (len(state.step), 2)),)

    def acting(self, params, state):
        return (state.step % 2 == 1)[:, None]

    def rewards(self, params, state):
        return state.rewards

    def terminated(self, params, state):
        return state.step == 8

    def truncated(self, params, state):
        return np.zeros(len(state.step), bool)

    def describe(self, params, state, lane=0):
        return str(state.step[lane])


class Pledge(NamedTuple):
    step: Array  # [B]
    promise: Array  # [B] 1 or -1


@dataclass(frozen=True)
class Promise(FourSteps):
    """One seat, two idle actions; each of four steps pays what the first one shows, 1 or -1.

    The fourth is the last, by the rules or by a limit.
    """

    agents = ("believer",)

    @property
    def observation_spaces(self):
        return (feature_box(2),)

    def init(self, params, noise):
        return Pledge(np.zeros(len(noise), np.int64), np.where(noise[:, 0] < 0.5, 1, -1))

    def step(self, params, state, actions, noise):
        return state._replace(step=state.step + 1)

    def observe(self, params, state, seat):
        shown = np.stack([state.promise == 1, state.promise == -1], axis=1)
        return (shown & (state.step == 0)[:, None]).astype(np.float32)

    def rewards(self, params, state):
        return np.where(state.step > 0, state.promise, 0)[:, None].astype(np.float32)


@dataclass(frozen=True)
class Painted(Promise):
    """Promises shown in a picture of 3 x 3 pixels."""

    @property
    def observation_spaces(self):
        return (Box(0, 1, (3, 3), np.float32),)

    def observe(self, params, state, seat):
        picture = np.zeros((len(state.step), 3, 3), np.float32)
        picture[:, 1, :2] = super().observe(params, state, seat)
        return picture


@dataclass(frozen=True)
class Spoilt(Patience):
    """Patience whose third lane observes what is no number from the third step on, or leaves no choice to who acts."""

    blind: bool = False

    def observe(self, params, state, seat):
        seen = super().observe(params, state, seat)
        seen[2, 0] = np.nan if self.blind and state.step[2] == 3 else seen[2, 0]
        return seen

    def legal(self, params, state, seat):
        mask = np.array(super().legal(params, state, seat)[0])
        mask[2] &= self.blind or state.step[2] != 3
        return (mask,)


def _one_hot(numbers, sizes):
    return [numbers[:, factor, None] == np.arange(size) for factor, size in enumerate(sizes)]


def playing(layers):
    """What a perceptron's layers do in a rollout."""
    return lambda rollout, step: policy_outputs(layers, rollout.observations[step])
