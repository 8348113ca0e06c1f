"""Which state a run is in."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.load import load_run
from analysis.runs import glance, is_locked, list_runs
from tests.analysis.handmade import edit


def without_the_last_iteration(run: Path) -> None:
    shutil.rmtree(run / "snapshots" / "0002")


def without_iterations(run: Path) -> None:
    shutil.rmtree(run / "snapshots")


def flipped(run: Path) -> None:
    file = run / "policies" / "train-1-0" / "policy.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "state", "iterations"),
    [
        (lambda run: None, "finished", 2),
        (lambda run: (run / "summary.json").unlink(), "interrupted", 2),
        (without_the_last_iteration, "interrupted", 1),
        (without_iterations, "interrupted", None),
        (lambda run: edit(run / "summary.json", iteration=1), "interrupted", 2),
        (flipped, "damaged", None),
        (lambda run: (run / "snapshots" / "0001" / "manifest.json").unlink(), "damaged", None),
        (lambda run: (run / "gap" / "0002" / "manifest.json").write_text("{}"), "damaged", None),
        (lambda run: edit(run / "run.json", seed=1), "damaged", None),
        (lambda run: (run / "summary.json").write_text("[]"), "damaged", None),
    ],
)
def test_states(copy: Path, change: Callable[[Path], None], state: str, iterations: int | None) -> None:
    change(copy)
    found = glance(copy)
    assert (found.state, found.iterations) == (state, iterations)
    assert (found.problem != "") == (state == "damaged")


def test_a_run_is_running_while_somebody_holds_its_lock(copy: Path) -> None:
    assert not is_locked(copy)
    with open(copy / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert glance(copy).state == "running"
    assert glance(copy).state == "finished"


def test_runs_are_listed_with_their_last_numbers(copy: Path) -> None:
    shutil.copytree(copy, copy.with_name("other"))
    (copy.with_name("no run")).mkdir()
    found = list_runs(copy.parent)
    assert {run.path.name for run in found} == {"run", "other"}
    gap = load_run(copy).series("full_gap")[-1]
    assert all((run.gap, run.asked) == (gap, 2) for run in found)
    assert found[0].changed >= found[1].changed


def test_there_must_be_a_folder_to_list(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    with pytest.raises(ValueError, match="there is no folder"):
        list_runs(tmp_path / "none")
