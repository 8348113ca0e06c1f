"""Alpha-rank beside OpenSpiel's, in CPU seconds; random games with N(0, 1) payoffs."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from open_spiel.python.egt import alpharank as open_spiel_alpharank

from counterplay.bench.row import Row
from metasolvers import alpha_rank, transition_matrix

REPEATS = 7
"""Our run is timed this often and the median kept; the peer takes seconds and is timed once."""


def rows(seed: int = 0) -> Iterator[Row]:
    """2 x 30 and 4 x 6 policies against OpenSpiel, then 4 x 10 (10,000 profiles), which its dense matrices rule out.

    Notes give the largest difference over profiles, and ||pi P - pi||_1 of ours.
    """
    rng = np.random.default_rng(seed)
    for shape in ((30, 30), (6, 6, 6, 6), (10, 10, 10, 10)):
        payoffs = rng.normal(size=(len(shape), *shape))
        for alpha in (0.1, 1.0, 10.0):
            yield _row(payoffs, alpha, with_peer=payoffs[0].size < 5000)


def _row(payoffs: np.ndarray, alpha: float, with_peer: bool) -> Row:
    timed = [_cpu_seconds(lambda: alpha_rank(payoffs, alpha, normalize=False)) for _ in range(REPEATS)]
    ours, pi = float(np.median([seconds for seconds, _ in timed])), timed[0][1].ravel()
    residual = float(np.abs(pi @ transition_matrix(payoffs, alpha, normalize=False) - pi).sum())
    name, note = f"alpha_rank {len(payoffs)}x{payoffs.shape[1]} alpha={alpha:g}", f"residual {residual:.1g}"
    if not with_peer:
        return Row(name, ours, "s", "", None, None, "seconds", note)
    peer, answer = _cpu_seconds(lambda: _peer(payoffs, alpha))
    difference = float(np.abs(answer - pi).max())
    note += "; the peer gives up" if np.isnan(difference) else f"; differs by {difference:.1g}"
    return Row(name, ours, "s", "OpenSpiel", peer, peer / ours, ">= 100", note)


def _peer(payoffs: np.ndarray, alpha: float) -> np.ndarray:
    """OpenSpiel's answer; NaN where it does the work but then takes a nearly reducible chain for several."""
    with np.errstate(over="ignore"):
        try:
            return open_spiel_alpharank.compute(list(payoffs), m=50, alpha=alpha)[2]
        except ValueError:
            return np.full(payoffs[0].size, np.nan)


def _cpu_seconds(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.process_time()
    answer = run()
    return time.process_time() - start, answer
