"""Running scales in which networks count."""

import math

from torch import Tensor

from marl.losses import weighted_mean


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
        return before / self.size if self.seen > 1 else 1.0

    def state_dict(self) -> dict[str, float]:
        return {"square": self.square, "size": self.size, "seen": self.seen}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.square, self.size, self.seen = state["square"], state["size"], int(state["seen"])
