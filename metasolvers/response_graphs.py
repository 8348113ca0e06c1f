"""Response graphs: which single deviations pay, and where evolution ends that only ever follows them.

Two limits of alpha-rank bear different names, for they differ. `response_graph` asks only whether a deviation gains:
better ones are taken, worse ones hardly ever, by how much does not matter. `alpha_limit` is where `alpha_rank` goes as
alpha grows: costlier mistakes are rarer, so that the equilibrium that is hardest to leave stays. On the coordination
game that pays 2 or 1 the first is split evenly, the second all in the better equilibrium.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.alpharank import log_fixation_probability
from metasolvers.markov import Graph, log_stationary
from metasolvers.metagame import ROUNDING, check_payoffs, check_sigma
from metasolvers.stochastic_stability import Rates, closed_classes, limit_distribution, log_restricted

Profile = tuple[int, ...]


class Responses(NamedTuple):
    """The deviations between K states and what each of them gains; it is no gain and no loss within the slack."""

    graph: Graph
    gain: np.ndarray  # [E]
    slack: np.ndarray  # [E] of the gain that may be rounding

    @property
    def better(self) -> np.ndarray:
        """[E] whether the deviation pays."""
        return self.gain > self.slack

    @property
    def worse(self) -> np.ndarray:
        """[E] whether the deviation costs."""
        return self.gain < -self.slack


def response_graph(payoffs: ArrayLike, eps: float = 1e-6, tie: float = 0.5, rounding: float = ROUNDING) -> np.ndarray:
    """Long-run share of every joint profile on the perturbed response graph: payoffs [N, k_1..k_N] -> sigma [k_1..k_N].

    Of the sum(k_i - 1) deviations each is tried equally often, and taken with probability 1 - eps where it gains, tie
    where nothing changes and eps where it loses [Rowland et al. 2019, NeurIPS, Multiagent evaluation under incomplete
    information, sec. 2]. 700 and 700.005 are no tie, 0.1 + 0.2 and 0.3 are: `rounding` is relative to a player's
    largest payoff (1e-6 suits payoffs computed in float32). Raises ValueError for malformed payoffs, eps outside
    (0, 1/2] or tie outside (0, 1]; eps = 0 is refused where there are several sink components, for then the answer
    depends on where one starts: see `sink_distributions`.

    >>> coordination = [[[2, 0], [0, 1]], [[2, 0], [0, 1]]]
    >>> response_graph(coordination).round(3)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    table = check_payoffs(payoffs)
    return perturbed(responses(table, rounding=rounding), eps, tie).reshape(table.shape[1:])


def alpha_limit(
    payoffs: ArrayLike, population_size: int = 50, normalize: bool = True, rounding: float = ROUNDING
) -> np.ndarray:
    """The limit of `alpha_rank` as alpha goes to infinity: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    Deviations that gain are taken, neutral ones with probability 1 / population_size, and losing ones exponentially
    rarely in alpha and what they lose: mass stays on the profiles of least resistance only [Young 1993]. As in
    `alpha_rank`, losses are per largest gain of the player with `normalize`, else in payoff units; `rounding` as in
    `response_graph`. Raises ValueError for malformed payoffs or population_size < 2.

    >>> coordination = [[[2, 0], [0, 1]], [[2, 0], [0, 1]]]
    >>> alpha_limit(coordination)
    array([[1., 0.],
           [0., 0.]])
    """
    table = check_payoffs(payoffs)
    moves = responses(table, normalize, rounding)
    return limit_distribution(moves.graph, fixation_orders(moves, population_size)).reshape(table.shape[1:])


def sink_components(payoffs: ArrayLike, rounding: float = ROUNDING) -> list[list[Profile]]:
    """The sink strongly connected components of the response graph, each a list of profiles, in C order.

    Edges are the deviations that do not lose: those that better responses or indifference lead to and never out of
    [Omidshafiei et al. 2019, Markov-Conley chains]. Arguments and errors as in `response_graph`.

    >>> sink_components([[[3, 0], [0, 2]], [[2, 0], [0, 3]]])
    [[(0, 0)], [(1, 1)]]
    """
    table = check_payoffs(payoffs)
    return [profiles(states, table.shape[1:]) for states in sinks(responses(table, rounding=rounding))]


def sink_distributions(payoffs: ArrayLike, tie: float = 0.5, rounding: float = ROUNDING) -> list[np.ndarray]:
    """For each of the `sink_components`, in their order, the joint sigma [k_1, ..., k_N] of a walk that ends there.

    These are the unperturbed response graph's stationary distributions: eps = 0. Arguments as in `response_graph`.
    """
    table = check_payoffs(payoffs)
    moves = responses(table, rounding=rounding)
    return [within_sink(moves, states, tie).reshape(table.shape[1:]) for states in sinks(moves)]


def response_stationarity(
    payoffs: ArrayLike, sigma: ArrayLike, eps: float = 1e-6, tie: float = 0.5, rounding: float = ROUNDING
) -> float:
    """||sigma P - sigma||_1 on the perturbed response graph; dimensionless. Arguments as in `response_graph`."""
    table = check_payoffs(payoffs)
    moves = responses(table, rounding=rounding)
    _check_mistakes(eps, tie)
    taken = np.where(moves.better, 1 - eps, np.where(moves.worse, eps, tie))
    return _imbalance(moves, taken, check_sigma(sigma, table))


def limit_stationarity(
    payoffs: ArrayLike, sigma: ArrayLike, population_size: int = 50, rounding: float = ROUNDING
) -> float:
    """||sigma P - sigma||_1 for selection so strong that losing deviations never fixate; dimensionless.

    Necessary for `alpha_limit`; which of several sink components is the most stable it does not tell.
    """
    table = check_payoffs(payoffs)
    moves = responses(table, rounding=rounding)
    neutral = np.exp(log_fixation_probability(0.0, population_size))
    taken = np.where(moves.better, 1.0, np.where(moves.worse, 0.0, neutral))
    return _imbalance(moves, taken, check_sigma(sigma, table))


def deviations(shape: tuple[int, ...]) -> tuple[Graph, np.ndarray]:
    """All single-player deviations between profiles (in C order) of `shape` policies, and whose [E] each one is."""
    size, degree = prod(shape), sum(shape) - len(shape)
    played = np.indices(shape).reshape(len(shape), -1)
    targets, players = [], []
    for player, policies in enumerate(shape):
        stride = prod(shape[player + 1 :])
        for step in range(1, policies):
            other = (played[player] + step) % policies
            targets.append(np.arange(size) + (other - played[player]) * stride)
            players.append(player)
    target = np.array(targets, dtype=np.intp).reshape(degree, size).T.ravel()
    graph = Graph(np.repeat(np.arange(size), degree), target, np.arange(size + 1) * degree)
    return graph, np.tile(np.array(players, dtype=np.intp), size)


def responses(table: np.ndarray, normalize: bool = False, rounding: float = ROUNDING) -> Responses:
    """Every single-player deviation of a payoff table [N, k_1, ..., k_N] and its gain; `normalize` as in alpha-rank."""
    check_rounding(rounding)
    graph, player = deviations(table.shape[1:])
    own = table.reshape(len(table), -1)
    with np.errstate(over="ignore"):  # refused below
        gain = own[player, graph.target] - own[player, graph.source]
    if not np.isfinite(gain).all():
        raise ValueError("payoff differences must stay finite: scale the payoffs down")
    slack = rounding * np.abs(own).max(axis=1)
    if normalize:
        largest = np.zeros(len(table))
        np.maximum.at(largest, player, np.abs(gain))
        unit = np.where(largest > slack, largest, 1.0)
        gain, slack = gain / unit[player], slack / unit
    return Responses(graph, gain, slack[player])


def check_rounding(rounding: float) -> None:
    """Raises ValueError for what is no share."""
    if not 0 <= rounding < 1:
        raise ValueError(f"rounding must be a share of the largest payoff, in [0, 1); got {rounding}")


def perturbed(moves: Responses, eps: float, tie: float) -> np.ndarray:
    """Stationary distribution [K] of the response graph in which deviations that lose are taken at rate eps."""
    _check_mistakes(eps, tie)
    if eps == 0:
        return _only_sink(moves, tie)
    log_taken = np.where(moves.better, np.log1p(-eps), np.where(moves.worse, np.log(eps), np.log(tie)))
    return np.exp(log_stationary(moves.graph, log_taken))


def sinks(moves: Responses) -> list[np.ndarray]:
    """The states of each sink component of the deviations that do not lose."""
    return closed_classes(moves.graph, ~moves.worse)


def within_sink(moves: Responses, states: np.ndarray, tie: float) -> np.ndarray:
    """Stationary distribution [K] of the unperturbed response graph on one of its sinks."""
    _check_tie(tie)
    mass = np.zeros(moves.graph.size)
    log_taken = np.where(moves.better, 0.0, np.log(tie))
    mass[states] = np.exp(log_restricted(moves.graph, log_taken, states, ~moves.worse))
    return mass


def fixation_orders(moves: Responses, population_size: int) -> Rates:
    """How fixation probabilities behave as selection hardens: 1, 1/m, or exp(-(m - 1) * loss) to leading order."""
    neutral = log_fixation_probability(0.0, population_size)
    log_weight = np.where(moves.better | moves.worse, 0.0, neutral)
    # Orders are in units of m - 1, which all of them share.
    return Rates(np.where(moves.worse, -moves.gain, 0.0), np.where(moves.worse, moves.slack, 0.0), log_weight)


def profiles(states: np.ndarray, shape: tuple[int, ...]) -> list[Profile]:
    """The profiles whose places in C order are `states`."""
    return [tuple(map(int, profile)) for profile in zip(*np.unravel_index(states, shape), strict=True)]


def _only_sink(moves: Responses, tie: float) -> np.ndarray:
    """Stationary distribution [K] of the unperturbed response graph, if it has but one."""
    found = sinks(moves)
    if len(found) > 1:
        raise ValueError(
            f"eps = 0 leaves {len(found)} sink components, the smallest of {min(map(len, found))} profiles, and where "
            f"the walk ends depends on its start: see sink_distributions, or give mistakes a probability eps > 0"
        )
    return within_sink(moves, found[0], tie)


def _imbalance(moves: Responses, taken: np.ndarray, sigma: np.ndarray) -> float:
    """L1 norm of what flows into the states less what flows out, when each deviation is tried equally often."""
    size = moves.graph.size
    flow = sigma.ravel()[moves.graph.source] * taken * (size / max(len(taken), 1))
    return float(
        np.abs(np.bincount(moves.graph.target, flow, size) - np.bincount(moves.graph.source, flow, size)).sum()
    )


def _check_mistakes(eps: float, tie: float) -> None:
    _check_tie(tie)
    if not 0 <= eps <= 0.5:
        raise ValueError(f"eps must be the probability of a mistake, in (0, 1/2]; got {eps}: 1e-6 is next to none")


def _check_tie(tie: float) -> None:
    if not 0 < tie <= 1:
        raise ValueError(f"tie must be the probability, in (0, 1], that a neutral deviation is taken; got {tie}")
