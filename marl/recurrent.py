"""Recurrent networks as lists of weights, and the policies that play with them.

A core is (weight, bias) pairs as `marl.networks` has them: convolutions and a perceptron, if any, whose last outputs
are rectified too, then a cell by its input, then the cell by its own last output. How many gates that has tells which
of `marl.cells.CELLS` it is. A head, which is linear, makes outputs of the cell's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from games.game import Array, Legal
from marl import networks
from marl.cells import CELLS, Cell, Keep, Leaves
from marl.gaussian import GaussianPolicy
from marl.networks import Layers, convolutions, layer_inputs, orthogonal_layers
from marl.policies import NeuralPolicy, aligned, aligned_layers, like, tensor


def cell_name(core: Layers) -> str:
    """Which of CELLS the core ends in. Raises ValueError for layers that end in none."""
    if len(core) >= 2:
        (by_input, _), (by_output, _) = core[-2:]
        rows, units = by_output.shape
        for name, cell in CELLS.items():
            if rows == len(by_input) == cell.gates * units:
                return name
    shapes = [tuple(weight.shape) for weight, _ in core]
    raise ValueError(f"a recurrent core ends in the two layers of a cell, {' or '.join(CELLS)}, got weights {shapes}")


def fresh_memory(core: Layers, rows: int) -> tuple[np.ndarray, ...]:
    """Zeros [B, H], one a leaf of the cell's memory."""
    units = core[-1][0].shape[1]
    return tuple(np.zeros((rows, units), np.float32) for _ in range(_cell(core).leaves))


def step(core: Layers, features: Tensor, memory: Leaves) -> Leaves:
    """The next memory [B, H] after features [B, D], or pictures; its first leaf is the output."""
    after = tuple(torch.empty_like(leaf) for leaf in memory)
    products = _products(core, layer_inputs(core[:-1], features)[-1])[None]
    _walk(core, products, torch.empty_like(memory[0])[None], memory, [after], [None])
    return after


class Trace(NamedTuple):
    """T steps of M rows, as `unroll` took them."""

    inputs: list[Tensor]  # [T * M, ...] of every layer before the cell, and of the cell
    gates: Tensor  # [T, M, G * H], as `Cell.advance` left them
    scratch: Tensor  # [T, M, H]
    first: Leaves  # memory [M, H] given at the start
    after: Leaves  # memories [T, M, H] after each step
    keep: Keep

    @property
    def outputs(self) -> Tensor:
        """[T * M, H] of the cell."""
        return self.after[0].flatten(0, 1)

    def before(self) -> Leaves:
        """Memories [T, M, H] that each step went on from."""
        steps = [torch.cat([first[None], after[:-1]]) for first, after in zip(self.first, self.after, strict=True)]
        for index, keep in enumerate(self.keep):
            if keep is not None:
                for leaf in steps:
                    leaf[index] *= keep
        return tuple(steps)


def unroll(core: Layers, features: Tensor, memory: Leaves, starts: Tensor) -> Trace:
    """Go through features [T, M, D], or pictures, from memory [M, H].

    That is put back to zeros exactly where starts [T, M], before the step.
    """
    inputs = layer_inputs(core[:-1], features.flatten(0, 1))
    products = _products(core, inputs[-1]).unflatten(0, starts.shape)
    after = tuple(leaf.new_empty(len(starts), *leaf.shape) for leaf in memory)
    scratch = torch.empty_like(after[0])
    kept = (~starts).to(memory[0].dtype)[..., None]
    keep = [kept[index] if some else None for index, some in enumerate(starts.any(1).tolist())]
    _walk(core, products, scratch, memory, zip(*(leaf.unbind() for leaf in after), strict=True), keep)
    return Trace(inputs, products, scratch, memory, after, keep)


def put_back(memory: Leaves, keep: Tensor | None) -> Leaves:
    """The memory [M, H], fresh where keep [M, 1] is 0; None keeps all of it."""
    return memory if keep is None else tuple(leaf * keep for leaf in memory)


def backward(core: Layers, gradients: Layers, trace: Trace, by_outputs: Tensor) -> None:
    """Write the core's gradients, given d loss / d outputs [T * M, H] and the trace. [Werbos 1990]

    Nothing goes back into the memory that was given at the start.
    """
    before, (weight, _) = trace.before(), core[-1]
    outer = by_outputs.view_as(trace.after[0])
    by_input, by_output = _cell(core).retreat(trace.gates, trace.scratch, before, outer, trace.keep, weight)
    networks.backward(core[-1:], gradients[-1:], [before[0].flatten(0, 1)], by_output.flatten(0, 1))
    networks.backward(core[:-1], gradients[:-1], trace.inputs, by_input.flatten(0, 1))


def recurrent_core(
    shape: Sequence[int], hidden: Sequence[int], cell: str, units: int, span: int, generator: np.random.Generator
) -> list[tuple[Tensor, Tensor]]:
    """A fresh core for observations of a shape, (D,) or that of pictures: orthogonal, in the cell gate by gate.

    The cell's biases are 0 but for those that let its units remember for about 1 to `span` steps, evenly spread: a gate
    half open would leave 0.1 % of what was seen ten steps ago. [Saxe et al. 2014; Tallec & Ollivier 2018]
    """
    torso, features = convolutions(shape, generator)
    *perceptron, _ = orthogonal_layers((features, *hidden, 1), 1.0, generator)
    gates, width = CELLS[cell].gates, (features, *hidden)[-1]
    by_input, by_output = (
        torch.cat([orthogonal_layers((size, units), 1.0, generator)[0][0] for _ in range(gates)])
        for size in (width, units)
    )
    bias = torch.zeros(gates * units)
    CELLS[cell].remember(bias, torch.tensor(generator.uniform(1, span, units), dtype=torch.float32))
    return [*torso, *perceptron, (by_input, bias), (by_output, torch.zeros_like(bias))]


class RecurrentPolicy:
    """A recurrent core, and a linear policy that sees its outputs. Implements `games.game.Policy`, with memory.

    Actions, masks, noise and whether it is greedy are the head's, a `NeuralPolicy` or `GaussianPolicy` of one layer.
    Observations may be NumPy's or torch's, and actions and memories come back in the same kind.

    Raises ValueError for a head that does not fit the core.
    """

    def __init__(self, core: Layers, head: NeuralPolicy | GaussianPolicy):
        self.core, self.head, self.cell = aligned_layers(core), head, cell_name(core)
        self.features, self.units = self.core[0][0].shape[1], self.core[-1][0].shape[1]
        if not isinstance(head, NeuralPolicy | GaussianPolicy) or (len(head.layers), head.features) != (1, self.units):
            raise ValueError(
                f"the head must be a neural or Gaussian policy of one layer and {self.units} features, got {head}"
            )

    def __reduce__(self) -> tuple:
        return RecurrentPolicy, (self.core, self.head)

    def __repr__(self) -> str:
        hidden = tuple(weight.shape[0] for weight, _ in self.core[:-2])
        return (
            f"RecurrentPolicy(features={self.features}, hidden={hidden}, cell={self.cell}, units={self.units}, "
            f"head={self.head})"
        )

    @property
    def device(self) -> torch.device:
        return self.core[0][0].device

    def to(self, device: str | torch.device) -> "RecurrentPolicy":
        """The same policy on a device."""
        core = [(weight.to(device), bias.to(device)) for weight, bias in self.core]
        return RecurrentPolicy(core, self.head.to(device))

    @property
    def noise_size(self) -> int:
        return self.head.noise_size

    def start(self, lanes: int) -> tuple[np.ndarray, ...]:
        return fresh_memory(self.core, lanes)

    @torch.inference_mode()
    def act(
        self, observation: Array, legal: Legal, memory: tuple[Array, ...], noise: Array
    ) -> tuple[Array, tuple[Array, ...]]:
        now = tuple(aligned(tensor(leaf, self.device)) for leaf in memory)
        after = step(self.core, aligned(tensor(observation, self.device)), now)
        action, _ = self.head.act(after[0], legal, None, noise)
        return like(action, observation), tuple(like(leaf, observation) for leaf in after)


def _cell(core: Layers) -> type[Cell]:
    return CELLS[cell_name(core)]


def _products(core: Layers, inputs: Tensor) -> Tensor:
    """[B, G * H] of the cell's inputs, and biases."""
    (weight, bias), (_, other) = core[-2:]
    return torch.nn.functional.linear(inputs.flatten(1), weight, _cell(core).bias(bias, other))


def _walk(core: Layers, products: Tensor, scratch: Tensor, memory: Leaves, after: Iterable[Leaves], keep: Keep) -> None:
    """Take the cell through all steps, whose memories are written to `after`."""
    cell, (weight, bias) = _cell(core), core[-1]
    for views, then, mask in zip(cell.views(products, scratch), after, keep, strict=True):
        cell.advance(views, weight.t(), bias, put_back(memory, mask), then)
        memory = then
