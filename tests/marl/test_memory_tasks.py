"""PPO on games whose exact values are known: what a memory is worth."""

import pytest

import games
from games.lanes import GameLanes
from games.play import play
from games.wrappers import stacked
from marl.oracles import PPO

T_MAZE = games.make("t_maze", length=2)


def learned(game, oracle: PPO) -> float:
    """Mean return of the policy that it finds."""
    policy = oracle.train(GameLanes(game, oracle.num_lanes), (0,), seed=0)[0]
    return play(game, [[policy]], 2000, 1, ["judged"]).returns.mean()


@pytest.mark.slow
def test_the_best_arms_are_found():
    bandit = games.make("bandit")
    assert learned(bandit, PPO(steps=60_000, num_lanes=64)) > 0.97 * bandit.optimum


@pytest.mark.slow
def test_the_t_maze_needs_a_memory_and_stacked_observations_are_one():
    oracle = PPO(steps=400_000, num_lanes=512, entropy_start=0.03)
    assert learned(stacked(T_MAZE, 4), oracle) == T_MAZE.optimum
    assert learned(T_MAZE, oracle) == pytest.approx(T_MAZE.best_without_memory, abs=0.05)
