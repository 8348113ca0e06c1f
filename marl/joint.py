"""The learning behind `JointTraining`: PPO of the seats that learn, and who plays the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from games.game import Lanes, Policy
from games.policies import Uniform
from games.versus import Versus
from marl.oracles.checks import check_lanes
from marl.oracles.joint import JointTraining
from marl.oracles.ppo_learner import PPOLearner
from marl.self_play import SelfPlay
from marl.wrappers import Rotated, TeamReward


class JointLearner:
    """Implements `marl.oracles.Learner`; see `JointTraining.learner`.

    `ppo` learns, on lanes of the learning seats; `self_play` arranges its opponents, if it has any.
    """

    def __init__(
        self,
        settings: JointTraining,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        self.settings, self.seats = settings, tuple(seats)
        learning = settings.learning_seats or self.seats
        self._check(lanes, learning)
        if settings.team_share:
            lanes = TeamReward(lanes, settings.team_share)
        if settings.opponents:
            lanes = Rotated(lanes)
        if len(learning) < len(self.seats):
            spaces = zip(self.seats, lanes.action_spaces, strict=True)
            others = [[start.get(seat, Uniform.of(space))] for seat, space in spaces]
            lanes = Versus(lanes, others, np.ones((1,) * len(others)), [self.seats.index(seat) for seat in learning])
        groups, views = sharing(lanes, settings.sharing), seen(lanes, settings.critic)
        self.ppo = PPOLearner(settings.ppo, lanes, learning, seed, device, start, groups, views)
        self.self_play: SelfPlay | None = None
        if settings.opponents:
            assert isinstance(lanes, Versus)
            self.self_play = SelfPlay(settings, lanes, self.ppo)

    def _check(self, lanes: Lanes, learning: Sequence[int]) -> None:
        seats = self.seats
        check_lanes(self.settings, lanes, seats)
        if not set(learning) <= set(seats):
            raise ValueError(f"learning_seats must be among the seats {seats} of the lanes, got {learning}")
        if self.settings.opponents and len(learning) == len(seats):
            raise ValueError(f"opponents need a seat to play, but all of {seats} learn: name fewer learning_seats")

    @property
    def finished(self) -> bool:
        return self.ppo.finished

    @property
    def policies(self) -> dict[int, Policy]:
        policies = self.ppo.policies
        if self.self_play is None:
            return policies
        (policy,) = set(policies.values())  # which has learned to play every seat
        return dict.fromkeys(self.seats, policy)

    def update(self) -> dict[str, float]:
        """As `PPOLearner.update`, and then, of opponents, what `SelfPlay.arrange` tells."""
        metrics = self.ppo.update()
        return metrics if self.self_play is None else metrics | self.self_play.arrange()

    def state_dict(self) -> dict[str, Any]:
        return {"ppo": self.ppo.state_dict(), "self_play": self.self_play and self.self_play.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.self_play is not None:  # first: it knows the players of the lanes
            self.self_play.load_state_dict(state["self_play"])
        self.ppo.load_state_dict(state["ppo"])


def sharing(lanes: Lanes, how: str) -> list[list[int]]:
    """Seats of the lanes that share networks: all of equal spaces where `how` is shared, else each is alone."""
    spaces = list(zip(lanes.observation_spaces, lanes.action_spaces, strict=True))
    groups: list[list[int]] = []
    for seat, own in enumerate(spaces):
        alike = next((group for group in groups if how == "shared" and spaces[group[0]] == own), None)
        if alike is None:
            groups.append([seat])
        else:
            alike.append(seat)
    return groups


def seen(lanes: Lanes, critic: str) -> list[list[int]]:
    """Whose observations each seat's critic sees, its own first: everybody's where it is central."""
    seats = range(len(lanes.agents))
    return [[own, *(other for other in seats if critic == "central" and other != own)] for own in seats]
