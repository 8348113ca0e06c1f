"""Stationary distributions of large Markov chains whose rates span thousands of orders of magnitude.

Selection of intensity 100 leaves a strict equilibrium at a rate like 1e-2000, so nothing here subtracts and every
quantity is kept as a logarithm. The unknown is the *jump measure* h: the log of how often the chain, watched only when
it moves, leaves each state. Tiny masses come out with the same relative accuracy as large ones.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components

DIRECT = 40
"""Chains up to this many states are eliminated state by state; cubic, about 2 ms here."""
LAST_RESORT = 2048
"""Largest chain worth eliminating (in minutes) should the cycles not settle."""
SWEEPS = 8
"""Double steps of the chain before and after each coarse correction."""
STEEPEST = 30.0
"""Most nats a state's measure may grow in one step: 2 * SWEEPS of them must not overflow."""
GENTLE = 50.0
"""A chain whose rarest jump is within this many nats is solved from scratch in a few cycles."""
ACCURACY = 1e-12
"""Relative accuracy asked of every entry, where logarithms in float64 allow it."""
ROUNDING = 30 * np.finfo(float).eps
"""Relative size of the noise that stays in the logs."""
MEMORY = 6
"""How many cycles the extrapolation looks back on."""
NEARBY = 1.0
"""Farther than this many nats ahead, the cycles are not linear enough to extrapolate."""


class Graph(NamedTuple):
    """Directed edges in the order of their sources: state i owns the edges starts[i] to starts[i + 1]."""

    source: np.ndarray  # [E]
    target: np.ndarray  # [E]
    starts: np.ndarray  # [size + 1]

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.starts) - 1


def log_stationary(graph: Graph, log_rates: np.ndarray) -> np.ndarray:
    """Log of the stationary distribution [size] of an irreducible chain with finite log_rates [E], in nats.

    Every state of `graph` has an edge out unless it is the only one. Aggregation and disaggregation on all scales
    [De Sterck et al. 2008, SIAM J. Sci. Comput. 30], down to subtraction-free elimination [Grassmann, Taksar & Heyman
    1985]. Raises RuntimeError rather than return a distribution that has not settled.
    """
    if graph.size == 1:
        return np.zeros(1)
    leaving = log_sums(log_rates, graph.starts)
    jumps = log_rates - leaving[graph.source]
    measure = _eliminate(graph, jumps) if graph.size <= DIRECT else _measure(graph, jumps)
    log_mass = measure - leaving  # a state left at rate r is stayed in for 1 / r
    log_mass -= log_mass.max()
    return log_mass - np.log(np.exp(log_mass).sum())


def log_sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """log(sum(exp(values))) over the non-empty segments starts[i] to starts[i + 1]."""
    first, lengths = starts[:-1], np.diff(starts)
    largest = np.maximum.reduceat(values, first)
    return largest + np.log(np.add.reduceat(np.exp(values - np.repeat(largest, lengths)), first))


def _eliminate(graph: Graph, jumps: np.ndarray) -> np.ndarray:
    """The jump measure [size] by eliminating one state after the other [Grassmann, Taksar & Heyman 1985], in logs."""
    rates = np.full((graph.size, graph.size), -np.inf)
    rates[graph.source, graph.target] = jumps
    for state in range(graph.size - 1, 0, -1):
        onward = rates[state, :state]
        rates[:state, state] -= np.logaddexp.reduce(onward)
        rest = rates[:state, :state]
        np.logaddexp(rest, rates[:state, state, None] + onward, out=rest)
    measure = np.zeros(graph.size)
    for state in range(1, graph.size):
        measure[state] = np.logaddexp.reduce(measure[:state] + rates[:state, state])
    return measure


class _Level:
    """One scale of the chain: its graph, its inflow operator and, once merged, the next coarser scale."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        weights = np.ones(len(graph.source))
        self.inflow = csc_array((weights, graph.target, graph.starts), shape=(graph.size, graph.size))
        self.merged: _Merged | None = None


class _Merged(NamedTuple):
    """How the states of one level make up the next."""

    labels: np.ndarray  # [size] every state's coarse state
    crossing: np.ndarray  # edges between different coarse states, sorted by the coarse edge they belong to
    bundles: np.ndarray  # [coarse edges + 1] where in `crossing` each coarse edge starts
    level: _Level


def _merge(graph: Graph, jumps: np.ndarray) -> _Merged:
    """Merge every state with the one it most often jumps to.

    Each group then holds a single cycle that all its members soon run into, so no group can hide two places between
    which the chain hardly ever moves. Of equally likely targets one is taken: both would join their two places.
    """
    likeliest = np.flatnonzero(jumps == np.maximum.reduceat(jumps, graph.starts[:-1])[graph.source])[::-1]
    favourite = np.empty(graph.size, dtype=np.intp)
    favourite[graph.source[likeliest]] = graph.target[likeliest]
    pointers = csr_array((np.ones(graph.size), favourite, np.arange(graph.size + 1)), shape=(graph.size, graph.size))
    count, labels = connected_components(pointers, directed=False)
    labels = labels.astype(np.intp)

    edges = labels[graph.source] * count + labels[graph.target]
    crossing = np.flatnonzero(labels[graph.source] != labels[graph.target])
    crossing = crossing[np.argsort(edges[crossing], kind="stable")]
    edges = edges[crossing]
    first = np.flatnonzero(np.diff(edges, prepend=-1))
    source, target = np.divmod(edges[first], count)
    starts = np.searchsorted(source, np.arange(count + 1))
    return _Merged(labels, crossing, np.append(first, len(edges)), _Level(Graph(source, target, starts)))


def _measure(graph: Graph, jumps: np.ndarray) -> np.ndarray:
    """The jump measure [size], up to a constant, of a chain too large to eliminate.

    Cycles from scratch settle at once unless the chain climbs for hundreds of nats between many places where it rests.
    Then it is softened to jumps**softness first, and the logs, nearly linear in softness, are followed back to it.
    """
    measure, settled = _settle(graph, jumps, np.zeros(graph.size), cycles=12, accuracy=ACCURACY)
    if settled:
        return measure
    stages = max(1, int(np.ceil(np.log2(-jumps.min() / GENTLE))))
    softness, measure, slope = 0.0, np.zeros(graph.size), np.zeros(graph.size)
    for harder in 0.5 ** np.arange(stages, -1, -1.0):
        accuracy = ACCURACY if harder == 1 else 0.01
        start = measure + slope * (harder - softness)
        found, settled = _settle(graph, _normalised(graph, harder * jumps), start, cycles=200, accuracy=accuracy)
        softness, measure, slope = harder, found, (found - measure) / (harder - softness)
    if settled:
        return measure
    if graph.size <= LAST_RESORT:
        return _eliminate(graph, jumps)
    raise RuntimeError(
        f"the stationary distribution of {graph.size} states did not settle to {ACCURACY}: soften the rates"
    )


def _settle(
    graph: Graph, jumps: np.ndarray, measure: np.ndarray, cycles: int, accuracy: float
) -> tuple[np.ndarray, bool]:
    """Cycle until the step still to make is below `accuracy` in every log, or below what float64 can tell."""
    level = _Level(graph)
    past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=MEMORY)
    for _ in range(cycles):
        change = _cycle(level, jumps, measure) - measure
        change -= (measure + change).max()
        largest = np.abs(change).max()
        if largest > NEARBY:
            past.clear()
        past.append((measure, change))
        step = _extrapolated(*past)
        if np.abs(step).max() > NEARBY:
            step = change
        measure = measure + step
        measure -= measure.max()
        ahead = max(largest, np.abs(step).max())
        if ahead <= accuracy or largest <= ROUNDING * max(1.0, -measure.min()):
            return measure, True
    return measure, False


def _extrapolated(*past: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The step to where cycles lead, judged by the last few (measure, change) pairs [Anderson 1965, J. ACM 12]."""
    measures, changes = (np.array(values) for values in zip(*past, strict=True))
    bends = np.diff(changes, axis=0)
    weights = np.linalg.lstsq(bends.T, changes[-1])[0]
    return changes[-1] - weights @ (np.diff(measures, axis=0) + bends)


def _cycle(level: _Level, jumps: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """One multiplicative correction of the measure [size] on this and all coarser levels; jumps [E] sum to one."""
    graph = level.graph
    if graph.size <= DIRECT:
        return _eliminate(graph, jumps)
    measure = _sweep(level, jumps, measure)
    if level.merged is None:
        level.merged = _merge(graph, jumps)
    labels, crossing, bundles, coarse = level.merged
    if coarse.graph.size > 1:
        flows = log_sums((measure[graph.source] + jumps)[crossing], bundles)
        known = log_sums(flows, coarse.graph.starts)
        corrected = _cycle(coarse, flows - known[coarse.graph.source], known)
        measure = measure + (corrected - known)[labels]
    return _sweep(level, jumps, measure)


def _sweep(level: _Level, jumps: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """Let the chain run: SWEEPS times the average of one and two jumps, which damps two-cycles as well.

    In units of the present measure the numbers are near one, so what underflows is nothing to its target.
    """
    graph = level.graph
    np.exp(np.minimum(measure[graph.source] + jumps - measure[graph.target], STEEPEST), out=level.inflow.data)
    ratio = np.ones(graph.size)
    for _ in range(SWEEPS):
        once = level.inflow @ ratio
        ratio = (once + level.inflow @ once) / 2
    return measure + np.log(np.maximum(ratio, np.finfo(float).tiny))


def _normalised(graph: Graph, log_weights: np.ndarray) -> np.ndarray:
    """Log probabilities [E] proportional to the weights [E] on each state's edges."""
    return log_weights - log_sums(log_weights, graph.starts)[graph.source]
