"""Exact PSRO, and beside it, step by step, the algorithms that it is said to generalise.

Those are written here anew, on strategies of the whole game instead of populations and payoff tables. Of equally good
responses they take the one that PSRO took.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from games import exact
from games.exact.zero_sum import Constraints, maximin
from games.policies import Uniform
from games.tree import Tree
from games.tree_game import TreeGame
from marl.exact import evaluate_exact, population_parts
from marl.oracles import Exact
from marl.psro import from_payoffs, one_response_each, psro
from metasolvers import meta_solver

Parts = Sequence[np.ndarray]
"""[player] strategies [k, S_player], oldest first."""
Run = Sequence[tuple[Parts, np.ndarray]]
"""What PSRO had found after 0, 1, ... iterations: parts and sigma."""


def snapshots(game: TreeGame, solver: str, iterations: int) -> Iterator[tuple[Parts, np.ndarray]]:
    """What PSRO with exact best responses has found after 0, 1, ... iterations from uniform play: parts and sigma."""
    respond = one_response_each(game, Exact(), 0)
    initial = [[Uniform.of(space)] for space in game.action_spaces]
    solve = from_payoffs(meta_solver(solver))
    for snapshot in psro(initial, respond, partial(evaluate_exact, game), solve, iterations):
        yield population_parts(game, snapshot.populations), snapshot.sigma


def nash_conv(tree: Tree, parts: Parts, sigma: np.ndarray) -> float:
    """Of a product sigma, in the whole game."""
    return exact.nash_conv(tree, exact.behaviour_of_mixture(tree, parts, sigma))


def first_players_value(tree: Tree, parts: Parts, sigma: np.ndarray) -> float:
    return float(exact.expected_returns(tree, exact.behaviour_of_mixture(tree, parts, sigma))[0])


def fictitious_play_apart(tree: Tree, run: Run) -> float:
    """From fictitious play in realisation plans [Heinrich, Lanctot & Silver 2015]: x_t+1 = x_t + (b_t+1 - x_t) / (t+2).

    The largest difference between its average strategies and what PSRO responds to, or between what its best responses
    and PSRO's earn.
    """
    average, apart = exact.plans(tree, exact.uniform(tree)), 0.0
    for step, ((parts, sigma), (grown, _)) in enumerate(pairwise(run)):
        mixture = exact.plans(tree, exact.behaviour_of_mixture(tree, parts, sigma))
        strategy, added = exact.behaviour_of_plan(tree, average), exact.profile(tree, [own[-1] for own in grown])
        apart = max(apart, float(np.abs(mixture - average).max()), shortfall(tree, strategy, added))
        average += (exact.plans(tree, added) - average) / (step + 2)
    return apart


def iterated_best_response_apart(tree: Tree, run: Run) -> float:
    """From everyone's answering the strategies of the step before."""
    current, apart = exact.uniform(tree), 0.0
    for (parts, sigma), (grown, _) in pairwise(run):
        mixture = exact.plans(tree, exact.behaviour_of_mixture(tree, parts, sigma))
        added = exact.profile(tree, [own[-1] for own in grown])
        differ = np.abs(mixture - exact.plans(tree, current)).max()
        apart, current = max(apart, float(differ), shortfall(tree, current, added)), added
    return apart


def double_oracle_apart(tree: Tree, run: Run) -> float:
    """From the double oracle algorithm [McMahan, Gordon & Blum 2003], its restricted game solved by another program.

    That game may have several equilibria: what is compared is how much each player can be sure of.
    """
    apart = 0.0
    for (parts, sigma), (grown, _) in pairwise(run):
        matrix = exact.payoff_table(tree, parts)[0]
        value = maximin(csr_array(matrix), *(_simplex(size) for size in matrix.shape)).value
        sure = (sigma.sum(axis=1) @ matrix).min(), (matrix @ sigma.sum(axis=0)).max()
        strategy = exact.behaviour_of_mixture(tree, parts, sigma)
        added = exact.profile(tree, [own[-1] for own in grown])
        apart = max(apart, *(abs(value - each) for each in sure), shortfall(tree, strategy, added))
    return apart


def shortfall(tree: Tree, strategy: np.ndarray, responses: np.ndarray) -> float:
    """The most that any player's part of `responses` [S] earns less against a strategy [S] than a best response."""
    missing = 0.0
    for player, best in enumerate(exact.best_responses(tree, strategy)):
        own, deviating = tree.slots(player), strategy.copy()
        deviating[own] = responses[own]
        missing = max(missing, best.value - float(exact.expected_returns(tree, deviating)[player]))
    return missing


def _simplex(size: int) -> Constraints:
    return Constraints(csr_array(np.ones((1, size))), np.ones(1))


Apart = Callable[[Tree, Run], float]
GENERALISED: dict[str, Apart] = {
    "fictitious play": fictitious_play_apart,
    "double oracle": double_oracle_apart,
    "iterated best response": iterated_best_response_apart,
}
"""How far PSRO is from each algorithm, with the meta-solver that makes it that one."""
