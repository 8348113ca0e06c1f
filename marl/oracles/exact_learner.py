"""How `Exact` finds its answer: by a look at who plays the other seats, and a sweep of the game's tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from games.exact import TabularPolicy, check_enumerable, mixture_responses, preference_response, uniform
from games.game import Lanes, Policy
from games.lanes import GameLanes
from games.tree import Tree
from games.versus import Cast, Versus
from marl.exact import policy_part, tree_game
from marl.wrappers import TeamReward
from metasolvers import marginal


class ExactLearner:
    """Implements `marl.oracles.Learner`; see `Exact.learner`. Before its first update, it plays uniformly."""

    def __init__(self, lanes: Lanes, seats: Sequence[int]):
        if not isinstance(lanes, Versus) or len(lanes.seats) != 1 or len(seats) != 1:
            raise ValueError(
                f"the exact oracle answers for one seat of games.versus.Versus, got lanes {type(lanes).__name__} for "
                f"seats {tuple(seats)}: let every seat have a training of its own"
            )
        inner, self.name, (self.seat,) = lanes.lanes, seats[0], lanes.seats
        share = inner.share if isinstance(inner, TeamReward) else 0.0
        inner = inner.lanes if isinstance(inner, TeamReward) else inner
        self.game = tree_game(inner.game if isinstance(inner, GameLanes) else inner)
        self.tree = with_team_reward(self.game.tree, share) if share else self.game.tree
        self.part = uniform(self.tree)[self.tree.slots(self.seat)]
        self.parts, self.sigma = self._played(lanes.cast)
        self.finished = False

    def _played(self, cast: Cast) -> tuple[list[np.ndarray], np.ndarray]:
        """What the seat's own policies play, and the others' that are ever played; and their joint distribution."""
        own, joint = self._own(cast)
        played = [np.flatnonzero(marginal(joint, player)).tolist() for player in range(joint.ndim)]
        played[self.seat] = list(range(len(own)))
        parts = [
            own
            if player == self.seat
            else np.stack([policy_part(self.game, cast.populations[player][index], player) for index in indices])
            for player, indices in enumerate(played)
        ]
        return parts, joint[np.ix_(*played)]

    def _own(self, cast: Cast) -> tuple[np.ndarray, np.ndarray]:
        """[k, S_seat] what the answer is compared with, and sigma with these for the seat: here it is with nothing."""
        return self.part[None], cast.sigma.sum(axis=self.seat, keepdims=True)

    @property
    def policies(self) -> dict[int, Policy]:
        return {self.name: TabularPolicy.of(self.game, self.seat, self.part)}

    def update(self) -> dict[str, float]:
        """Find the best response; `return` is what it earns."""
        response = mixture_responses(self.tree, self.parts, self.sigma)[self.seat]
        self.part, self.finished = response.part, True
        return {"update": 1, "steps": 0, "return": response.value}

    def state_dict(self) -> dict[str, Any]:
        return {"part": self.part, "finished": self.finished}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.part, self.finished = state["part"], state["finished"]


class PreferenceLearner(ExactLearner):
    """See `Preference.learner`."""

    def __init__(self, lanes: Lanes, seats: Sequence[int]):
        super().__init__(lanes, seats)
        for player in range(self.tree.players):
            check_enumerable(self.tree, player)

    def _own(self, cast: Cast) -> tuple[np.ndarray, np.ndarray]:
        """All policies of the seat: the answer is to be none of them, also of those that sigma never plays."""
        own = [policy_part(self.game, policy, self.seat) for policy in cast.populations[self.seat]]
        return np.stack(own), cast.sigma

    def update(self) -> dict[str, float]:
        """Find the response; `preferred` is how often it beats the seat's own policy."""
        preferred = preference_response(self.tree, self.parts, self.sigma, self.seat)
        self.part, self.finished = preferred.part, True
        return {"update": 1, "steps": 0, "preferred": preferred.value}


def with_team_reward(tree: Tree, share: float) -> Tree:
    """The tree in which everybody earns what `TeamReward` pays with that share."""
    own = tree.nodes.rewards
    rewards = (1 - share) * own + share * own.sum(axis=1, keepdims=True)
    return Tree(tree.nodes._replace(rewards=rewards), tree.information, tree.keys)
