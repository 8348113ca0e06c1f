"""The learning behind `PPO`: rollouts, advantages, clipped updates."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from torch import Tensor

from games.game import Lanes, Policy
from games.numbers import whole
from marl.collect import Collector, Rollout
from marl.heads import head_of
from marl.networks import Layers
from marl.oracles.checks import check_lanes
from marl.oracles.oracle import diverged, named
from marl.oracles.ppo import PPO, Rates
from marl.oracles.ppo_trainee import WATCHED


class Trainee(Protocol):
    """What learns to play one seat, or several alike: networks and their optimiser.

    `PPO.trainee` makes one of (settings, rollouts of its seats, features that the critic sees (the last axis of
    pictures side by side), name, seed, policy to start from). `place` is which of its seats, in their order.
    """

    def act(self, place: int, rollout: Rollout, step: int) -> Tensor:
        """Outputs [O, B] of the policy network; see `marl.collect.Actor`."""

    def improve(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int, rates: Rates
    ) -> dict[str, float]:
        """Learn from one rollout a seat, of which the critic `seen` [T + 1, B, ...]; metrics by name."""

    def policy(self, greedy: bool) -> Policy:
        """As trained so far, greedy or the mixture it is found with; further training leaves it as it is."""

    def layers(self, policy: Policy) -> Layers:
        """What such a policy learnt. Raises ValueError for one of another kind or size."""

    def built(self, layers: Layers, greedy: bool) -> Policy:
        """The policy of copies of such layers, which may lie anywhere."""

    @property
    def finite(self) -> bool:
        """Whether all its parameters are finite numbers."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class PPOLearner:
    """Implements `marl.oracles.Learner`; see `PPO.learner`.

    `groups` are the columns of the lanes that share one trainee, by default each is alone; `views[column]` those whose
    observations its critic sees, its own first, by default that alone.
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
    ):
        check_lanes(settings, lanes, seats)
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        self.groups = [(column,) for column in range(len(seats))] if groups is None else groups
        self.collector = Collector(lanes, settings.horizon, device, views, partial(head_of, log_std=settings.log_std))
        lanes.reset(seed, "train")
        self.trainees = [self._trainee(group, seed, start) for group in self.groups]

    def _trainee(self, group: Sequence[int], seed: int, start: Mapping[int, Policy]) -> Trainee:
        first, make = group[0], self.settings.trainee()
        rollouts = [self.collector.rollouts[column] for column in group]
        features = self.collector.critic_observations(first).shape[-1]
        return make(self.settings, rollouts, features, str(self.seats[first]), seed, start.get(self.seats[first]))

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    @property
    def policies(self) -> dict[int, Policy]:
        policies = [trainee.policy(self.settings.greedy) for trainee in self.trainees]
        return {
            self.seats[column]: policy for group, policy in zip(self.groups, policies, strict=True) for column in group
        }

    def update(self) -> dict[str, float]:
        """One rollout and the epochs over it; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; the rest is of the last epoch's minibatches, and named by the first seat of those that share a trainee:
        `value_loss`, the critic's mean squared error, in deviations of the return where these are normalised; `entropy`
        in nats, of actions in a Box before they are squashed into it; `actor_grad_norm` and `critic_grad_norm` before
        they are clipped. `explained_variance` is the critic's before the update.
        Raises FloatingPointError where a loss is no longer finite.
        """
        update, left = self.done_updates, 1 - self.done_updates / self.settings.updates
        rollouts = self.collector.collect(self._actors())
        steps = (update + 1) * self.settings.batch
        metrics: dict[str, float] = {"update": update + 1, "steps": steps}
        returns, errors = (statistic.tolist() for statistic in self.collector.returns.mean())
        for column in range(len(self.seats)):
            earned = {"return": returns[column], "return_error": errors[column]}
            metrics |= named(self.seats, self.seats[column], earned)
        for group, trainee in zip(self.groups, self.trainees, strict=True):
            seen = [self.collector.critic_observations(column) for column in group]
            watched = trainee.improve([rollouts[column] for column in group], seen, update, self.settings.rates(left))
            if not (all(math.isfinite(watched[name]) for name in WATCHED) and trainee.finite):
                raise diverged(self.seats[group[0]], update + 1, steps, watched)
            metrics |= named(self.seats, self.seats[group[0]], watched)
        self.done_updates += 1
        return metrics

    def _actors(self) -> list[Callable[[Rollout, int], Tensor]]:
        actors = {
            column: partial(trainee.act, place)
            for group, trainee in zip(self.groups, self.trainees, strict=True)
            for place, column in enumerate(group)
        }
        return [actors[column] for column in range(len(self.seats))]

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.done_updates,
            "lanes": self.lanes.state_dict(),
            "returns": self.collector.returns.state_dict(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = whole("updates", state["updates"], 0, self.settings.updates)
        self.lanes.load_state_dict(state["lanes"])
        self.collector.returns.load_state_dict(state["returns"])
        self.collector.played = self.done_updates * self.settings.horizon
        for trainee, saved in zip(self.trainees, state["trainees"], strict=True):
            trainee.load_state_dict(saved)
