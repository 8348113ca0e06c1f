"""Policies that play any game."""

from dataclasses import dataclass
from math import prod

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box, Space

from games.game import Array, Legal, Policy, factors
from games.lanes import to_numpy

MASS_TOLERANCE = 1e-6
"""How far probabilities may be from summing to one: float32 rounding stays below it."""

MANY = 64
"""Choices, from which on they are summed up at once."""


@dataclass(frozen=True)
class Uniform:
    """Every legal choice of every factor with equal probability; `choices` numbers them per factor."""

    choices: tuple[int, ...]
    flat: bool
    """Actions are [B] (Discrete) rather than [B, factors]."""

    @classmethod
    def of(cls, space: Space) -> "Uniform | UniformBox":
        """For an action space, Discrete, MultiDiscrete or a bounded Box. Raises ValueError for any other."""
        if isinstance(space, Box) and space.is_bounded():
            return UniformBox(tuple(space.low.ravel().tolist()), tuple(space.high.ravel().tolist()), space.shape)
        return cls(factors(space), flat=space.shape == ())

    @property
    def noise_size(self) -> int:
        return len(self.choices)

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp = array_namespace(noise)
        if legal is None:
            columns = [draw_any(n, noise[:, factor]) for factor, n in enumerate(self.choices)]
        else:
            columns = [draw_legal(mask, noise[:, factor]) for factor, mask in enumerate(legal)]
        return (columns[0] if self.flat else xp.stack(columns, axis=1)), None

    def probabilities(self, observation: Array, legal: Legal) -> tuple[Array, ...]:
        """One [B, A_f] a factor; rows without a legal choice are treated as all legal."""
        xp = array_namespace(observation)
        masks = legal or tuple(
            xp.broadcast_to(xp.ones_like(observation[:, :1]) > 0, (observation.shape[0], n)) for n in self.choices
        )
        weights = [xp.astype(mask | ~xp.any(mask, axis=1, keepdims=True), xp.float32) for mask in masks]
        return tuple(weight / xp.sum(weight, axis=1, keepdims=True) for weight in weights)


@dataclass(frozen=True)
class UniformBox:
    """Every action of a bounded box with equal density."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]

    @property
    def noise_size(self) -> int:
        return len(self.low)

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        # Halves are added, which is exact, since the width of a box may be beyond float32 where its bounds are not.
        halves = [(0.5 * low, 0.5 * high) for low, high in zip(self.low, self.high, strict=True)]
        columns = [2 * (noise[:, i] * (high - low) + low) for i, (low, high) in enumerate(halves)]
        actions = array_namespace(noise).stack(columns, axis=1)
        return actions.reshape(-1, *self.shape), None


def draw_any(choices: int, noise: Array) -> Array:
    """[B] int64 one of so many choices, all equally probable, by uniforms [B]."""
    xp = array_namespace(noise)
    # The largest uniform times a number may round up to it.
    return xp.astype(noise * choices, xp.int64).clip(max=choices - 1)  # `xp.clip` takes NumPy as long as all else


def draw_legal(legal: Array, noise: Array) -> Array:
    """[B] int64 one of the legal choices [B, A], all equally probable, by uniforms [B]; any where none is legal.

    Few choices are gone through one by one, for sums over a short axis of [B, A] take NumPy several times as long.
    """
    xp = array_namespace(legal)
    choices, counts = legal.shape[1], xp.astype(legal, xp.float32)
    if choices > MANY:
        sums = xp.cumulative_sum(counts, axis=1)
        place = xp.minimum(noise * sums[:, -1], sums[:, -1] - 0.5)
        drawn = xp.sum(sums[:, :-1] <= place[:, None], axis=1, dtype=xp.int64)
        return xp.where(sums[:, -1] > 0, drawn, draw_any(choices, noise))
    passed = [counts[:, 0]]  # legal choices up to each
    for choice in range(1, choices):
        passed.append(passed[-1] + counts[:, choice])
    # As in `draw_any`, products may round up.
    place = xp.minimum(noise * passed[-1], passed[-1] - 0.5)
    drawn = xp.zeros_like(place, dtype=xp.int64)
    for count in passed[:-1]:
        drawn = drawn + xp.astype(count <= place, xp.int64)
    return xp.where(passed[-1] > 0, drawn, draw_any(choices, noise))


def draw(probabilities: Array, noise: Array) -> Array:
    """[B] int64 choices by inverse CDF from probabilities [B, A] and uniforms [B]; never one of probability zero."""
    xp = array_namespace(probabilities)
    cumulative = xp.cumulative_sum(probabilities, axis=1)
    # Scaling by the total, and stopping before the last positive choice, keep rounding from falling off the end.
    reached = noise[:, None] * cumulative[:, -1:] >= cumulative
    choice = xp.sum(xp.astype(reached, xp.int64), axis=1)
    index = xp.arange(probabilities.shape[1], device=device(probabilities))
    last = xp.max(xp.where(probabilities > 0, index[None, :], xp.zeros_like(index)[None, :]), axis=1)
    return xp.minimum(choice, last)


def joint_probabilities(policy: Policy, observation: np.ndarray, legal: Legal, choices: tuple[int, ...]) -> np.ndarray:
    """[B, A_1 * ... * A_F] float64: how likely each combination of the factors' `choices` is, in C order.

    Told by the policy's `joint(observation, legal)`, [B, A_1 * ... * A_F]; or by its action, if it has no use for
    noise; or, where it draws its factors one by one, by its `probabilities(observation, legal)`, one [B, A_f] a factor.
    Policies with memory are asked about the start of an episode. Raises ValueError for a policy with none of these, or
    whose answer is no distribution over so many choices.
    """
    lanes = len(observation)
    if hasattr(policy, "joint"):
        rows = to_numpy(policy.joint(observation, legal)).astype(np.float64)
    elif policy.noise_size == 0:
        action, _ = policy.act(observation, legal, policy.start(lanes), np.zeros((lanes, 0), np.float32))
        columns = tuple(to_numpy(action).reshape(lanes, len(choices)).T)
        rows = np.zeros((lanes, prod(choices)))
        rows[np.arange(lanes), np.ravel_multi_index(columns, choices)] = 1
    elif hasattr(policy, "probabilities"):
        rows = np.ones((lanes, 1))
        for factor in policy.probabilities(observation, legal):
            each = to_numpy(factor).astype(np.float64)
            rows = (rows[:, :, None] * each[:, None, :]).reshape(lanes, rows.shape[1] * each.shape[1])
    else:
        raise ValueError(
            f"a policy must tell its probabilities here, got {type(policy).__name__}: give it a method "
            "joint(observation, legal) -> [B, all actions], or probabilities(observation, legal) -> one [B, A] a factor"
        )
    total = rows.sum(axis=1, keepdims=True)
    if rows.shape != (lanes, prod(choices)) or not ((abs(total - 1) <= MASS_TOLERANCE) & (rows >= 0)).all():
        worst = int(abs(total[:, 0] - 1).argmax()) if lanes else 0
        raise ValueError(
            f"probabilities must be [{lanes}, {prod(choices)}], not negative, and sum to 1; {type(policy).__name__} "
            f"gives {rows.shape}, down to {rows.min()}, and a sum of {total[worst, 0]} in row {worst}"
        )
    return rows / total  # policies' float32 sums to 1 up to its rounding
