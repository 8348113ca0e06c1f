"""Neural policies."""

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor

from games.game import Array, factors
from marl.networks import FORBIDDEN, Layers, policy_outputs


class NeuralPolicy:
    """A perceptron's factored categorical over Discrete or MultiDiscrete actions. Implements `games.game.Policy`.

    `layers` end in F * A logits, A the largest number of choices of the F factors (`marl.networks.policy_layers`).
    Factors are drawn independently, one noise column each; `greedy` takes each factor's likeliest choice instead,
    and no noise.
    Observations may be NumPy's or torch's, and actions come back in the same kind.

    Raises ValueError for layers that do not fit the choices.
    """

    def __init__(self, layers: Layers, choices: tuple[int, ...], flat: bool, greedy: bool = False):
        self.layers = tuple((aligned(weight.detach()), aligned(bias.detach())) for weight, bias in layers)
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

    def __reduce__(self) -> tuple:
        # Whichever process it comes to, it has to multiply from aligned memory there too.
        return NeuralPolicy, (self.layers, self.choices, self.flat, self.greedy)

    def __repr__(self) -> str:
        hidden = tuple(weight.shape[0] for weight, _ in self.layers[:-1])
        return f"NeuralPolicy(features={self.features}, hidden={hidden}, choices={self.choices}, greedy={self.greedy})"

    @property
    def device(self) -> torch.device:
        return self.layers[0][0].device

    def to(self, device: str | torch.device) -> "NeuralPolicy":
        """The same policy on a device."""
        layers = [(weight.to(device), bias.to(device)) for weight, bias in self.layers]
        return NeuralPolicy(layers, self.choices, self.flat, self.greedy)

    @property
    def noise_size(self) -> int:
        return 0 if self.greedy else len(self.choices)

    def start(self, lanes: int) -> None:
        return None

    @torch.inference_mode()
    def act(
        self, observation: Array, legal: tuple[Array, ...] | None, memory: None, noise: Array
    ) -> tuple[Array, None]:
        logits = self._logits(observation, legal)
        # (argmax over any but the last axis is several times slower.)
        actions = logits.max(1).indices if self.greedy else draw(logits.softmax(1), tensor(noise, self.device).t())
        return like(actions[0] if self.flat else actions.t(), observation), None

    @torch.inference_mode()
    def probabilities(self, observation: Array, legal: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """One [B, A_f] a factor; rows without a legal choice are treated as all legal."""
        logits = self._logits(observation, legal)
        if self.greedy:
            rows = torch.zeros_like(logits).scatter_(1, logits.max(1, keepdim=True).indices, 1.0)
        else:
            rows = logits.softmax(1)
        return tuple(like(row[:size].t(), observation) for row, size in zip(rows, self.choices, strict=True))

    def _logits(self, observation: Array, legal: tuple[Array, ...] | None) -> Tensor:
        outputs = policy_outputs(self.layers, aligned(tensor(observation, self.device)))
        logits = outputs.view(*self.shape, len(observation))
        return logits if legal is None else masked(logits, padded(legal, logits.shape[1], self.device))


def padded(legal: tuple[Array, ...], width: int, device: torch.device) -> Tensor:
    """Masks [B, A_f], one a factor, as one [F, width, B]; rows without a legal choice become all legal."""
    masks = [tensor(mask, device).t() for mask in legal]
    masks = [mask | ~mask.any(0, keepdim=True) for mask in masks]
    return torch.stack([torch.nn.functional.pad(mask, (0, 0, 0, width - len(mask))) for mask in masks])


def masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits with those of forbidden choices replaced, so that their probability is exactly 0."""
    return torch.where(allowed, logits, FORBIDDEN)


def draw(probabilities: Tensor, noise: Tensor) -> Tensor:
    """[F, B] int64 choices by inverse CDF from probabilities [F, A, B] and uniforms [F, B]; never of probability 0.

    The last cumulative sum may round below 1, and the uniform's share of it up to it: hence the factor below one.
    """
    cumulative = probabilities.cumsum(1)
    threshold = noise * (cumulative[:, -1] * (1 - 2**-22))
    return (threshold[:, None] >= cumulative).sum(1)


def tensor(array: Array, device: torch.device) -> Tensor:
    """NumPy's or torch's array as a tensor on the device, sharing memory where it can."""
    if isinstance(array, np.ndarray):
        # torch warns of read-only memory, whatever is done with it.
        array = torch.from_numpy(array if array.flags.writeable else array.copy())
    return array.to(device)


def aligned(array: Tensor) -> Tensor:
    """The tensor itself where it is contiguous from a multiple of 64 bytes, else such a copy.

    Matrix products may differ in the last bit with where, and in what order, their arguments lie in memory.
    """
    return (
        array
        if array.is_contiguous() and array.data_ptr() % 64 == 0
        else torch.empty_like(array, memory_format=torch.contiguous_format).copy_(array)
    )


def like(result: Tensor, given: Array) -> Any:
    """The tensor in the kind, and on the device, of the array it answers."""
    if isinstance(given, np.ndarray):
        return result.numpy(force=True)
    return result.to(given.device)
