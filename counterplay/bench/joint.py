"""Training steps per second of joint PPO: every step of the lanes is one of all four agents of Bucket Brigade."""

from collections.abc import Callable, Iterator
from time import process_time

import torch

import games
from counterplay.bench.row import Row
from games.lanes import GameLanes
from marl.oracles import PPO, JointTraining

ROUNDS = 12


def rows() -> Iterator[Row]:
    """Team steps per CPU second on one core, by updates of four learners and of one that they share."""
    torch.set_num_threads(1)
    for sharing in ("independent", "shared"):
        oracle = JointTraining(PPO(), sharing, team_share=1.0)
        game = games.make_game("bucket_brigade")
        learner = oracle.learner(GameLanes(game, oracle.num_lanes), range(len(game.agents)), seed=0)
        ours = oracle.ppo.batch / min(_seconds(learner.update) for _ in range(ROUNDS))
        yield Row(f"joint PPO, {sharing}", ours, "team steps/s", "", None, None, ">= 8,000 team steps/s")


def _seconds(update: Callable[[], object]) -> float:
    start = process_time()
    update()
    return process_time() - start
