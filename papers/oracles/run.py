"""Train and measure our learners: `python -m papers.oracles.run --task ppo_cart_pole --seed 0`."""

import sys
from importlib.metadata import version
from pathlib import Path

import tyro

from papers.oracles.lines import OURS, Line, complete, known
from papers.oracles.protocol import Watch, thinned
from papers.oracles.tasks import TASKS

PACKAGES = ("gymnasium", "torch", "numpy")


def main(task: tuple[str, ...] = (), seed: tuple[int, ...] = (), results: Path = OURS, again: bool = False) -> int:
    """Train with each seed, play the final policy, and append a line of JSON for each.

    Args:
        task: Which tasks, by default all.
        seed: Seeds, by default all of each task's.
        results: File the lines are appended to; what it already has is not run once more ...
        again: ... unless this is asked for: then lines of these tasks and seeds are replaced.
    """
    import torch

    torch.set_num_threads(1)
    complete(results, known(task, TASKS), lambda name: seed or TASKS[name].seeds, run, again)
    return 0


def run(task: str, seed: int) -> Line:
    """The line of results: settings, score and what it is of, learning curve, seconds, versions."""
    entry = TASKS[task]
    with Watch() as watch:
        measured = entry.measure(entry.oracle, seed)
    print(f"{task} seed {seed}: {measured.score:.4g}, {watch.wall:.0f} s", flush=True)
    return {
        "task": task,
        "learner": type(entry.oracle).__name__,
        "seed": seed,
        "steps": entry.oracle.total_steps,
        "score": measured.score,
        **measured.details,
        "wall_seconds": watch.wall,
        "cpu_seconds": watch.cpu,
        "curve": thinned(measured.curve),
        "settings": repr(entry.oracle),
        "versions": {package: version(package) for package in PACKAGES},
    }


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
