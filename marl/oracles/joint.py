"""Joint training: several seats learn at once (how is in marl/joint.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from games.game import Lanes, Policy
from games.numbers import real, whole
from games.spelling import unknown
from marl.matchmaking import MATCHMAKERS
from marl.oracles.checks import check_kinds
from marl.oracles.oracle import Learner, Oracle
from marl.oracles.ppo import PPO


@dataclass(frozen=True)
class JointTraining(Oracle):
    """Several seats learn at once by PPO: among themselves, or one for all in self-play against a pool of snapshots.

    By default everybody learns for itself (independent PPO [de Witt et al. 2020]). With shared parameters and a central
    critic it is MAPPO [Yu et al. 2022]. Raises ValueError for settings that cannot be trained with.

    >>> import torch
    >>> from games import make
    >>> from games.lanes import GameLanes
    >>> torch.set_num_threads(1)  # small networks are fastest so
    >>> team = JointTraining(PPO(steps=1024, num_lanes=64), sharing="shared", critic="central", team_share=1.0)
    >>> policies = team.train(GameLanes(make("bucket_brigade"), 64), seats=range(4), seed=0)
    >>> sorted(policies)
    [0, 1, 2, 3]
    >>> self_play = JointTraining(PPO(steps=1024, num_lanes=64), learning_seats=(0,), opponents="pfsp_hard")
    >>> metrics = self_play.learner(GameLanes(make("pong"), 64), seats=(0, 1), seed=0).update()
    >>> metrics["pool"], metrics["staleness"]
    (1, 1.0)
    """

    all_seats: ClassVar[bool] = True

    ppo: PPO = field(default_factory=PPO)
    """Of every learner, with memories if it is a `RecurrentPPO`; a step of the lanes is one of all their seats, and
    rollouts of seats that share are joined."""
    sharing: Literal["independent", "shared"] = "independent"
    """Every seat has its own networks, or those of equal spaces share theirs (observations should tell them apart)."""
    critic: Literal["own", "central"] = "own"
    """Critics see what their seat sees, or what all learning seats see; policies always the former."""
    team_share: float = 0.0
    """Of the sum over all seats' rewards in what a seat learns to earn: 0 is its own reward, 1 the team's."""
    learning_seats: tuple[int, ...] = ()
    """Of the game: all seats unless some are named. The others keep to the policies to start from, or play uniformly,
    unless there are opponents."""
    opponents: str = ""
    """A matchmaker: snapshots of the pool play the seats that do not learn, and seats are taken in turn, so that one
    policy learns to play them all. They are met all alike (random), in turn (round_robin), the latest alone
    (self_play), those of one's rating (fitness_window), most often those that are hardest to beat (pfsp_hard), or one's
    equals (pfsp_variance)."""
    snapshot_every: int = 10
    """Updates between one snapshot for the pool and the next."""
    pool_size: int = 16
    """Snapshots at most; then the one that is beaten most surely makes room."""
    decay: float = 0.95
    """Weight of the learner's results against the pool after an update, relative to before."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if not isinstance(self.ppo, PPO):
            raise ValueError(f"ppo must be settings of PPO, or of RecurrentPPO, got {self.ppo!r}")
        for seat in self.learning_seats:
            whole("each of learning_seats", seat, least=0)
        for name, known in (("sharing", ("independent", "shared")), ("critic", ("own", "central"))):
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        if self.opponents and self.opponents not in MATCHMAKERS:
            raise unknown("matchmaker", self.opponents, MATCHMAKERS)
        if self.opponents and not self.learning_seats:
            raise ValueError(
                f"opponents={self.opponents!r} need a seat to play: name those that learn, such as learning_seats=(0,)"
            )
        if self.opponents and len(self.learning_seats) > 1 and self.sharing != "shared":
            raise ValueError("seats are taken in turn against opponents: learn them together, by sharing='shared'")
        if len(set(self.learning_seats)) != len(self.learning_seats):
            raise ValueError(f"learning_seats must be different, got {self.learning_seats}")
        real("team_share", self.team_share, 0, 1)
        real("decay", self.decay, 0, 1)
        whole("snapshot_every", self.snapshot_every)
        whole("pool_size", self.pool_size)

    @property
    def num_lanes(self) -> int:
        """Lanes it trains on."""
        return self.ppo.num_lanes

    @property
    def greedy(self) -> bool:
        """Whether policies are handed out greedy."""
        return self.ppo.greedy

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes."""
        return self.ppo.total_steps

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """All learning seats of the lanes, which are reset; with opponents, policies are for all seats. See `Oracle`.

        Raises ValueError where lanes and seats do not fit, or a policy to start from is not of the kind to learn.
        """
        from marl.joint import JointLearner  # torch takes a second to import, --help should not

        return JointLearner(self, lanes, seats, seed, device, start or {})
