"""Gaussian policies in bounded boxes of actions: squashed by tanh, so that no draw falls outside.

A pre-action u is Gaussian; the action is low + (tanh(u) + 1) / 2 * (high - low). Rows are the last axis of everything,
since reductions over few dimensions are then fast: outputs of a network are [2D, M], D means and D log standard
deviations of M rows. [Haarnoja et al. 2018, appendix C]
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor

from games.game import Array, Legal
from marl.networks import Layers, policy_outputs
from marl.policies import aligned, aligned_layers, like, tensor

LOG_STD = (-20.0, 2.0)
"""Log standard deviations are cut off there, and what lies beyond has no gradient."""


class Moments(NamedTuple):
    """Of the pre-actions."""

    mean: Tensor  # [D, M]
    log_std: Tensor  # [D, M], within LOG_STD


def moments(outputs: Tensor) -> Moments:
    """Of a network's outputs [2D, M]."""
    mean, log_std = outputs.chunk(2)
    return Moments(mean, log_std.clamp(*LOG_STD))


def normal_draws(noise: Tensor) -> Tensor:
    """Standard normal numbers by inverse CDF from uniforms in [0, 1), the middle of each step of 2^-23 being meant."""
    return torch.special.ndtri((noise + 2**-24).clamp_(max=1 - 2**-24))


def sample(outputs: Tensor, noise: Tensor) -> Tensor:
    """[D, M] pre-actions u, differentiable by the outputs [2D, M]; noise [D, M] are uniforms in [0, 1)."""
    mean, log_std = moments(outputs)
    return mean + log_std.exp() * normal_draws(noise)


def log_prob(outputs: Tensor, u: Tensor) -> Tensor:
    """[M] log density of pre-actions u [D, M]; that of tanh(u) is less by the `squash_correction(u)`.

    Ratios of densities need no correction: it is the same above and below.
    """
    mean, log_std = moments(outputs)
    squares = ((u - mean) * (-log_std).exp()).square()
    return -(0.5 * squares + log_std + 0.5 * math.log(2 * math.pi)).sum(0)


def squash_correction(u: Tensor) -> Tensor:
    """[M] log |d tanh(u) / du|, summed over u [D, M]: densities and entropies are those in the box [-1, 1]^D.

    Written so that it stays exact where tanh(u) rounds to 1.
    """
    return (2 * (math.log(2) - u - torch.nn.functional.softplus(-2 * u))).sum(0)


def entropy(outputs: Tensor) -> Tensor:
    """[M] of the Gaussian u; that of the action has no closed form."""
    _, log_std = moments(outputs)
    return (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(0)


class GaussianPolicy:
    """A perceptron's squashed Gaussian over a bounded Box (D,) of float32. Implements `games.game.Policy`.

    `layers` end in 2D outputs, means and log standard deviations of the pre-actions; `low` and `high` [D] bound the
    actions. Every dimension takes one noise column; `greedy` plays the squashed mean instead, and needs no noise.
    Observations may be NumPy's or torch's, and actions come back in the same kind.

    Raises ValueError for layers that do not fit the bounds, and bounds that are not finite, in order, and of one size.
    """

    def __init__(self, layers: Layers, low: Array, high: Array, greedy: bool = False):
        self.layers = aligned_layers(layers)
        self.low, self.high = (_bound(part, self.device) for part in (low, high))
        self.greedy = greedy
        self.features, outputs = self.layers[0][0].shape[1], self.layers[-1][0].shape[0]
        if self.low.shape != self.high.shape or not (self.low <= self.high).all():
            raise ValueError(f"low must be at most high in every dimension, got {low} and {high}")
        if outputs != 2 * len(self.low):
            raise ValueError(f"{len(self.low)} dimensions need {2 * len(self.low)} outputs, got {outputs}")

    @classmethod
    def of(cls, layers: Layers, space: Space, greedy: bool = False) -> "GaussianPolicy":
        """For an action space. Raises ValueError unless it is a bounded Box (D,) of float32."""
        low, high = bounds(space)
        return cls(layers, low, high, greedy)

    def __reduce__(self) -> tuple:
        # Whichever process it comes to, it has to multiply from aligned memory there too.
        return GaussianPolicy, (self.layers, self.low, self.high, self.greedy)

    def __repr__(self) -> str:
        hidden = tuple(weight.shape[0] for weight, _ in self.layers[:-1])
        low, high = (tuple(bound.tolist()) for bound in (self.low, self.high))
        return (
            f"GaussianPolicy(features={self.features}, hidden={hidden}, low={low}, high={high}, greedy={self.greedy})"
        )

    @property
    def device(self) -> torch.device:
        return self.layers[0][0].device

    def to(self, device: str | torch.device) -> "GaussianPolicy":
        """The same policy on a device."""
        layers = [(weight.to(device), bias.to(device)) for weight, bias in self.layers]
        return GaussianPolicy(layers, self.low, self.high, self.greedy)

    @property
    def noise_size(self) -> int:
        return 0 if self.greedy else len(self.low)

    def start(self, lanes: int) -> None:
        return None

    @torch.inference_mode()
    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        outputs = policy_outputs(self.layers, aligned(tensor(observation, self.device)))
        u = moments(outputs).mean if self.greedy else sample(outputs, tensor(noise, self.device).t())
        return like(in_box(u, self.low, self.high).t(), observation), None


def in_box(u: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """[D, M] actions within [low, high] of pre-actions u [D, M]; the bounds [D] may be reached by rounding.

    Halves are added, and doubled, which is exact: a box may be wider than float32 is, though its bounds are not.
    """
    low, high = low[:, None], high[:, None]
    quarter = torch.sub(0.25 * high, low, alpha=0.25)
    return u.tanh().add_(1).mul_(quarter).add_(low, alpha=0.5).mul_(2).clamp_(low, high)


def bounds(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Low and high [D] of an action space. Raises ValueError unless it is a bounded Box (D,) of float32, D > 0."""
    if (
        not isinstance(space, Box)
        or len(space.shape) != 1
        or not space.shape[0]
        or space.dtype != np.float32
        or not space.is_bounded()
    ):
        raise ValueError(f"Gaussian policies act in a bounded Box (D,) of float32, D > 0; got {space}")
    return space.low, space.high


def _bound(bound: Array, device: torch.device) -> Tensor:
    found = torch.as_tensor(bound, dtype=torch.float32, device=device).clone()
    if found.ndim != 1 or not found.isfinite().all():
        raise ValueError(f"bounds must be rows [D] of finite numbers, got {bound}")
    return found
