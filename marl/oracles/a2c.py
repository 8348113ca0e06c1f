"""Advantage actor-critic as a best-response oracle: its hyperparameters, for PPO's learner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from games.game import Lanes, Policy
from marl.oracles.oracle import Learner
from marl.oracles.ppo import PPO
from marl.oracles.updates import InUpdates


@dataclass(frozen=True)
class A2C(InUpdates):
    """Synchronous advantage actor-critic as a best-response oracle [Mnih et al. 2016, as commonly run on one device].

    PPO that takes one step on each rollout: where it starts, all probability ratios are 1, and the gradient of their
    clipped objective is that of log probabilities times advantages [Huang et al. 2022]. Actions and observations are
    PPO's. Steps are Adam's.

    Raises ValueError for settings that cannot be trained with.
    """

    steps: int = 500_000
    """Steps of the learner over all lanes, cut down to whole rollouts of num_lanes * horizon."""
    num_lanes: int = 64
    """Episodes played side by side."""
    horizon: int = 5
    """Steps per lane and update."""
    learning_rate: float = 3e-3
    """Adam's step size at the start."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the budget."""
    gamma: float = 1.0
    """Discount per step; 1 maximises the return itself."""
    gae_lambda: float = 1.0
    """Decay of the advantage trace: 1 sums the rewards of a rollout and adds the critic's value of its end."""
    entropy_start: float = 0.001
    """Entropy bonus at the start, in units of the advantage ..."""
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
    """As `PPO`'s."""
    log_std: float = -0.5
    """Of Gaussian actions before squashing, at the start; where actions are continuous."""
    autocast: bool = False
    """As `PPO`'s."""
    greedy: bool = True
    """Hand out each factor's likeliest choice as the policy, rather than the mixture it was found with."""

    def __post_init__(self) -> None:
        self.as_ppo()

    def as_ppo(self) -> PPO:
        """PPO that trains the same."""
        return PPO(epochs=1, minibatches=1, **{field.name: getattr(self, field.name) for field in fields(self)})

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """Independent A2C for every seat of the lanes, which are reset; see `Oracle` and `PPO.learner`."""
        return self.as_ppo().learner(lanes, seats, seed, device, start)
