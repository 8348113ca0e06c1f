"""Run folders: `runs/<name>/` holds a run's configuration and all it has finished.

run.json         format, configuration, versions and git commit; with manifest.json, never changed
policies/        one folder per finished best response: safetensors, JSON and learning curve
snapshots/       one folder per iteration: payoff table and meta-strategy (npz), policies' names, metrics
metrics.jsonl    every metric of the snapshots, one JSON object a line; equal for equal configurations
timing.jsonl     wall-clock seconds and speeds, which never are
summary.json     what was measured in the end
events/          TensorBoard's view of metrics.jsonl
figures/         drawn by `counterplay figures`
report.html      all of it on one page, by `counterplay report`; notebook.ipynb by `counterplay notebook`

docs/run_folder.md documents every file, and when the format's number is raised.
"""

import fcntl
import importlib.metadata
import json
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from analysis.load import FORMAT, check_format, check_settings, command_of, flat
from marl.atomic import MANIFEST, BrokenCheckpoint, read_json, sweep, to_json, verify, whole_folder, write_atomic

RUN = "run.json"
ROOM = 64 * 2**20
"""Bytes that must be free before a run starts; ordinary runs stay far below."""
PACKAGES = ("numpy", "scipy", "torch", "safetensors")


class RunFolder:
    """A folder this process alone writes to, until it is closed or the process ends."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = _locked(path)
        sweep(path)

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.close()

    def write_json(self, name: str, value: Any) -> None:
        write_atomic(self.path / name, to_json(value))

    def write_lines(self, name: str, rows: list[dict]) -> None:
        """Replace a .jsonl file by these rows."""
        write_atomic(self.path / name, to_lines(rows))

    def append_line(self, name: str, row: dict) -> None:
        """Add a row to a .jsonl file, replacing it as a whole."""
        file = self.path / name
        write_atomic(file, (file.read_bytes() if file.exists() else b"") + to_lines([row]))


def create(
    path: Path, config: dict, resume: str, files: dict[str, str] | None = None, packages: Sequence[str] = ()
) -> RunFolder:
    """Make a new run folder; results depend on `files`, by path their digests, and on the versions of `packages` too.

    Raises ValueError where there is one already (`resume` is the command to go on with it), too little room on the
    disk, or a path that cannot be written to. A link to an empty folder stands for that folder.
    """
    named = {"files": files} if files else {}
    _check_free(path, resume)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parent = path.resolve().parent
        free = shutil.disk_usage(parent).free
        if free < ROOM:
            raise ValueError(
                f"the disk of {path.parent} has {free / 2**20:.0f} MiB free, a run needs {ROOM / 2**20:.0f} MiB: "
                "choose another --run-dir, or make room"
            )
        with whole_folder(path.resolve()) as folder:  # which replaces the folder, not a link to it
            write_atomic(folder / RUN, to_json({"format": FORMAT, "config": config, **named, **provenance(packages)}))
        return RunFolder(path)
    except OSError as error:
        _check_free(path, resume)  # another process may have been faster
        raise ValueError(f"cannot make the run folder {path}: {error.strerror}; choose another --run-dir") from error


def _check_free(path: Path, resume: str) -> None:
    for link in (part for part in (path, *path.parents) if part.is_symlink() and not part.exists()):
        raise ValueError(f"{link} is a link to {link.readlink()}, which is not there: make that, or remove the link")
    if path.is_dir() and any(path.iterdir()):
        if (path / RUN).exists():
            raise ValueError(f"{path} already holds a run; to go on with it: {resume}; or choose another --name")
        raise ValueError(f"{path} is neither empty nor a run: choose another --run-dir")


def read_settings(path: Path) -> dict:
    """The configuration a run was started with.

    Raises BrokenCheckpoint for a folder that is no whole run, and ValueError for one of a newer format, or whose
    settings are not as a run writes them.
    """
    if not path.is_dir():
        raise BrokenCheckpoint(f"there is no run at {path}")
    settings = read_json(path / RUN)
    check_format(settings, path)  # first: what else is in the folder depends on it
    verify(path, growing=True)
    if RUN not in read_json(path / MANIFEST):
        raise BrokenCheckpoint(f"{path / MANIFEST} is not as a run writes it: it does not name {RUN}")
    check_settings(settings, path)
    return _before(settings["config"]) | settings["config"]


def _before(config: dict) -> dict:
    """Settings that runs did not tell when there was nothing else to choose."""
    command = command_of(config)
    varied = {} if command == "train" else {"targets": "mixture", "pipeline": 1}
    return {"oracle": "ppo"} | varied | ({"response": "best"} if command == "psro-openspiel" else {})


def resume(path: Path, config: dict, free: tuple[str, ...], files: dict[str, str] | None = None) -> RunFolder:
    """Go on with a run whose configuration equals `config`, but for the fields in `free`, and whose files are `files`.

    Raises ValueError that lists what differs, and BrokenCheckpoint for a folder that is no whole run.
    """
    stored = read_settings(path)
    before, now = flat(stored), flat(config)
    differing = [
        f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
        for name in before | now
        if before.get(name) != now.get(name) and name not in free
    ]
    if differing:
        raise ValueError(f"{path} was started with another configuration: {'; '.join(differing)}")
    for name, digest in read_json(path / RUN).get("files", {}).items():
        if (files or {}).get(name) != digest:
            raise ValueError(f"{name} has changed since {path} was started: restore it, or start a new run")
    return RunFolder(path)


def interpreter() -> str:
    """The Python that runs this, as one would type it here."""
    executable, here = Path(sys.executable), Path.cwd()
    return shlex.quote(str(executable.relative_to(here) if executable.is_relative_to(here) else executable))


def invocation() -> str:
    """The command `counterplay`, as one would type it here: by its name where that finds this Python's own."""
    found = shutil.which("counterplay")
    own = found is not None and Path(found).parent == Path(sys.executable).parent
    return "counterplay" if own else f"{interpreter()} -m counterplay.main"


def provenance(packages: Sequence[str] = ()) -> dict:
    """Versions, machine and git commit: what numbers may depend on besides the configuration."""
    versions = {name: _version(name) for name in (*PACKAGES, *packages)}
    return {
        "versions": {"python": platform.python_version(), **versions},
        "machine": {"system": platform.platform(), "processor": platform.processor() or platform.machine()},
        "git": {"commit": _git("rev-parse", "HEAD"), "changed_files": len(_git("status", "--porcelain").splitlines())},
    }


def changes(path: Path, device: str) -> list[str]:
    """What is told when a run is gone on with: how its last bits may come to differ."""
    began = read_settings(path)["device"]
    notes = [f"note: {change} since the run was started: last bits may differ" for change in changed_versions(path)]
    if began != device:
        notes.append(f"note: started on device {began}, going on on {device}: last bits may differ")
    return notes


def changed_versions(path: Path) -> list[str]:
    """Packages whose version is not the one the run was started with, as `numpy 2.1.0 -> 2.2.0`."""
    old = read_json(path / RUN)["versions"]
    new = {name: platform.python_version() if name == "python" else _version(name) for name in old}
    return [f"{name} {version} -> {new[name]}" for name, version in old.items() if new[name] != version]


def _version(package: str) -> str | None:
    """Of an installed package; None where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def to_lines(rows: list[dict]) -> bytes:
    """JSON Lines. Raises ValueError for NaN and infinities."""
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def _git(*arguments: str) -> str:
    """What git says of the code's own repository; empty where there is no git, or no repository."""
    try:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _locked(path: Path) -> IO[str]:
    """Hold the folder for this process; the system lets go when the process ends, however it does."""
    lock = open(path / ".lock", "w")  # noqa: SIM115 - held as long as the run folder
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise ValueError(f"another process is writing to {path}: wait for it, or stop it first") from None
    return lock
