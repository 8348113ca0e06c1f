"""Results as lines of JSON, one a task and seed."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from games.spelling import unknown

Line = dict[str, Any]
HERE = Path(__file__).parent
OURS, THEIRS = HERE / "results.jsonl", HERE / "peers.jsonl"


def read(results: Path) -> list[Line]:
    """Lines of a file; none where there is no file."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def complete(
    results: Path,
    tasks: Iterable[str],
    seeds: Callable[[str], Iterable[int]],
    run: Callable[[str, int], Line],
    again: bool = False,
) -> None:
    """Run what a file lacks of tasks and seeds, or all of it `again`; a line is written as soon as it is known."""
    for task in tasks:
        for seed in seeds(task):
            has = any(_same(line, task, seed) for line in read(results))
            if again or not has:
                _write(results, run(task, seed), has)


def known(tasks: Iterable[str], every: Iterable[str]) -> tuple[str, ...]:
    """The tasks, or all there are where none is named. Raises ValueError for names there are not."""
    names = tuple(every)
    for task in tasks:
        if task not in names:
            raise unknown("task", task, names)
    return tuple(tasks) or names


def _write(results: Path, line: Line, replaces: bool) -> None:
    results.parent.mkdir(parents=True, exist_ok=True)
    if not replaces:
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return
    kept = [old for old in read(results) if not _same(old, line["task"], line["seed"])]
    whole = results.with_suffix(".new")
    whole.write_text("".join(json.dumps(each) + "\n" for each in [*kept, line]))
    whole.replace(results)


def _same(line: Line, task: str, seed: int) -> bool:
    return (line["task"], line["seed"]) == (task, seed)
