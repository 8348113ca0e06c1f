"""Results as lines of JSON, one a task and seed."""

from collections.abc import Callable, Iterable
from pathlib import Path

from analysis import lines
from analysis.lines import Line, read
from games.spelling import unknown

HERE = Path(__file__).parent
OURS, THEIRS = HERE / "results.jsonl", HERE / "peers.jsonl"

__all__ = ["HERE", "OURS", "THEIRS", "Line", "complete", "known", "read"]


def complete(
    results: Path,
    tasks: Iterable[str],
    seeds: Callable[[str], Iterable[int]],
    run: Callable[[str, int], Line],
    again: bool = False,
) -> None:
    """Run what a file lacks of tasks and seeds, or all of it `again`; a line is written as soon as it is known."""
    keys = ((task, seed) for task in tasks for seed in seeds(task))
    lines.complete(results, ("task", "seed"), keys, run, lambda line: again)


def known(tasks: Iterable[str], every: Iterable[str]) -> tuple[str, ...]:
    """The tasks, or all there are where none is named. Raises ValueError for names there are not."""
    names = tuple(every)
    for task in tasks:
        if task not in names:
            raise unknown("task", task, names)
    return tuple(tasks) or names
