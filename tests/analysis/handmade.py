"""A run folder written by hand: what figures need, and nothing else."""

import json
from pathlib import Path

import numpy as np


def write_run(path: Path, players: int = 4, iterations: int = 4, seed: int = 0) -> Path:
    """A finished run of `iterations` iterations with made-up numbers, one policy a player and iteration."""
    rng = np.random.default_rng(seed)
    config = {"meta_solver": "alpha_rank", "alpha": 5.0, "population_size": 50, "reward": "own"}
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"config": config}))
    payoffs = 1300 + 60 * rng.standard_normal((players, *(iterations + 1,) * players))
    for iteration in range(iterations + 1):
        folder = path / "snapshots" / f"{iteration:04d}"
        folder.mkdir(parents=True)
        shape = (iteration + 1,) * players
        mean = payoffs[(slice(None), *(slice(0, k) for k in shape))]
        sigma = rng.dirichlet(np.full(np.prod(shape), 0.05)).reshape(shape)
        np.savez(folder / "payoffs.npz", mean=mean, standard_error=np.full_like(mean, 3.2), sigma=sigma)
        with open(path / "metrics.jsonl", "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in _metrics(rng, iteration, players))
    return path


def _metrics(rng: np.random.Generator, iteration: int, players: int) -> list[dict]:
    def row(metric: str, value: float, error: float, **more: int) -> dict:
        return {"iteration": iteration, "metric": metric, "value": value, "standard_error": error, **more}

    rows = [row("restricted_gap", 40 / (iteration + 1), 3.0), row("team_return", 5200 + 100 * iteration, 30.0)]
    if iteration:
        rows.append({**row("full_gap", 60 / iteration, 5.0), "iteration": iteration - 1})
        for player in range(players):
            for step in range(1, 21):
                value = 1300 + 200 * (1 - np.exp(-step / 5)) + 5 * rng.standard_normal()
                rows.append(row("learner/return", float(value), 8.0, player=player, step=5000 * step))
    return rows
