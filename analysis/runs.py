"""Which runs a folder holds, and how far they are."""

import fcntl
import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from analysis.files import MANIFEST, check_manifest, digest
from analysis.load import command_of, iteration_folders, load_run, read_settings
from analysis.trainings import learned_together, load_training

State = Literal["finished", "interrupted", "running", "damaged"]


class Listed(NamedTuple):
    """A run at a glance; of a training, steps stand for iterations, and its return for the team's.

    That is of the first way to play that was measured in the end, greedy where there is a choice; before, of the last
    report while it learns.
    """

    path: Path
    state: State
    iterations: int | None  # finished ones, not counting the initial policies'; None before those are evaluated
    asked: int | None  # None where there is no more to do: of trainings that are finished, or have no budget
    gap: dict[str, Any] | None  # last row of the gap in the whole game, or among the policies found; see `Trained.gap`
    team_return: dict[str, Any] | None
    changed: float  # when a file of it was last written, in seconds since 1970
    problem: str = ""  # what is damaged
    unit: str = "iterations"  # what is finished and asked for


def list_runs(folder: Path) -> list[Listed]:
    """Every run in a folder, the one written to last first. Raises ValueError where there is no such folder."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}: `counterplay psro` makes runs/, or name another")
    found = [glance(file.parent) for file in folder.glob("*/run.json")]
    return sorted(found, key=lambda run: (-run.changed, run.path))


def glance(path: Path) -> Listed:
    """One run; a folder that is no whole run is damaged, and the problem is told."""
    changed = max(file.stat().st_mtime for file in (path, *path.glob("*.json*")))
    try:
        check_run(path)
        settings, folders, now = read_settings(path), iteration_folders(path), state(path)
        if command_of(settings["config"]) == "train":
            return _training(path, now, changed)
        run = load_run(path) if folders else None
    except (OSError, ValueError) as error:
        return Listed(path, "damaged", None, None, None, None, changed, str(error))
    gaps = run.series("full_gap") or run.series("restricted_gap") if run else []
    returns = run.series("team_return") if run else []
    return Listed(
        path,
        now,
        len(folders) - 1 if folders else None,
        run.asked if run else settings["config"]["iterations"],
        gaps[-1] if gaps else None,
        returns[-1] if returns else None,
        changed,
    )


def _training(path: Path, now: State, changed: float) -> Listed:
    trained = load_training(path)
    learned = [row for row in trained.own if row["metric"] == "learner/return"]
    earned = [row for row in trained.evaluation if row["metric"] == "evaluation/return"]
    row = next(iter(earned[:1] or learned[-1:]), None)
    asked = None if now == "finished" else trained.asked  # of which only whole updates are done
    return Listed(path, now, trained.steps, asked, trained.gap, row, changed, unit="steps")


def state(path: Path) -> State:
    """Of an undamaged run: running while a process holds its lock, finished once its last iteration is summed up, or,
    of a training, all of it.

    Raises ValueError for a summary that is none.
    """
    if is_locked(path):
        return "running"
    try:
        summary = read_summary(path)
    except FileNotFoundError:
        return "interrupted"
    whole = "steps" in summary or summary["iteration"] == len(iteration_folders(path)) - 1
    return "finished" if whole else "interrupted"


def read_summary(path: Path) -> dict[str, Any]:
    """What summary.json of a run holds (docs/run_folder.md).

    Raises FileNotFoundError before a run has come to its end, ValueError for a summary that is none.
    """
    try:
        summary = json.loads((path / "summary.json").read_bytes())
        summary["steps" if "steps" in summary else "iteration"]
        if "ended" in summary:  # runs of versions before it lack it
            summary["ended"]["why"], summary["ended"]["iterations"], summary["ended"]["options"]
    except FileNotFoundError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path / 'summary.json'} is not as the run wrote it ({error})") from error
    return summary


def is_locked(path: Path) -> bool:
    """Whether a process is writing to the run."""
    try:
        with open(path / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:  # copied without it
        return False
    except BlockingIOError:
        return True
    return False


def check_run(path: Path) -> None:
    """Compare the folder with its manifests, as resuming it does.

    Raises ValueError that names the first file that differs, is missing, or is not the run's.
    """
    check_manifest(path, growing=True)
    parts = {"policies": "[!.]*", "snapshots": "[!.]*", "gap": "[0-9]*"}
    for folder in (folder for part, pattern in parts.items() for folder in sorted((path / part).glob(pattern))):
        check_manifest(folder)
    for folder in (path / name for name in ("policy", "opponents", "together", "evaluation") if (path / name).exists()):
        check_manifest(folder)
    if (path / "policy").exists() and learned_together(read_settings(path)["config"]):
        check_manifest(path / "together")
    folders = iteration_folders(path)
    for iteration, folder in enumerate(folders):
        if folder.name != f"{iteration:04d}":
            raise ValueError(f"{folder.with_name(f'{iteration:04d}')} is missing")
    if folders:
        _check_policies(path, folders[-1])  # which has those of all before it


def _check_policies(path: Path, iteration: Path) -> None:
    """Raises ValueError unless the policies that the iteration's payoffs are of are there."""
    try:
        populations = json.loads((iteration / "snapshot.json").read_bytes())["policies"]
        for policy in (policy for population in populations for policy in population):
            folder = path / "policies" / policy["unit"].replace("/", "-")
            if digest(folder / MANIFEST) != policy["sha256"]:
                raise ValueError(f"{folder} is not the policy that the payoffs were measured with")
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"{iteration} names policies that cannot be read: {error}") from error
