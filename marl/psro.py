"""Policy-space response oracles: the outer loop as a generator."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from games.game import Game, Policy
from games.lanes import GameLanes
from games.noise import unit_seed
from games.versus import Populations, Versus
from marl.population import PayoffTable
from marl.wrappers import TeamReward

Respond = Callable[[Populations, np.ndarray, int], Sequence[Policy]]
Evaluate = Callable[[Populations, PayoffTable | None], PayoffTable]
MetaSolver = Callable[[np.ndarray], np.ndarray]


class Snapshot(NamedTuple):
    """One iteration's outcome."""

    iteration: int
    populations: list[list[Policy]]
    payoffs: PayoffTable
    sigma: np.ndarray  # [k_1, ..., k_N] joint meta-strategy


def psro(
    populations: Populations,
    respond: Respond,
    evaluate: Evaluate,
    meta_solver: MetaSolver,
    iterations: Iterable[int],
    known: PayoffTable | None = None,
) -> Iterable[Snapshot]:
    """Policy-space response oracles [Lanctot et al. 2017, algorithm 1]; one snapshot an iteration.

    The first snapshot is of the populations as given (iteration 0, or the one to resume from: pass its populations,
    its payoffs as `known`, and the iterations that are left). `respond(populations, sigma, iteration)` gives one new
    policy per player, `evaluate(populations, known)` extends the payoff table, `meta_solver(payoffs)` is any of
    `metasolvers`.
    """
    iterations = list(iterations)
    populations = [list(population) for population in populations]
    payoffs = evaluate(populations, known)
    sigma = meta_solver(payoffs.mean)
    yield Snapshot(iterations[0] - 1 if iterations else 0, populations, payoffs, sigma)
    for iteration in iterations:
        responses = respond(populations, sigma, iteration)
        populations = [[*old, new] for old, new in zip(populations, responses, strict=True)]
        payoffs = evaluate(populations, payoffs)
        sigma = meta_solver(payoffs.mean)
        yield Snapshot(iteration, populations, payoffs, sigma)


def best_response(
    game: Game,
    oracle: Any,
    populations: Populations,
    sigma: np.ndarray,
    seat: int,
    seed: int,
    unit: str,
    **training: Any,
) -> Policy:
    """One unit of work: train `seat` against the other seats' play of sigma, from scratch.

    The result is a pure function of (game, oracle, populations, sigma, seed, unit). `oracle` is an entry of
    `marl.oracles.ORACLES`, whose `reward` is "own" or "team"; `training` goes to its `train` (device, progress).
    """
    lanes = GameLanes(game, oracle.num_lanes)
    versus = Versus(TeamReward(lanes) if oracle.reward == "team" else lanes, populations, sigma, (seat,))
    return oracle.train(versus, (0,), unit_seed(seed, unit), **training)[0]
