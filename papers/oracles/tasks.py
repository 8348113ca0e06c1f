"""What learners are compared on: each task with its oracle, its bar and whoever else is measured on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np

from games import make
from games.bucket_brigade import BucketBrigade
from games.external.gymnasium import single_agent
from games.game import Policy
from games.lanes import lanes_of
from games.play import play
from games.versus import Versus
from marl.exact import tree_game as in_tree
from marl.oracles import PPO, SAC, Oracle
from papers.oracles.flickering import Flickering
from papers.oracles.protocol import EPISODES, FRESH, SEEDS, Curve, Measured, watch
from papers.oracles.responses import OPPONENTS, found, population
from papers.oracles.teams import SIGNALLING, TEAM, brigade, signalling


@dataclass(frozen=True)
class Task:
    """A row of the table. `measure(oracle, seed)` trains with a seed, and measures the final policy."""

    title: str
    oracle: Any
    bar: float
    measure: Callable[[Any, int], Measured]
    better: Literal["higher", "lower"] = "higher"
    unit: str = "return"
    peer: str = ""
    """Its name among `papers.oracles.peers.PEERS`."""
    beside: str = ""
    """What stands beside it where there is no such peer."""
    seeds: tuple[int, ...] = SEEDS
    enough: int = 0
    """Seeds that must reach the bar each; 0 where it is on their interquartile mean."""

    def reached(self, score: float) -> bool:
        return score >= self.bar if self.better == "higher" else score <= self.bar


def trained(oracle: Oracle, game: Any, seed: int) -> tuple[Policy, Curve]:
    """The policy of the only seat of a game, or of lanes, and its learning curve."""
    curve: Curve = []
    lanes = lanes_of(game, oracle.num_lanes) if not hasattr(game, "num_lanes") else game
    policies = oracle.train(lanes, [0], seed, progress=partial(watch, curve))
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


CART_POLE = ("cart_pole", "CartPole-v1", 0.0)
FLICKERING = ("flickering(cart_pole,p=0.5)", "CartPole-v1", 0.5)
CONTROL: dict[str, Task] = {
    "ppo_cart_pole": Task(
        "PPO, CartPole-v1, 100k steps",
        PPO(
            steps=100_000,
            num_lanes=64,
            horizon=32,
            epochs=4,
            minibatches=8,
            learning_rate=2e-3,
            gamma=0.98,
            gae_lambda=0.95,
            entropy_start=0.0,
        ),
        475.0,
        partial(control, *CART_POLE),
        peer="ppo_cart_pole",
    ),
    "joint_rest_trap": Task(
        "joint PPO, team reward, Bucket Brigade rest_trap, 1M steps",
        TEAM,
        0.95,
        partial(brigade, BucketBrigade("rest_trap")),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 0.999 (exact); published PPO 307.8 a night, where uniform play has 302.9",
    ),
    "joint_minimal_specialization": Task(
        "joint PPO, team reward, Bucket Brigade minimal_specialization, 1M steps",
        TEAM,
        0.95,
        partial(brigade, BucketBrigade("minimal_specialization")),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 1 (exact); published PPO -81.6 a night, where uniform play has -87.9",
    ),
    "joint_kappa_0.1": Task(
        "joint PPO, team reward, Bucket Brigade minimal_specialization with kappa 0.1, 2.5M steps",
        replace(TEAM, ppo=replace(TEAM.ppo, steps=2_500_000)),
        0.9,
        partial(brigade, BucketBrigade("minimal_specialization", kappa=0.1)),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 1 (exact); published PPO -98.3 a night, where uniform play has -98.9",
    ),
    "joint_signalling": Task(
        "joint PPO, signalling, 4 referents, 600k steps",
        SIGNALLING,
        0.95,
        partial(signalling, "open"),
        unit="of the optimum",
        beside="published 0.677 ± 0.172",
        seeds=tuple(range(10)),
        enough=8,
    ),
    "joint_signalling_severed": Task(
        "the same, the channel severed: chance is 0.25",
        SIGNALLING,
        0.25,
        partial(signalling, "severed"),
        better="lower",
        beside="optimum 0.25 (exact)",
    ),
    "sac_pendulum": Task(
        "SAC, Pendulum-v1, 20k steps",
        SAC(steps=20_000),
        -160.0,
        partial(control, "pendulum", "Pendulum-v1", 0.0),
        peer="sac_pendulum",
    ),
    "sac_mountain_car_continuous": Task(
        "SAC, MountainCarContinuous-v0, 50k steps",
        SAC(
            steps=50_000,
            gradient_steps=16,
            learning_rate=1e-3,
            n_step=10,
            learning_starts=5_000,
            hold=20,
            temperature=0.1,
        ),
        90.0,
        partial(control, "mountain_car_continuous", "MountainCarContinuous-v0", 0.0),
        peer="sac_mountain_car_continuous",
    ),
}
POKER: dict[str, tuple[str, float, dict[str, Oracle]]] = {
    "kuhn": (
        "Kuhn poker",
        0.02,
        {
            "ppo": PPO(steps=200_000, num_lanes=512, horizon=8),
            "sac": SAC(
                steps=40_960,
                num_lanes=64,
                horizon=16,
                learning_starts=2_048,
                gradient_steps=64,
                minibatch=256,
                gamma=1.0,
                target_rate=0.02,
            ),
        },
    ),
    "leduc": (
        "Leduc poker",
        0.1,
        {
            "ppo": PPO(steps=2_000_000, num_lanes=1024, horizon=8),
            "sac": SAC(
                steps=614_400,
                num_lanes=512,
                horizon=4,
                learning_starts=20_000,
                gradient_steps=40,
                minibatch=512,
                gamma=1.0,
                target_rate=0.02,
                temperature_rate=2e-3,
                choice_entropy=0.05,
            ),
        },
    ),
}
"""Title, bar and oracles of the games whose best responses are known."""


def responses() -> Iterator[tuple[str, Task]]:
    """A task for each game, oracle and kind of opponents."""
    for short, (title, bar, oracles) in POKER.items():
        for name, oracle in oracles.items():
            for others in OPPONENTS:
                measure = partial(response, f"openspiel:{short}_poker", others)
                whom = "uniform play" if others == "uniform" else "the cfr mixture"
                named = f"{type(oracle).__name__}, {title} against {whom}, {oracle.total_steps // 1000}k steps"
                yield f"{name}_{short}_{others}", Task(named, oracle, bar, measure, "lower", "to the best response")


TASKS: dict[str, Task] = {**CONTROL, **dict(responses())}
