"""What learners share that play, remember, and take gradient steps on what they remember."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from games.game import Lanes
from games.numbers import whole
from marl.buffers import Replay
from marl.experience import Experience
from marl.oracles.checks import check_lanes
from marl.oracles.dqn import DQN
from marl.oracles.oracle import diverged, named
from marl.oracles.sac import SAC


class Trainee(Protocol):
    """One seat's networks and optimisers."""

    watched: tuple[str, ...]
    """Names of what `improve` returns."""

    @property
    def finite(self) -> bool:
        """Whether all parameters are finite numbers."""

    def improve(self, replay: Replay, left: float) -> dict[str, float]:
        """The gradient steps of an update, with this share of the training left; what was watched in the last."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class OffPolicyLearner(ABC):
    """A replay for every seat of the lanes, which are reset; a learner is one that says who plays, and who learns.

    Raises ValueError where lanes and seats do not fit.
    """

    settings: DQN | SAC
    trainees: Sequence[Trainee]
    """One a seat."""

    def __init__(self, settings: DQN | SAC, lanes: Lanes, seats: Sequence[int], seed: int, device: str):
        check_lanes(settings, lanes, seats)
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        lanes.reset(seed, "train")
        capacity = min(settings.capacity, max(settings.total_steps, settings.num_lanes * settings.n_step))
        self.experience = Experience(lanes, capacity, settings.gamma, settings.n_step, device)

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    def update(self) -> dict[str, float]:
        """Some steps, and the gradient steps that follow; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; the rest is of the last gradient step's minibatch, and nan before the first. Raises FloatingPointError
        where a loss or a parameter is no longer finite, ValueError where in the end nothing was there to learn from.
        """
        settings, left = self.settings, 1 - self.done_updates / self.settings.updates
        self._play()
        self.done_updates += 1
        steps = self.done_updates * settings.batch
        returns, errors = (statistic.tolist() for statistic in self.experience.returns.mean())
        metrics: dict[str, float] = {"update": self.done_updates, "steps": steps}
        for column, (seat, trainee) in enumerate(zip(self.seats, self.trainees, strict=True)):
            replay = self.experience.replays[column]
            watched = dict.fromkeys(trainee.watched, math.nan)
            if steps >= settings.learning_starts and replay.size:
                watched = trainee.improve(replay, left)
                if not (all(map(math.isfinite, watched.values())) and trainee.finite):
                    raise diverged(seat, self.done_updates, steps, watched)
            elif self.finished:
                raise ValueError(
                    f"seat {seat} made no decision in {steps} steps that could be learnt from: those of episodes that "
                    "are cut short cannot where a game forbids choices; play for longer, or use ppo"
                )
            metrics |= named(self.seats, seat, {"return": returns[column], "return_error": errors[column]} | watched)
        return metrics

    @abstractmethod
    def _play(self) -> None:
        """The steps of an update."""

    def state_dict(self) -> dict[str, Any]:
        """The replays among it."""
        return {
            "updates": self.done_updates,
            "experience": self.experience.state_dict(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = whole("updates", state["updates"], 0, self.settings.updates)
        self.experience.load_state_dict(state["experience"])
        for trainee, saved in zip(self.trainees, state["trainees"], strict=True):
            trainee.load_state_dict(saved)
