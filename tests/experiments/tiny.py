"""A run so tiny that it takes seconds, and what of it has to be equal whenever it is made again."""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [sys.executable, "experiments/psro_bucket_brigade.py"]
ALONE = ("--workers", "1")  # other processes take longer to start than all of this takes
TINY = [
    *("--iterations", "1", "--episodes", "4", "--max-nights", "4", "--gap-steps", "64", "--gap-episodes", "4"),
    *("--ppo.steps", "64", "--ppo.num-lanes", "8", "--ppo.horizon", "8", "--ppo.hidden", "8"),
    *("--ppo.epochs", "1", "--ppo.minibatches", "1"),
    *ALONE,
]
WALL_CLOCK = ("timing.jsonl", ".lock", "report.html")


def interrupt_at(write: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process receive SIGTERM right before its n-th file becomes visible."""
    writes, replace = iter(range(1, 10**6)), os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        if next(writes) == write:
            os.kill(os.getpid(), signal.SIGTERM)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_die)


def count_writes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that become visible from now on."""
    written: list[Path] = []
    replace = os.replace

    def replaced(source: Path, target: Path) -> None:
        replace(source, target)
        written.append(target)

    monkeypatch.setattr(os, "replace", replaced)
    return written


def contents(run: Path) -> dict[str, str]:
    """sha256 of all that must not depend on when, where, or in how many pieces, the run was made.

    The code's repository may change meanwhile, as far as git is concerned: what run.json says of that is left out.
    """
    files = (file for file in sorted(run.rglob("*")) if file.is_file())
    found = {
        str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name not in WALL_CLOCK and not {"events", "figures"} & set(file.parts)
    }
    if "run.json" in found:
        found["run.json"] = str({**_settings(run / "run.json"), "git": None})
        found.pop("manifest.json", None)  # of run.json alone
    return found


def _settings(file: Path) -> dict:
    try:
        return json.loads(file.read_bytes())
    except ValueError:  # a test may have harmed it
        return {"bytes": file.read_bytes()}
