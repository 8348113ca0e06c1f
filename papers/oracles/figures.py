"""Learning curves of a task: ours and others', one line a seed and their mean."""

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.panels import styled
from papers.oracles.tasks import Task

OURS, THEIRS, BAR = "#0072B2", "#E69F00", "#009E73"


@styled
def curves(task: Task, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> Figure:
    """Returns of training episodes against environment steps; the bar is on what the final policy earns."""
    figure = Figure(figsize=(5.6, 3.2), dpi=100, layout="constrained")
    axis = figure.subplots()
    for lines, colour, whose in ((theirs, THEIRS, ""), (ours, OURS, "ours: ")):
        if lines:
            _seeds(axis, lines, colour, whose + lines[0]["learner"])
    if task.unit == "return":
        axis.axhline(task.bar, color=BAR, linewidth=1, linestyle="--", label=f"bar, {task.bar:g}")
    axis.set_xlabel("environment steps")
    axis.set_ylabel("return, exploring")
    axis.set_title(fill(task.title, 72), fontsize=9)
    axis.legend(fontsize=7)
    return figure


def _seeds(axis: Axes, lines: list[dict[str, Any]], colour: str, name: str) -> None:
    grid = np.linspace(0, max(line["curve"]["steps"][-1] for line in lines), 101)
    paths = []
    for line in lines:
        steps, returns = (np.array(line["curve"][part], float) for part in ("steps", "return"))
        axis.plot(steps, returns, color=colour, alpha=0.3, linewidth=0.8)
        paths.append(np.interp(grid, steps, returns, left=np.nan))
    mean = np.mean(paths, axis=0)  # from where every seed has finished an episode
    axis.plot(grid, mean, color=colour, linewidth=2, label=f"{name}, {len(lines)} seeds")
