"""Learning to talk: alternating best responses of the PPO oracle in Lewis's game of three referents."""

import numpy as np
import pytest
import torch

from games.policies import Uniform
from games.signaling import Signaling, babbling, information, optimum, said, values
from marl.oracles import PPO
from marl.psro import best_response

ORACLE = PPO(steps=16_384, num_lanes=128, horizon=8, epochs=2, minibatches=4, hidden=(32,))


def taught(game: Signaling, seed: int, rounds: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Strategies of a speaker and a listener who in turn learn to answer each other, beginning from uniform play."""
    torch.set_num_threads(1)
    players = [Uniform.of(space) for space in game.action_spaces]
    for number in range(rounds):
        for seat in (1, 0):
            others, alone = [[player] for player in players], np.ones((1, 1))
            players[seat] = best_response(game, ORACLE, others, alone, seat, seed, f"train/{number}/{seat}")
    says = said(game, players[0], 1000, seed)
    heard = np.vstack([np.zeros(game.messages), np.eye(game.messages)])
    observed = np.hstack([heard, np.full((len(heard), 1), 0.5)]).astype(np.float32)
    guesses, _ = players[1].act(observed, None, None, np.zeros((len(heard), 1), np.float32))
    return says / says.sum(axis=1, keepdims=True), np.eye(game.guesses)[guesses]


@pytest.mark.slow
def test_conventions_emerge_or_stick_half_way():
    """Uniform play tells nothing; replies break the symmetry, and end at an equilibrium that tells two or all apart."""
    game = Signaling()
    strategies = [taught(game, seed) for seed in range(4)]
    earned = [values(game, *strategy)[0] for strategy in strategies]
    assert max(earned) == pytest.approx(optimum(game))
    assert min(earned) >= 2 / 3 - 1e-9 > babbling(game)[0]  # partial pooling
    told = [information(game.referents[:, None] * says) for says, _ in strategies]
    assert min(told) > 0.9  # bits; of two classes, 2/3 and 1/3, it is 0.918


@pytest.mark.slow
@pytest.mark.parametrize("control", ["severed", "shuffled"])
def test_nothing_is_learned_without_a_channel(control):
    game = Signaling(channel=control)
    assert values(game, *taught(game, 0))[0] == pytest.approx(1 / 3)
    assert optimum(game) == pytest.approx(1 / 3)
