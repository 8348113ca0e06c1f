"""Our side of the comparison with OpenSpiel: generators that go on until their time is over.

Each yields, whenever there is something to measure, a function that gives the NashConv, exact; the clock stands still
while it is called. `tally.steps` counts the environment's steps.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.baselines.games import Played
from experiments.baselines.measured import Measure, Tally
from experiments.solving import gap_of
from games import exact
from games.lanes import GameLanes
from games.tree_game import TreeGame

ENDLESS = 1_000_000
"""Iterations."""


def cfr_plus(played: Played, seed: int, tally: Tally) -> Iterator[Measure]:
    """CFR+; of other than two-player zero-sum games nothing is promised."""
    tree = played.compiled().tree
    for average in exact.cfr_plus(tree):
        yield partial(exact.nash_conv, tree, average)


def psro(played: Played, seed: int, tally: Tally, oracle: Any, meta_solver: str) -> Iterator[Measure]:
    """PSRO from uniform play, with exact payoffs; steps are those of the best responses' training."""
    from games.policies import Uniform
    from marl import psro as loop
    from marl.exact import evaluate_exact
    from metasolvers import META_SOLVERS

    game = played.compiled()
    tally.steps = 0 if oracle.total_steps else None
    respond = loop.one_response_each(game, oracle, seed, tally.training)
    initial = [[Uniform.of(space)] for space in game.action_spaces]
    solve = loop.from_payoffs(META_SOLVERS[meta_solver].solve)
    for snapshot in loop.psro(initial, respond, partial(evaluate_exact, game), solve, ENDLESS):
        yield partial(_of_mixture, game, snapshot)


def nfsp(played: Played, seed: int, tally: Tally) -> Iterator[Measure]:
    """Neural fictitious self-play with its defaults, measured by its average policies."""
    from marl.oracles.nfsp import NFSP

    game, oracle = played.compiled(), NFSP()
    tally.settings["oracle"] = repr(oracle)
    learner = oracle.learner(GameLanes(game, oracle.num_lanes), tuple(range(len(game.agents))), seed)
    tally.steps = 0
    count = tally.training()
    while not learner.finished:
        yield partial(_of_policies, game, learner)
        count(learner.update())
    yield partial(_of_policies, game, learner)


def alpha_rank(played: Played, seed: int, tally: Tally, alpha: float, population_size: int) -> Iterator[Measure]:
    """Alpha-rank of a normal form, once."""
    from metasolvers import alpha_rank as solve

    payoffs = played.payoffs()
    sigma = solve(payoffs, alpha, population_size, normalize=False)
    tally.found["sigma"] = [float(f"{share:.6g}") for share in sigma.ravel()]
    yield partial(marginals_gap, payoffs, sigma)


def marginals_gap(payoffs: np.ndarray, sigma: np.ndarray) -> float:
    """NashConv of the product of a joint distribution's marginals."""
    from metasolvers import independent, nash_conv

    return float(nash_conv(payoffs, independent(sigma)))


def _of_mixture(game: TreeGame, snapshot: Any) -> float:
    """NashConv of the product of the meta-strategy's marginals."""
    from marl.exact import population_parts
    from metasolvers import marginal

    parts = population_parts(game, snapshot.populations)
    mixed = [
        exact.part_of_mixture(game.tree, player, own, marginal(snapshot.sigma, player))
        for player, own in enumerate(parts)
    ]
    return exact.nash_conv(game.tree, exact.profile(game.tree, mixed))


def _of_policies(game: TreeGame, learner: Any) -> float:
    policies = learner.policies
    return gap_of(game, [policies[seat] for seat in sorted(policies)])
