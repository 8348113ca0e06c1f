"""Recurrent networks as lists of weights: a perceptron, if any, then a cell, then a linear head.

Layers are (weight, bias) pairs as `marl.networks` has them: [*torso, cell by its input, cell by its last output, head].
How many gates the last but one has tells which cell of `marl.cells.CELLS` it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marl import networks
from marl.cells import CELLS, Cell, Keep, Leaves
from marl.networks import Layers, layer_inputs


def cell_name(layers: Layers) -> str:
    """Which of CELLS the layers have. Raises ValueError for layers that are no recurrent network's."""
    if len(layers) >= 3:
        (by_input, _), (by_output, _), (head, _) = layers[-3:]
        rows, units = by_output.shape
        for name, cell in CELLS.items():
            if rows == len(by_input) == cell.gates * units and head.shape[1] == units:
                return name
    shapes = [tuple(weight.shape) for weight, _ in layers]
    raise ValueError(f"a recurrent network ends in a cell ({' or '.join(CELLS)}) and a head, got weights {shapes}")


def cell_of(layers: Layers) -> type[Cell]:
    return CELLS[cell_name(layers)]


def fresh_memory(layers: Layers, lanes: int) -> tuple[np.ndarray, ...]:
    """Zeros [lanes, H], one a leaf of the cell's memory."""
    units = layers[-2][0].shape[1]
    return tuple(np.zeros((lanes, units), np.float32) for _ in range(cell_of(layers).leaves))


def step(layers: Layers, features: Tensor, memory: Leaves) -> tuple[Tensor, Leaves]:
    """Outputs [O, B] for features [B, D], and the next memory; last axis the rows, as `networks.choice_logits`."""
    cell, after = cell_of(layers), tuple(torch.empty_like(leaf) for leaf in memory)
    record = _records(layers, cell, layer_inputs(layers[:-2], features)[-1])
    cell.advance(record, layers[-2], memory, after)
    weight, bias = layers[-1]
    return torch.addmm(bias[:, None], weight, after[0].t()), after


class Trace(NamedTuple):
    """T steps of M rows, as `unroll` took them."""

    inputs: list[Tensor]  # [T * M, ...] of every layer before the cell, and of the cell
    records: Tensor  # [T, M, S * H]
    first: Leaves  # memory [M, H] given at the start
    after: Leaves  # memories [T, M, H] after each step
    keep: Keep

    @property
    def last_inputs(self) -> Tensor:
        """[T * M, H] what the head is given."""
        return self.after[0].flatten(0, 1)

    def before(self) -> Leaves:
        """Memories [T, M, H] that each step went on from."""
        steps = [torch.cat([first[None], after[:-1]]) for first, after in zip(self.first, self.after, strict=True)]
        for index, keep in enumerate(self.keep):
            if keep is not None:
                for leaf in steps:
                    leaf[index] *= keep
        return tuple(steps)


def unroll(layers: Layers, features: Tensor, memory: Leaves, starts: Tensor) -> Trace:
    """Go through features [T, M, D] from memory [M, H], that is put back exactly where starts [T, M] before a step.

    The head's outputs are `networks.logits_of(layers, trace.last_inputs, factors)`, or any other product.
    """
    cell, (steps, rows) = cell_of(layers), starts.shape
    inputs = layer_inputs(layers[:-2], features.flatten(0, 1))
    records = _records(layers, cell, inputs[-1]).unflatten(0, (steps, rows))
    after = tuple(leaf.new_empty(steps, *leaf.shape) for leaf in memory)
    kept = (~starts).to(features.dtype)[..., None]
    keep = [kept[index] if some else None for index, some in enumerate(starts.any(1).tolist())]
    now = memory
    for index in range(steps):
        mask = keep[index]
        then = tuple(leaf[index] for leaf in after)
        cell.advance(records[index], layers[-2], now if mask is None else tuple(leaf * mask for leaf in now), then)
        now = then
    return Trace(inputs, records, memory, after, keep)


def backward(layers: Layers, gradients: Layers, trace: Trace, outer: Tensor) -> None:
    """Write the layers' gradients, given d loss / d outputs [T * M, O] and the trace.

    Nothing goes back into the memory that was given at the start. [Werbos 1990]
    """
    networks.backward(layers[-1:], gradients[-1:], [trace.last_inputs], outer)
    before, (weight, _) = trace.before(), layers[-2]
    by_hidden = outer.mm(layers[-1][0]).view_as(trace.after[0])
    by_input, by_output = cell_of(layers).retreat(trace.records, before, by_hidden, trace.keep, weight)
    networks.backward(layers[-2:-1], gradients[-2:-1], [before[0].flatten(0, 1)], by_output.flatten(0, 1))
    networks.backward(layers[:-2], gradients[:-2], trace.inputs, by_input.flatten(0, 1))


def _records(layers: Layers, cell: type[Cell], inputs: Tensor) -> Tensor:
    """Records [B, S * H] that hold the products of the cell's inputs [B, D] so far."""
    (weight, bias), (by_output, other) = layers[-3:-1]
    records = inputs.new_empty(len(inputs), cell.slots * by_output.shape[1])
    torch.addmm(cell.bias(bias, other), inputs, weight.t(), out=records[:, : len(weight)])
    return records


def recurrent_layers(
    features: int,
    torso: Sequence[int],
    cell: str,
    units: int,
    head: tuple[Tensor, Tensor],
    generator: np.random.Generator,
) -> list[tuple[Tensor, Tensor]]:
    """Layers that end in a given head [O, units]: orthogonal, a gate at a time inside the cell.

    Its biases are 0 but for the gate that keeps the memory (LSTM's forget, GRU's update), which begins open at 1.
    [Saxe et al. 2014; Jozefowicz et al. 2015]
    """
    *hidden, _ = networks.orthogonal_layers((features, *torso, 1), 1.0, generator)
    width, gates = (torso[-1] if torso else features), CELLS[cell].gates
    by_input, by_output = (
        torch.cat([networks.orthogonal_layers((size, units), 1.0, generator)[0][0] for _ in range(gates)])
        for size in (width, units)
    )
    bias = torch.zeros(gates * units)
    bias[units : 2 * units] = 1.0
    return [*hidden, (by_input, bias), (by_output, torch.zeros_like(bias)), head]
