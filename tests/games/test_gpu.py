"""The same episodes on a CUDA device; `make gpu`."""

import numpy as np
import pytest
import torch

from games import make
from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes
from games.play import play
from games.policies import Uniform
from games.versus import Versus
from tests.games.test_versus import Says, forbidden

GAME = BucketBrigade("hard")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_episodes_are_the_same_on_a_cuda_device():
    profile = [policy(name, GAME) for name in ("uniform", "spread", "genome_full hero", "specialist")]

    def on_cuda(lanes: int) -> GameLanes:
        return GameLanes(GAME, lanes, put=lambda array: torch.asarray(array, device="cuda"))

    here, there = (play(game, [profile], 500, 0, ["a"]) for game in (GAME, on_cuda))
    np.testing.assert_allclose(there.returns, here.returns, rtol=1e-5)
    np.testing.assert_array_equal(there.lengths, here.lengths)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_forbidden_moves_are_told_after_the_step():
    game = make("openspiel:leduc_poker")
    lanes = GameLanes(game, 8, put=lambda array: torch.asarray(array, device="cuda"))
    versus = Versus(lanes, [[Says(forbidden)], [Uniform.of(game.action_spaces[1])]], np.ones((1, 1)), [1])
    versus.reset(0)
    with pytest.raises(ValueError, match="player_0 chose an action in lane 0 that is not legal"):
        versus.step((torch.zeros(8, dtype=torch.int64, device="cuda"),))
