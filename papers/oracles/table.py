"""The table of README.md and the figures, from results.jsonl and peers.jsonl: `python -m papers.oracles.table`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tyro

from analysis.markdown import table
from analysis.robust import interval
from papers.oracles.figures import curves
from papers.oracles.lines import HERE, OURS, THEIRS, read
from papers.oracles.tasks import TASKS, Task
from papers.pages import with_results
from papers.pictures import write

HEADERS = ("task", "bar", "ours: IQM [95 %]", "seeds", "", "beside it", "its seeds")
Lines = list[dict[str, Any]]


def main(folder: Path = HERE, figures: bool = True) -> int:
    """Write the tables and figures, and tell which bars are missed: exit code 1 if any is.

    Args:
        folder: Where README.md and figures/ are written.
        figures: Whether to draw the figures.
    """
    ours, theirs = (read(results) for results in (OURS, THEIRS))
    verdicts = []
    rows = []
    for name, task in TASKS.items():
        mine, others = of(ours, name, task.seeds), of(theirs, task.peer, task.seeds)
        rows.append(row(name, task, mine, others))
        verdicts.append(verdict(task, mine))
        if figures and mine and mine[0]["curve"]["steps"]:
            write(curves(task, mine, others), folder / "figures" / f"{name}.png")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(with_results((HERE / "README.md").read_text(), table(HEADERS, rows)))
    for name, told in zip(TASKS, verdicts, strict=True):
        print(f"{name}: {told}")
    return int("missed" in verdicts)


def of(lines: Lines, task: str, seeds: Iterable[int]) -> Lines:
    """A task's lines, one a seed and no other seeds, in the order of seeds."""
    found = {line["seed"]: line for line in lines if line["task"] == task}
    return [found[seed] for seed in seeds if seed in found]


def verdict(task: Task, lines: Lines) -> str:
    """Whether the bar is reached, missed, or cannot be told yet."""
    if len(lines) < len(task.seeds):
        return f"{len(lines)} of {len(task.seeds)} seeds"
    scores = [line["score"] for line in lines]
    if task.enough:
        return "reached" if sum(map(task.reached, scores)) >= task.enough else "missed"
    return "reached" if task.reached(interval(scores).iqm) else "missed"


def row(name: str, task: Task, ours: Lines, theirs: Lines) -> list[str]:
    """The cells of a task."""
    sign = "≥" if task.better == "higher" else "≤"
    bar = f"{sign} {task.bar:g} {task.unit}" + (f" in {task.enough} of {len(task.seeds)} seeds" if task.enough else "")
    title = f"[{task.title}](figures/{name}.png)" if ours and ours[0]["curve"]["steps"] else task.title
    middle, seeds = _numbers(ours, "score", len(task.seeds))
    cells = [title, bar, middle, seeds, verdict(task, ours)]
    if not theirs:
        return [*cells, task.beside, ""]
    middle, seeds = _numbers(theirs, "mean", len(task.seeds))
    missing = "" if len(theirs) == len(task.seeds) else f" ({len(theirs)} of {len(task.seeds)} seeds)"
    return [*cells, f"{theirs[0]['learner']}{missing} {middle}".strip(), seeds]


def _numbers(lines: Lines, key: str, wanted: int) -> list[str]:
    """The interquartile mean with its interval, of as many seeds as are wanted; and each seed's."""
    scores = [line[key] for line in lines]
    if len(scores) < wanted:
        return ["", ", ".join(map(told, scores))]
    found = interval(scores)
    return [f"{told(found.iqm)} [{told(found.low)}, {told(found.high)}]", ", ".join(map(told, scores))]


def told(score: float) -> str:
    """A number to what its size is worth: returns to a tenth, gaps to a thousandth."""
    return f"{score:.1f}" if abs(score) >= 10 else f"{score:.3f}"


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
