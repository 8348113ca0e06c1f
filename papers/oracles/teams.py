"""How well teams learn by joint training: shares of the most they can earn, which is known exactly."""

from functools import cache, partial
from typing import Any

import numpy as np

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.optimum import team_optimum
from games.game import Game, Policy
from games.lanes import GameLanes
from games.play import play
from games.policies import Uniform
from games.signaling import Signaling, optimum, values
from marl.oracles import PPO, JointTraining
from papers.oracles.protocol import FRESH, Curve, Measured, watch

EPISODES = 40_000
"""Of Bucket Brigade, whose returns vary much: in the cell of kappa 0.1 by twice the gap between uniform play and the
optimum."""


def brigade(game: BucketBrigade, oracle: JointTraining, seed: int) -> Measured:
    """Share of the gap from uniform play to the team optimum that the trained team's mean return closes.

    With the standard error of the share, from greedy play of `EPISODES` fresh episodes, and a learning curve.
    """
    policies, curve = trained(game, oracle, seed)
    mean, error = team_return(game, policies, FRESH + seed)
    low, low_error = uniform_return(game)
    best = team_optimum(game).value
    share = (mean - low) / (best - low)
    # The share's derivatives by the two means, which are of different episodes.
    share_error = np.hypot(error, (1 - share) * low_error) / (best - low)
    details = {
        "standard_error": float(share_error),
        "team_return": mean,
        "uniform": low,
        "uniform_standard_error": low_error,
        "optimum": best,
        "episodes": EPISODES,
    }
    return Measured(share, details, curve)


def signalling(channel: str, oracle: JointTraining, seed: int) -> Measured:
    """What the greedy pair earns in expectation, of four referents and as many messages.

    The speaker sees the referent, the listener what it hears, in row 0 nothing; both the share of steps still to come.
    """
    game = Signaling(states=4, messages=4, channel=channel)
    policies, curve = trained(game, oracle, seed)
    referents, heard = np.eye(game.states), np.vstack([np.zeros(game.messages), np.eye(game.messages)])
    strategies = [
        policy.probabilities(np.pad(seen, ((0, 0), (0, 1)), constant_values=left).astype(np.float32), None)[0]
        for policy, seen, left in zip(policies, (referents, heard), (1.0, 0.5), strict=True)
    ]
    value = float(values(game, *strategies)[0])
    return Measured(value, {"optimum": optimum(game)}, curve)


def trained(game: Game, oracle: JointTraining, seed: int) -> tuple[list[Any], Curve]:
    """Policies of all seats, and the first one's learning curve: of a team, everybody's."""
    curve: Curve = []
    lanes, seats = GameLanes(game, oracle.num_lanes), range(len(game.agents))
    policies = oracle.train(lanes, seats, seed, progress=partial(watch, curve, name="return/0"))
    return [policies[seat] for seat in seats], curve


def team_return(game: Game, policies: list[Policy], seed: int, episodes: int = EPISODES) -> tuple[float, float]:
    """Mean return of the whole team an episode, and its standard error."""
    returns = play(game, [policies], episodes, seed, ["final"]).returns[0].sum(axis=-1)
    return float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(episodes))


@cache
def uniform_return(game: Game) -> tuple[float, float]:
    """The same of uniform play, whose seed is its own."""
    return team_return(game, [Uniform.of(space) for space in game.action_spaces], 0)


TEAM = JointTraining(PPO(steps=1_000_000, num_lanes=1024, horizon=8, gae_lambda=0.5), sharing="shared", team_share=1.0)
"""A short trace of advantages: what a night's work brings shows in the next state, and later nights are noise."""
SIGNALLING = JointTraining(
    PPO(
        steps=600_000,
        num_lanes=1024,
        horizon=2,
        epochs=2,
        minibatches=2,
        entropy_start=0.5,
        entropy_end=0.0,
        hidden=(32,),
    )
)
"""A bonus for entropy that begins where only babbling is stable and falls slowly: conventions form as it is crossed."""
