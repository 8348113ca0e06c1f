"""Perceptrons as lists of weights, convolutions before them or not: what policies play with and learners train.

A layer is a weight and a bias [O]. A weight [O, I] multiplies rows of features; a weight [O, C, k, k] is a convolution
of stride max(1, k // 2), without padding, over pictures [M, C, H, W], or [M, H, W] where C is 1. Rectifiers stand
between layers, and what the last convolution found is flattened. [Mnih et al. 2015: their filters of 8, 4 and 3 pixels
across move by 4, 2 and 1]
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

FORBIDDEN = -1e9
"""Logit of a choice that may not be taken: its probability is exactly 0, its logarithm still finite."""

NARROW = 8
"""Up to so many inputs a layer's gradient is multiplied the other way round: on CPUs in half the time."""

Layers = Sequence[tuple[Tensor, Tensor]]


def copied(layers: Layers, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Copies on a device, of layers that may lie anywhere."""
    return [
        (torch.as_tensor(weight).to(device, copy=True), torch.as_tensor(bias).to(device, copy=True))
        for weight, bias in layers
    ]


def forward(layers: Layers, features: Tensor) -> Tensor:
    """Outputs [..., O] for features [..., D], or [M, O] for pictures."""
    return nn.functional.linear(_rows(layer_inputs(layers, features)[-1]), *layers[-1])


def policy_outputs(layers: Layers, features: Tensor) -> Tensor:
    """Outputs [O, B] for features [B, D] or pictures; last axis the rows, since sums over few choices are then fast."""
    return last_outputs(layers, layer_inputs(layers, features)[-1])


def last_outputs(layers: Layers, last_input: Tensor) -> Tensor:
    """Outputs [O, B] of the last layer's input [B, H]."""
    weight, bias = layers[-1]
    return torch.addmm(bias[:, None], weight, _rows(last_input).t())


def layer_inputs(layers: Layers, features: Tensor) -> list[Tensor]:
    """What each layer is given, from the features [..., D] or pictures on, in the layer's own precision."""
    first = layers[0][0]
    shown = features[:, None] if first.ndim == 4 and features.ndim == 3 else features
    inputs = [in_precision_of(first, shown)]
    for index, (weight, bias) in enumerate(layers[:-1]):
        given = inputs[index]
        if weight.ndim == 4:
            found = nn.functional.conv2d(given, weight, bias, stride(weight))
        else:
            found = nn.functional.linear(_rows(given), weight, bias)
        inputs.append(in_precision_of(layers[index + 1][0], found.relu_()))
    return inputs


def backward(layers: Layers, gradients: Layers, inputs: Sequence[Tensor], outer: Tensor) -> None:
    """Write the layers' gradients, given d loss / d outputs [B, O] and the `layer_inputs`.

    Automatic differentiation would spend half as much time again on so small networks.
    """
    for index in range(len(layers) - 1, -1, -1):
        weight, given, further = layers[index][0], inputs[index], index > 0
        back = _back_through_convolution if weight.ndim == 4 else _back_through_product
        outer = back(weight, gradients[index], given, in_precision_of(weight, outer), further)
        if further:
            outer = torch.ops.aten.threshold_backward(outer, given, 0)  # of the rectifier: 0 where it gave 0


def _back_through_product(
    weight: Tensor, gradients: tuple[Tensor, Tensor], given: Tensor, outer: Tensor, further: bool
) -> Tensor:
    """Write a layer's gradients; d loss / d what it was given, where it is to go further."""
    (by_weight, by_bias), rows = gradients, _rows(given)
    if weight.shape[1] <= NARROW:
        by_weight.copy_(rows.t().mm(outer).t())
    elif weight.dtype == by_weight.dtype:
        torch.mm(outer.t(), rows, out=by_weight)
    else:
        by_weight.copy_(outer.t().mm(rows))
    torch.sum(outer, 0, out=by_bias, dtype=by_bias.dtype)
    return outer.mm(weight).view_as(given) if further else outer


def _back_through_convolution(
    weight: Tensor, gradients: tuple[Tensor, Tensor], given: Tensor, outer: Tensor, further: bool
) -> Tensor:
    """As `_back_through_product`."""
    step = [stride(weight)] * 2
    found = torch.ops.aten.convolution_backward(
        outer, given, weight, [len(weight)], step, [0, 0], [1, 1], False, [0, 0], 1, [further, True, True]
    )
    for gradient, part in zip(gradients, found[1:], strict=True):
        gradient.copy_(part)
    return found[0]


def _rows(given: Tensor) -> Tensor:
    """What a matrix multiplies: pictures are flattened."""
    return given.flatten(1) if given.ndim == 4 else given


def in_precision_of(weight: Tensor, given: Tensor) -> Tensor:
    return given if given.dtype == weight.dtype else given.to(weight.dtype)


def stride(weight: Tensor) -> int:
    """By how many pixels the filters of a convolution [O, C, k, k] move."""
    return max(1, weight.shape[-1] // 2)


def computing(layers: Layers, autocast: bool) -> Layers:
    """The layers, with `autocast` all but the last in bfloat16.

    That takes half the memory and, on CUDA, less time, for 1 % of error or so.
    """
    return [*((weight.bfloat16(), bias.bfloat16()) for weight, bias in layers[:-1]), layers[-1]] if autocast else layers


FILTERS = {64: ((32, 8), (64, 4), (64, 3)), 20: ((16, 8), (32, 4)), 10: ((16, 4), (32, 3)), 3: ((16, 3),)}
"""(filters, pixels across) of each convolution, for pictures of at least so many pixels.

From 64 on they are those of Mnih et al. (2015), from 20 on those of Mnih et al. (2013).
"""


def convolutions(shape: Sequence[int], generator: np.random.Generator) -> tuple[list[tuple[Tensor, Tensor]], int]:
    """Orthogonal layers that make features of what is observed, and the number of these.

    shape: (D,) of features, which need none; (C, H, W) or (H, W) of pictures, for which FILTERS says.
    Raises ValueError for other shapes, and pictures that are too small.
    """
    if len(shape) == 1:
        return [], shape[0]
    if len(shape) not in (2, 3) or min(shape[-2:]) < min(FILTERS):
        raise ValueError(
            f"observations must be rows of features, (D,), or pictures of at least {min(FILTERS)} pixels each way, "
            f"(channels, height, width) or (height, width); got the shape {tuple(shape)}: flatten them first"
        )
    layers, depth = [], channels(shape)
    for filters, across in FILTERS[max(size for size in FILTERS if size <= min(shape[-2:]))]:
        (weight, bias), *_ = orthogonal_layers((depth * across**2, filters, 1), 1.0, generator)
        layers.append((weight.view(filters, depth, across, across), bias))
        depth = filters
    return layers, flat_features(layers, shape)


def channels(shape: Sequence[int]) -> int:
    """What the first layer takes of observations of this shape: features, or channels of pictures."""
    return 1 if len(shape) == 2 else shape[0]


def check_takes(layers: Layers, shape: Sequence[int]) -> None:
    """Raises ValueError for a network of other observations than those of this shape."""
    (first, _), dense = layers[0], next(weight for weight, _ in layers if weight.ndim == 2)
    kind = 2 if len(shape) == 1 else 4
    if (first.ndim, first.shape[1], dense.shape[1]) != (kind, channels(shape), flat_features(layers, shape)):
        raise ValueError(f"observations are {tuple(shape)}, but the policy to go on from was made for others")


def flat_features(layers: Layers, shape: Sequence[int]) -> int:
    """Features [F] that a network's convolutions, if any, make of observations of this shape."""
    convolved = [weight for weight, _ in layers if weight.ndim == 4]
    if not convolved:
        return math.prod(shape)
    sides = list(shape[-2:])
    for weight in convolved:
        sides = [(side - weight.shape[-1]) // stride(weight) + 1 for side in sides]
    return math.prod(sides) * len(convolved[-1])


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
    norm = torch.linalg.vector_norm(gradient)
    gradient.mul_((norm + 1e-6).reciprocal_().mul_(limit).clamp_(max=1.0))
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
