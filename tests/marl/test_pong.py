"""Pong can be learnt: against its rule-based player, in a minute."""

import numpy as np
import pytest

from games.game import Policy
from games.play import play
from games.policies import Uniform
from games.pong import Pong
from games.pong.scripted import Follow
from marl.oracles import PPO
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
