"""Q-learning with one branch a factor: how outputs become values, what these should be, and how far they are from it.

Values are [F, A, M]: F factors, A choices of the one that has most, M rows; those beyond a factor's own are FORBIDDEN.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marl.networks import FORBIDDEN, Layers, orthogonal_layers
from marl.policies import masked


class Branches:
    """Networks whose last layer gives advantages, and how they turn into networks of values.

    A plain network gives the values of all choices. A `duelling` one gives a state value V and advantages,

        Q_f(a) = V + A_f(a) - mean_a' A_f(a'),

    shared by all factors' branches [Wang et al. 2016, eq. 9; Tavakoli et al. 2018, eq. 1]. That is linear, so that it
    folds into the last layer: players and targets need no more than layers.
    """

    def __init__(self, choices: Sequence[int], duelling: bool, device: torch.device):
        width, outputs = max(choices), sum(choices)
        matrix, offset = np.zeros((len(choices), width, outputs + duelling)), np.full((len(choices), width), FORBIDDEN)
        first = 0
        for factor, number in enumerate(choices):
            columns = slice(first, first + number)
            matrix[factor, :number, columns] = np.eye(number) - duelling / number
            offset[factor, :number] = 0
            first += number
        if duelling:
            matrix[offset == 0, -1] = 1
        flat = matrix.reshape(-1, outputs + duelling)
        self.matrix, self.inverse = (
            torch.tensor(array, dtype=torch.float32, device=device) for array in (flat, np.linalg.pinv(flat))
        )
        self.offset = torch.tensor(offset.ravel(), dtype=torch.float32, device=device)

    def layers(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        """Fresh layers, unfolded, of values close to 0."""
        return orthogonal_layers((features, *hidden, self.matrix.shape[1]), 0.01, generator)

    def folded(self, layers: Layers, unit: float = 1.0) -> Layers:
        """Layers whose outputs [F * A] are values, in which 1 is the `unit` of the given ones."""
        weight, bias = layers[-1]
        return [*layers[:-1], (unit * self.matrix @ weight, torch.addmv(self.offset, self.matrix, bias, alpha=unit))]

    def unfolded(self, layers: Layers) -> Layers:
        """Layers which fold to these, as near as can be: exactly, if these were folded."""
        weight, bias = (part.to(self.inverse.device) for part in layers[-1])
        return [*layers[:-1], (self.inverse @ weight, self.inverse @ (bias - self.offset))]

    def write_gradient(self, head: tuple[Tensor, Tensor], folded: tuple[Tensor, Tensor]) -> None:
        """Gradients of the last layer from those of the folded one."""
        for gradient, of_folded in zip(head, folded, strict=True):
            torch.matmul(self.matrix.t(), of_folded, out=gradient)


def q_targets(
    rewards: Tensor, discounts: Tensor, chooser: Tensor, values: Tensor, allowed: Tensor | None = None
) -> Tensor:
    """[M] rewards + discounts * mean_f Q_f(argmax_a chooser_f(a)), Q being the target network's values.

    With the online network's values as `chooser` this is double Q-learning [van Hasselt et al. 2016]; the mean over
    the branches is that of Tavakoli et al. [2018, eq. 5]. Choices that are not allowed [F, A, M] are never looked at.
    """
    if allowed is not None:
        chooser = masked(chooser, allowed)
    best = chooser.max(1, keepdim=True).indices
    return rewards + discounts * values.gather(1, best)[:, 0].mean(0)


class Miss(NamedTuple):
    """How far the values of chosen actions are from their targets."""

    chosen: Tensor  # [F, M] their values
    errors: Tensor  # [F, M] value - target
    losses: Tensor  # [F, M] weighted, whose mean is the loss
    gradient: Tensor  # [F, A, M] d loss / d values


def q_loss(values: Tensor, actions: Tensor, targets: Tensor, weights: Tensor | None, threshold: float) -> Miss:
    """Huber's loss of the values [F, A, M] of actions [F, M] against targets [M], rows weighted by weights [M].

    Quadratic up to the threshold and linear beyond [Huber 1964].
    """
    chosen = values.gather(1, actions[:, None])[:, 0]
    errors = chosen - targets
    slopes = errors.clamp(-threshold, threshold)
    losses = slopes * (errors - 0.5 * slopes)
    if weights is not None:
        losses, slopes = losses * weights, slopes * weights
    gradient = torch.zeros_like(values).scatter_(1, actions[:, None], (slopes / slopes.numel())[:, None])
    return Miss(chosen, errors, losses, gradient)
