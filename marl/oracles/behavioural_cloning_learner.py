"""The learning behind `BehaviouralCloning`: the expert plays once, then a network is fitted to what it did."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from games.game import Lanes, Policy
from games.numbers import whole
from marl.collect import Returns
from marl.demonstrations import demonstrate
from marl.imitation import Student
from marl.oracles.behavioural_cloning import BehaviouralCloning
from marl.oracles.checks import check_lanes
from marl.oracles.oracle import diverged, named
from marl.policy_files import load_policy


def expert_of(settings: BehaviouralCloning) -> Policy:
    """Who is imitated. Raises FileNotFoundError without its files, ValueError for what they do not hold."""
    try:
        return load_policy(settings.expert)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"the expert's files are not there ({error}): name those of a policy, without endings, by --expert, the "
            "setting expert"
        ) from error


class CloningLearner:
    """Implements `marl.oracles.Learner`; see `BehaviouralCloning.learner`.

    The expert's files are read by the first update: once it has played, and that is part of a loaded state, they are
    not needed any more.
    """

    def __init__(
        self,
        settings: BehaviouralCloning,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        check_lanes(settings, lanes, seats)
        if not settings.expert:
            raise ValueError("behavioural cloning needs an expert: the files of a policy, without their endings")
        self.settings, self.lanes, self.seats, self.epochs = settings, lanes, tuple(seats), 0
        self.returns = Returns(lanes.num_lanes, len(seats), device)
        spaces = zip(lanes.observation_spaces, lanes.action_spaces, strict=True)
        self.students = [
            Student(settings, *pair, seat, seed, device, start.get(seat))
            for seat, pair in zip(self.seats, spaces, strict=True)
        ]
        lanes.reset(seed, "train")

    @property
    def finished(self) -> bool:
        return self.epochs >= self.settings.epochs

    @property
    def policies(self) -> dict[int, Policy]:
        return {seat: student.policy() for seat, student in zip(self.seats, self.students, strict=True)}

    def update(self) -> dict[str, float]:
        """One epoch, before the first of which the expert plays; metrics are `.../seat` where several seats learn.

        `return` and `return_error` are of the expert's play. `loss` is the epoch's mean, `uniform_loss` that of who
        knows nothing but what is legal; `miss` how often the likeliest choice is not the expert's, or how far off the
        mean action is, in widths of the box; `held_out_loss` and `held_out_miss` the same after the epoch, in lanes
        that are not learnt from. Raises FloatingPointError where a loss or a weight is no longer finite; the first also
        as `expert_of` does, and ValueError for an expert that cannot play the seats.
        """
        settings = self.settings
        if not self.epochs:
            self._watch()
        means, errors = (statistic.tolist() for statistic in self.returns.mean())
        metrics: dict[str, float] = {"update": self.epochs + 1, "steps": settings.total_steps}
        for column, (seat, student) in enumerate(zip(self.seats, self.students, strict=True)):
            watched = {"return": means[column], "return_error": errors[column]} | student.epoch(
                self.epochs, settings.rate(self.epochs)
            )
            if not (math.isfinite(watched["loss"]) and student.imitator.finite):
                raise diverged(seat, self.epochs + 1, settings.total_steps, watched)
            metrics |= named(self.seats, seat, watched)
        self.epochs += 1
        return metrics

    def _watch(self) -> None:
        settings, device = self.settings, self.returns.current.device
        expert: Any = expert_of(settings)
        expert = expert.to(device) if hasattr(expert, "to") else expert
        steps = settings.total_steps // settings.num_lanes
        shown, self.returns = demonstrate(self.lanes, [expert] * len(self.seats), steps, device)
        for student, demonstrations in zip(self.students, shown, strict=True):
            student.watch(demonstrations)

    def state_dict(self) -> dict[str, Any]:
        """The lanes are not part of it: after the first update they are done with."""
        return {
            "epochs": self.epochs,
            "returns": self.returns.state_dict(),
            "students": [student.state_dict() for student in self.students],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs = whole("epochs", state["epochs"], 0)
        self.returns.load_state_dict(state["returns"])
        for student, saved in zip(self.students, state["students"], strict=True):
            student.load_state_dict(saved)
