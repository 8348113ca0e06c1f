"""Run folders as arrays: only what is on disk, with nothing of the code that made it (docs/run_folder.md)."""

import json
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

FORMAT = 1
"""The format that runs are written in."""
READABLE = (1,)
"""Formats that this version reads, resumes and draws."""
Rows = list[dict[str, Any]]


class Iteration(NamedTuple):
    """The empirical game after one iteration of PSRO: N players, k_i policies each."""

    mean: np.ndarray  # [N, k_1, ..., k_N] return per episode
    standard_error: np.ndarray  # [N, k_1, ..., k_N]
    episodes: np.ndarray  # [k_1, ..., k_N]
    sigma: np.ndarray  # [k_1, ..., k_N] joint meta-strategy
    policies: list[list[str]]  # a player: names of the units of work that made its policies


class Run(NamedTuple):
    """A run folder, as far as it had got when it was read."""

    path: Path
    settings: dict[str, Any]  # run.json: the configuration, versions, machine, git commit
    iterations: list[Iteration]
    metrics: Rows
    timing: Rows

    @property
    def config(self) -> dict[str, Any]:
        return self.settings["config"]

    @property
    def asked(self) -> int:
        """Iterations that the run was to have when it was started, or has got since."""
        return max(self.config.get("iterations", 0), len(self.iterations) - 1)

    @property
    def players(self) -> int:
        return self.iterations[-1].sigma.ndim

    def series(self, metric: str) -> Rows:
        """The rows of one metric, in the order of the run."""
        return [row for row in self.metrics if row["metric"] == metric]


def load_run(path: Path) -> Run:
    """Everything of a run folder but the policies' weights, finished or not.

    Raises ValueError for a folder that is no run, is of a newer format, has no finished iteration yet, or whose files
    are damaged.
    """
    settings, folders = read_settings(path), iteration_folders(path)
    if not folders:
        raise ValueError(f"{path} has no finished iteration yet: wait for the first, or resume the run")
    # These folders are whole or absent; metrics.jsonl and a last iteration may be out of step while a run is going.
    measured = [*folders, path / "gap" / folders[-1].name]
    try:
        metrics = [row for folder in measured for row in _lines(folder / "metrics.jsonl")]
        return Run(path, settings, [_iteration(folder) for folder in folders], metrics, _lines(path / "timing.jsonl"))
    except (OSError, KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def read_settings(path: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises ValueError for a folder that is no run, or of a format that cannot be read."""
    if not (path / "run.json").is_file():
        raise ValueError(f"{path} is no run folder (it has no run.json): pass e.g. runs/rest_trap-0")
    try:
        settings = json.loads((path / "run.json").read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: run.json is no JSON ({error})") from error
    check_format(settings, path)
    if not isinstance(settings.get("config"), dict):
        raise ValueError(f"{path} is damaged: run.json has no configuration")
    return settings


def check_format(settings: Any, path: Path) -> None:
    """Raises ValueError where run.json holds no settings, or those of a format that this version does not read.

    Folders without the field were written before it was there: they are of format 1.
    """
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: run.json holds no settings")
    found = settings.get("format", 1)
    if found not in READABLE:
        raise ValueError(
            f"{path} is of run format {found!r}; this version reads {', '.join(map(str, READABLE))}: "
            "use the version of counterplay that wrote it, or a newer one"
        )


def iteration_folders(path: Path) -> list[Path]:
    """The folders of a run's finished iterations, in order."""
    return sorted(folder for folder in (path / "snapshots").glob("[0-9]*") if folder.is_dir())


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration as {dotted name: value}."""
    items: dict[str, Any] = {}
    for name, value in config.items():
        items |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return items


def _iteration(folder: Path) -> Iteration:
    about = json.loads((folder / "snapshot.json").read_bytes())
    names = [[policy["unit"] for policy in population] for population in about["policies"]]
    with open(folder / "payoffs.npz", "rb") as file, np.load(file, allow_pickle=False) as arrays:
        read = Iteration(arrays["mean"], arrays["standard_error"], arrays["episodes"], arrays["sigma"], names)
    sizes = tuple(len(population) for population in names)
    if not read.mean.shape == read.standard_error.shape == (len(sizes), *sizes):
        raise ValueError(f"{folder.name} has payoffs {read.mean.shape} for populations of {sizes}")
    if not read.sigma.shape == read.episodes.shape == sizes:
        shapes = f"a meta-strategy {read.sigma.shape} and episodes {read.episodes.shape}"
        raise ValueError(f"{folder.name} has {shapes} for populations of {sizes}")
    return read


def _lines(file: Path) -> Rows:
    """Rows of a .jsonl file; none where there is no such file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
