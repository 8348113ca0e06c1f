"""A run on the terminal: `counterplay show runs/<name>`."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import RenderableType

from analysis.load import Run, command_of, flat, load_run, read_settings
from analysis.numbers import shown
from analysis.runs import Listed, glance, read_summary
from analysis.tables import LEAST_SHARE, MEASURES, duel_table, iteration_table, measures, profile_table
from analysis.trainings import Trained, curve_table, evaluation_table, learned_return, load_training, used
from counterplay.screen import Screen, age, bare_table
from experiments.run import invocation

MOST_PROFILES = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the run. Raises ValueError for a folder that is no run, is damaged, or has nothing to show yet."""
    parser = argparse.ArgumentParser(prog="counterplay show", description="What a run is, found, and needs next.")
    parser.add_argument("run", type=Path, help="run folder, e.g. runs/rest_trap-0")
    path = parser.parse_args(arguments).run
    trained = command_of(read_settings(path)["config"]) == "train"
    run, listed = None if trained else load_run(path), glance(path)
    if listed.state == "damaged":
        raise ValueError(f"{listed.problem}; restore it from a copy of the run, or start a new run")
    screen = Screen()
    for part in _training(load_training(path), listed) if run is None else _psro(run, listed):
        screen.print(part, soft_wrap=isinstance(part, str))  # commands can be copied as they are
    return 0


def _psro(run: Run, listed: Listed) -> Iterator[RenderableType]:
    yield from _head(run.settings, listed, f"{listed.iterations} of {listed.asked} iterations")
    yield from _found(run)
    yield from _next(run, listed)


def _training(trained: Trained, listed: Listed) -> Iterator[RenderableType]:
    budget = f" of {listed.asked:,}" if listed.asked else ""
    yield from _head(used(trained.settings), listed, f"{trained.steps:,}{budget} steps")
    learning = "exact return" if trained.asked is None else "while it learns"
    yield bare_table(*curve_table(trained.own), learning)
    yield ""
    if trained.evaluation:
        title = f"{learned_return(trained.config)} in fresh episodes, ± standard error, [95 % interval]"
        yield bare_table(*evaluation_table(trained.metrics), title)
        yield ""
    folder = shlex.quote(str(listed.path))
    yield "next:"
    if listed.state == "running":
        yield "  a process is writing to it: look again later"
    elif listed.state == "interrupted":
        yield f"  {invocation()} train --run-dir {folder} --resume"
    else:
        yield f"  {invocation()} play {folder}"
        if trained.config["oracle"] == "nfsp" and trained.gap is None:
            yield f"  {invocation()} exploitability {folder}"


def _head(settings: dict[str, Any], listed: Listed, done: str) -> Iterator[RenderableType]:
    yield f"{listed.path}: {listed.state}, {done}, written {age(listed.changed)} ago"
    yield ""
    yield Columns([f"{name} {value}" for name, value in flat(settings["config"]).items()], padding=(0, 3))
    yield ""
    yield ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    git = settings["git"]
    changed = f", with {git['changed_files']} files changed" if git["changed_files"] else ""
    yield f"commit {git['commit'] or 'not known'}{changed}; run format {settings.get('format', 1)}"
    yield ""


def _found(run: Run) -> Iterator[RenderableType]:
    found = measures(run)
    headers, rows = iteration_table(run)
    yield bare_table(headers, rows, "each iteration’s meta-strategy")
    yield ""
    for metric in ("restricted_gap", "full_gap"):
        row = found[-1].get(metric)
        if row is not None:
            of = f" {row['concept']}" if "concept" in row else ""
            yield f"{MEASURES[metric]}: {shown(row)} ({row['kind']}{of}; {row.get('unit', 'return per episode')})"
        else:
            yield f"{MEASURES[metric]}: not measured for the last meta-strategy"
    yield ""
    headers, rows = duel_table(run.metrics)
    if rows:
        yield bare_table(headers, rows, "the last meta-strategy against scripted policies")
        yield ""
    headers, rows = profile_table(run.iterations[-1], MOST_PROFILES, LEAST_SHARE)
    title = f"the likeliest {len(rows)} of {run.iterations[-1].sigma.size:,} profiles, returns ± standard error"
    # Without the last column, their numbers of episodes, four players fit 80 columns.
    yield bare_table(headers[:-1], [row[:-1] for row in rows], title)
    yield ""


def _next(run: Run, listed: Listed) -> Iterator[str]:
    folder = shlex.quote(str(listed.path))
    go_on = f"{invocation()} {run.command} --run-dir {folder} --resume"
    ended = read_summary(run.path).get("ended") if listed.state == "finished" else None
    if ended:
        yield f"ended: {ended['why']}"
    yield "next:"
    if listed.state == "running":
        yield "  a process is writing to it: look again later"
    elif listed.state == "interrupted":
        yield f"  {go_on}"
    else:
        more, options = (ended["iterations"], ended["options"]) if ended else ((listed.iterations or 0) + 4, "")
        if more is not None:
            yield f"  {go_on} --iterations {more} {options}".rstrip()
        if run.command == "psro":  # others' scripted replies are not known
            yield f"  {invocation()} responses {folder}"
    yield f"  {invocation()} report {folder}"
