"""A run on the terminal: `counterplay show runs/<name>`."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.columns import Columns
from rich.console import RenderableType

from analysis.load import Run, flat, load_run
from analysis.numbers import rounded, share, shown
from analysis.runs import Listed, glance
from analysis.tables import MEASURES, iteration_table, measures, payoff_table
from counterplay.screen import Screen, age, bare_table

MOST_PROFILES = 10
LEAST_SHARE = 1e-3


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the run. Raises ValueError for a folder that is no run, is damaged, or has nothing to show yet."""
    parser = argparse.ArgumentParser(prog="counterplay show", description="What a run is, found, and needs next.")
    parser.add_argument("run", type=Path, help="run folder, e.g. runs/rest_trap-0")
    path = parser.parse_args(arguments).run
    run, listed = load_run(path), glance(path)
    if listed.state == "damaged":
        raise ValueError(f"{listed.problem}; restore it from a copy of the run, or start a new run")
    screen = Screen()
    for part in (*_head(run, listed), *_found(run), *_next(listed)):
        screen.print(part)
    return 0


def _head(run: Run, listed: Listed) -> Iterator[RenderableType]:
    done = f"{listed.iterations} of {listed.asked} iterations"
    yield f"{run.path}: {listed.state}, {done}, written {age(listed.changed)} ago"
    yield ""
    yield Columns([f"{name} {value}" for name, value in flat(run.config).items()], padding=(0, 3))
    yield ""
    yield ", ".join(f"{name} {version}" for name, version in run.settings.get("versions", {}).items())
    git = run.settings.get("git", {})
    changed = f", with {git['changed_files']} files changed" if git.get("changed_files") else ""
    yield f"commit {git.get('commit') or 'not known'}{changed}; run format {run.settings.get('format', 1)}"
    yield ""


def _found(run: Run) -> Iterator[RenderableType]:
    found = measures(run)
    headers, rows = iteration_table(run)
    yield bare_table(headers, rows, "each iteration’s meta-strategy")
    yield ""
    for metric in ("restricted_gap", "full_gap"):
        row = found[-1].get(metric)
        if row is not None:
            yield f"{MEASURES[metric]}: {shown(row)} ({row['kind']}; {row.get('unit', 'return per episode')})"
        else:
            yield f"{MEASURES[metric]}: not measured for the last meta-strategy"
    yield ""
    played = payoff_table(run.iterations[-1])
    rows = [
        (
            "-".join(map(str, profile)),
            share(probability),
            *(" ± ".join(rounded(*pair)) for pair in zip(*pays, strict=True)),
        )
        for profile, probability, _, *pays in zip(*played.values(), strict=True)
        if probability >= LEAST_SHARE
    ]
    headers = ("profile", "probability", *(f"player {player}" for player in range(run.players)))
    title = (
        f"{min(len(rows), MOST_PROFILES)} likeliest of {len(played['profile']):,} profiles, returns ± standard error"
    )
    yield bare_table(headers, rows[:MOST_PROFILES], title)
    yield ""


def _next(listed: Listed) -> Iterator[str]:
    folder = shlex.quote(str(listed.path))
    go_on = f"counterplay psro --run-dir {folder} --resume"
    yield "next:"
    if listed.state == "running":
        yield "  a process is writing to it: look again later"
    elif listed.state == "interrupted":
        yield f"  {go_on}"
    else:
        yield f"  {go_on} --iterations {(listed.iterations or 0) + 4}"
        yield f"  counterplay responses {folder}"
    yield f"  counterplay report {folder}"
