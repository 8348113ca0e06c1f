"""Multi-layer perceptrons as lists of weights: what policies play with and learners train."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

FORBIDDEN = -1e9
"""Logit of a choice that may not be taken: its probability is exactly 0, its logarithm still finite."""

Layers = Sequence[tuple[Tensor, Tensor]]


def forward(layers: Layers, features: Tensor) -> Tensor:
    """Outputs [B, O] of a perceptron with rectifiers between its layers, for features [B, D]."""
    for weight, bias in layers[:-1]:
        features = torch.relu(nn.functional.linear(features, weight, bias))
    return nn.functional.linear(features, *layers[-1])


def choice_logits(layers: Layers, features: Tensor, factors: int) -> Tensor:
    """Logits [F, A, B] of features [B, D]; last axis the rows, since sums over few choices are then fast."""
    for weight, bias in layers[:-1]:
        features = torch.relu(nn.functional.linear(features, weight, bias))
    weight, bias = layers[-1]
    return torch.addmm(bias[:, None], weight, features.t()).view(factors, -1, len(features))


def orthogonal_layers(sizes: Sequence[int], gain: float, generator: np.random.Generator) -> list[tuple[Tensor, Tensor]]:
    """(weight [out, in], bias [out]) per layer: orthogonal, scaled by sqrt(2) inside and by `gain` at the end.

    Inner biases are small but not zero, or a row of zeros (all that a one-shot game shows) would reach no rectifier.
    [Saxe et al. 2014; the gains of Andrychowicz et al. 2021, section 3.2]
    """
    layers = []
    for index, (width, height) in enumerate(pairwise(sizes)):
        last = index == len(sizes) - 2
        weight = (gain if last else 2**0.5) * _orthogonal(height, width, generator)
        bias = np.zeros(height) if last else generator.uniform(-0.3, 0.3, height)
        layers.append(tuple(torch.tensor(part, dtype=torch.float32) for part in (weight, bias)))
    return layers


def policy_layers(
    features: int, hidden: Sequence[int], choices: Sequence[int], generator: np.random.Generator
) -> list[tuple[Tensor, Tensor]]:
    """Layers of a factored policy: its outputs are logits [F * A], A the largest number of choices of a factor.

    Outputs beyond a factor's own choices are born forbidden; their gradient is exactly 0, so they stay so.
    """
    width = max(choices)
    layers = orthogonal_layers((features, *hidden, len(choices) * width), 0.01, generator)
    weight, bias = layers[-1]
    beyond = (torch.arange(width) >= torch.tensor(choices)[:, None]).flatten()
    weight[beyond], bias[beyond] = 0.0, FORBIDDEN
    return layers


def _orthogonal(height: int, width: int, generator: np.random.Generator) -> np.ndarray:
    tall = generator.standard_normal((max(height, width), min(height, width)))
    basis, upper = np.linalg.qr(tall)
    basis = basis * np.sign(np.diag(upper))  # without the signs the draw is not uniform over rotations
    return basis if height >= width else basis.T
