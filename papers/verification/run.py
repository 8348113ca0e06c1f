"""Measure how far verification oracles fall short: `python -m papers.verification.run`."""

import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tyro

from experiments.shortfalls import RESULTS
from games.game import Policy
from games.tree_game import TreeGame
from games.versus import Populations
from marl.checkpoint import PolicyStore
from marl.exact import evaluate_exact, exact_gap
from marl.population import Estimate
from marl.verification import Verification, at_least, deviation, responses, verify
from metasolvers import expected_payoffs
from papers.oracles.lines import Line, complete, known
from papers.verification.tasks import SUBJECTS, TASKS

SEED = 0


def main(task: tuple[str, ...] = (), results: Path = RESULTS, again: bool = False) -> int:
    """Look for each task's gap, and append a line of JSON with the exact one beside it.

    Args:
        task: Which tasks, by default all.
        results: File the lines are appended to; what it already has is not run once more ...
        again: ... unless this is asked for: then lines of these tasks are replaced.
    """
    import torch

    torch.set_num_threads(1)
    complete(results, known(task, TASKS), lambda name: (SEED,), run, again)
    return 0


def run(name: str, seed: int) -> Line:
    """The line of a task: gains found and exact, in all and a player; settings, seconds, versions."""
    task = TASKS[name]
    game, how = task.make(), Verification(task.settings, seed=seed)
    populations, sigma = SUBJECTS[task.subject](game)
    exact = exact_gap(game, populations, evaluate_exact(game, populations), sigma)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        store = PolicyStore(Path(folder))
        found = verify(how, game, populations, sigma, store)
        trained = responses(how, game, populations, sigma, store)
    seconds = round(time.process_time() - start, 1)
    players = []
    for seat, chosen in enumerate(found.chosen):
        deviates = deviation(chosen, populations[seat])
        candidates = [*populations[seat], *trained[seat]]
        true = 0.0 if chosen is None else gained(game, populations, sigma, seat, candidates[chosen])
        players.append(beside(found.gains[seat], exact.gains[seat].value, true) | {"deviation": deviates})
    total = beside(found.total, exact.total.value, sum(player["gained"] for player in players))
    print(f"{name}: at least {total['at_least']:.4f} of {total['exact']:.4f}, {seconds:.0f} s", flush=True)
    return {
        "task": name,
        "oracle": task.oracle,
        "game": task.game,
        "subject": task.subject,
        "seed": seed,
        "steps": task.settings.total_steps,
        "restarts": how.restarts,
        "episodes": how.episodes,
        **total,
        "players": players,
        "cpu_seconds": seconds,
        "settings": repr(task.settings),
        "versions": {package: version(package) for package in ("torch", "numpy", "open_spiel")},
    }


def beside(found: Estimate, exact: float, gained: float) -> Line:
    """A gain as it was found by play, beside the largest there is, and what the deviations found gain in truth."""
    told = {"exact": exact, "gained": gained, "found": found.value, "standard_error": found.standard_error}
    return told | {"at_least": at_least(found)}


def gained(game: TreeGame, populations: Populations, sigma: np.ndarray, seat: int, policy: Policy) -> float:
    """What a player gains in expectation by a deviation from sigma; exact."""
    alone = [[policy] if player == seat else population for player, population in enumerate(populations)]
    deviating = expected_payoffs(evaluate_exact(game, alone).mean, sigma.sum(axis=seat, keepdims=True))[seat]
    return float(deviating - expected_payoffs(evaluate_exact(game, populations).mean, sigma)[seat])


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
