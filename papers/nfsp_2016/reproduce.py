"""Neural fictitious self-play, measured: `python -m papers.nfsp_2016.reproduce --task kuhn --seed 0`."""

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from matplotlib.figure import Figure

from analysis.lines import Line, read
from analysis.markdown import table
from analysis.panels import styled
from papers.nfsp_2016.tasks import TASKS, Task
from papers.oracles.lines import complete, known
from papers.pages import with_results
from papers.pictures import write

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
CLAIMS = ("claim", "where", "published", "ours, NashConv / 2", "")
HEADERS = ("game", "steps", "CPU seconds", "bar", "measured", "mean", "")
AVERAGE, RESPONSE = "#0072B2", "#E69F00"
PACKAGES = ("torch", "numpy")


def main(task: tuple[str, ...] = (), seed: tuple[int, ...] = (), results: Path = RESULTS, folder: Path = HERE) -> int:
    """Train and measure what a file of results lacks, and write the page: exit code 1 if a bar or claim is missed.

    Args:
        task: Which tasks, by default all.
        seed: Of the trainings, by default all of each task's.
        results: File to which lines of JSON are appended; what it already has is not run once more.
        folder: Where README.md and figures/ are written.
    """
    import torch

    torch.set_num_threads(1)
    complete(results, known(task, TASKS), lambda name: seed or TASKS[name].seeds, run)
    return page(read(results), folder)


def run(task: str, seed: int) -> Line:
    """The line of results of one training."""
    entry = TASKS[task]
    found = entry.measure(entry, seed)
    line = {"task": task, "seed": seed, "steps": entry.oracle.total_steps, **found, "settings": repr(entry.oracle)}
    print(f"{task} seed {seed}: {line['score']:.4g}, {line['cpu_seconds']:.0f} CPU s", flush=True)
    return line | {"versions": {package: version(package) for package in PACKAGES}}


def page(lines: list[Line], folder: Path) -> int:
    """Write README.md and figures; 1 where a bar or a claim is missed, else 0."""
    by_task = {name: of(lines, name) for name in TASKS}
    tables = [table(HEADERS, (row(TASKS[name], found) for name, found in by_task.items() if found))]
    claims = [
        claim(published, by_task[published["task"]]) for published in published_claims() if by_task[published["task"]]
    ]
    tables.append(table(CLAIMS, claims))
    for name, found in by_task.items():
        if found and "curve" in found[0]:
            write(curves(TASKS[name], found), folder / "figures" / f"{name}.png")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(with_results((HERE / "README.md").read_text(), "\n\n".join(tables)))
    missed = [name for name, found in by_task.items() if not all(map(TASKS[name].reached, found))]
    missed += [cells[0] for cells in claims if cells[-1] == "MISS"]
    for each in missed:
        print(f"missed: {each}")
    print(f"wrote {folder / 'README.md'} and its figures")
    return int(bool(missed))


def of(lines: Iterable[Line], task: str) -> list[Line]:
    """A task's lines in the order of seeds."""
    found = {line["seed"]: line for line in lines if line["task"] == task}
    return [found[seed] for seed in TASKS[task].seeds if seed in found]


def published_claims() -> list[dict[str, Any]]:
    return tomllib.loads((HERE / "published.toml").read_text())["claim"]


def row(task: Task, lines: list[Line]) -> list[str]:
    """The cells of a task, of all its seeds."""
    name = next(name for name, known_task in TASKS.items() if known_task is task)
    scores = [line["score"] for line in lines]
    sign, unit = ("≥", "of the gap") if task.score == "share" else ("≤", "NashConv / 2")
    bar = f"{sign} {task.bar:g} {unit}" + (f" within {task.seconds:g} s" if task.seconds else "")
    found = ", ".join(f"{score:.3f}" for score in scores)
    if task.score == "share":
        found += "; loss " + ", ".join(f"{line['loss']:.2f}" for line in lines)
        found += f" of {lines[0]['uniform_loss']:.3f}; scripted: {lines[0]['scripted']}"
    title = f"[{task.title}](figures/{name}.png)" if "curve" in lines[0] else task.title
    seconds = ", ".join(f"{line['cpu_seconds']:.0f}" for line in lines)
    verdict = "reached" if all(map(task.reached, lines)) else "missed"
    if len(lines) < len(task.seeds):
        verdict += f" ({len(lines)} of {len(task.seeds)} seeds)"
    return [title, f"{lines[0]['steps']:,}", seconds, bar, found, f"{np.mean(scores):.3f}", verdict]


def claim(published: dict[str, Any], lines: list[Line]) -> list[str]:
    """The cells of a claim."""
    averages, responses = ([line["curve"][name][-1] for line in lines] for name in ("average", "response"))
    if "factor" in published:
        times = [theirs / ours for ours, theirs in zip(averages, responses, strict=True)]
        ok = min(times) >= published["factor"]
        told = ", ".join(f"{each:.2f}" for each in responses)
        wanted = f"qualitative; here at least {published['factor']:g} times the averages'"
    else:
        ok = all(published["least"] <= each <= published["most"] for each in averages)  # a wide range, not a check
        told, wanted = (
            ", ".join(f"{each:.3f}" for each in averages),
            f"about {published['value']:g}, recalled: {published['least']:g} to {published['most']:g}",
        )
    return [published["text"], published["where"], wanted, told, "ok" if ok else "MISS"]


@styled
def curves(task: Task, lines: list[Line]) -> Figure:
    """NashConv / 2 of averages and responses against CPU seconds, a line a seed."""
    figure = Figure(figsize=(5.6, 3.2), dpi=100, layout="constrained")
    axis = figure.subplots()
    for name, colour, called in (
        ("response", RESPONSE, "greedy best responses"),
        ("average", AVERAGE, "average policies"),
    ):
        for number, line in enumerate(lines):
            label = f"{called}, {len(lines)} seed" + "s" * (len(lines) > 1) if number == 0 else None
            axis.plot(line["curve"]["cpu_seconds"], line["curve"][name], color=colour, linewidth=1.2, label=label)
    axis.axhline(task.bar, color="#009E73", linewidth=1, linestyle="--", label=f"bar, {task.bar:g}")
    axis.set(xlabel="CPU seconds of one core", ylabel="NashConv / 2, exact", yscale="log")
    axis.set_title(f"NFSP, {task.title}, {lines[0]['steps']:,} steps", fontsize=9)
    axis.legend(fontsize=7)
    return figure


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
