"""The same episodes on a CUDA device; `make gpu`."""

import numpy as np
import pytest
import torch

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes
from games.play import play

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
