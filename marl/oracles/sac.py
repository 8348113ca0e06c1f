"""Soft actor-critic as a best-response oracle: its hyperparameters (the learning is in sac_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from games.game import Lanes, Policy
from games.numbers import real, whole
from marl.oracles.oracle import Learner, Progress, run

MOST_UNITS = 2**14
SMALLEST, LARGEST = 1e-9, 1e6
"""Of temperatures and rates: what is beyond is a slip of the keyboard."""


@dataclass(frozen=True)
class SAC:
    """Off-policy maximum-entropy learning with twin critics as a best-response oracle [Haarnoja et al. 2018b].

    In a bounded Box the policy is a squashed Gaussian; among Discrete choices a categorical one, and expectations over
    them are exact [Christodoulou 2019]. MultiDiscrete actions have one independent choice a factor, and critics that
    are sums of one term a factor: right where what a factor earns does not hang on what the others choose.

    Raises ValueError for settings that cannot be trained with.
    """

    steps: int = 20_000
    """Steps of the learner over all lanes, cut down to whole updates of num_lanes * horizon."""
    num_lanes: int = 8
    """Episodes played side by side."""
    horizon: int = 50
    """Steps per lane and update."""
    random_steps: int = 1_000
    """Steps over all lanes that are played at random before learning starts; none where it goes on from a policy."""
    hold: int = 1
    """Steps for which a random action is kept: longer ones explore where single ones average out."""
    train_every: int = 1
    """Steps per lane between two rounds of training."""
    gradient_steps: int = 8
    """Gradient steps a round; as many as num_lanes * train_every is one for each step."""
    batch_size: int = 256
    """Transitions per gradient step."""
    capacity: int = 1_000_000
    """Transitions remembered; no more memory is taken than the budget fills."""
    n_steps: int = 1
    """Own decisions after which the critics are trusted with the rest."""
    learning_rate: float = 1e-3
    """Adam's step size at the start, of actor and critics."""
    anneal: bool = False
    """Let the learning rate fall linearly to 0 over the budget."""
    gamma: float = 0.99
    """Discount per step."""
    target_rate: float = 0.005
    """Share of the critics that their slow copies take on per gradient step."""
    temperature: float = 1.0
    """Worth of a nat of entropy at the start."""
    temperature_rate: float = 1e-3
    """What a gradient step adds to the temperature's logarithm per nat that a factor's entropy is too low; 0 keeps it."""
    box_entropy: float = -1.0
    """Entropy wanted per dimension of a Box, in nats, as if it were [-1, 1]: uniform play has 0.69."""
    choice_entropy: float = 0.1
    """Entropy wanted per factor of choices, as a share of what uniform play among the legal ones has."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of the actor, and of each critic."""
    greedy: bool = True
    """Hand out the mean action, or each factor's likeliest choice, rather than the policy that explored."""

    def __post_init__(self) -> None:
        for name in ("steps", "num_lanes", "horizon", "train_every", "gradient_steps", "batch_size", "capacity"):
            whole(name, getattr(self, name))
        for name in ("n_steps", "hold"):
            whole(name, getattr(self, name), most=2**16)
        whole("random_steps", self.random_steps, least=0)
        if not all(1 <= units <= MOST_UNITS for units in self.hidden):
            raise ValueError(f"hidden layers have 1 to {MOST_UNITS:,} units each, got {self.hidden}")
        for name in ("gamma", "target_rate"):
            real(name, getattr(self, name), least=0, most=1)
        for name, least in (("learning_rate", SMALLEST), ("temperature", SMALLEST), ("temperature_rate", 0)):
            real(name, getattr(self, name), least, LARGEST)
        real("box_entropy", self.box_entropy, least=-20, most=0.69)
        real("choice_entropy", self.choice_entropy, least=0, most=1)
        if self.steps < self.batch:
            raise ValueError(
                f"steps={self.steps} is less than one update of num_lanes * horizon = {self.batch} steps: raise steps, "
                "or lower num_lanes or horizon"
            )
        if self.random_steps >= self.total_steps:
            raise ValueError(
                f"random_steps={self.random_steps} would leave nothing of the {self.total_steps} steps to learn in: "
                "lower it, or raise steps"
            )
        if self.horizon % self.train_every:
            raise ValueError(f"train_every={self.train_every} must divide horizon={self.horizon} evenly")
        if self.capacity < self.num_lanes * self.n_steps:
            raise ValueError(f"capacity={self.capacity} must hold n_steps={self.n_steps} of {self.num_lanes} lanes")

    @property
    def batch(self) -> int:
        """Steps of one update, over all lanes."""
        return self.num_lanes * self.horizon

    @property
    def updates(self) -> int:
        """Updates that fit the budget."""
        return self.steps // self.batch

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes."""
        return self.updates * self.batch

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """Independent SAC for every seat of the lanes, which are reset; see `Oracle`.

        Raises ValueError where lanes and seats do not fit, for observations other than rows of features, actions other
        than choices or a bounded Box, and a policy to start from that is not of the kind handed out.
        """
        from marl.oracles.sac_learner import SACLearner  # torch takes a second to import, --help should not

        return SACLearner(self, lanes, seats, seed, device, start or {})

    def train(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
        progress: Progress | None = None,
    ) -> dict[int, Policy]:
        """Approximate best responses of `seats` to whoever plays the other seats; see `Oracle`."""
        return run(self.learner(lanes, seats, seed, device, start), progress)
