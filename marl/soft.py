"""Values, targets and gradients of soft actor-critics, for squashed Gaussians and for choices; rows are the last axis.

Gradients are written out, since automatic differentiation would spend twice the time on so small networks. The actor's
loss is the mean over M rows of temperature * log pi(a) - Q(a), with a drawn from pi, or in expectation over it.
[Haarnoja et al. 2018b, eq. 7 and 9; Christodoulou 2019, eq. 12]
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from marl.gaussian import LOG_STD, log_prob, moments, sample, squash_correction


class Squashed(NamedTuple):
    """Actions of the box [-1, 1]^D, their pre-actions, and their log densities."""

    u: Tensor  # [D, M]
    action: Tensor  # [D, M]
    log_prob: Tensor  # [M]


def squashed(outputs: Tensor, noise: Tensor) -> Squashed:
    """Draws from the squashed Gaussians of outputs [2D, M], by uniforms [D, M]."""
    u = sample(outputs, noise)
    return Squashed(u, u.tanh(), log_prob(outputs, u) - squash_correction(u))


def squashed_gradient(outputs: Tensor, drawn: Squashed, by_action: Tensor, temperature: Tensor) -> Tensor:
    """[2D, M] gradient of the actor's loss by the outputs [2D, M] that were drawn from; by_action [D, M] is dQ/da.

    With u = mean + std * e, log pi(a) is -e^2 / 2 - log std - log(1 - tanh(u)^2) and what is constant.
    """
    (mean, _), raw = moments(outputs), outputs.chunk(2)[1]
    by_u = 2 * temperature * drawn.action - by_action * (1 - drawn.action.square())
    by_log_std = (by_u * (drawn.u - mean) - temperature) * ((raw >= LOG_STD[0]) & (raw <= LOG_STD[1]))
    return torch.cat([by_u, by_log_std]) / outputs.shape[1]


class Choices(NamedTuple):
    """Factored categorical distributions; forbidden choices have probability 0 and a finite logarithm."""

    probabilities: Tensor  # [F, A, M]
    log_probs: Tensor  # [F, A, M]

    @classmethod
    def of(cls, logits: Tensor) -> "Choices":
        """Of logits [F, A, M], masked where something is forbidden."""
        return cls(logits.softmax(1), logits.log_softmax(1))

    @property
    def entropy(self) -> Tensor:
        """[M], summed over factors."""
        return -(self.probabilities * self.log_probs).sum((0, 1))

    def mean(self, values: Tensor) -> Tensor:
        """[M] expectation of values [F, A, M], summed over factors."""
        return (self.probabilities * values).sum((0, 1))


def lower_values(values: Sequence[Tensor], choices: Choices) -> Tensor:
    """[F, A, M] the least that any critic thinks of each choice, from their values [F, A, M].

    A critic's value of an action is a sum over its factors, among which constants may be shifted at will. So a choice
    is compared as its advantage within its factor, plus an equal share of the mean value: with one factor, as it is.
    The choices count as given: no gradient goes through them.
    """
    return reduce(torch.minimum, (_levelled(value, choices) for value in values))


def _levelled(values: Tensor, choices: Choices) -> Tensor:
    if len(values) == 1:
        return values
    means = (choices.probabilities.detach() * values).sum(1, keepdim=True)
    return values - means + means.mean(0, keepdim=True)


def soft_value(values: Tensor, choices: Choices, temperature: Tensor) -> Tensor:
    """[M] expected value and worth of entropy, for values [F, A, M]."""
    return choices.mean(values - temperature * choices.log_probs)


def choice_gradient(values: Tensor, choices: Choices, temperature: Tensor) -> Tensor:
    """[F, A, M] gradient of the actor's loss by the logits, for values [F, A, M]: 0 where a choice is forbidden."""
    cost = temperature * choices.log_probs - values
    mean = (choices.probabilities * cost).sum(1, keepdim=True)
    return choices.probabilities * (cost - mean) / values.shape[2]


def chosen(values: Tensor, actions: Tensor) -> Tensor:
    """[M] values of actions [F, M]: sums of their factors', from values [F, A, M]."""
    return values.gather(1, actions[:, None]).sum((0, 1))


def unit_actions(actions: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """[M, D] actions of a Box as those of [-1, 1]^D; 0 where low and high [D] are equal.

    Halves are compared, as in `in_box`.
    """
    quarter = torch.sub(0.25 * high, low, alpha=0.25)
    least = 0.5 * torch.finfo(quarter.dtype).tiny
    return torch.where(quarter > 0, torch.sub(0.5 * actions, low, alpha=0.5) / quarter.clamp(min=least) - 1, 0.0)
