"""Neural fictitious self-play: its hyperparameters (the learning is in marl/nfsp.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from games.game import Lanes, Policy
from games.numbers import real, whole
from games.spelling import unknown
from marl.oracles.checks import MOST_ROWS, MOST_TRANSITIONS, check_hidden, check_kinds, positive
from marl.oracles.dqn import DQN
from marl.oracles.oracle import Learner, Oracle
from marl.oracles.ppo import PPO

RESPONSES = ("dqn", "ppo")
MOST_SUPERVISED = 10_000
"""Steps of the average in one update, between which a training can be stopped."""


@dataclass(frozen=True)
class NFSP(Oracle):
    """Neural fictitious self-play [Heinrich & Silver 2016], for any number of players who choose.

    Every seat learns a best response to what the others play, and, by supervised learning, its own average over all
    responses so far, which is what is handed out: in two-player zero-sum games it approaches a Nash equilibrium. The
    average is of one choice a factor, each for itself, without memory.

    Raises ValueError for settings that cannot be trained with.

    >>> import torch
    >>> from games import make
    >>> from games.lanes import GameLanes
    >>> torch.set_num_threads(1)  # small networks are fastest so
    >>> nfsp = NFSP(dqn=DQN(steps=1024, num_lanes=32, learning_starts=256, gradient_steps=4))
    >>> averages = nfsp.train(GameLanes(make("matching_pennies"), 32), seats=(0, 1), seed=0)
    >>> sorted(averages)
    [0, 1]
    """

    all_seats: ClassVar[bool] = True

    response: Literal["dqn", "ppo"] = "dqn"
    """Who learns best responses."""
    dqn: DQN = field(
        default_factory=lambda: DQN(
            steps=2_000_000,
            num_lanes=1024,
            horizon=1,
            gradient_steps=4,
            minibatch=512,
            learning_rate=2e-3,
            anneal=False,
            gamma=1.0,
            capacity=4096,
            learning_starts=2048,
            epsilon_start=0.1,
            epsilon_end=0.0,
            epsilon_share=1.0,
            target_rate=0.1,
            hidden=(64,),
        )
    )
    """How, where it is DQN. Its steps are those of all seats together. A small replay forgets what the others no longer
    play: a response that lags behind is repeated, and averages approach an equilibrium the slower."""
    ppo: PPO = field(
        default_factory=lambda: PPO(
            steps=2_000_000,
            num_lanes=512,
            horizon=8,
            epochs=4,
            minibatches=4,
            learning_rate=5e-3,
            anneal=False,
            greedy=False,
        )
    )
    """How, where it is PPO."""
    eta: float = 0.1
    """The anticipatory parameter: share of the episodes in which others play their responses, not their averages."""
    capacity: int = 1_000_000
    """Decisions that each seat's reservoir holds: a uniform sample of all there were."""
    coverage: float = 20.0
    """Times that supervised learning would draw every decision of the reservoir over the whole training, were it as
    large all the time: an update's steps grow with it."""
    minibatch: int = 512
    """Decisions per supervised step, of which an update takes one at least."""
    learning_rate: float = 3e-3
    """Adam's step size for the average at the start."""
    anneal: bool = True
    """Let that fall linearly to 0 over the budget."""
    hidden: tuple[int, ...] = (64,)
    """Units of the hidden layers of the average."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name, kind in (("dqn", DQN), ("ppo", PPO)):
            if type(getattr(self, name)) is not kind:
                raise ValueError(f"{name} must be settings of {kind.__name__}, got {getattr(self, name)!r}")
        if self.response not in RESPONSES:
            raise unknown("response", self.response, RESPONSES)
        real("eta", self.eta, 0, 1)
        whole("capacity", self.capacity, most=MOST_TRANSITIONS)
        whole("minibatch", self.minibatch, most=MOST_ROWS)
        positive("coverage", self.coverage)
        positive("learning_rate", self.learning_rate)
        check_hidden(self.hidden)
        held = min(self.capacity, self.total_steps)
        due = self.coverage * held / self.learning.updates / self.minibatch
        if due > MOST_SUPERVISED:
            raise ValueError(
                f"coverage={self.coverage:g} would take up to {due:,.0f} supervised steps an update, of "
                f"{self.minibatch} of {held:,} decisions each: at most {MOST_SUPERVISED:,} are allowed; "
                "use a smaller coverage, or a larger minibatch"
            )

    @property
    def learning(self) -> DQN | PPO:
        """How best responses are learnt."""
        return self.dqn if self.response == "dqn" else self.ppo

    @property
    def num_lanes(self) -> int:
        """Lanes it trains on."""
        return self.learning.num_lanes

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes."""
        return self.learning.total_steps

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """All seats of the lanes, which are reset; averages may start from policies. See `Oracle`.

        Raises ValueError where lanes and seats do not fit, for actions that are no choices, observations that are no
        rows of features, and a policy to start from that is not of the kind to learn.
        """
        from marl.nfsp import NFSPLearner  # torch takes a second to import, --help should not

        return NFSPLearner(self, lanes, seats, seed, device, start or {})
