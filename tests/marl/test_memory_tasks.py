"""What a memory is worth to PPO."""

import pytest

import games
from games.lanes import GameLanes
from games.play import play
from games.wrappers import stacked
from marl.oracles import PPO, RecurrentPPO

T_MAZE = games.make("t_maze", length=2)


def learned(game, oracle: PPO, seed: int = 0) -> float:
    """Mean return of the policy that it finds."""
    policy = oracle.train(GameLanes(game, oracle.num_lanes), (0,), seed)[0]
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_recurrent_networks_are_a_memory_for_longer_corridors(cell, seed):
    maze = games.make("t_maze", length=10)
    oracle = RecurrentPPO(
        steps=250_000,
        num_lanes=256,
        horizon=32,
        sequence=32,
        learning_rate=1e-2,
        gae_lambda=0.9,
        entropy_start=0.05,
        units=32,
        span=32,
        cell=cell,
    )
    assert learned(maze, oracle, seed) == maze.optimum


@pytest.mark.slow
def test_flickering_needs_a_memory():
    """Half of what cart-pole shows is missed; the table of papers/oracles has the whole training, of 1M steps."""
    flickering = games.make("flickering(cart_pole,p=0.5)")
    settings = {
        "steps": 300_000,
        "num_lanes": 128,
        "horizon": 32,
        "minibatches": 4,
        "epochs": 4,
        "learning_rate": 3e-3,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "entropy_start": 0.0,
        "normalise_observations": True,
    }
    assert learned(flickering, RecurrentPPO(sequence=32, span=4, **settings)) > 350
    assert learned(flickering, PPO(**settings)) < 250
