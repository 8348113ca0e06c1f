"""Stationary distributions of large Markov chains whose rates span thousands of orders of magnitude.

Selection of intensity 100 leaves a strict equilibrium at a rate like 1e-2000, so nothing here subtracts and every
quantity is kept as a logarithm. The unknown is the *jump measure* h: the log of how often the chain, watched only when
it moves, leaves each state. Tiny masses come out with the same relative accuracy as large ones.
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components

DIRECT = 40
"""Chains up to this many states are eliminated state by state; cubic, about 2 ms here."""
LAST_RESORT = 2048
"""Largest chain worth eliminating (in minutes) should the cycles not settle."""
SWEEPS = 5
"""Times three jumps before and after each coarse correction."""
STEEPEST = 30.0
"""Most nats a state's measure may grow in one step: 3 * SWEEPS of them must not overflow."""
FAINTEST = -700.0
"""Nats below which a number is nothing to its sum; near there processors slow down, as numbers become subnormal."""
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
BLOCK = 2**16
"""Edges looked at together: what is computed on the way to one number an edge stays in the processor's cache."""


class Graph(NamedTuple):
    """Directed edges in the order of their sources: state i owns the edges starts[i] to starts[i + 1]."""

    source: np.ndarray  # [E]
    target: np.ndarray  # [E]
    starts: np.ndarray  # [size + 1]

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.starts) - 1


class NotSettled(ArithmeticError):
    """The best distribution that was found, as `mass` [size], and the `step` still to make in its logs."""

    def __init__(self, mass: np.ndarray, step: float) -> None:
        super().__init__(
            f"the stationary distribution of {len(mass)} states did not settle: a log still moves by {step:.2g}, "
            f"more than {ACCURACY}: soften the rates",
        )
        self.mass, self.step = mass, step


def log_stationary(graph: Graph, log_rates: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Log of the stationary distribution [size] of an irreducible chain with finite log_rates [E], in nats.

    To `start` from that of a similar chain saves time where much time is needed.

    Every state of `graph` has an edge out unless it is the only one. Aggregation and disaggregation on all scales
    [De Sterck et al. 2008, SIAM J. Sci. Comput. 30], down to subtraction-free elimination [Grassmann, Taksar & Heyman
    1985]. Raises NotSettled rather than return a distribution that has not settled.
    """
    if graph.size == 1:
        return np.zeros(1)
    leaving = log_sums(log_rates, graph.starts)
    jumps = log_rates - leaving[graph.source]
    if graph.size <= DIRECT:
        return _log_mass(_eliminate(graph, jumps), leaving)
    measure, step = _measure(graph, jumps, None if start is None else start + leaving)
    if step:
        raise NotSettled(np.exp(_log_mass(measure, leaving)), step)
    return _log_mass(measure, leaving)


def imbalance(graph: Graph, log_rates: np.ndarray, mass: np.ndarray) -> float:
    """Sum over all states of |flow in - flow out|, where log_rates [E] move the mass [size]; 0 when it is stationary.

    For a chain of such probabilities that is ||mass P - mass||_1, without the rounding of 1 - the sum of a row.
    """
    gain = np.zeros(graph.size)
    for states, edges in _blocks(graph.starts):
        flows = np.exp(np.maximum(log_rates[edges], FAINTEST))
        flows *= mass[graph.source[edges]]
        np.add.at(gain, graph.target[edges], flows)
        gain[states] -= np.add.reduceat(flows, graph.starts[states] - edges.start)
    return float(np.abs(gain).sum())


def log_sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """log(sum(exp(values))) over the non-empty segments starts[i] to starts[i + 1]."""
    sums = np.empty(len(starts) - 1)
    for segments, inside in _blocks(starts):
        block, first = values[inside], starts[segments] - inside.start
        largest = np.maximum.reduceat(block, first)
        shares = np.maximum(block - np.repeat(largest, np.diff(first, append=len(block))), FAINTEST)
        np.exp(shares, out=shares)
        sums[segments] = largest + np.log(np.add.reduceat(shares, first))
    return sums


def _blocks(starts: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Runs of whole segments, about BLOCK elements each: slices of the segments, and of the elements in them."""
    cuts = sorted({*np.searchsorted(starts, np.arange(0, starts[-1], BLOCK)).tolist(), len(starts) - 1})
    for first, last in pairwise(cuts):
        yield slice(first, last), slice(starts[first], starts[last])


def _log_mass(measure: np.ndarray, leaving: np.ndarray) -> np.ndarray:
    """A state that is left at rate r is stayed in for 1 / r; all logs [size]."""
    log_mass = measure - leaving
    log_mass -= log_mass.max()
    return log_mass - np.log(np.exp(log_mass).sum())


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
        self.jumps, self.units = weights, np.full(graph.size, np.inf)  # of no chain as yet
        self.merged: _Merged | None = None

    def weigh(self, jumps: np.ndarray, measure: np.ndarray) -> None:
        """Make `inflow` the chain's, in units near the measure [size]: there numbers are near one, and what underflows
        is nothing to its target.
        """
        if jumps is self.jumps and np.abs(measure - self.units).max() <= NEARBY:
            return
        self.jumps, self.units = jumps, measure
        for _, edges in _blocks(self.graph.starts):
            weights = measure[self.graph.source[edges]]
            weights += jumps[edges]
            weights -= measure[self.graph.target[edges]]
            np.exp(np.clip(weights, FAINTEST, STEEPEST, out=weights), out=self.inflow.data[edges])


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
    labels = labels.astype(np.min_scalar_type(count**2))  # short numbers sort fast

    crossing = np.flatnonzero(labels[graph.source] != labels[graph.target]).astype(graph.target.dtype)
    edges = labels[graph.source[crossing]] * labels.dtype.type(count) + labels[graph.target[crossing]]
    order = np.argsort(edges, kind="stable")
    crossing, edges = crossing[order], edges[order]
    first = np.flatnonzero(np.append(True, edges[1:] != edges[:-1])[: len(edges)])
    source, target = (ends.astype(graph.target.dtype) for ends in np.divmod(edges[first], count))
    starts = np.searchsorted(source, np.arange(count + 1)).astype(source.dtype)
    return _Merged(labels, crossing, np.append(first, len(edges)), _Level(Graph(source, target, starts)))


def _measure(graph: Graph, jumps: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """The jump measure [size], up to a constant, of a chain too large to eliminate; and the step still to make.

    Cycles from scratch settle at once unless the chain climbs for hundreds of nats between many places where it rests.
    Then it is softened to jumps**softness first, and the logs, nearly linear in softness, are followed back to it.
    """
    start = np.zeros(graph.size) if start is None else start
    measure, step = _settle(graph, jumps, start, cycles=12, accuracy=ACCURACY)
    if not step:
        return measure, step
    stages = max(1, int(np.ceil(np.log2(-jumps.min() / GENTLE))))
    softness, measure, slope = 0.0, np.zeros(graph.size), np.zeros(graph.size)
    for harder in 0.5 ** np.arange(stages, -1, -1.0):
        accuracy = ACCURACY if harder == 1 else 0.01
        start = measure + slope * (harder - softness)
        found, step = _settle(graph, _normalised(graph, harder * jumps), start, cycles=200, accuracy=accuracy)
        softness, measure, slope = harder, found, (found - measure) / (harder - softness)
    if step and graph.size <= LAST_RESORT:
        return _eliminate(graph, jumps), 0.0
    return measure, step


def _settle(
    graph: Graph, jumps: np.ndarray, measure: np.ndarray, cycles: int, accuracy: float
) -> tuple[np.ndarray, float]:
    """Cycle until the step still to make is below `accuracy` in every log, or below what float64 can tell: then 0.

    Where the steps shrink by a factor r from cycle to cycle, all those to come sum to r / (1 - r) of the last.
    """
    level = _Level(graph)
    past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=MEMORY)
    ahead = before = np.inf
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
        rest = min(1.0, largest / (before - largest)) if largest < before <= NEARBY else 1.0
        ahead, before = rest * max(largest, np.abs(step).max()), largest
        if ahead <= accuracy or largest <= ROUNDING * max(1.0, -measure.min()):
            return measure, 0.0
    return measure, float(ahead)


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
        flows = jumps[crossing]
        flows += measure[graph.source[crossing]]
        flows = log_sums(flows, bundles)
        known = log_sums(flows, coarse.graph.starts)
        correction = _cycle(coarse, flows - known[coarse.graph.source], known) - known
        measure = measure + (correction - correction.max())[labels]
    return _sweep(level, jumps, measure)


def _sweep(level: _Level, jumps: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """Let the chain run: SWEEPS times the average of two and three jumps, which damps two-cycles as well."""
    level.weigh(jumps, measure)
    ratio = np.exp(measure - level.units)
    for _ in range(SWEEPS):
        twice = level.inflow @ (level.inflow @ ratio)
        ratio = (twice + level.inflow @ twice) / 2
    return level.units + np.log(np.maximum(ratio, np.finfo(float).tiny))


def _normalised(graph: Graph, log_weights: np.ndarray) -> np.ndarray:
    """Log probabilities [E] proportional to the weights [E] on each state's edges."""
    return log_weights - log_sums(log_weights, graph.starts)[graph.source]
