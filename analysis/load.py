"""Run folders as arrays: only what is on disk, with nothing of the code that made it (docs/run_folder.md)."""

import json
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from analysis.kinds import NUMBER, OBJECT, SPREAD, TEXT, WHOLE, Kinds, check, optional

FORMAT = 1
"""The format that runs are written in."""
READABLE = (1,)
"""Formats that this version reads, resumes and draws."""
Rows = list[dict[str, Any]]


SETTINGS: Kinds = {"config": OBJECT, "versions": OBJECT, "machine": OBJECT, "git": OBJECT}
TRAIN: Kinds = {"game": TEXT, "oracle": TEXT, "seat": WHOLE, "against": TEXT}
CONFIG: Kinds = {"iterations": WHOLE, "meta_solver": TEXT, "alpha": NUMBER, "population_size": WHOLE, "reward": TEXT}
"""What is read of the configuration of PSRO, and above of trainings; the rest is only shown."""
GIT: Kinds = {"commit": TEXT, "changed_files": WHOLE}
METRIC: Kinds = {"metric": TEXT, "iteration": WHOLE, "value": NUMBER, "kind": TEXT}
METRIC |= {"standard_error": optional(SPREAD), "unit": optional(TEXT)}
LEARNER: Kinds = {"player": WHOLE, "step": NUMBER}
"""Of what learners report, beside METRIC."""
TIMING: Kinds = {"iteration": WHOLE}
TIMING |= {name: optional(SPREAD) for name in ("steps_seconds", "profiles_seconds", "steps_per_second")}


class Iteration(NamedTuple):
    """The empirical game after one iteration of PSRO: N players, k_i policies each."""

    mean: np.ndarray  # [N, k_1, ..., k_N] return per episode
    standard_error: np.ndarray  # [N, k_1, ..., k_N]
    episodes: np.ndarray  # [k_1, ..., k_N]
    sigma: np.ndarray  # [k_1, ..., k_N] joint meta-strategy
    policies: list[list[str]]  # a player: names of the units of work that made its policies


def command_of(config: dict[str, Any]) -> str:
    """The command of counterplay that makes runs of such a configuration."""
    if "scenario" in config:
        return "psro"
    if "against" in config:
        return "train"
    return "psro-game" if "episodes" in config else "psro-openspiel"


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
    def command(self) -> str:
        """The command of counterplay that makes such runs."""
        return command_of(self.config)

    @property
    def exact(self) -> bool:
        """Whether payoffs and gaps were computed rather than estimated."""
        return not self.iterations[-1].episodes.any()

    @property
    def asked(self) -> int:
        """Iterations that the run was to have when it was started, or has got since."""
        return max(self.config["iterations"], len(self.iterations) - 1)

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
    if command_of(settings["config"]) == "train":
        raise ValueError(
            f"{path} is a training, with no populations to look at: `counterplay show` tells what it found"
        )
    if not folders:
        raise ValueError(f"{path} has no finished iteration yet: wait for the first, or resume the run")
    # These folders are whole or absent; metrics.jsonl and a last iteration may be out of step while a run is going.
    measured = [*folders, path / "gap" / folders[-1].name]
    try:
        iterations = [_iteration(folder) for folder in folders]
        metrics = [row for folder in measured for row in _metrics(folder, iterations[-1].sigma.ndim)]
        return Run(path, settings, iterations, metrics, _checked(path / "timing.jsonl", TIMING))
    except (OSError, KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def read_settings(path: Path) -> dict[str, Any]:
    """run.json of a run folder.

    Raises ValueError for a folder that is no run, of a format that cannot be read, or whose settings are damaged.
    """
    if not (path / "run.json").is_file():
        raise ValueError(f"{path} is no run folder (it has no run.json): pass e.g. runs/rest_trap-0")
    try:
        settings = json.loads((path / "run.json").read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: run.json is no JSON ({error})") from error
    check_format(settings, path)
    check_settings(settings, path)
    return settings


def check_format(settings: Any, path: Path) -> None:
    """Raises ValueError where run.json holds no settings, or those of a format that this version does not read.

    Folders without the field were written before it was there: they are of format 1.
    """
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: run.json holds no settings")
    found = settings.get("format", 1)
    if type(found) is not int or found not in READABLE:  # neither true nor 1.0 is 1
        raise ValueError(
            f"{path} is of run format {found!r}; this version reads {', '.join(map(str, READABLE))}: "
            "use the version of counterplay that wrote it, or a newer one"
        )


def check_settings(settings: dict[str, Any], path: Path) -> None:
    """Raises ValueError where settings of a readable format are not as a run writes them."""
    try:
        check(settings, SETTINGS, "run.json")
        config = settings["config"]
        check(config, TRAIN if command_of(config) == "train" else CONFIG, "config in run.json")
        check(settings["git"], GIT, "git in run.json")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


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


def _metrics(folder: Path, players: int) -> Rows:
    """The metrics of a snapshot, or of the last gap. Raises ValueError for rows that are not as a run writes them."""
    file = folder / "metrics.jsonl"
    rows = _checked(file, METRIC)
    for row in rows:
        if row["metric"].startswith("learner/"):
            check(row, LEARNER, _named(file))
            if row["player"] >= players:
                raise ValueError(f"{_named(file)} is not as a run writes it: player is {row['player']} of {players}")
    return rows


def _checked(file: Path, kinds: Kinds) -> Rows:
    """Rows of a .jsonl file; none where there is no such file. Raises ValueError for those of other kinds."""
    try:
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    except ValueError as error:
        raise ValueError(f"{_named(file)} is no JSON Lines ({error})") from error
    for row in rows:
        check(row, kinds, _named(file))
    return rows


def _named(file: Path) -> str:
    """A file of the run, by its folder too: snapshots have files of equal names."""
    return f"{file.parent.name}/{file.name}"
