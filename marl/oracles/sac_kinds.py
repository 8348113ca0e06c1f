"""What SAC does differently in a Box and among choices: networks, targets, and how critics move the actor."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor

from marl.heads import Categorical, Gaussian, Head
from marl.networks import Layers, in_precision_of, last_outputs, layer_inputs, orthogonal_layers, policy_outputs
from marl.policies import masked
from marl.soft import (
    Choices,
    choice_gradient,
    chosen,
    lower_values,
    soft_value,
    squashed,
    squashed_gradient,
    unit_actions,
)

Sample = Mapping[str, Tensor]  # rows of a replay, see `marl.experience.Experience`


class Improvement(NamedTuple):
    """How the actor shall change."""

    gradient: Tensor  # [M, O] of its loss, by its outputs
    loss: Tensor  # [M]
    entropy: Tensor  # [M]
    wanted: Tensor  # [M] entropy


class Kind(Protocol):
    """A kind of action. Networks are given by their layers, observations [M, D] by the sample."""

    @property
    def head(self) -> Head:
        """Its distributions, of `rows` factors or dimensions."""

    def critic(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        """Fresh layers of a critic."""

    def next_values(
        self, actor: Layers, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Tensor:
        """[M] soft values of the next observations."""

    def critic_features(self, sample: Sample) -> Tensor:
        """[M, C] what critics are shown of observations and the actions taken there."""

    def value(self, outputs: Tensor, sample: Sample) -> Tensor:
        """[M] values of the actions taken, from a critic's outputs [O, M]."""

    def by_outputs(self, by_value: Tensor, sample: Sample) -> Tensor:
        """[M, O] gradient by a critic's outputs, from that by its values [M]."""

    def improvement(
        self, outputs: Tensor, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Improvement:
        """Of the actor's loss at its outputs [O, M]."""


class SoftActions:
    """A bounded Box: squashed Gaussians, and critics of observation and action. Implements `Kind`.

    Raises ValueError for any other space.
    """

    def __init__(self, space: Space, entropy: float, device: torch.device):
        self.head, self.entropy = Gaussian(space, log_std=0.0), entropy
        self.low, self.high = self.head.low.to(device), self.head.high.to(device)

    def critic(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        return orthogonal_layers((features + self.head.rows, *hidden, 1), 1.0, generator)

    def next_values(
        self, actor: Layers, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Tensor:
        observation = sample["next_observation"]
        drawn = squashed(policy_outputs(actor, observation), noise)
        features = torch.cat([observation, drawn.action.t()], 1)
        first, second = (policy_outputs(critic, features)[0] for critic in critics)
        return torch.minimum(first, second) - temperature * drawn.log_prob

    def critic_features(self, sample: Sample) -> Tensor:
        return torch.cat([sample["observation"], unit_actions(sample["action"], self.low, self.high)], 1)

    def value(self, outputs: Tensor, sample: Sample) -> Tensor:
        return outputs[0]

    def by_outputs(self, by_value: Tensor, sample: Sample) -> Tensor:
        return by_value[:, None]

    def improvement(
        self, outputs: Tensor, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Improvement:
        drawn = squashed(outputs, noise)
        features = torch.cat([sample["observation"], drawn.action.t()], 1)
        inputs = [layer_inputs(critic, features) for critic in critics]
        first, second = (last_outputs(critic, given[-1])[0] for critic, given in zip(critics, inputs, strict=True))
        lower = (first < second).to(first.dtype)
        by_features = [
            input_gradient(critic, given, outer[:, None])
            for critic, given, outer in zip(critics, inputs, (lower, 1 - lower), strict=True)
        ]
        by_action = (by_features[0] + by_features[1])[:, -self.head.rows :].t()
        return Improvement(
            squashed_gradient(outputs, drawn, by_action, temperature).t(),
            temperature * drawn.log_prob - torch.minimum(first, second),
            -drawn.log_prob,
            torch.full_like(first, self.entropy * self.head.rows),
        )


class SoftChoices:
    """Discrete or MultiDiscrete: categorical factors, and critics of all choices at once. Implements `Kind`.

    Raises ValueError for any other space.
    """

    def __init__(self, space: Space, entropy: float, device: torch.device):
        self.head, self.entropy = Categorical(space), entropy
        self.shape = (self.head.rows, self.head.width)
        self.counts = torch.tensor(self.head.choices, device=device)

    def critic(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        return orthogonal_layers((features, *hidden, self.shape[0] * self.shape[1]), 1.0, generator)

    def next_values(
        self, actor: Layers, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Tensor:
        observation = sample["next_observation"]
        choices = self._choices(policy_outputs(actor, observation), sample.get("next_legal"))
        return soft_value(self._lower(critics, observation, choices), choices, temperature)

    def critic_features(self, sample: Sample) -> Tensor:
        return sample["observation"]

    def value(self, outputs: Tensor, sample: Sample) -> Tensor:
        return chosen(self._factored(outputs), sample["action"].t())

    def by_outputs(self, by_value: Tensor, sample: Sample) -> Tensor:
        actions = sample["action"]
        outer = by_value.new_zeros(len(by_value), *self.shape)
        return outer.scatter_(2, actions[:, :, None], by_value[:, None, None].expand(*actions.shape, 1)).flatten(1)

    def improvement(
        self, outputs: Tensor, critics: Sequence[Layers], sample: Sample, temperature: Tensor, noise: Tensor
    ) -> Improvement:
        legal = sample.get("legal")
        choices = self._choices(outputs, legal)
        values = self._lower(critics, sample["observation"], choices)
        counts = self.counts.expand(outputs.shape[1], -1) if legal is None else legal.sum(2)
        return Improvement(
            choice_gradient(values, choices, temperature).flatten(0, 1).t(),
            -soft_value(values, choices, temperature),
            choices.entropy,
            self.entropy * counts.log().sum(1),
        )

    def _factored(self, outputs: Tensor) -> Tensor:
        return outputs.view(*self.shape, outputs.shape[1])

    def _choices(self, outputs: Tensor, legal: Tensor | None) -> Choices:
        logits = self._factored(outputs)
        return Choices.of(logits if legal is None else masked(logits, legal.permute(1, 2, 0)))

    def _lower(self, critics: Sequence[Layers], observation: Tensor, choices: Choices) -> Tensor:
        return lower_values([self._factored(policy_outputs(critic, observation)) for critic in critics], choices)


def input_gradient(layers: Layers, inputs: Sequence[Tensor], outer: Tensor) -> Tensor:
    """[B, D] gradient by what a perceptron is given, from that by its outputs [B, O]; see `networks.backward`."""
    for index in range(len(layers) - 1, -1, -1):
        weight = layers[index][0]
        outer = in_precision_of(weight, outer).mm(weight)
        if index:
            outer = torch.ops.aten.threshold_backward(outer, inputs[index], 0)
    return in_precision_of(layers[-1][0], outer)


def kind_of(space: Space, box_entropy: float, choice_entropy: float, device: torch.device) -> Kind:
    """The kind of a space's actions. Raises ValueError where SAC has none."""
    if isinstance(space, Box):
        return SoftActions(space, box_entropy, device)
    return SoftChoices(space, choice_entropy, device)
