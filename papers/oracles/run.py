"""Train and measure one of our learners: `python -m papers.oracles.run --task ppo_cart_pole --seed 0`."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import tyro

from games.spelling import unknown
from papers.oracles.protocol import Watch, thinned
from papers.oracles.tasks import TASKS

HERE = Path(__file__).parent
PACKAGES = ("gymnasium", "torch", "numpy")


def main(
    task: tuple[str, ...] = (),
    seed: tuple[int, ...] = (),
    results: Path = HERE / "results.jsonl",
    again: bool = False,
) -> int:
    """Train with each seed, play the final policy, and append a line of JSON for each.

    Args:
        task: Which tasks, by default all.
        seed: Seeds, by default all of the task's.
        results: File the lines are appended to; what it already has is not run once more ...
        again: ... unless this is asked for: then its lines of these seeds are replaced.
    """
    import torch

    for name in task:
        if name not in TASKS:
            raise unknown("task", name, TASKS)
    torch.set_num_threads(1)
    for name in task or TASKS:
        for number in seed or TASKS[name].seeds:
            if again or not done(results, name, number):
                line = run(name, number)
                write(results, line)
                print(f"{name} seed {number}: {line['score']:.4g}, {line['wall_seconds']:.0f} s", flush=True)
    return 0


def run(task: str, seed: int) -> dict:
    """The line of results: settings, score and what it is of, learning curve, seconds, versions."""
    entry = TASKS[task]
    with Watch() as watch:
        measured = entry.measure(entry.oracle, seed)
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


def read(results: Path) -> list[dict]:
    """Lines of a file of results; none where there is no file."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def done(results: Path, task: str, seed: int) -> bool:
    return any((line["task"], line["seed"]) == (task, seed) for line in read(results))


def write(results: Path, line: dict) -> None:
    """Append a line, in place of one of the same task and seed."""
    kept = [old for old in read(results) if (old["task"], old["seed"]) != (line["task"], line["seed"])]
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text("".join(json.dumps(old) + "\n" for old in [*kept, line]))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
