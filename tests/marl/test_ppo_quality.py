"""How much of what can be gained PPO gains with its defaults; minutes, so `make slow`."""

import numpy as np
import pytest

import games
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes
from games.noise import unit_seed
from games.play import play
from games.versus import Versus
from marl.oracles import PPO

EPISODES = 20_000
REPLIES = [
    ("specialist", {}),
    ("spread", {}),
    ("always_rest", {}),
    *(("firefighter", {"scope": s}) for s in ("any", "owned")),
]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["rest_trap", "minimal_specialization"])
@pytest.mark.parametrize("seat", range(4))
def test_the_first_response_closes_the_gap_to_the_best_scripted_reply(scenario, seat):
    """At least 98 % of it, less what two standard errors may hide."""
    game, ppo = games.make("bucket_brigade", scenario=scenario), PPO()
    uniform = [policy("uniform", game)] * len(game.agents)
    lanes = Versus(GameLanes(game, ppo.num_lanes), [[player] for player in uniform], np.ones((1,) * 4), [seat])
    response = ppo.train(lanes, [seat], unit_seed(0, f"train/{seat}"))[seat]
    candidates = [response, uniform[seat], *(policy(name, game, **fields) for name, fields in REPLIES)]
    profiles = [[*uniform[:seat], candidate, *uniform[seat + 1 :]] for candidate in candidates]
    returns = play(game, profiles, EPISODES, 1, [f"reply/{index}" for index in range(len(profiles))]).returns[..., seat]
    means, errors = returns.mean(axis=1), returns.std(axis=1) / EPISODES**0.5
    best = int(means[1:].argmax()) + 1
    error = np.hypot(errors[0], errors[best])
    assert means[0] >= means[1] + 0.98 * (means[best] - means[1]) - 2 * error
