"""Recurrent cells, LSTM and GRU: one step forward, and all steps backward, written out on batches of rows.

A cell of H units keeps a memory of one or more leaves [B, H], the first of which is its output. Two layers make it up,
of weights [G * H, D] by the input and [G * H, H] by its last output, in blocks of H rows a gate in torch's order.
A step leaves a record [B, S * H] of what going backward needs: automatic differentiation takes twice as long.
"""

from collections.abc import Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor

Leaves = tuple[Tensor, ...]  # a memory
Keep = Sequence[Tensor | None]  # a step: [B, 1] 0 where the memory was put back before it, else 1; None for all ones


class Cell(Protocol):
    """How a cell goes forward and backward. `gates` is G above, `slots` S, `leaves` those of its memory."""

    gates: ClassVar[int]
    slots: ClassVar[int]
    leaves: ClassVar[int]

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        """[G * H] both layers' biases, as far as they add up."""

    @staticmethod
    def advance(record: Tensor, layer: tuple[Tensor, Tensor], memory: Leaves, after: Leaves) -> None:
        """Write the next memory to `after`, and the record, whose first G * H columns hold the input's products."""

    @staticmethod
    def retreat(record: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor) -> tuple[Tensor, Tensor]:
        """[T, B, G * H] d loss / d products, of the input and of the last output, back through time.

        From records [T, B, S * H], memories before each step [T, B, H], and d loss / d outputs [T, B, H], to which
        what comes back from later steps is added in place.
        """


class LSTM:
    """Long short-term memory with input, forget, candidate and output gates [Hochreiter & Schmidhuber 1997; Gers 2000].

    Its memory is (output, cell); its record the four gates and tanh(cell).
    """

    gates, slots, leaves = 4, 5, 2

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        return by_input + by_output

    @staticmethod
    def advance(record: Tensor, layer: tuple[Tensor, Tensor], memory: Leaves, after: Leaves) -> None:
        (output, cell), (next_output, next_cell), units = memory, after, memory[0].shape[1]
        record[:, : 4 * units].addmm_(output, layer[0].t())
        record[:, : 2 * units].sigmoid_()
        record[:, 2 * units : 3 * units].tanh_()
        record[:, 3 * units : 4 * units].sigmoid_()
        into, forget, candidate, out, squashed = record.view(-1, 5, units).unbind(1)
        torch.mul(forget, cell, out=next_cell).addcmul_(into, candidate)
        torch.tanh(next_cell, out=squashed)
        torch.mul(out, squashed, out=next_output)

    @staticmethod
    def retreat(record: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor) -> tuple[Tensor, Tensor]:
        into, forget, candidate, out, squashed = record.unflatten(-1, (5, -1)).unbind(-2)
        by_cell = out * (1 - squashed.square())
        gates = torch.stack(  # at first d gate / d cell, and d output / d product of the output gate
            [
                candidate * into * (1 - into),
                before[1] * forget * (1 - forget),
                into * (1 - candidate.square()),
                squashed * out * (1 - out),
            ],
            dim=2,
        )
        products = gates.flatten(2)
        cell = torch.zeros_like(outer[0])
        for step in range(len(outer) - 1, -1, -1):
            cell.addcmul_(outer[step], by_cell[step])
            gates[step, :, :3].mul_(cell[:, None])
            gates[step, :, 3].mul_(outer[step])
            if step:
                cell.mul_(forget[step])
                came = keep[step]
                if came is None:
                    outer[step - 1].addmm_(products[step], weight)
                else:
                    cell.mul_(came)
                    outer[step - 1].addcmul_(products[step].mm(weight), came)
        return products, products


class GRU:
    """Gated recurrent unit with reset and update gates and a candidate [Cho et al. 2014], as torch has it.

    Its memory is (output,); its record the gates, the candidate, and the last output's product for that.
    """

    gates, slots, leaves = 3, 4, 1

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        units = len(by_input) // 3
        both = by_input.clone()
        both[: 2 * units] += by_output[: 2 * units]  # the rest counts as far as the reset gate lets it
        return both

    @staticmethod
    def advance(record: Tensor, layer: tuple[Tensor, Tensor], memory: Leaves, after: Leaves) -> None:
        (output,), (next_output,), (weight, bias), units = memory, after, layer, memory[0].shape[1]
        gates, products = record[:, : 2 * units], output.mm(weight.t())
        gates.add_(products[:, : 2 * units]).sigmoid_()
        reset, update, candidate, past = record.view(-1, 4, units).unbind(1)
        torch.add(products[:, 2 * units :], bias[2 * units :], out=past)
        candidate.addcmul_(reset, past).tanh_()
        torch.lerp(candidate, output, update, out=next_output)

    @staticmethod
    def retreat(record: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor) -> tuple[Tensor, Tensor]:
        reset, update, candidate, past = record.unflatten(-1, (4, -1)).unbind(-2)
        by_candidate = (1 - update) * (1 - candidate.square())
        gates = torch.stack(  # at first d output / d product
            [
                by_candidate * past * reset * (1 - reset),
                (before[0] - candidate) * update * (1 - update),
                by_candidate * reset,
            ],
            dim=2,
        )
        products = gates.flatten(2)
        for step in range(len(outer) - 1, -1, -1):
            gates[step].mul_(outer[step][:, None])
            if step:
                came = (outer[step] * update[step]).addmm_(products[step], weight)
                kept = keep[step]
                outer[step - 1].add_(came if kept is None else came.mul_(kept))
        by_input = gates.clone()
        torch.mul(by_candidate, outer, out=by_input[:, :, 2])
        return by_input.flatten(2), products


CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU}
