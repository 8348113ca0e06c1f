"""Proximal policy optimisation as a best-response oracle: its hyperparameters (the learning is in ppo_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from games.game import Lanes, Policy
from games.numbers import real, whole
from marl.oracles.checks import LARGEST, check_hidden, check_kinds, positive
from marl.oracles.oracle import Learner
from marl.oracles.updates import InUpdates

if TYPE_CHECKING:
    from collections.abc import Callable

    from marl.oracles.ppo_learner import Trainee

LOG_STD = (-10.0, 2.0)
"""Where Gaussians may start: `marl.gaussian` cuts log standard deviations off at the upper one."""
OPTIONAL = ("clip_end", "clip_value", "target_kl")
"""May be None: without it."""


class Rates(NamedTuple):
    """What changes over a training."""

    learning_rate: float
    entropy_coef: float
    clip: float


@dataclass(frozen=True)
class PPO(InUpdates):
    """Clipped policy gradient with generalised advantages as a best-response oracle [Schulman et al. 2017].

    Discrete and MultiDiscrete actions are drawn factor by factor, those of a bounded Box from squashed Gaussians.
    Pictures, Box((channels, height, width)) or Box((height, width)), are seen through convolutions
    (`marl.networks.convolutions`), anything else must be rows of features, Box((D,)).

    Raises ValueError for settings that cannot be trained with.
    """

    steps: int = 600_000
    """Steps of the learner over all lanes, cut down to whole rollouts of num_lanes * horizon."""
    num_lanes: int = 1024
    """Episodes played side by side."""
    horizon: int = 8
    """Steps per lane and update."""
    epochs: int = 3
    """Passes over each rollout, which is shuffled once."""
    minibatches: int = 8
    """Gradient steps per pass."""
    learning_rate: float = 4e-3
    """Adam's step size at the start."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the budget."""
    gamma: float = 1.0
    """Discount per step; 1 maximises the return itself."""
    gae_lambda: float = 0.8
    """Decay of the advantage trace: 0 trusts the critic, 1 the sampled returns."""
    clip: float = 0.2
    """How far a probability ratio may move before its gradient is cut, at the start ..."""
    clip_end: float | None = None
    """... and at the end, linear in between; None keeps it."""
    clip_value: float | None = None
    """How far the critic's values may move in an update before their gradient is cut, in the units that it counts in
    (deviations of the return if these are normalised). Mostly does harm [Andrychowicz et al. 2021, section 3.4]."""
    target_kl: float | None = None
    """Takes no further steps on a rollout once a minibatch's `approx_kl` is beyond 1.5 times this."""
    entropy_start: float = 0.001
    """Entropy bonus at the start, in standard deviations of the advantage ..."""
    entropy_end: float = 0.0
    """... and at the end; linear in between."""
    value_coef: float = 0.5
    """Weight of the critic's loss."""
    max_grad_norm: float = 0.5
    """Gradients of actor and critic are each clipped to this norm."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of the actor, and of the critic."""
    normalise_returns: bool = True
    """Let the critic fit returns of running mean 0 and deviation 1, so that rewards may be of any size."""
    normalise_advantages: bool = True
    """Give the advantages of each rollout mean 0 and deviation 1."""
    normalise_observations: bool = False
    """Let both networks see features (or channels of pictures) of running mean 0 and deviation 1. The first rollout is
    then only looked at; the policies handed out take observations as they are."""
    log_std: float = -0.5
    """Of Gaussian actions before squashing, at the start; where actions are continuous."""
    autocast: bool = False
    """Multiply in bfloat16, but for each network's last layer: faster on CUDA. Parameters stay float32."""
    greedy: bool = True
    """Hand out each factor's likeliest choice as the policy, rather than the mixture it was found with."""

    def __post_init__(self) -> None:
        self.check_budget()
        for name in ("epochs", "minibatches"):
            whole(name, getattr(self, name))
        check_kinds(self)
        check_hidden(self.hidden)
        if self.batch % self.minibatches:
            raise ValueError(f"minibatches={self.minibatches} must divide the {self.batch} steps of a rollout evenly")
        for name in ("clip", "clip_end", "clip_value", "target_kl", "learning_rate", "max_grad_norm"):
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            positive(name, value)
        real("log_std", self.log_std, *LOG_STD)
        for name in ("gamma", "gae_lambda"):
            real(name, getattr(self, name), 0, 1)
        for name in ("entropy_start", "entropy_end", "value_coef"):
            real(name, getattr(self, name), 0, LARGEST)
        if self.normalise_observations and self.updates < 2:
            raise ValueError(
                "with normalise_observations the first rollout is only looked at: "
                f"raise steps={self.steps} to at least two rollouts, {2 * self.batch}"
            )

    def rates(self, left: float) -> Rates:
        """Those of an update, with this share of the training left."""
        learning_rate = self.learning_rate * (left if self.anneal else 1.0)
        clip_end = self.clip if self.clip_end is None else self.clip_end
        return Rates(
            learning_rate,
            self.entropy_end + (self.entropy_start - self.entropy_end) * left,
            clip_end + (self.clip - clip_end) * left,
        )

    def trainee(self) -> "Callable[..., Trainee]":
        """What learns; see `marl.oracles.ppo_learner.Trainee`."""
        from marl.oracles.ppo_trainee import PPOTrainee  # torch takes a second to import, --help should not

        return PPOTrainee

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """Independent PPO for every seat of the lanes, which are reset; see `Oracle`.

        Raises ValueError where lanes and seats do not fit, or a policy to start from is not of the kind handed out or
        of another game.
        """
        from marl.oracles.ppo_learner import PPOLearner

        return PPOLearner(self, lanes, seats, seed, device, start or {})
