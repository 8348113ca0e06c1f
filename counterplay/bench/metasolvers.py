"""Alpha-rank and the linear program beside OpenSpiel's, in CPU seconds; random games with N(0, 1) payoffs."""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.egt import alpharank as open_spiel_alpharank

from counterplay.bench.row import Row
from metasolvers import alpha_rank, nash_conv, stationarity, zero_sum_nash

REPEATS, PEER_REPEATS = 9, 2
"""The fastest of so many runs counts; the peer's at 2 x 50, and ours that take seconds, are run once."""
ALPHAS = (0.1, 1.0, 10.0)
LIMITS = {(10, 10, 10, 10): "<= 2 s", (30, 30, 30): "<= 5 s"}
"""Games that the peer's dense matrices rule out: 10,000 and 27,000 profiles."""
LARGEST, LARGEST_LIMIT = (300, 300), "<= 60 s, 4 GB"
"""90,000 profiles and 53.8 million deviations, in a process of its own to tell the memory."""
ACTIONS = 500


def rows() -> Iterator[Row]:
    """2 x 50 and 4 x 6 policies against OpenSpiel, then games that are out of its reach, then zero-sum games.

    Notes give the largest difference over profiles, and ||pi P - pi||_1 of ours.
    """
    for alpha in ALPHAS:
        yield _beside_open_spiel((50, 50), alpha, 1)
        yield _beside_open_spiel((6, 6, 6, 6), alpha, PEER_REPEATS)
    for shape, limit in LIMITS.items():
        for alpha in ALPHAS:
            seconds, sigma = _cpu_seconds(partial(alpha_rank, _normal(shape), alpha, normalize=False))
            yield Row(_name(shape, alpha), seconds, "s", "", None, None, limit, _residual(shape, sigma, alpha))
    for alpha in ALPHAS:
        yield _in_its_own_process(alpha)
    yield _linear_program()


def _beside_open_spiel(shape: tuple[int, ...], alpha: float, repeats: int) -> Row:
    payoffs = _normal(shape)
    ours, sigma = _fastest(partial(alpha_rank, payoffs, alpha, normalize=False), REPEATS)
    peer, answer = _fastest(partial(_peer, payoffs, alpha), repeats)
    difference = float(np.abs(answer - sigma.ravel()).max())
    agreement = "the peer gives up" if np.isnan(difference) else f"differs by {difference:.1g}"
    note = f"{_residual(shape, sigma, alpha)}; {agreement}"
    return Row(_name(shape, alpha), ours, "s", "OpenSpiel", peer, peer / ours, ">= 300", note)


def _peer(payoffs: np.ndarray, alpha: float) -> np.ndarray:
    """OpenSpiel's answer; NaN where it does the work but then takes a nearly reducible chain for several."""
    with np.errstate(over="ignore"):
        try:
            return open_spiel_alpharank.compute(list(payoffs), m=50, alpha=alpha)[2]
        except ValueError:
            return np.full(payoffs[0].size, np.nan)


def _in_its_own_process(alpha: float) -> Row:
    code = f"from counterplay.bench.metasolvers import solve_largest; solve_largest({alpha})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, peak, residual = out.splitlines()
    note = f"{residual}; largest resident set {int(peak) / 1e9:.2f} GB"
    return Row(_name(LARGEST, alpha), float(seconds), "s", "", None, None, LARGEST_LIMIT, note)


def solve_largest(alpha: float) -> None:
    """Print CPU seconds, this process's largest resident set in bytes, imports included, and the residual."""
    seconds, sigma = _cpu_seconds(partial(alpha_rank, _normal(LARGEST), alpha, normalize=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(seconds, peak, _residual(LARGEST, sigma, alpha), sep="\n")


def _linear_program() -> Row:
    row = np.random.default_rng(0).normal(size=(ACTIONS, ACTIONS))
    payoffs = np.stack([row, -row])
    ours, sigma = _fastest(partial(zero_sum_nash, payoffs), PEER_REPEATS)
    name, note = f"zero_sum_nash {ACTIONS}x{ACTIONS}", f"NashConv {nash_conv(payoffs, sigma):.1g}"
    try:
        from open_spiel.python.algorithms import lp_solver
    except ImportError:
        return Row(name, ours, "s", "", None, None, "", f"{note}; peer: pip install 'counterplay[bench]'")
    game = pyspiel.create_matrix_game(row, -row)
    peer, (*strategies, _, _) = _fastest(partial(lp_solver.solve_zero_sum_matrix_game, game), PEER_REPEATS)
    first, second = (np.maximum(strategy, 0) / np.maximum(strategy, 0).sum() for strategy in strategies)
    note += f", the peer's {nash_conv(payoffs, np.outer(first, second)):.1g}"
    return Row(name, ours, "s", "OpenSpiel (ECOS)", peer, peer / ours, ">= 2", note)


def _normal(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(shape), *shape))


def _name(shape: tuple[int, ...], alpha: float) -> str:
    return f"alpha_rank {len(shape)}x{shape[0]} alpha={alpha:g}"


def _residual(shape: tuple[int, ...], sigma: np.ndarray, alpha: float) -> str:
    return f"residual {stationarity(_normal(shape), sigma, alpha, normalize=False):.1g}"


def _fastest(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """CPU seconds of the fastest of so many calls, and what they return."""
    timed = [_cpu_seconds(call) for _ in range(repeats)]
    return min(seconds for seconds, _ in timed), timed[0][1]


def _cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    answer = call()
    return process_time() - start, answer
