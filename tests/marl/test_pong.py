"""Pong can be learnt: against its rule-based player, in a minute, and in self-play."""

from dataclasses import replace

import numpy as np
import pytest

from games.game import Policy
from games.lanes import GameLanes
from games.play import play
from games.policies import Uniform
from games.pong import Pong
from games.pong.scripted import Follow
from marl.oracles import PPO, JointTraining
from marl.psro import best_response

ORACLE = PPO(
    steps=1_500_000,
    num_lanes=512,
    horizon=16,
    minibatches=16,
    learning_rate=5e-3,
    gamma=0.96,
    gae_lambda=0.95,
    entropy_start=0.01,
)


def share_of_points(policy: Policy, opponent: Policy) -> float:
    points = play(Pong(points=1), [[policy, opponent]], 2000, 0, ["pong"]).returns[0, :, 0]
    return float((points > 0).sum() / (points != 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_best_response_to_the_rule_based_player_wins_nearly_every_point(seed):
    game = Pong()
    uniform, follow = Uniform.of(game.action_spaces[0]), Follow.of(game)
    found = best_response(game, ORACLE, [[uniform], [follow]], np.ones((1, 1)), 0, seed, "train/1/0")
    assert share_of_points(uniform, follow) < 0.25
    assert share_of_points(found, follow) >= 0.95


@pytest.mark.slow
def test_self_play_alone_beats_players_that_were_never_met():
    """Nobody but its own past: the rating rises above the pool's, and play beats uniform and rule-based play."""
    game, told = Pong(), []
    uniform, follow = Uniform.of(game.action_spaces[0]), Follow.of(game)
    settings = JointTraining(
        replace(ORACLE, steps=1_000_000),
        sharing="shared",
        learning_seats=(0,),
        opponents="pfsp_variance",
        snapshot_every=10,
        pool_size=8,
    )
    policies = settings.train(GameLanes(game, settings.num_lanes), [0, 1], 0, progress=told.append)
    assert told[-1]["pool"] == 8
    assert told[-1]["staleness"] > 10
    assert max(metrics["rating"] for metrics in told[20:]) > 50
    assert share_of_points(policies[0], uniform) > 0.99
    assert share_of_points(policies[0], follow) > 0.9
