"""What verification oracles are measured on: meta-strategies of games with a tree, whose gaps are exact."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from experiments.psro_openspiel import LITTLE
from games import make
from games.exact import TabularPolicy, cfr_plus
from games.exact import uniform as uniform_strategy
from games.policies import Uniform
from games.tree_game import TreeGame
from games.versus import Populations
from marl.exact import evaluate_exact, tree_game
from marl.oracles import DQN, Exact, Oracle
from marl.psro import from_payoffs, one_response_each, psro
from metasolvers import max_entropy_cce, zero_sum_nash

Mixture = tuple[Populations, np.ndarray]
"""Populations, and the joint distribution [k_1, ..., k_N] over their profiles."""

GAMES = ("kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "liars_dice(numdice=1,dice_sides=3)")
"""Of OpenSpiel."""
CFR_ITERATIONS = 10
"""Of CFR+: few, so that there is something left to gain."""
PSRO_ITERATIONS = 4


def uniform(game: TreeGame) -> Mixture:
    return _alone(game, uniform_strategy(game.tree))


def cfr_average(game: TreeGame) -> Mixture:
    """The average strategy of CFR+ after a few iterations."""
    *_, average = islice(cfr_plus(game.tree), CFR_ITERATIONS)
    return _alone(game, average)


def psro_mixture(game: TreeGame) -> Mixture:
    """The meta-strategy after a few exact best responses: Nash of two players, of three a correlated equilibrium."""
    solver = zero_sum_nash if len(game.agents) == 2 else max_entropy_cce
    respond = one_response_each(game, Exact(), 0)
    initial = [[Uniform.of(space)] for space in game.action_spaces]
    *_, last = psro(initial, respond, partial(evaluate_exact, game), from_payoffs(solver), PSRO_ITERATIONS)
    return last.populations, last.sigma


def _alone(game: TreeGame, strategy: np.ndarray) -> Mixture:
    """One policy a player."""
    players = range(game.tree.players)
    return [[TabularPolicy.of(game, i, strategy[game.tree.slots(i)])] for i in players], np.ones((1,) * len(players))


SUBJECTS: dict[str, Callable[[TreeGame], Mixture]] = {
    "uniform": uniform,
    "cfr_plus": cfr_average,
    "psro": psro_mixture,
}
"""By name: whose gap is to be found."""


class Task(NamedTuple):
    """A row of the table."""

    oracle: str
    game: str
    subject: str
    settings: Oracle

    def make(self) -> TreeGame:
        return tree_game(make(f"openspiel:{self.game}"))


ORACLES: dict[str, Oracle] = {
    "ppo": LITTLE,
    "dqn": DQN(
        steps=16_384,
        num_lanes=64,
        horizon=4,
        gradient_steps=16,
        minibatch=256,
        gamma=1.0,
        epsilon_end=0.2,
        target_rate=0.02,
        hidden=(64,),
    ),
}
"""PPO as `counterplay psro-openspiel` has it by default, and a DQN that takes about as long."""

TASKS: dict[str, Task] = {
    f"{oracle} {game} {subject}": Task(oracle, game, subject, settings)
    for oracle, settings in ORACLES.items()
    for game in GAMES
    for subject in SUBJECTS
}
