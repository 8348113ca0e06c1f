"""Runs: how soon a resumed one is at work, and the memory that many policies take."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import games
from counterplay.bench.row import Row
from games.game import factors
from marl.networks import policy_layers
from marl.policies import NeuralPolicy
from marl.population import evaluate
from metasolvers import alpha_rank

COMMAND = [sys.executable, "-m", "experiments.psro_bucket_brigade"]
POLICIES, EPISODES = 10, 8


def rows() -> Iterator[Row]:
    """Seconds are wall-clock; memory is the largest resident set of a process that does all of it."""
    yield Row("resume until its first best response is saved", resume(), "s", "", None, None, "<= 5")
    code = "from counterplay.bench.runs import fill; fill()"
    memory = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    yield Row(f"4 players x {POLICIES} policies: payoffs, alpha-rank", int(memory) / 1e9, "GB", "", None, None, "< 1")


def resume() -> float:
    """From the command to the first new policy on disk, trained for 4,096 steps; the run is a small finished one."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run([*COMMAND, "--smoke", "--run-dir", run], check=True, stdout=subprocess.DEVNULL)
        start = time.perf_counter()
        command = [*COMMAND, "--run-dir", str(run), "--resume", "--iterations", "2", "--workers", "1"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and not (run / "policies" / "train-2-0").exists():
                time.sleep(0.005)
            seconds = time.perf_counter() - start
            process.kill()
    return seconds


def fill() -> None:
    """Play all profiles of many neural policies, solve the empirical game, and print the memory it took in bytes."""
    torch.set_num_threads(1)
    game, generator = games.make_game("bucket_brigade", max_nights=13), np.random.default_rng(0)
    populations = [
        [
            NeuralPolicy.of(policy_layers(observed.shape[0], (64, 64), factors(acted), generator), acted)
            for _ in range(POLICIES)
        ]
        for observed, acted in zip(game.observation_spaces, game.action_spaces, strict=True)
    ]
    alpha_rank(evaluate(game, populations, EPISODES, 0).mean)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
