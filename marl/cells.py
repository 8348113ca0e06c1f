"""Recurrent cells, LSTM and GRU: one step forward, and all steps backward, written out on batches of rows.

A cell of H units keeps a memory of one or more leaves [M, H], the first of which is its output. Two layers make it up,
of weights [G * H, D] by the input and [G * H, H] by its last output, in blocks of H rows a gate, in torch's order.
Going forward, it turns products of its input into its gates, in place; both, and a scratch [T, M, H], are all that
going backward needs. (Automatic differentiation takes twice as long.)
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.ops import aten

Leaves = tuple[Tensor, ...]  # a memory
Views = tuple[Tensor, ...]
Keep = Sequence[Tensor | None]  # a step: [M, 1] 0 where the memory was put back before it, else 1; None for all ones


class Cell(Protocol):
    """How a cell goes forward and backward. `gates` is G above, `leaves` the number of those of its memory."""

    gates: ClassVar[int]
    leaves: ClassVar[int]

    @staticmethod
    def remember(bias: Tensor, steps: Tensor) -> None:
        """Write into a bias [G * H] of zeros what makes units remember for about so many steps [H].

        [Tallec & Ollivier 2018, section 2]
        """

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        """[G * H] that the input's products begin with, of both layers' biases."""

    @staticmethod
    def views(products: Tensor, scratch: Tensor) -> Iterable[Views]:
        """What `advance` writes to, a step, of the input's products [T, M, G * H] and the scratch [T, M, H]."""

    @staticmethod
    def advance(views: Views, weight: Tensor, bias: Tensor, memory: Leaves, after: Leaves) -> None:
        """Write the next memory to `after`; the layer is that by the last output, its weight [H, G * H] transposed."""

    @staticmethod
    def retreat(
        gates: Tensor, scratch: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """[T, M, G * H] d loss / d products, of the input and of the last output, back through time.

        From what going forward left, memories before each step [T, M, H], the weight [G * H, H] by the last output,
        and d loss / d outputs [T, M, H], to which what comes back from later steps is added in place.
        """


class LSTM:
    """Long short-term memory: input, forget, candidate and output gates [Hochreiter & Schmidhuber 1997; Gers 2000].

    Its memory is (output, cell); its scratch tanh(cell).
    """

    gates: ClassVar = 4
    leaves: ClassVar = 2

    @staticmethod
    def remember(bias: Tensor, steps: Tensor) -> None:
        into, forget, _, _ = bias.chunk(4)
        forget.copy_(steps.log())
        into.copy_(-forget)

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        return by_input + by_output

    @staticmethod
    def views(products: Tensor, scratch: Tensor) -> Iterable[Views]:
        into, forget, candidate, out = products.chunk(4, -1)
        first = products[..., : 2 * scratch.shape[-1]]
        parts = (products, first, candidate, out, into, forget, scratch)
        return zip(*(part.unbind() for part in parts), strict=True)

    @staticmethod
    def advance(views: Views, weight: Tensor, bias: Tensor, memory: Leaves, after: Leaves) -> None:
        (products, first, candidate, out, into, forget, squashed), (output, cell) = views, memory
        products.addmm_(output, weight)
        first.sigmoid_()
        candidate.tanh_()
        out.sigmoid_()
        torch.mul(forget, cell, out=after[1]).addcmul_(into, candidate)
        torch.tanh(after[1], out=squashed)
        torch.mul(out, squashed, out=after[0])

    @staticmethod
    def retreat(
        gates: Tensor, scratch: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        into, forget, candidate, out = gates.chunk(4, -1)
        by_cell = aten.tanh_backward(out, scratch)
        found = torch.empty_like(gates)  # at first d cell / d product, and d output / d product of the output gate
        by_into, by_forget, by_candidate, by_out = found.chunk(4, -1)
        aten.sigmoid_backward.grad_input(candidate, into, grad_input=by_into)
        aten.sigmoid_backward.grad_input(before[1], forget, grad_input=by_forget)
        aten.tanh_backward.grad_input(into, candidate, grad_input=by_candidate)
        aten.sigmoid_backward.grad_input(scratch, out, grad_input=by_out)
        three = found.unflatten(-1, (4, -1))[..., :3, :]
        cell = torch.zeros_like(outer[0])
        back = [part.unbind() for part in (outer, by_cell, three, by_out, forget, found)]
        for step in range(len(outer) - 1, -1, -1):
            by_output, slope, by_three, by_gate, kept, products = (part[step] for part in back)
            cell.addcmul_(by_output, slope)
            by_three.mul_(cell[:, None])
            by_gate.mul_(by_output)
            if step:
                cell.mul_(kept)
                mask = keep[step]
                if mask is None:
                    back[0][step - 1].addmm_(products, weight)
                else:
                    cell.mul_(mask)
                    back[0][step - 1].addcmul_(products.mm(weight), mask)
        return found, found


class GRU:
    """Gated recurrent unit: reset and update gates and a candidate [Cho et al. 2014], as torch has it.

    Its memory is (output,); its scratch the last output's product for the candidate.
    """

    gates: ClassVar = 3
    leaves: ClassVar = 1

    @staticmethod
    def remember(bias: Tensor, steps: Tensor) -> None:
        _, update, _ = bias.chunk(3)
        update.copy_(steps.log())

    @staticmethod
    def bias(by_input: Tensor, by_output: Tensor) -> Tensor:
        both, gates = by_input.clone(), len(by_input) // 3 * 2
        both[:gates] += by_output[:gates]  # the rest counts as far as the reset gate lets it
        return both

    @staticmethod
    def views(products: Tensor, scratch: Tensor) -> Iterable[Views]:
        reset, update, candidate = products.chunk(3, -1)
        first = products[..., : 2 * scratch.shape[-1]]
        return zip(*(part.unbind() for part in (first, reset, update, candidate, scratch)), strict=True)

    @staticmethod
    def advance(views: Views, weight: Tensor, bias: Tensor, memory: Leaves, after: Leaves) -> None:
        (first, reset, update, candidate, past), (output,) = views, memory
        gates = first.shape[-1]
        first.addmm_(output, weight[:, :gates]).sigmoid_()
        torch.addmm(bias[gates:], output, weight[:, gates:], out=past)
        candidate.addcmul_(reset, past).tanh_()
        torch.lerp(candidate, output, update, out=after[0])

    @staticmethod
    def retreat(
        gates: Tensor, scratch: Tensor, before: Leaves, outer: Tensor, keep: Keep, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        reset, update, candidate = gates.chunk(3, -1)
        slope = aten.tanh_backward(1 - update, candidate)
        found = torch.empty_like(gates)  # at first d output / d product
        by_reset, by_update, by_past = found.chunk(3, -1)
        aten.sigmoid_backward.grad_input(slope * scratch, reset, grad_input=by_reset)
        aten.sigmoid_backward.grad_input(before[0] - candidate, update, grad_input=by_update)
        torch.mul(slope, reset, out=by_past)
        back = [part.unbind() for part in (outer, found.unflatten(-1, (3, -1)), update, found)]
        for step in range(len(outer) - 1, -1, -1):
            by_output, by_gates, kept, products = (part[step] for part in back)
            by_gates.mul_(by_output[:, None])
            if step:
                came, mask = (by_output * kept).addmm_(products, weight), keep[step]
                back[0][step - 1].add_(came if mask is None else came.mul_(mask))
        by_input = found.clone()
        torch.mul(slope, outer, out=by_input[..., -outer.shape[-1] :])
        return by_input, found


CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU}
