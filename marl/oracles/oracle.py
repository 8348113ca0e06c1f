"""The contracts of oracles: what trains a best response, at once or a little at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from games.game import Lanes, Policy

Progress = Callable[[dict[str, float]], None]


@runtime_checkable
class Learner(Protocol):
    """Training under way; equal arguments give equal policies, bit for bit on one kind of CPU."""

    def update(self) -> dict[str, float]:
        """Train a little; what to watch about it, by name.

        Always `update`, how many there have been, and `steps`, played so far over all lanes; `return` and its
        `return_error`, and what tells of faults early, where the learner has it, named `.../seat` where several seats
        learn. Raises FloatingPointError where a loss or a parameter is no longer finite.
        """

    @property
    def policies(self) -> dict[int, Policy]:
        """Each seat's policy as trained so far, also before the first update; later ones leave it as it is.

        Of a kind that `marl.policy_files` saves, as `NeuralPolicy.of(layers, space, greedy)`.
        """

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs to go on from here, in plain containers, arrays and tensors;
        of a policy its layers.

        Raises NotImplementedError where the lanes own their state, as other people's environments do: such a training
        begins again rather than goes on.
        """

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict()` of a learner with equal arguments, which is not checked (`Training` does)."""


@runtime_checkable
class Oracle(Protocol):
    """Hyperparameters, and the training they describe: dataclasses inherit `train`, and write the rest.

    `lanes` show the learning seats alone (`games.versus.Versus` plays the others); `seats` are the numbers these have
    in the game, in the order of the lanes. `seed` belongs to this one training (`games.noise.unit_seed`). `start` gives
    policies to go on from, by seat.
    """

    all_seats: ClassVar[bool] = False
    """Whether it trains all seats of a game at once, and so no best response to others."""

    @property
    def num_lanes(self) -> int:
        """Lanes it trains on."""

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes; 0 where none are played."""

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """Training that has yet to begin."""

    def train(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
        progress: Progress | None = None,
    ) -> dict[int, Policy]:
        """Approximate best responses of `seats` to whoever plays the others; `progress` is told of every update."""
        learner = self.learner(lanes, seats, seed, device, start)
        while not learner.finished:
            metrics = learner.update()
            if progress is not None:
                progress(metrics)
        return learner.policies


def named(seats: Sequence[int], seat: int, watched: Mapping[str, float]) -> dict[str, float]:
    """What was watched about one of the learning seats, as reports name it: `.../seat` where there are several."""
    return dict(watched) if len(seats) == 1 else {f"{name}/{seat}": value for name, value in watched.items()}


def diverged(seat: int, update: int, steps: int, found: Any) -> FloatingPointError:
    """The error of a learner whose numbers, as they were found, are no longer finite in an update."""
    return FloatingPointError(
        f"seat {seat} diverged in update {update}, after {steps} steps: {found}; lower learning_rate, or check the "
        "rewards"
    )
