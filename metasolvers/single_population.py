"""Single-population alpha-rank: one population plays a symmetric game against itself.

All play one policy until a mutant of another fixates; the long-run share of each policy is its rank [Omidshafiei et al.
2019, Scientific Reports 9:9937]. Two ways to measure a mutant's advantage, `selection`, are in use:

- "local": one mutant meets residents in the game, and its payoff is compared with theirs; M[r, s] with M[s, r] in a
  two-player game, however many mutants there are.
- "global": N players are drawn from the population of m, so that payoffs depend on how many mutants there are already
  [Traulsen, Nowak & Pacheco 2006, Physical Review E 74, pairwise comparison].

`payoffs` are [N, k, ..., k] of a game whose seats are exchangeable, or its sorted table [N, C(k + N - 1, N)] (see
`metasolvers.symmetric`), which many players fit into; a two-player game of matrix M is np.stack([M, M.T]).
"""

from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import hypergeom

from metasolvers.alpharank import log_fixation_probability
from metasolvers.markov import Graph, log_stationary
from metasolvers.metagame import ROUNDING
from metasolvers.response_graphs import (
    Responses,
    check_rounding,
    deviations,
    fixation_orders,
    perturbed,
    sinks,
)
from metasolvers.stochastic_stability import Rates, limit_distribution
from metasolvers.symmetric import group_sizes, one_group, profile_index, symmetric_table

Selection = Literal["local", "global"]

LARGEST_CROWD = 10_000
"""Largest population whose every number of mutants is gone through."""


class Advantages(NamedTuple):
    """What a mutant of each edge's target earns above the residents of its source, when there are 1, 2, ... mutants."""

    graph: Graph  # complete, on the k policies
    gain: np.ndarray  # [m - 1, E]; [1, E] where the number of mutants does not matter
    slack: float  # of a gain that may be rounding


def alpha_rank_single(
    payoffs: ArrayLike,
    alpha: float = 10.0,
    population_size: int = 50,
    normalize: bool = True,
    selection: Selection = "local",
) -> np.ndarray:
    """Long-run share of every policy of a symmetric game: payoffs -> pi [k]. See the module for payoffs and selection.

    alpha >= 0 is the intensity of selection: with `normalize` per largest advantage that any mutant has, else per
    payoff unit, as published. Raises ValueError for payoffs that are malformed or not symmetric (naming an entry),
    alpha < 0, population_size < 2 or, under global selection, smaller than the number of players.

    >>> biased = np.array([[0, -0.25, 0.5], [0.25, 0, -0.05], [-0.5, 0.05, 0]])  # rock, paper, scissors
    >>> alpha_rank_single(np.stack([biased, biased.T]), alpha=1, normalize=False).round(3)
    array([0.174, 0.717, 0.109])
    """
    found = mutant_advantages(payoffs, population_size, normalize, selection)
    return np.exp(log_stationary(found.graph, _log_fixation(found, alpha, population_size)))


def fixation_edges_single(
    payoffs: ArrayLike,
    alpha: float = 10.0,
    population_size: int = 50,
    normalize: bool = True,
    selection: Selection = "local",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every mutation: resident [E], mutant [E] and log fixation probability [E]. As in `alpha_rank_single`."""
    found = mutant_advantages(payoffs, population_size, normalize, selection)
    return found.graph.source, found.graph.target, _log_fixation(found, alpha, population_size)


def alpha_limit_single(
    payoffs: ArrayLike,
    population_size: int = 50,
    normalize: bool = True,
    selection: Selection = "local",
    rounding: float = ROUNDING,
) -> np.ndarray:
    """The limit of `alpha_rank_single` as alpha goes to infinity: payoffs -> pi [k].

    (It is the same with and without `normalize`, which is there to be called like the other.) `rounding` as in
    `response_graph`; other arguments and errors as in `alpha_rank_single`.

    >>> stag_hunt = np.array([[4, 1], [3, 2]])
    >>> alpha_limit_single(np.stack([stag_hunt, stag_hunt.T]), selection="global")  # whoever hunts alone starves
    array([0., 1.])
    """
    found = mutant_advantages(payoffs, population_size, normalize, selection, rounding)
    if len(found.gain) == 1:
        return limit_distribution(found.graph, fixation_orders(_moves(found), population_size))
    return limit_distribution(found.graph, _climbs(found))


def response_graph_single(
    payoffs: ArrayLike, eps: float = 1e-6, tie: float = 0.5, rounding: float = ROUNDING
) -> np.ndarray:
    """Long-run share of every policy on the perturbed response graph of local selection: payoffs -> pi [k].

    Arguments and errors as in `response_graph` and `alpha_rank_single`.
    """
    return perturbed(_moves(mutant_advantages(payoffs, rounding=rounding)), eps, tie)


def sink_components_single(payoffs: ArrayLike, rounding: float = ROUNDING) -> list[list[int]]:
    """The sink strongly connected components of the response graph of local selection: lists of policies.

    An edge leads to every mutant that is no worse than the residents it meets. Arguments and errors as in
    `response_graph_single`.
    """
    return [list(map(int, policies)) for policies in sinks(_moves(mutant_advantages(payoffs, rounding=rounding)))]


def sorted_table(counts: ArrayLike, payoffs: ArrayLike) -> np.ndarray:
    """A heuristic payoff table as a sorted table [N, C(k + N - 1, N)].

    counts [M, k]: how many of the N players use each policy; payoffs [M, k]: what each of these then earns; whatever
    stands where nobody plays a policy is ignored [Walsh et al. 2002, Analyzing complex strategic interactions]. Raises
    ValueError unless every way to divide N players among k policies is there exactly once.

    >>> sorted_table([[2, 0], [1, 1], [0, 2]], [[3, np.nan], [0, 5], [np.nan, 1]])
    array([[3., 0., 1.],
           [3., 5., 1.]])
    """
    players, earned = np.asarray(counts), np.asarray(payoffs, dtype=np.float64)
    if players.ndim != 2 or players.shape != earned.shape or players.size == 0:
        raise ValueError(
            f"counts and payoffs must both be [profiles, policies]; got shapes {players.shape} and {earned.shape}"
        )
    totals = players.sum(axis=1)
    seats, policies = int(totals[0]), players.shape[1]
    if seats < 1 or (players < 0).any() or (players != np.floor(players)).any() or (totals != seats).any():
        raise ValueError(f"every row of counts must divide the same number of players; got totals {np.unique(totals)}")
    rows = np.array([np.repeat(np.arange(policies), row) for row in players.astype(int)])
    index = profile_index(rows)
    wanted = comb(policies + seats - 1, seats)
    if len(rows) != wanted or len(np.unique(index)) != wanted:
        raise ValueError(
            f"{seats} players and {policies} policies have {wanted} different profiles; "
            f"got {len(rows)} rows, {len(np.unique(index))} of them different: evaluate each profile once"
        )
    table = np.empty((seats, wanted))
    table[:, index] = np.take_along_axis(earned, rows, axis=1).T
    return table


def mutant_advantages(
    payoffs: ArrayLike,
    population_size: int = 50,
    normalize: bool = False,
    selection: Selection = "local",
    rounding: float = ROUNDING,
) -> Advantages:
    """What mutants earn above residents, in payoff units or, with `normalize`, per largest such advantage."""
    if selection not in SELECTIONS:
        raise ValueError(f"selection must be {' or '.join(map(repr, SELECTIONS))}; got {selection!r}")
    check_rounding(rounding)
    log_fixation_probability(0.0, population_size)  # refuses sizes that are none
    table = symmetric_table(payoffs)
    graph, _ = deviations((group_sizes(table, one_group(len(table)))[0],))
    gain, slack = SELECTIONS[selection](_earnings(table), population_size), rounding * np.abs(table).max()
    gain = gain[:, graph.source, graph.target]
    if not np.isfinite(gain).all():
        raise ValueError("payoff differences must stay finite: scale the payoffs down")
    largest = np.abs(gain).max(initial=0)
    if normalize and largest > slack:
        return Advantages(graph, gain / largest, slack / largest)
    return Advantages(graph, gain, slack)


def _local(earned: np.ndarray, population_size: int) -> np.ndarray:
    """[1, resident, mutant] what one mutant among N - 1 residents earns above each of them. Earnings [N, k, k] in."""
    with np.errstate(over="ignore"):  # refused by the caller
        return (earned[0].T - earned[-2 if len(earned) > 1 else -1])[None]


def _global(earned: np.ndarray, population_size: int) -> np.ndarray:
    """[m - 1, resident, mutant] expected advantages with 1 to m - 1 mutants, the N players drawn from all m."""
    seats, m = len(earned), int(population_size)
    if not seats <= m <= LARGEST_CROWD:
        raise ValueError(
            f"population_size must be from {seats}, the players drawn from it, to {LARGEST_CROWD:,} where the "
            f"number of mutants matters; got {population_size}"
        )
    same = np.arange(m - 1)  # how many others of the m - 1 are like oneself
    chances = hypergeom.pmf(np.arange(seats), m - 1, same[:, None], seats - 1)  # [m - 1, N] of co-players like oneself
    with np.errstate(over="ignore", invalid="ignore"):  # refused by the caller
        expected = np.tensordot(chances, earned, axes=1)
        return expected.transpose(0, 2, 1) - expected[::-1]


SELECTIONS = {"local": _local, "global": _global}


def _log_fixation(found: Advantages, alpha: float, population_size: int) -> np.ndarray:
    """Log fixation probability [E] of a single mutant."""
    if not 0 <= alpha < np.inf:
        raise ValueError(f"alpha must be a finite intensity of selection >= 0; got {alpha}: raise it to select harder")
    with np.errstate(over="ignore"):
        climb = alpha * found.gain
    if not np.abs(climb).max(initial=0) * population_size < np.inf:
        raise ValueError(f"alpha * payoff differences must stay finite; got alpha={alpha}: scale the payoffs down")
    if len(climb) == 1:
        return log_fixation_probability(climb[0], population_size)
    # rho = 1 / (1 + sum_l prod_{p <= l} e^-u_p): a step down is e^-u_p times as likely as one up
    return -logsumexp(np.concatenate([np.zeros_like(climb[:1]), -np.cumsum(climb, axis=0)]), axis=0)


def _climbs(found: Advantages) -> Rates:
    """The fixation probabilities to leading order: the highest of the m levels to climb, as often as it is reached."""
    level = np.concatenate([np.zeros_like(found.gain[:1]), -np.cumsum(found.gain, axis=0)])
    slack = len(level) * found.slack
    order = level.max(axis=0)
    reached = (order - level <= 2 * slack).sum(axis=0)
    return Rates(np.where(order <= slack, 0.0, order), np.full(len(order), slack), -np.log(reached))


def _moves(found: Advantages) -> Responses:
    """Advantages that do not depend on the number of mutants, as a response graph."""
    (gain,) = found.gain
    return Responses(found.graph, gain, np.full(len(gain), found.slack))


def _earnings(table: np.ndarray) -> np.ndarray:
    """[N, k, k]: what a player of r earns when c of the N players use r and the others s, at [c - 1, r, s]."""
    seats = len(table)
    (policies,) = group_sizes(table, one_group(len(table)))
    count = np.arange(1, seats + 1)[:, None, None, None]
    mine, theirs = np.arange(policies)[:, None, None], np.arange(policies)[:, None]
    profiles = np.sort(np.where(np.arange(seats) < count, mine, theirs), axis=-1)  # [N, k, k, N]
    seat = (profiles == mine).argmax(axis=-1)
    return table[seat, profile_index(profiles)]
