"""How well teams learn by joint training: shares of the most they can earn, which is known exactly."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from games import make
from games.bucket_brigade.optimum import team_optimum
from games.exact import expected_returns, profile, tabulate
from games.game import Game, Policy
from games.lanes import GameLanes
from games.play import play
from games.policies import Uniform
from games.signaling import Signaling, optimum
from marl.oracles import PPO, JointTraining

FRESH = 1_000_000
"""Added to a seed for the episodes that the final policies play."""
EPISODES = 40_000
"""Of Bucket Brigade, whose returns vary much: in the cell of kappa 0.1 by twice the gap between uniform play and the
optimum."""

Curve = list[tuple[int, float]]


def brigade(scenario: str, cell: Mapping[str, float], oracle: JointTraining, seed: int) -> tuple[float, dict, Curve]:
    """Share of the gap from uniform play to the team optimum that the trained team's mean return closes.

    With the standard error of the share, from greedy play of `EPISODES` fresh episodes, and a learning curve.
    """
    game = make("bucket_brigade", scenario=scenario, **cell)
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
    return share, details, curve


def signalling(channel: str, oracle: JointTraining, seed: int) -> tuple[float, dict, Curve]:
    """What the greedy pair earns in expectation, of four referents and as many messages."""
    game = Signaling(states=4, messages=4, channel=channel)
    policies, curve = trained(game, oracle, seed)
    parts = [tabulate(game, policy, seat) for seat, policy in enumerate(policies)]
    value = float(expected_returns(game.tree, profile(game.tree, parts))[0])
    return value, {"optimum": optimum(game)}, curve


def trained(game: Game, oracle: JointTraining, seed: int) -> tuple[list[Policy], Curve]:
    """Policies of all seats, and the first one's learning curve: of a team, everybody's."""
    curve: Curve = []
    lanes, seats = GameLanes(game, oracle.num_lanes), range(len(game.agents))
    policies = oracle.train(lanes, seats, seed, progress=partial(_watch, curve))
    return [policies[seat] for seat in seats], curve


def _watch(curve: Curve, metrics: Mapping[str, float]) -> None:
    if np.isfinite(metrics["return/0"]):
        curve.append((int(metrics["steps"]), float(metrics["return/0"])))


def team_return(game: Game, policies: list[Policy], seed: int) -> tuple[float, float]:
    """Mean return of the whole team an episode, and its standard error."""
    returns = play(game, [policies], EPISODES, seed, ["final"]).returns[0].sum(axis=-1)
    return float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(EPISODES))


@cache
def uniform_return(game: Game) -> tuple[float, float]:
    """The same of uniform play, whose seed is its own."""
    return team_return(game, [Uniform.of(space) for space in game.action_spaces], 0)


def of_a_team(**options: Any) -> JointTraining:
    """Shared parameters and the team's reward; options are PPO's.

    A short trace of advantages, since what came of a night's work shows in the next state, and later nights are noise.
    """
    return JointTraining(
        PPO(**{"num_lanes": 1024, "horizon": 8, "gae_lambda": 0.5} | options), "shared", team_share=1.0
    )


BRIGADE = {
    "rest_trap": of_a_team(steps=1_000_000),
    "minimal_specialization": of_a_team(steps=1_000_000),
    "kappa_0.1": of_a_team(steps=2_000_000),
}
"""Tried on seeds from 10 on."""
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
