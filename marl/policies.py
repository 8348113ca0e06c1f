"""Neural policies."""

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor

from games.game import Array, factors
from marl.networks import FORBIDDEN, Layers, forward


class NeuralPolicy:
    """A perceptron's factored categorical over Discrete or MultiDiscrete actions. Implements `games.game.Policy`.

    `layers` end in F * A logits, A the largest number of choices of the F factors (`marl.networks.policy_layers`).
    Factors are drawn independently, one noise column each; `greedy` takes each factor's likeliest choice instead.
    Observations may be NumPy's or torch's, and actions come back in the same kind.

    Raises ValueError for layers that do not fit the choices.
    """

    def __init__(self, layers: Layers, choices: tuple[int, ...], flat: bool, greedy: bool = False):
        self.layers = tuple((weight.detach(), bias.detach()) for weight, bias in layers)
        self.choices, self.flat, self.greedy = tuple(choices), flat, greedy
        self.features, outputs = self.layers[0][0].shape[1], self.layers[-1][0].shape[0]
        self.shape = (len(self.choices), max(self.choices))
        if outputs != self.shape[0] * self.shape[1]:
            raise ValueError(f"{self.choices} choices need {self.shape[0] * self.shape[1]} outputs, got {outputs}")
        if flat and len(self.choices) != 1:
            raise ValueError(f"flat actions have one factor, got choices {self.choices}")

    @classmethod
    def of(cls, layers: Layers, space: Space, greedy: bool = False) -> "NeuralPolicy":
        """For an action space, Discrete or MultiDiscrete."""
        return cls(layers, factors(space), space.shape == (), greedy)

    @property
    def device(self) -> torch.device:
        return self.layers[0][0].device

    def to(self, device: str | torch.device) -> "NeuralPolicy":
        """The same policy on a device."""
        layers = [(weight.to(device), bias.to(device)) for weight, bias in self.layers]
        return NeuralPolicy(layers, self.choices, self.flat, self.greedy)

    @property
    def noise_size(self) -> int:
        return len(self.choices)

    def start(self, lanes: int) -> None:
        return None

    @torch.inference_mode()
    def act(
        self, observation: Array, legal: tuple[Array, ...] | None, memory: None, noise: Array
    ) -> tuple[Array, None]:
        logits = self._logits(observation, legal)
        actions = logits.argmax(-1) if self.greedy else draw(logits.softmax(-1), tensor(noise, self.device))
        return like(actions[:, 0] if self.flat else actions, observation), None

    @torch.inference_mode()
    def probabilities(self, observation: Array, legal: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """One [B, A_f] a factor; rows without a legal choice are treated as all legal."""
        logits = self._logits(observation, legal)
        if self.greedy:
            rows = torch.nn.functional.one_hot(logits.argmax(-1), self.shape[1]).to(logits.dtype)
        else:
            rows = logits.softmax(-1)
        return tuple(like(rows[:, factor, :size], observation) for factor, size in enumerate(self.choices))

    def _logits(self, observation: Array, legal: tuple[Array, ...] | None) -> Tensor:
        logits = forward(self.layers, tensor(observation, self.device)).view(-1, *self.shape)
        if legal is None:
            return logits
        return masked(logits, padded([tensor(mask, self.device) for mask in legal], self.shape[1]))


def padded(legal: list[Tensor], width: int) -> Tensor:
    """Masks [B, A_f], one a factor, as one [B, F, width]; rows without a legal choice become all legal."""
    rows = [mask | ~mask.any(-1, keepdim=True) for mask in legal]
    return torch.stack([torch.nn.functional.pad(row, (0, width - row.shape[-1])) for row in rows], dim=-2)


def masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits [..., F, A] with those of forbidden choices replaced, so that their probability is exactly 0."""
    return torch.where(allowed, logits, FORBIDDEN)


def draw(probabilities: Tensor, noise: Tensor) -> Tensor:
    """[B, F] int64 choices by inverse CDF from probabilities [B, F, A] and uniforms [B, F]; never one of probability 0.

    The last cumulative sum may round below 1, and the uniform's share of it up to it: hence the factor below one.
    """
    cumulative = probabilities.cumsum(-1)
    threshold = noise * (cumulative[..., -1] * (1 - 2**-22))
    return (threshold.unsqueeze(-1) >= cumulative).sum(-1)


def tensor(array: Array, device: torch.device) -> Tensor:
    """NumPy's or torch's array as a tensor on the device, sharing memory where it can."""
    if isinstance(array, np.ndarray):
        # torch warns of read-only memory, whatever is done with it.
        array = torch.from_numpy(array if array.flags.writeable else array.copy())
    return array.to(device)


def like(result: Tensor, given: Array) -> Any:
    """The tensor in the kind, and on the device, of the array it answers."""
    if isinstance(given, np.ndarray):
        return result.numpy(force=True)
    return result.to(given.device)
