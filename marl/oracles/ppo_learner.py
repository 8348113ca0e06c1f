"""The learning behind `PPO`: rollouts, advantages, clipped updates."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from torch import Tensor

from games.game import Lanes, Policy
from marl.collect import Collector, Rollout
from marl.heads import head_of
from marl.oracles.ppo import PPO, Rates
from marl.oracles.ppo_trainee import WATCHED, Trainee


class Trained(Protocol):
    """What learns to play one seat, or several alike: networks and their optimiser.

    `place` is which of its seats, in the order of its rollouts.
    """

    def act(self, place: int, rollout: Rollout, step: int) -> Tensor:
        """Outputs [O, B] of the policy network; see `marl.collect.Actor`."""

    def improve(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int, rates: Rates
    ) -> dict[str, float]:
        """Learn from one rollout a seat, of which the critic `seen` [T + 1, B, ...]; metrics by name."""

    def policy(self) -> Policy:
        """As trained so far; further training leaves it as it is."""

    @property
    def finite(self) -> bool:
        """Whether all its parameters are finite numbers."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class PPOLearner:
    """Implements `marl.oracles.Learner`; see `PPO.learner`.

    `groups` are the columns of the lanes that share one trainee, by default each is alone; `views[column]` those whose
    observations its critic sees, its own first, by default that alone. `trained` makes a trainee of (settings, rollouts
    of its seats, features that the critic sees (the last axis of pictures side by side), name, seed, policy to start
    from).
    """

    def __init__(
        self,
        settings: PPO,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
        groups: Sequence[Sequence[int]] | None = None,
        views: Sequence[Sequence[int]] | None = None,
        trained: Callable[..., Trained] | None = None,
    ):
        if len(seats) != len(lanes.agents) or len(set(seats)) != len(seats):
            raise ValueError(f"seats must name each of the lanes' {len(lanes.agents)} seats once, got {tuple(seats)}")
        if lanes.num_lanes != settings.num_lanes:
            raise ValueError(f"the oracle was set to num_lanes={settings.num_lanes}, got lanes of {lanes.num_lanes}")
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        self.groups = [(column,) for column in range(len(seats))] if groups is None else groups
        self.collector = Collector(lanes, settings.horizon, device, views, partial(head_of, log_std=settings.log_std))
        lanes.reset(seed, "train")
        self.trainees = [self._trainee(trained or Trainee, group, seed, start) for group in self.groups]

    def _trainee(
        self, trained: Callable[..., Trained], group: Sequence[int], seed: int, start: Mapping[int, Policy]
    ) -> Trained:
        first = group[0]
        rollouts = [self.collector.rollouts[column] for column in group]
        features = self.collector.critic_observations(first).shape[-1]
        return trained(self.settings, rollouts, features, str(self.seats[first]), seed, start.get(self.seats[first]))

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    @property
    def policies(self) -> dict[int, Policy]:
        policies = [trainee.policy() for trainee in self.trainees]
        return {
            self.seats[column]: policy for group, policy in zip(self.groups, policies, strict=True) for column in group
        }

    def update(self) -> dict[str, float]:
        """One rollout and the epochs over it; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; the rest is of the last epoch's minibatches, and named by the first seat of those that share a trainee;
        `explained_variance` is the critic's before the update.
        Raises FloatingPointError where a loss is no longer finite.
        """
        update, left = self.done_updates, 1 - self.done_updates / self.settings.updates
        rollouts = self.collector.collect(self._actors())
        steps = (update + 1) * self.settings.batch
        metrics: dict[str, float] = {"update": update + 1, "steps": steps}
        returns, errors = (statistic.tolist() for statistic in self.collector.returns.mean())
        for column in range(len(self.seats)):
            metrics |= self._named(column, {"return": returns[column], "return_error": errors[column]})
        for group, trainee in zip(self.groups, self.trainees, strict=True):
            seen = [self.collector.critic_observations(column) for column in group]
            watched = trainee.improve([rollouts[column] for column in group], seen, update, self.settings.rates(left))
            if not (all(math.isfinite(watched[name]) for name in WATCHED) and trainee.finite):
                raise FloatingPointError(
                    f"seat {self.seats[group[0]]} diverged in update {update + 1}, after {steps} steps: {watched}; "
                    "lower learning_rate, or check the rewards"
                )
            metrics |= self._named(group[0], watched)
        self.done_updates += 1
        return metrics

    def _actors(self) -> list[Callable[[Rollout, int], Tensor]]:
        actors = {
            column: partial(trainee.act, place)
            for group, trainee in zip(self.groups, self.trainees, strict=True)
            for place, column in enumerate(group)
        }
        return [actors[column] for column in range(len(self.seats))]

    def _named(self, column: int, watched: dict[str, float]) -> dict[str, float]:
        seat = self.seats[column]
        return watched if len(self.seats) == 1 else {f"{name}/{seat}": value for name, value in watched.items()}

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.done_updates,
            "lanes": self.lanes.state_dict(),
            "returns": self.collector.returns.state_dict(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = state["updates"]
        self.lanes.load_state_dict(state["lanes"])
        self.collector.returns.load_state_dict(state["returns"])
        self.collector.played = self.done_updates * self.settings.horizon
        for trainee, saved in zip(self.trainees, state["trainees"], strict=True):
            trainee.load_state_dict(saved)
