"""Environment steps per second of NFSP, learning included, beside OpenSpiel's NFSP in torch."""

from collections.abc import Iterator
from time import process_time

import torch

from counterplay.bench.row import Row
from experiments.baselines import theirs
from experiments.baselines.games import GAMES
from experiments.baselines.measured import Tally
from experiments.baselines.rows import SHIPPED_NFSP
from games.lanes import GameLanes
from marl.oracles import NFSP

SECONDS = 10.0
"""Of the processor, for each side."""
WARMED = 2.0
"""Seconds before that, in which replays fill until there is something to learn from."""


def rows() -> Iterator[Row]:
    """Of Kuhn and Leduc poker, one core each."""
    torch.set_num_threads(1)
    for name in ("kuhn", "leduc"):
        ours, peer = _ours(name), _peer(name)
        title = f"NFSP, {GAMES[name].title}"
        yield Row(title, ours, "steps/s", "OpenSpiel NFSP (torch)", peer, ours / peer, ">= 20")


def _ours(name: str) -> float:
    game, oracle = GAMES[name].compiled(), NFSP()
    learner = oracle.learner(GameLanes(game, oracle.num_lanes), range(len(game.agents)), seed=0)
    return _speed(int(learner.update()["steps"]) for _ in iter(lambda: learner.finished, True))


def _peer(name: str) -> float:
    tally = Tally()
    playing = theirs.nfsp(GAMES[name], 0, tally, **SHIPPED_NFSP)
    return _speed(tally.steps or 0 for _ in playing)


def _speed(counts: Iterator[int]) -> float:
    """Steps per CPU second of what counts its steps as it goes."""
    start = process_time()
    begun = steps = 0
    for steps in counts:
        if not begun and process_time() - start > WARMED:
            start, begun = process_time(), steps
        if begun and process_time() - start > SECONDS:
            break
    return (steps - begun) / (process_time() - start)
