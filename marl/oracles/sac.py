"""Soft actor-critic as a best-response oracle: its hyperparameters (the learning is in sac_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from games.game import Lanes, Policy
from games.numbers import real, whole
from marl.oracles.checks import LARGEST, MOST_ROWS, MOST_TRANSITIONS, check_hidden, check_kinds
from marl.oracles.oracle import Learner
from marl.oracles.updates import InUpdates

SMALLEST = 1e-9
"""Of temperatures and step sizes: less is a slip of the keyboard."""


@dataclass(frozen=True)
class SAC(InUpdates):
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
    horizon: int = 8
    """Steps per lane and update."""
    gradient_steps: int = 32
    """Gradient steps per update."""
    minibatch: int = 128
    """Transitions per gradient step."""
    learning_rate: float = 2e-3
    """Adam's step size at the start, of actor and critics."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the budget."""
    gamma: float = 0.99
    """Discount per step; 1 maximises the return itself, in games that are short."""
    n_step: int = 1
    """Decisions whose rewards are summed up before the slow critics are asked."""
    capacity: int = 1_000_000
    """Transitions that the replay holds; no more memory is taken than the budget fills."""
    learning_starts: int = 1000
    """Steps over all lanes before the first gradient step, played at random unless it goes on from a policy."""
    hold: int = 1
    """Steps for which a random action is kept: longer ones go where single ones average out."""
    target_rate: float = 0.01
    """How far the slow critics move to the learning ones per gradient step."""
    temperature: float = 1.0
    """What a nat of entropy is worth at the start."""
    temperature_rate: float = 1e-3
    """What a gradient step adds to the temperature's logarithm for each nat that a factor's, or dimension's, entropy is
    too low; 0 keeps it."""
    box_entropy: float = -1.0
    """Entropy wanted per dimension of a Box, in nats, as if it were [-1, 1]: uniform play has 0.69."""
    choice_entropy: float = 0.1
    """Entropy wanted per factor of choices, as a share of what uniform play among the legal ones has."""
    normalise_rewards: bool = False
    """Let critics and temperature count in units of the rewards' running root mean square: these may be of any size."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of the actor, and of each critic."""
    autocast: bool = False
    """Multiply in bfloat16, but for each network's last layer: faster on CUDA. Parameters stay float32."""
    greedy: bool = True
    """Hand out the mean action, or each factor's likeliest choice, rather than the policy that explored."""

    def __post_init__(self) -> None:
        self.check_budget()
        for name in ("gradient_steps", "hold"):
            whole(name, getattr(self, name))
        whole("minibatch", self.minibatch, most=MOST_ROWS)
        whole("n_step", self.n_step, most=MOST_TRANSITIONS // self.num_lanes)
        check_kinds(self)
        check_hidden(self.hidden)
        whole("capacity", self.capacity, self.num_lanes * max(self.horizon, self.n_step))
        whole("learning_starts", self.learning_starts, 0, self.total_steps)
        for name in ("gamma", "target_rate"):
            real(name, getattr(self, name), 0, 1)
        for name in ("learning_rate", "temperature"):
            real(name, getattr(self, name), SMALLEST, LARGEST)
        real("temperature_rate", self.temperature_rate, 0, LARGEST)
        real("box_entropy", self.box_entropy, -20, 0.69)
        real("choice_entropy", self.choice_entropy, 0, 1)

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
