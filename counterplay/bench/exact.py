"""Exact values, CFR+ and the double oracle on Leduc poker beside OpenSpiel, in CPU seconds."""

import contextlib
import io
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from counterplay.bench.row import Row
from games.exact import cfr_plus, exploitability, nash_conv
from games.exact.agreement import random_strategy
from games.exact.openspiel import from_openspiel, to_openspiel
from games.openspiel import MAX_NODES, compiled, load, openspiel
from games.policies import Uniform
from marl.exact import evaluate_exact, exact_gap
from marl.oracles.exact import Exact
from marl.psro import from_payoffs, one_response_each, psro
from metasolvers import zero_sum_nash

GAME = "leduc_poker"
REPEATS = 20
EXPLOITABILITY, CHECKED = 0.01, 10
"""CFR+ ends at this exploitability, which is looked at once in so many iterations."""
NASH_CONV, ITERATIONS = 0.5, 300
"""Where the double oracle ends, after how many iterations at the latest."""
PEER_NASH_CONV, PEER_SECONDS, SIMULATIONS = 1.0, 90.0, 100
"""Where psro_v2 ends, after how long at the latest, and its episodes per profile: its example's 1,000 take longer."""
SHOWN = 10
"""Iterations from one NashConv in the note to the next."""
NEEDED, INSTALL = ("cvxpy", "ecos"), "pip install 'counterplay[bench]'"
"""Packages that psro_v2 needs to solve its meta-games and does not bring along, and where they come from."""


class Point(NamedTuple):
    """How far PSRO has got."""

    seconds: float
    nash_conv: float


def rows() -> Iterator[Row]:
    """Nothing is kept in between: seconds are of one core, and do not hold what only measures the peer."""
    yield _nash_conv()
    seconds, tree = _cpu_seconds(partial(compiled, load(GAME), MAX_NODES))
    yield Row(f"compiling {GAME}", seconds, "s", "", None, None, "", f"{tree.num_nodes:,} nodes")
    yield _cfr_plus()
    yield _double_oracle()
    code = "from counterplay.bench.exact import fill; fill()"
    memory = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    whole, before = (int(line) / 1e6 for line in memory.split())
    note = "largest resident set, of which PyTorch and all other imports take the peer's"
    yield Row("  its memory", whole, "MB", "imports", before, None, "", note)


def _nash_conv() -> Row:
    """Of one random strategy."""
    game = openspiel(GAME)
    tree, rules = game.tree, load(GAME)
    strategy = random_strategy(tree, np.random.default_rng(0))
    policy = to_openspiel(game, strategy)
    nash_conv(tree, strategy)  # what is tabulated once is
    ours = min(_cpu_seconds(partial(nash_conv, tree, strategy))[0] for _ in range(REPEATS))
    peer, value = min(_cpu_seconds(partial(pyspiel.nash_conv, rules, policy)) for _ in range(3))
    note = f"differs by {abs(value - nash_conv(tree, strategy)):.1g}"
    return Row(f"NashConv of a strategy of {GAME}", ours, "s", "OpenSpiel (C++)", peer, peer / ours, ">= 100", note)


def _cfr_plus() -> Row:
    tree, rules = openspiel(GAME).tree, load(GAME)
    averages = cfr_plus(tree)
    ours, iterations = _until(lambda: next(averages), lambda average: exploitability(tree, average))
    solver = pyspiel.CFRPlusSolver(rules)
    peer, others = _until(
        solver.evaluate_and_update_policy, lambda _: pyspiel.nash_conv(rules, solver.average_policy()) / 2
    )
    note = f"{iterations} iterations, the peer {others}"
    name = f"CFR+ on {GAME} to exploitability {EXPLOITABILITY:g}"
    return Row(name, ours, "s", "OpenSpiel (C++)", peer, peer / ours, "< 5", note)


def _until(step: Callable[[], Any], measured: Callable[[Any], float]) -> tuple[float, int]:
    """CPU seconds of the steps alone, and how many there were, to EXPLOITABILITY."""
    seconds, steps = 0.0, 0
    while True:
        start = process_time()
        for _ in range(CHECKED):
            last = step()
        seconds, steps = seconds + process_time() - start, steps + CHECKED
        if measured(last) <= EXPLOITABILITY:
            return seconds, steps


def _double_oracle() -> Row:
    """Our seconds to NASH_CONV, beside those of psro_v2 to PEER_NASH_CONV, or to where it was stopped."""
    curve = list(double_oracle())
    name = f"double oracle on {GAME} to NashConv {NASH_CONV:g}, peer to {PEER_NASH_CONV:g}"
    note = f"measuring included, compiling not; {_course(curve)}"
    if any(find_spec(package) is None for package in NEEDED):
        return Row(name, curve[-1].seconds, "s", "", None, None, "", f"{note}; peer: {INSTALL}")
    others = list(psro_v2())
    ours, peer = curve[-1].seconds, others[-1].seconds
    note += f"; peer, with {SIMULATIONS} episodes a profile: {_course(others)}"
    return Row(name, ours, "s", "OpenSpiel psro_v2", peer, peer / ours, ">= 10", note)


def _course(curve: list[Point]) -> str:
    """How NashConv went down."""
    shown = ", ".join(f"{i}: {curve[i].nash_conv:.2f}" for i in range(0, len(curve), SHOWN))
    return f"NashConv {curve[-1].nash_conv:.3f} after {len(curve) - 1} iterations ({shown})"


def double_oracle() -> Iterator[Point]:
    """PSRO with exact best responses and payoffs from uniform play, to NASH_CONV."""
    start = process_time()
    game = openspiel(GAME)
    respond = one_response_each(game, Exact(), 0)
    initial = [[Uniform.of(space)] for space in game.action_spaces]
    for snapshot in psro(initial, respond, partial(evaluate_exact, game), from_payoffs(zero_sum_nash), ITERATIONS):
        table: Any = snapshot.payoffs
        gap = exact_gap(game, snapshot.populations, table, snapshot.sigma).total.value
        yield Point(process_time() - start, gap)
        if gap <= NASH_CONV:
            return


def psro_v2() -> Iterator[Point]:
    """OpenSpiel's, with its exact best responses (C++), Nash equilibria of the meta-games, and otherwise its example's
    defaults; to PEER_NASH_CONV, or for PEER_SECONDS.
    """
    from open_spiel.python import policy
    from open_spiel.python.algorithms import policy_aggregator
    from open_spiel.python.algorithms.psro_v2 import best_response_oracle
    from open_spiel.python.algorithms.psro_v2 import psro_v2 as peer

    game, rules = openspiel(GAME), load(GAME)
    np.random.seed(0)  # noqa: NPY002 - the peer draws from it
    start = process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        first = policy.TabularPolicy(rules)
        solver = peer.PSROSolver(
            rules,
            best_response_oracle.BestResponseOracle(game=rules, policy=first),
            initial_policies=[first.__copy__() for _ in range(2)],
            training_strategy_selector="probabilistic",
            meta_strategy_method="nash",
            sims_per_entry=SIMULATIONS,
            sample_from_marginals=True,
        )
    seconds = process_time() - start
    while True:
        aggregator = policy_aggregator.PolicyAggregator(rules)
        mixture = aggregator.aggregate(range(2), solver.get_policies(), solver.get_meta_strategies())
        point = Point(seconds, nash_conv(game.tree, from_openspiel(game, mixture)))
        yield point
        if point.nash_conv <= PEER_NASH_CONV or seconds >= PEER_SECONDS:
            return
        start = process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            solver.iteration()
        seconds += process_time() - start


def fill() -> None:
    """Print the memory that the double oracle takes, and what the imports took before, in bytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in double_oracle():
        pass
    for peak in (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, before):
        print(peak * 1024)


def _cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    answer = call()
    return process_time() - start, answer
