"""A run folder written by hand, in the format of docs/run_folder.md, for shapes that no quick run has."""

import hashlib
import json
from pathlib import Path

import numpy as np

CONFIG = {
    "scenario": "rest_trap",
    "iterations": 4,
    "meta_solver": "alpha_rank",
    "alpha": 5.0,
    "population_size": 50,
    "reward": "own",
    "warm_start": True,
    "gap_steps": None,
    "ppo": {"steps": 100_000, "hidden": [64, 64]},
    "seed": 0,
}
VERSIONS = {"python": "3.11.7", "numpy": "2.4.6"}


def write_run(path: Path, players: int = 4, iterations: int = 4, seed: int = 0, offset: float = 1300) -> Path:
    """A finished run of `iterations` iterations with made-up numbers, one policy a player and iteration."""
    rng = np.random.default_rng(seed)
    path.mkdir(parents=True)
    settings = {"format": 1, "config": CONFIG | {"iterations": iterations}, "versions": VERSIONS}
    settings |= {"machine": {"system": "Linux"}, "git": {"commit": "0" * 40, "changed_files": 0}}
    write_json(path / "run.json", settings)
    payoffs = offset + 60 * rng.standard_normal((players, *(iterations + 1,) * players))
    for iteration in range(iterations + 1):
        folder = path / "snapshots" / f"{iteration:04d}"
        folder.mkdir(parents=True)
        shape = (iteration + 1,) * players
        mean = payoffs[(slice(None), *(slice(0, k) for k in shape))]
        sigma = rng.dirichlet(np.full(np.prod(shape), 0.05)).reshape(shape)
        episodes, error = np.full(shape, 256), np.full_like(mean, 3.2)
        np.savez(folder / "payoffs.npz", mean=mean, standard_error=error, episodes=episodes, sigma=sigma)
        units = [
            [f"initial/{i}", *(f"train/{before}/{i}" for before in range(1, iteration + 1))] for i in range(players)
        ]
        policies = [[{"unit": unit, "sha256": "0" * 64} for unit in names] for names in units]
        write_json(folder / "snapshot.json", {"iteration": iteration, "policies": policies})
        rows = _metrics(rng, iteration, players)
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        seal(folder)
    write_json(path / "summary.json", {"iteration": iterations, "measured": {}})
    seal(path, "run.json")
    return path


def write_json(file: Path, value: dict) -> None:
    file.write_text(json.dumps(value))


def edit(file: Path, **changes: object) -> None:
    """Set keys of a JSON object; None removes them."""
    about = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in about.items() if value is not None}))


def seal(folder: Path, pattern: str = "*") -> None:
    """Write the manifest of a folder's files."""
    files = [file for file in folder.glob(pattern) if file.name != "manifest.json"]
    write_json(folder / "manifest.json", {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})


def _metrics(rng: np.random.Generator, iteration: int, players: int) -> list[dict]:
    def row(metric: str, value: float, error: float, kind: str = "estimate", **more: int) -> dict:
        row = {"iteration": iteration, "metric": metric, "value": value, "standard_error": error, "kind": kind}
        return row | {"unit": "return per episode"} | more

    rows: list[dict] = [
        {"iteration": iteration, "metric": "policies_per_player", "value": iteration + 1, "kind": "exact"},
        row("restricted_gap", 40 / (iteration + 1), 3.0, "lower bound"),
        row("team_return", 5200 + 100 * iteration, 30.0),
    ]
    if iteration:
        rows.append({**row("full_gap", 60 / iteration, 5.0, "lower bound"), "iteration": iteration - 1})
        for player in range(players):
            for step in range(1, 21):
                value = 1300 + 200 * (1 - np.exp(-step / 5)) + 5 * rng.standard_normal()
                learner = {"iteration": iteration, "metric": "learner/return", "player": player, "step": 5000 * step}
                rows.append(learner | {"value": float(value), "kind": "estimate"})
    return rows
