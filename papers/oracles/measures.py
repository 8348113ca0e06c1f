"""Train on a task and measure the final policy: by episodes in Gymnasium, or exactly in games with a tree."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np

from games import make
from games.external.gymnasium import single_agent
from games.game import Policy
from games.lanes import lanes_of
from games.play import play
from games.versus import Versus
from marl.exact import tree_game as in_tree
from marl.oracles import BehaviouralCloning, Oracle
from marl.policy_files import save_policy
from papers.oracles.flickering import Flickering
from papers.oracles.protocol import EPISODES, FRESH, Curve, Measured, watch
from papers.oracles.responses import found, population


def trained(oracle: Oracle, game: Any, seed: int) -> tuple[Policy, Curve]:
    """The policy of the only seat of a game, and its learning curve."""
    curve: Curve = []
    policies = oracle.train(lanes_of(game, oracle.num_lanes), [0], seed, progress=partial(watch, curve))
    return policies[0], curve


def control(game: str, env: str, blank: float, oracle: Oracle, seed: int) -> Measured:
    """Trained on a kernel; played in Gymnasium's own environment, whose observations may flicker."""
    policy, curve = trained(oracle, make(game), seed)
    returns = in_gymnasium(env, blank, policy, seed)
    return Measured(float(returns.mean()), {"returns": returns.round(4).tolist()}, curve)


def in_gymnasium(env: str, blank: float, policy: Policy, seed: int) -> np.ndarray:
    """[episodes] returns of a policy in an environment of Gymnasium's registry."""
    factory = partial(flickering_env, env, blank) if blank else partial(gymnasium.make, env)
    return play(single_agent(factory), [[policy]], EPISODES, FRESH + seed, ["final"]).returns[0, :, 0]


def flickering_env(env: str, blank: float) -> gymnasium.Env:
    return Flickering(gymnasium.make(env), blank)


def response(game: str, opponents: str, oracle: Oracle, seed: int) -> Measured:
    """Best responses trained for each seat against the others' mixture; the score is the larger gap to the exact."""
    tree_game = in_tree(make(game))
    populations, details, curve = population(tree_game, opponents), {}, []
    sigma = np.full([len(policies) for policies in populations], 1.0)
    for seat, name in enumerate(tree_game.agents):
        lanes = Versus(lanes_of(tree_game, oracle.num_lanes), populations, sigma / sigma.sum(), [seat])
        told: Curve = []
        policy = oracle.train(lanes, [seat], seed, progress=partial(watch, told))[seat]
        what = found(tree_game, policy, seat, populations)
        details[name] = {"value": what.value, "best": what.best, "gap": what.gap}
        curve += told if seat == 0 else []
    return Measured(max(part["gap"] for part in details.values()), details, curve)


def clone(game: str, env: str, blank: float, expert: Oracle, oracle: BehaviouralCloning, seed: int) -> Measured:
    """An expert trained with the seed, imitated; the score is the share of its return, over equal starts."""
    policy, _ = trained(expert, make(game), seed)
    with TemporaryDirectory() as folder:
        save_policy(policy, Path(folder, "expert"))
        copied, _ = trained(replace(oracle, expert=str(Path(folder, "expert"))), make(game), seed)
    returns, experts = (in_gymnasium(env, blank, player, seed) for player in (copied, policy))
    details = {"returns": returns.round(4).tolist(), "experts": experts.round(4).tolist()}
    return Measured(float(returns.mean() / experts.mean()), details, [])
