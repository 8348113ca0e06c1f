"""Multi-layer perceptrons as lists of weights: what policies play with and learners train."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

FORBIDDEN = -1e9
"""Logit of a choice that may not be taken: its probability is exactly 0, its logarithm still finite."""

Layers = Sequence[tuple[Tensor, Tensor]]


def forward(layers: Layers, features: Tensor) -> Tensor:
    """Outputs [..., O] of a perceptron with rectifiers between its layers, for features [..., D]."""
    return nn.functional.linear(layer_inputs(layers, features)[-1], *layers[-1])


def policy_outputs(layers: Layers, features: Tensor) -> Tensor:
    """Outputs [O, B] for features [B, D]; last axis the rows, since sums over few choices are then fast."""
    return last_outputs(layers, layer_inputs(layers, features)[-1])


def last_outputs(layers: Layers, last_input: Tensor) -> Tensor:
    """Outputs [O, B] of the last layer's input [B, H]."""
    weight, bias = layers[-1]
    return torch.addmm(bias[:, None], weight, last_input.t())


def layer_inputs(layers: Layers, features: Tensor) -> list[Tensor]:
    """What each layer is given, from the features [..., D] on."""
    inputs = [features]
    for weight, bias in layers[:-1]:
        inputs.append(nn.functional.linear(inputs[-1], weight, bias).relu_())
    return inputs


def backward(layers: Layers, gradients: Layers, inputs: Sequence[Tensor], outer: Tensor) -> None:
    """Write the layers' gradients, given d loss / d outputs [B, O] and the `layer_inputs`.

    Automatic differentiation would spend half as much time again on so small networks.
    """
    for index in range(len(layers) - 1, -1, -1):
        weight_gradient, bias_gradient = gradients[index]
        torch.mm(outer.t(), inputs[index], out=weight_gradient)
        torch.sum(outer, 0, out=bias_gradient)
        if index:
            outer = outer.mm(layers[index][0]).mul_(inputs[index].sign())  # 1 where a rectifier let through, else 0


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
        layers.append((torch.tensor(weight, dtype=torch.float32), torch.tensor(bias, dtype=torch.float32)))
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


class Parameters:
    """Copies of several networks' layers for training, parts of one vector, with one of gradients beside it.

    Clipping a network's gradient and Adam's step then take a few calls, rather than a few per tensor. `networks` holds
    the layers, `gradients` theirs, and `parts` each network's part of the vector of gradients.
    """

    LINE = 16  # floats: every tensor starts at a multiple of 64 bytes, as `marl.policies.aligned` wants
    DECAY = (0.9, 0.999)
    EPSILON = 1e-5

    def __init__(self, networks: Sequence[Layers], device: torch.device):
        shapes = [[part.shape for pair in layers for part in pair] for layers in networks]
        sizes = [[-(-shape.numel() // self.LINE) * self.LINE for shape in network] for network in shapes]
        total = sum(map(sum, sizes))
        self.vector, self.gradient, self.mean, self.square = (torch.zeros(total, device=device) for _ in range(4))
        self.steps = 0
        self.parts = self.gradient.split([sum(network) for network in sizes])
        self.networks, self.gradients = (
            [
                _pairs(part, network, shape)
                for part, network, shape in zip(
                    vector.split([sum(network) for network in sizes]), sizes, shapes, strict=True
                )
            ]
            for vector in (self.vector, self.gradient)
        )
        for ours, given in zip(self.networks, networks, strict=True):
            for (weight, bias), (initial_weight, initial_bias) in zip(ours, given, strict=True):
                weight.copy_(initial_weight)
                bias.copy_(initial_bias)

    def descend(self, learning_rate: float) -> None:
        """One step of Adam along the gradient [Kingma & Ba 2015, algorithm 1]."""
        self.steps += 1
        first, second = self.DECAY
        self.mean.lerp_(self.gradient, 1 - first)
        self.square.mul_(second).addcmul_(self.gradient, self.gradient, value=1 - second)
        deviation = self.square.sqrt().div_((1 - second**self.steps) ** 0.5).add_(self.EPSILON)
        self.vector.addcdiv_(self.mean, deviation, value=-learning_rate / (1 - first**self.steps))

    def state_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name).clone() for name in ("vector", "mean", "square")}
        return kept | {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("vector", "mean", "square"):
            getattr(self, name).copy_(torch.as_tensor(state[name]))
        self.steps = int(state["steps"])


def clip_norm(gradient: Tensor, limit: float) -> Tensor:
    """Scale a gradient [P] down to norm `limit`, in place; the norm it had."""
    norm = gradient.norm()
    gradient.mul_((limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


def _pairs(vector: Tensor, sizes: Sequence[int], shapes: Sequence[torch.Size]) -> list[tuple[Tensor, Tensor]]:
    """Views of the vector's lines as (weight, bias) a layer."""
    views = [line[: shape.numel()].view(shape) for line, shape in zip(vector.split(list(sizes)), shapes, strict=True)]
    return list(zip(views[::2], views[1::2], strict=True))


def _orthogonal(height: int, width: int, generator: np.random.Generator) -> np.ndarray:
    tall = generator.standard_normal((max(height, width), min(height, width)))
    basis, upper = np.linalg.qr(tall)
    basis = basis * np.sign(np.diag(upper))  # without the signs the draw is not uniform over rotations
    return basis if height >= width else basis.T
