"""Worker processes: how much sooner two are done than one, and what one costs where none would do; wall-clock."""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

import games
from counterplay.bench.row import Row
from games.policies import Uniform
from marl.oracles.ppo import PPO
from marl.psro import best_response
from marl.workers import Here, Processes, Unit, Workers

STEPS = 600_000
"""A best response's budget: some five seconds of work."""
ROUNDS = 3


def rows() -> Iterator[Row]:
    """Best of some rounds that take turns, for other load on the machine only ever slows them."""
    torch.set_num_threads(1)
    prepare = partial(torch.set_num_threads, 1)
    with Processes(1, prepare) as one, Processes(2, prepare) as two:
        for workers, number in ((one, 1), (two, 2)):
            seconds(workers, 2 * number, steps=PPO().batch)  # processes start, and import what they need
        here, alone, both, double = (
            min(times)
            for times in zip(
                *(
                    (seconds(Here(), 1, STEPS), seconds(one, 1, STEPS), seconds(one, 2, STEPS), seconds(two, 2, STEPS))
                    for _ in range(ROUNDS)
                ),
                strict=True,
            )
        )
    yield Row("2 best responses, 2 workers", double, "s", "1 worker", both, both / double, ">= 1.7")
    yield Row("1 best response, 1 worker", alone, "s", "no worker process", here, here / alone, ">= 0.9")


def seconds(workers: Workers, number: int, steps: int) -> float:
    """Until so many best responses are trained."""
    game = games.make("bucket_brigade")
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    train = partial(best_response, game, PPO(steps=steps), populations, np.ones((1,) * len(populations)), 0, 0)
    units = [Unit(f"train/{i}", partial(train, f"train/{i}")) for i in range(number)]
    start = time.perf_counter()
    for _ in workers.run(units):
        pass
    return time.perf_counter() - start
