"""Deep Q-learning as a best-response oracle: its hyperparameters (the learning is in dqn_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from games.game import Lanes, Policy
from games.numbers import real, whole
from marl.oracles.checks import LARGEST, MOST_ROWS, MOST_TRANSITIONS, check_hidden, check_kinds, positive
from marl.oracles.oracle import Learner
from marl.oracles.updates import InUpdates


@dataclass(frozen=True)
class DQN(InUpdates):
    """Deep Q-learning as a best-response oracle [Mnih et al. 2015], for Discrete and MultiDiscrete actions.

    The targets are those of double Q-learning [van Hasselt et al. 2016]; factors of MultiDiscrete actions are branches
    of one network [Tavakoli et al. 2018]. What it finds plays greedily.

    Raises ValueError for settings that cannot be trained with.
    """

    steps: int = 200_000
    """Steps of the learner over all lanes, cut down to whole updates of num_lanes * horizon."""
    num_lanes: int = 16
    """Episodes played side by side."""
    horizon: int = 8
    """Steps per lane and update."""
    gradient_steps: int = 64
    """Gradient steps per update."""
    minibatch: int = 128
    """Transitions per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the budget."""
    gamma: float = 0.99
    """Discount per step; 1 maximises the return itself, in games that are short."""
    n_step: int = 1
    """Decisions whose rewards are summed up before the target network is asked."""
    capacity: int = 100_000
    """Transitions that the replay holds."""
    learning_starts: int = 1000
    """Steps over all lanes to play before the first gradient step."""
    epsilon_start: float = 1.0
    """Share of choices that are made at random, at the start ..."""
    epsilon_end: float = 0.05
    """... and at the end."""
    epsilon_share: float = 0.2
    """Share of the budget over which it falls, linearly."""
    target_rate: float = 0.005
    """How far the target network moves to the learning one; 1 copies it ..."""
    target_every: int = 1
    """... and after how many gradient steps it does."""
    duelling: bool = True
    """Learn a state's value and its choices' advantages, rather than the values of choices [Wang et al. 2016]."""
    priority_alpha: float = 0.0
    """Learn more often from transitions of large errors, to this power of them; 0 learns from all equally often
    [Schaul et al. 2016]."""
    priority_beta: float = 0.4
    """How far weights make up for that at the start; wholly so, with 1, at the end."""
    normalise_rewards: bool = True
    """Let values count in the running size of rewards, so that these may be of any size."""
    huber: float = 1e6
    """Errors, so counted, from which on the loss is linear. Below what chance does to returns, it draws values from
    their means towards their medians, and what is best in the median may be no best response."""
    max_grad_norm: float = 10.0
    """Gradients are clipped to this norm."""
    hidden: tuple[int, ...] = (128, 128)
    """Units of the hidden layers."""
    autocast: bool = False
    """Multiply in bfloat16, but for the last layer: faster on CUDA. Parameters stay float32."""

    def __post_init__(self) -> None:
        self.check_budget()
        for name in ("gradient_steps", "target_every"):
            whole(name, getattr(self, name))
        whole("minibatch", self.minibatch, most=MOST_ROWS)
        whole("n_step", self.n_step, most=MOST_TRANSITIONS // self.num_lanes)
        check_kinds(self)
        check_hidden(self.hidden)
        whole("capacity", self.capacity, self.num_lanes * max(self.horizon, self.n_step), MOST_TRANSITIONS)
        whole("learning_starts", self.learning_starts, 0, self.total_steps)
        for name in ("learning_rate", "huber", "max_grad_norm", "target_rate"):
            positive(name, getattr(self, name), most=1 if name == "target_rate" else LARGEST)
        for name in ("gamma", "epsilon_start", "epsilon_end", "epsilon_share", "priority_alpha", "priority_beta"):
            real(name, getattr(self, name), 0, 1)

    def epsilon(self, done: float) -> float:
        """Share of random choices, with this share of the training done."""
        fallen = min(done / self.epsilon_share, 1.0) if self.epsilon_share else 1.0
        return self.epsilon_start * (1 - fallen) + self.epsilon_end * fallen

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """Independent deep Q-learning for every seat of the lanes, which are reset; see `Oracle`.

        Raises ValueError where lanes and seats do not fit, actions are not choices, or a policy to start from is not a
        neural one of this game.
        """
        from marl.oracles.dqn_learner import DQNLearner  # torch takes a second to import, --help should not

        return DQNLearner(self, lanes, seats, seed, device, start or {})
