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
    """Implements `marl.oracles.Learner`; see `Exact.learner`, and `Preference.learner` for a preference-based answer.

    Before its first update, it plays uniformly.
    """

    def __init__(self, lanes: Lanes, seats: Sequence[int], preference: bool = False):
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
        self.preference = preference
        for player in range(self.tree.players if preference else 0):
            check_enumerable(self.tree, player)
        self.parts, self.sigma = self._played(lanes.cast)
        self.finished = False

    def _played(self, cast: Cast) -> tuple[list[np.ndarray], np.ndarray]:
        """What those who are ever played play, and their joint distribution.

        The seat's own policies are summed out, unless it is asked for what is preferred to them.
        """
        joint = cast.sigma if self.preference else cast.sigma.sum(axis=self.seat, keepdims=True)
        played = [np.flatnonzero(marginal(joint, player)).tolist() for player in range(joint.ndim)]
        parts = [
            self.part[None]
            if player == self.seat and not self.preference
            else np.stack([policy_part(self.game, cast.populations[player][index], player) for index in indices])
            for player, indices in enumerate(played)
        ]
        return parts, joint[np.ix_(*played)]

    @property
    def policies(self) -> dict[int, Policy]:
        return {self.name: TabularPolicy.of(self.game, self.seat, self.part)}

    def update(self) -> dict[str, float]:
        """Find the best response; `return` is what it earns, `preferred` how often it beats its own policy."""
        self.finished = True
        if self.preference:
            preferred = preference_response(self.tree, self.parts, self.sigma, self.seat)
            self.part = preferred.part
            return {"update": 1, "steps": 0, "preferred": preferred.value}
        response = mixture_responses(self.tree, self.parts, self.sigma)[self.seat]
        self.part = response.part
        return {"update": 1, "steps": 0, "return": response.value}

    def state_dict(self) -> dict[str, Any]:
        return {"part": self.part, "finished": self.finished}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.part, self.finished = state["part"], state["finished"]


def with_team_reward(tree: Tree, share: float) -> Tree:
    """The tree in which everybody earns what `TeamReward` pays with that share."""
    own = tree.nodes.rewards
    rewards = (1 - share) * own + share * own.sum(axis=1, keepdims=True)
    return Tree(tree.nodes._replace(rewards=rewards), tree.information, tree.keys)
