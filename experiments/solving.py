"""How far those who learn together are from an equilibrium, exact, in games with a tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.trainings import team_share
from experiments.placement import settings
from games.game import Game, Playable, Policy
from games.numbers import whole
from games.tree_game import TreeGame
from marl.exact import evaluate_exact, exact_gap, tree_game
from marl.oracles import JointTraining, Learner, Oracle
from marl.psro import placed


def solves(config: Any, oracle: Oracle, game: Game | Playable) -> bool:
    """Whether an equilibrium is what a training is about, and how far off it is can be computed.

    It is where all players learn, each for its own return: NashConv is of these.
    """
    partial = isinstance(oracle, JointTraining) and bool(oracle.opponents or oracle.learning_seats)
    return oracle.all_seats and not partial and not team_share(settings(config)) and isinstance(game, TreeGame)


def gap_of(game: Game | Playable, policies: Sequence[Policy]) -> float:
    """NashConv of a policy a player, in returns per episode."""
    rules, populations = tree_game(game), [[policy] for policy in policies]
    alone = np.ones((1,) * len(populations))
    return exact_gap(rules, populations, evaluate_exact(rules, populations), alone).total.value


class Solving:
    """A learner of all players, whose first report in every so many steps, and the last, tell their `nash_conv` too.

    Implements `marl.oracles.Learner`.
    """

    def __init__(self, learner: Learner, game: Game | Playable, every: int):
        self.learner, self.game, self.every = learner, game, every
        self.steps = 0

    def update(self) -> dict[str, float]:
        before, report = self.steps, self.learner.update()
        self.steps = int(report["steps"])
        if self.finished or self.steps // self.every > before // self.every:
            policies = self.policies
            report["nash_conv"] = gap_of(self.game, [placed(policies[seat], "cpu") for seat in sorted(policies)])
        return report

    @property
    def policies(self) -> dict[int, Policy]:
        return self.learner.policies

    @property
    def finished(self) -> bool:
        return self.learner.finished

    def state_dict(self) -> dict[str, Any]:
        return {"learner": self.learner.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.steps = whole("steps", state["steps"], 0)
