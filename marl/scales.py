"""Running scales in which networks count."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marl.losses import weighted_mean
from marl.networks import channels


class ReturnScale:
    """Running mean and deviation of the returns, in which the critic's output counts.

    When they move, the critic's last layer moves against them, so that its values stay what they were
    [van Hasselt et al. 2016, Pop-Art].
    """

    RATE = 0.1  # of the newest rollout; the first ones count equally

    def __init__(self) -> None:
        self.mean, self.variance, self.deviation, self.seen = 0.0, 0.0, 1.0, 0

    def apply(self, returns: Tensor) -> Tensor:
        return (returns - self.mean) / self.deviation

    def undo(self, values: Tensor) -> Tensor:
        return values * self.deviation + self.mean

    def follow(self, returns: Tensor, weights: Tensor, head: tuple[Tensor, Tensor]) -> None:
        """Take in a rollout's returns [M] and rescale the head [1, H], [1] accordingly, in place."""
        returns, weights = returns.double(), weights.double()
        centre = weighted_mean(returns, weights)
        spread = weighted_mean((returns - centre).square(), weights)
        old_mean, old_deviation = self.mean, self.deviation
        self.seen += 1
        rate = max(self.RATE, 1 / self.seen)
        step = centre.item() - self.mean
        self.mean += rate * step
        # The variance of two samples together: within each, and between their means.
        self.variance = (1 - rate) * (self.variance + rate * step**2) + rate * spread.item()
        # Returns that differ by less than float32 can tell are all the same: their own size is the unit then.
        differ = math.sqrt(self.variance) > 1e-6 * abs(self.mean)
        self.deviation = math.sqrt(self.variance) if differ else abs(self.mean) or 1.0
        weight, bias = head
        weight.mul_(old_deviation / self.deviation)
        bias.copy_((bias * old_deviation + old_mean - self.mean) / self.deviation)

    def state_dict(self) -> dict[str, float]:
        return {"mean": self.mean, "variance": self.variance, "deviation": self.deviation, "seen": self.seen}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.mean, self.variance, self.deviation = state["mean"], state["variance"], state["deviation"]
        self.seen = int(state["seen"])


class RewardScale:
    """Running root mean square of rewards, in which critics of a soft actor-critic count."""

    RATE = 0.01  # of the newest rewards; the first ones count equally

    def __init__(self) -> None:
        self.square, self.size, self.seen = 0.0, 1.0, 0

    def follow(self, rewards: Tensor) -> float:
        """Take in rewards [M]; what values so far have to be multiplied by to stay what they were.

        That is 1 for the first ones: nothing was valued before.
        """
        self.seen += 1
        self.square += max(self.RATE, 1 / self.seen) * (rewards.double().square().mean().item() - self.square)
        before, self.size = self.size, math.sqrt(self.square) or 1.0
        ratio = before / self.size if self.seen > 1 else 1.0
        return ratio or math.nan  # of rewards without bounds: the learner's own check then tells where

    def state_dict(self) -> dict[str, float]:
        return {"square": self.square, "size": self.size, "seen": self.seen}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.square, self.size, self.seen = state["square"], state["size"], int(state["seen"])


class ObservationScale:
    """Running mean and deviation of every feature, or of every channel of pictures, in which networks see them.

    All steps count equally. As they move, a network's first layer moves against them, so that its outputs stay what
    they were; that folds them into a network, too, which then takes observations as they are. What never differs is
    only shifted to 0.
    """

    def __init__(self, shape: Sequence[int], device: torch.device):
        self._pixels = max(0, min(2, len(shape) - 1))
        self._area = math.prod(shape[-2:]) if self._pixels else 1  # pixels of a channel; of features there may be none
        self.mean, self.variance, self.deviation = (
            torch.full((channels(shape),), value, device=device) for value in (0.0, 0.0, 1.0)
        )
        self.seen = 0.0

    def apply(self, observations: Tensor) -> Tensor:
        """Of observations [..., D], [..., C, H, W] or [..., H, W]."""
        mean, deviation = (part[(..., *[None] * self._pixels)] for part in (self.mean, self.deviation))
        return (observations - mean) / deviation

    def follow(self, observations: Tensor, weights: Tensor, first_layers: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Take in observations [M, ...] with weights [M], and move first layers accordingly, in place."""
        total = weights.sum().item()
        if not total:
            return
        shares, depth = weights / total, len(self.mean)
        pixels = observations.reshape(len(observations), depth, self._area)

        def mean(rows: Tensor) -> Tensor:
            return (shares @ rows.flatten(1)).view(depth, self._area).mean(1)

        centre = mean(pixels)
        spread = mean((pixels - centre[:, None]).square())
        before = (self.mean, self.deviation)
        self.seen += total
        rate = total / self.seen
        step = centre - self.mean
        self.mean = self.mean + rate * step
        # The variance of two samples together: within each, and between their means.
        self.variance = (1 - rate) * (self.variance + rate * step.square()) + rate * spread
        deviation = self.variance.sqrt()
        self.deviation = torch.where(deviation > 1e-6 * (1 + self.mean.abs()), deviation, 1.0)
        for layer in first_layers:
            for part, moved in zip(layer, _moved(layer, before, (self.mean, self.deviation)), strict=True):
                part.copy_(moved)

    def folded(self, first_layer: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The layer that makes the same of observations as they are."""
        as_they_are = (torch.zeros_like(self.mean), torch.ones_like(self.deviation))
        return _moved(first_layer, (self.mean, self.deviation), as_they_are)

    def state_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name).clone() for name in ("mean", "variance", "deviation")}
        return kept | {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("mean", "variance", "deviation"):
            setattr(self, name, torch.as_tensor(state[name]).to(self.mean).clone())
        self.seen = float(state["seen"])


def _moved(
    layer: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The layer that makes of what one mean and deviation normalised what `layer` makes of what another one did."""
    (weight, bias), (old_mean, old_deviation), (new_mean, new_deviation) = layer, old, new
    whole = weight.flatten(2).sum(2) if weight.ndim == 4 else weight
    shift = whole @ ((new_mean - old_mean) / old_deviation)
    factor = new_deviation / old_deviation
    return weight * factor.view(-1, *[1] * (weight.ndim - 2)), bias + shift
