"""Where a Markov chain is found as its rare moves become infinitely rare.

Its rates are weight * exp(-t * order), and t goes to infinity: moves of order 0 stay, the others vanish, the faster the
larger their order. States with mass left in the limit are *stochastically stable* [Young 1993, Econometrica 61]; which
ones these are, and how much each has, is found from orders and weights alone, without ever choosing a t.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from metasolvers.markov import Graph, log_stationary, log_sums


class Rates(NamedTuple):
    """exp(log_weight - t * order) on every edge; orders that differ by no more than their slacks are equal."""

    order: np.ndarray  # [E] >= 0
    slack: np.ndarray  # [E] >= 0: how far rounding may have moved the order
    log_weight: np.ndarray  # [E]


def limit_distribution(graph: Graph, rates: Rates) -> np.ndarray:
    """The limit [K] of the stationary distribution of an irreducible chain as t goes to infinity; zeros are exact.

    Measure time in every state by its cheapest exit, so that each is left at once: now some sets of states are closed.
    Each of them settles within itself and becomes a single state; and so on, until one holds all that matters
    [Wicks & Greenwald 2005, UAI, An algorithm for computing stochastically stable distributions].
    """
    # A state's mass is that of what it is merged into, times exp(log_mass - t * order).
    merged = np.arange(graph.size)
    order, slack, log_mass = np.zeros((3, graph.size))
    while graph.size > 1:
        exit_order, exit_slack = _lowest(rates.order, rates.slack, graph.starts)
        order, slack = order - exit_order[merged], slack + exit_slack[merged]
        rates, free = _measured_by(graph, rates, exit_order, exit_slack)
        classes = closed_classes(graph, free)
        log_share = np.zeros(graph.size)
        for states in classes:
            log_share[states] = log_restricted(graph, rates.log_weight, states, free)
        log_mass = log_mass + log_share[merged]
        label = _labels(graph.size, classes)
        merged = label[merged]
        inside = merged == 0
        if len(classes) == 1 and order[inside].min() <= order[~inside].min(initial=np.inf):
            break  # what is outside is of a higher order still
        graph, rates = _merge(graph, rates._replace(log_weight=rates.log_weight + log_share[graph.source]), label)
    settled = np.flatnonzero(merged == 0)
    best = settled[order[settled].argmin()]
    kept = settled[order[settled] - order[best] <= slack[settled] + slack[best]]
    mass = np.zeros(len(merged))
    mass[kept] = np.exp(log_mass[kept] - log_mass[kept].max())
    return mass / mass.sum()


def closed_classes(graph: Graph, kept: np.ndarray) -> list[np.ndarray]:
    """The sets of states that the kept edges [E] connect both ways and do not leave; each in ascending order."""
    source, target = graph.source[kept], graph.target[kept]
    adjacency = csr_array((np.ones(len(source), bool), (source, target)), shape=(graph.size, graph.size))
    count, label = connected_components(adjacency, connection="strong")
    closed = np.ones(count, bool)
    closed[label[source[label[source] != label[target]]]] = False
    inside = np.flatnonzero(closed[label])
    inside = inside[np.argsort(label[inside], kind="stable")]
    classes = np.split(inside, np.flatnonzero(np.diff(label[inside])) + 1)
    return sorted(classes, key=lambda states: states[0])


def log_restricted(graph: Graph, log_rates: np.ndarray, states: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Log of the stationary distribution [S] within one closed class of the kept edges [E]."""
    first, last = graph.starts[states], graph.starts[states + 1]
    edges = np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])
    edges = edges[kept[edges]]
    source, target = (np.searchsorted(states, ends[edges]) for ends in (graph.source, graph.target))
    starts = np.searchsorted(source, np.arange(len(states) + 1))
    return log_stationary(Graph(source, target, starts), log_rates[edges])


def _measured_by(
    graph: Graph, rates: Rates, exit_order: np.ndarray, exit_slack: np.ndarray
) -> tuple[Rates, np.ndarray]:
    """The rates in units of each state's cheapest exit, and which edges [E] are no dearer: their order is 0."""
    order, slack = rates.order - exit_order[graph.source], rates.slack + exit_slack[graph.source]
    free = order <= slack
    return Rates(np.where(free, 0.0, order), np.where(free, 0.0, slack), rates.log_weight), free


def _labels(size: int, classes: list[np.ndarray]) -> np.ndarray:
    """What each state [size] is merged into: the classes come first, the states in none of them after."""
    label = np.full(size, -1)
    for number, states in enumerate(classes):
        label[states] = number
    alone = label < 0
    label[alone] = len(classes) + np.arange(alone.sum())
    return label


def _merge(graph: Graph, rates: Rates, label: np.ndarray) -> tuple[Graph, Rates]:
    """The chain of merged states; of edges that now run side by side those of lowest order add up."""
    size = label.max() + 1
    source, target = label[graph.source], label[graph.target]
    crossing = np.flatnonzero(source != target)
    edge = (source * size + target)[crossing]
    if not len(edge):
        return Graph(edge, edge, np.zeros(size + 1, int)), Rates(*np.zeros((3, 0)))
    crossing = crossing[np.argsort(edge, kind="stable")]
    edge = (source * size + target)[crossing]
    first = np.flatnonzero(np.diff(edge, prepend=-1))
    bundles = np.append(first, len(edge))
    order, slack, log_weight = (values[crossing] for values in rates)
    lowest, least = _lowest(order, slack, bundles)
    width = np.diff(bundles)
    beside = order - np.repeat(lowest, width) <= slack + np.repeat(least, width)
    source, target = np.divmod(edge[first], size)
    starts = np.searchsorted(source, np.arange(size + 1))
    return Graph(source, target, starts), Rates(lowest, least, log_sums(np.where(beside, log_weight, -np.inf), bundles))


def _lowest(order: np.ndarray, slack: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest order, and its slack, of each non-empty segment starts[i] to starts[i + 1]."""
    first = starts[:-1]
    lowest = np.minimum.reduceat(order, first)
    is_lowest = order == np.repeat(lowest, np.diff(starts))
    return lowest, np.maximum.reduceat(np.where(is_lowest, slack, 0.0), first)
