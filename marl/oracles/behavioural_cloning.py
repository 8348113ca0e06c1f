"""Behavioural cloning as an oracle: its hyperparameters (the learning is in behavioural_cloning_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from games.game import Lanes, Policy
from games.numbers import real, whole
from marl.oracles.checks import LARGEST, MOST_ROWS, check_hidden, check_kinds
from marl.oracles.oracle import Learner, Oracle


@dataclass(frozen=True)
class BehaviouralCloning(Oracle):
    """Supervised imitation of an expert, from its play of the learner's own seat [Pomerleau 1991].

    No best response, then, but what the expert would do: a way to start from it, to have it as a network, or to tell
    what of its play a network can represent. Choices are learnt by cross-entropy over the legal ones, actions of a Box
    by the likelihood of a squashed Gaussian.

    Raises ValueError for settings that cannot be trained with.
    """

    expert: str = ""
    """Files of the policy to imitate, without their endings (`marl.policy_files.save_policy`); any kind, with memory or
    without. Commands take the folder of a training, too."""
    steps: int = 100_000
    """Steps of the expert's play over all lanes, cut down to whole steps of num_lanes."""
    num_lanes: int = 64
    """Episodes played side by side."""
    epochs: int = 20
    """Passes over what was played, shuffled anew each time."""
    batch_size: int = 256
    """Decisions per gradient step."""
    learning_rate: float = 3e-3
    """Adam's step size at the start."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the epochs."""
    weight_decay: float = 0.0
    """Share of every weight, but of no bias, that a gradient step takes away, per learning rate."""
    held_out: float = 0.1
    """Share of the lanes whose play is not learnt from, but tells how well what was learnt carries over; 0 for none."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers."""
    autocast: bool = False
    """Multiply in bfloat16, but for the last layer: faster on CUDA. Parameters stay float32."""
    greedy: bool = True
    """Hand out each factor's likeliest choice, or the mean action, rather than the mixture that was fitted."""

    def __post_init__(self) -> None:
        for name in ("num_lanes", "epochs", "batch_size"):
            whole(name, getattr(self, name))
        whole("steps", self.steps, most=MOST_ROWS)
        for name in ("learning_rate", "weight_decay"):
            real(name, getattr(self, name), least=0, most=LARGEST)
        real("held_out", self.held_out, least=0, below=1)
        check_kinds(self)
        check_hidden(self.hidden)
        if self.steps < self.num_lanes:
            raise ValueError(f"steps={self.steps} is less than one of each of num_lanes={self.num_lanes}: raise steps")
        if self.held_out and self.num_lanes < 2:
            raise ValueError("held_out keeps whole lanes apart: take at least two, or set held_out=0")

    @property
    def total_steps(self) -> int:
        """Steps of the expert's play, over all lanes."""
        return self.steps // self.num_lanes * self.num_lanes

    def rate(self, epoch: int) -> float:
        """Adam's step size in an epoch."""
        return self.learning_rate * (1 - epoch / self.epochs if self.anneal else 1.0)

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """A network for every seat of the lanes, which are reset; all of them are played by the expert. See `Oracle`.

        Raises ValueError where lanes and seats do not fit, without an expert, and for a policy to start from that is
        not of the kind that is handed out. The first update loads the expert: it raises FileNotFoundError without its
        files, and ValueError where it cannot play the lanes.
        """
        from marl.oracles.behavioural_cloning_learner import CloningLearner  # torch takes a second to import

        return CloningLearner(self, lanes, seats, seed, device, start or {})
