"""PPO with a memory as a best-response oracle: its hyperparameters (the learning is in recurrent_trainee.py)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from games.numbers import whole
from games.spelling import unknown
from marl.oracles.checks import MOST_UNITS
from marl.oracles.ppo import PPO

if TYPE_CHECKING:
    from collections.abc import Callable

    from marl.oracles.ppo_learner import Trainee

Name = Literal["lstm", "gru"]
NAMES = get_args(Name)
"""As `marl.cells.CELLS` has them."""


@dataclass(frozen=True)
class RecurrentPPO(PPO):
    """PPO whose actor and critic each remember their episode in a recurrent cell of their own; as `PPO` in all else.

    Memories are carried from rollout to rollout, and put back exactly where episodes start. Gradients go back through
    `sequence` steps, from the memory that was recorded there, which the weights of now may warm for `burn_in` steps
    [Kapturowski et al. 2019]. It takes masks, several factors, boxes and pictures as PPO does; where that multiplies in
    bfloat16, cells stay in float32.

    Raises ValueError for settings that cannot be trained with.
    """

    steps: int = 1_000_000
    num_lanes: int = 256
    horizon: int = 32
    minibatches: int = 4
    epochs: int = 4
    learning_rate: float = 3e-3
    gae_lambda: float = 0.95
    hidden: tuple[int, ...] = ()
    """Units of the hidden layers before the cells, of the actor, and of the critic."""
    cell: Name = "lstm"
    """Long short-term memory, or gated recurrent units."""
    units: int = 64
    """Of each cell."""
    span: int = 16
    """Steps that cells remember for at most to begin with; they learn to remember for longer, or for less. Let it be
    what has to be bridged, and not much more: a few steps where a few observations tell all."""
    sequence: int = 16
    """Steps that gradients go back through at most; minibatches are of such sequences."""
    burn_in: int = 0
    """Steps before each sequence that only warm the memory it starts from. Sequences that start sooner in a rollout go
    on from the memory that was recorded there: what the last rollout's weights left is not remembered anew."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell not in NAMES:
            raise unknown("cell", self.cell, NAMES)
        whole("units", self.units, most=MOST_UNITS)
        whole("span", self.span)
        whole("sequence", self.sequence)
        whole("burn_in", self.burn_in, least=0)
        if self.horizon % self.sequence:
            raise ValueError(f"sequence={self.sequence} must divide horizon={self.horizon} evenly")
        if self.burn_in > self.horizon:
            raise ValueError(f"burn_in={self.burn_in} must be at most horizon={self.horizon}")
        if self.sequences % self.minibatches:
            raise ValueError(
                f"minibatches={self.minibatches} must divide the {self.sequences} sequences of a rollout evenly, "
                f"num_lanes={self.num_lanes} * horizon={self.horizon} / sequence={self.sequence}"
            )

    @property
    def sequences(self) -> int:
        """Of one rollout, over all lanes."""
        return self.num_lanes * (self.horizon // self.sequence)

    def trainee(self) -> "Callable[..., Trainee]":
        from marl.oracles.recurrent_trainee import RecurrentTrainee  # torch takes a second to import, --help should not

        return RecurrentTrainee
