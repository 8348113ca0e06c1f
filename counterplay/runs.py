"""The runs in a folder: `counterplay runs`."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.numbers import shown
from analysis.runs import Listed, list_runs
from counterplay.screen import Screen, age, bare_table
from experiments.run import invocation

HEADERS = ("run", "state", "finished", "gap", "return", "written", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """List the runs. Raises ValueError where there is no such folder."""
    parser = argparse.ArgumentParser(prog="counterplay runs", description="The runs in a folder, the newest first.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs"), help="where runs are (default: runs)")
    folder = parser.parse_args(arguments).folder
    found = list_runs(folder)
    screen = Screen()
    if not found:
        screen.print(f"no runs in {folder}: `{invocation()} psro` makes one", soft_wrap=True)
        return 0
    screen.print(bare_table(HEADERS, [_row(run) for run in found]))
    screen.print("steps: of a training, whose return is what it learned to earn; else the team's")
    screen.print("a finished training's return is of greedy play, where its policy can also draw its actions")
    screen.print("gap: of the last meta-strategy that was asked for it; a lower bound is of the whole game")
    screen.print("of a training in which all players learn, the NashConv of their policies")
    screen.print(f"next: {invocation()} show {shlex.quote(str(found[0].path))}", soft_wrap=True)
    return 0


def _row(run: Listed) -> tuple[str, ...]:
    done = "" if run.iterations is None else f"{run.iterations:,}"
    done += f" of {run.asked:,}" if done and run.asked else ""
    done += f" {run.unit}" if run.unit != "iterations" else ""
    return (
        run.path.name,
        run.state,
        done,
        _gap(run.gap),
        shown(run.team_return),
        f"{age(run.changed)} ago",
        run.problem,
    )


def _gap(row: dict[str, Any] | None) -> str:
    """With what it is of, where older runs tell that."""
    of = "NashConv" if row is not None and row["metric"].endswith("nash_conv") else (row or {}).get("concept", "")
    return f"{shown(row)} {of}".strip()
