"""Nash averaging: agents rated against an equilibrium of opponents, or of tasks.

Copies of an agent, and agents that nobody would field, change nobody's rating [Balduzzi et al. 2018, Re-evaluating
evaluation, arXiv 1806.02643].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.comparisons import check_antisymmetric, two_player
from metasolvers.metagame import marginal
from metasolvers.zero_sum import max_entropy_nash


class NashAverage(NamedTuple):
    """The equilibrium, and what each agent earns against it.

    p: [k] maximum-entropy Nash equilibrium of the game A.
    skill: [k] A p: 0 for agents in the equilibrium's support, negative (or 0) for others.
    """

    p: np.ndarray
    skill: np.ndarray


class TaskAverage(NamedTuple):
    """The equilibrium between agents and tasks, and what each is worth there.

    agents: [m] p, the agents' side of the equilibrium.
    tasks: [n] q, the tasks' side.
    skill: [m] S q: an agent's score on the tasks of the equilibrium.
    difficulty: [n] -S^T p: what a task takes from the agents of the equilibrium.
    """

    agents: np.ndarray
    tasks: np.ndarray
    skill: np.ndarray
    difficulty: np.ndarray


def nash_averaging(matrix: ArrayLike) -> NashAverage:
    """Agents against agents: antisymmetric A [k, k] -> p [k], and skills A p [k] in the units of A.

    A is `advantages_of_wins(wins)` of a win matrix, or `advantages(payoffs)` of a payoff table.
    Raises ValueError, with the worst entry, for an A that is not antisymmetric, and NotConverged as `max_entropy_nash`.

    >>> nash_averaging([[0, -1, -1], [1, 0, -1], [1, 1, 0]]).skill.round(6) + 0.0
    array([-1., -1.,  0.])
    """
    table = check_antisymmetric(matrix)
    p = marginal(max_entropy_nash(two_player(table)), 0)
    return NashAverage(p, table @ p)


def nash_averaging_tasks(scores: ArrayLike) -> TaskAverage:
    """Agents against tasks: scores S [m, n] of m agents on n tasks -> both sides' equilibrium and worth.

    Tasks are picked to give the agents as little as possible, so they need one scale: a task on which everybody scores
    low counts as hard. OpenSpiel first maps the scores of each task to [0, 1]; do so where their units differ.
    Raises ValueError for scores that are not one matrix of finite real numbers, and NotConverged as `max_entropy_nash`.

    >>> nash_averaging_tasks([[0.9, 0.2], [0.5, 0.6]]).skill.round(4)
    array([0.55, 0.55])
    """
    game = two_player(scores, "scores")
    sigma = max_entropy_nash(game)
    agents, tasks = marginal(sigma, 0), marginal(sigma, 1)
    return TaskAverage(agents, tasks, game[0] @ tasks, game[1].T @ agents)
