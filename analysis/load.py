"""Run folders as arrays: only what is on disk, with nothing of the code that made it."""

import json
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np


class Iteration(NamedTuple):
    """The empirical game after one iteration of PSRO: N players, k_i policies each."""

    mean: np.ndarray  # [N, k_1, ..., k_N] return per episode
    standard_error: np.ndarray  # [N, k_1, ..., k_N]
    sigma: np.ndarray  # [k_1, ..., k_N] joint meta-strategy


class Run(NamedTuple):
    path: Path
    config: dict[str, Any]
    iterations: list[Iteration]
    metrics: list[dict[str, Any]]

    def series(self, metric: str) -> list[dict[str, Any]]:
        """The rows of one metric, in the order of the run."""
        return [row for row in self.metrics if row["metric"] == metric]


def load_run(path: Path) -> Run:
    """Everything figures need of a run folder, finished or not.

    Raises ValueError for a folder that is no run, that has no finished iteration yet, or whose files are damaged.
    """
    if not (path / "run.json").is_file():
        raise ValueError(f"{path} is no run folder (it has no run.json): pass e.g. runs/rest_trap-0")
    folders = sorted(folder for folder in (path / "snapshots").glob("[0-9]*") if folder.is_dir())
    if not folders:
        raise ValueError(f"{path} has no finished iteration yet: wait for the first, or resume the run")
    try:
        config = json.loads((path / "run.json").read_text())["config"]
        lines = (path / "metrics.jsonl").read_text().splitlines()
        return Run(path, config, [_iteration(folder) for folder in folders], [json.loads(line) for line in lines])
    except (OSError, KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _iteration(folder: Path) -> Iteration:
    with open(folder / "payoffs.npz", "rb") as file, np.load(file, allow_pickle=False) as arrays:
        read = Iteration(arrays["mean"], arrays["standard_error"], arrays["sigma"])
    if not (read.mean.shape == read.standard_error.shape == (read.sigma.ndim, *read.sigma.shape)):
        raise ValueError(f"{folder.name} has payoffs {read.mean.shape} for a meta-strategy {read.sigma.shape}")
    return read
