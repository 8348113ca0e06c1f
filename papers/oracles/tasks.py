"""What learners are compared on: each task with its oracle, its bar and whoever else is measured on it.

On which seeds settings were chosen stands in README.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from games.bucket_brigade import BucketBrigade
from marl.oracles import A2C, DQN, PPO, SAC, BehaviouralCloning, Oracle, RecurrentPPO
from papers.oracles.measures import clone, control, response
from papers.oracles.protocol import SEEDS, Measured
from papers.oracles.responses import OPPONENTS
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


CART_POLE = ("cart_pole", "CartPole-v1", 0.0)
FLICKERING = ("flickering(cart_pole,p=0.5)", "CartPole-v1", 0.5)
PPO_CART_POLE = PPO(
    steps=100_000,
    num_lanes=64,
    horizon=32,
    epochs=4,
    minibatches=8,
    learning_rate=2e-3,
    gamma=0.98,
    gae_lambda=0.95,
    entropy_start=0.0,
)
LONG: dict[str, Any] = {
    "steps": 1_000_000,
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
"""Of PPO with and without a memory on flickering CartPole."""
CONTROL: dict[str, Task] = {
    "ppo_cart_pole": Task(
        "PPO, CartPole-v1, 100k steps", PPO_CART_POLE, 475.0, partial(control, *CART_POLE), peer="ppo_cart_pole"
    ),
    "dqn_cart_pole": Task(
        "DQN, CartPole-v1, 50k steps",
        DQN(
            steps=50_000,
            learning_rate=2e-3,
            n_step=16,
            epsilon_end=0.02,
            target_rate=0.01,
            hidden=(64, 64),
        ),
        475.0,
        partial(control, *CART_POLE),
        peer="dqn_cart_pole",
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
    "recurrent_ppo_flickering": Task(
        "recurrent PPO, flickering CartPole, p = 0.5, 1M steps",
        RecurrentPPO(sequence=32, units=64, span=4, **LONG),
        400.0,
        partial(control, *FLICKERING),
        peer="recurrent_ppo_flickering",
    ),
    "ppo_flickering": Task(
        "the same without a memory",
        PPO(**LONG),
        250.0,
        partial(control, *FLICKERING),
        better="lower",
        peer="ppo_flickering",
    ),
    "a2c_cart_pole": Task(
        "A2C, CartPole-v1, 500k steps",
        A2C(steps=500_000, gamma=0.99),
        400.0,
        partial(control, *CART_POLE),
        peer="a2c_cart_pole",
    ),
    "behavioural_cloning_cart_pole": Task(
        "behavioural cloning of the first row's policy, 100k steps of it",
        BehaviouralCloning(),
        0.95,
        partial(clone, *CART_POLE, PPO_CART_POLE),
        unit="of the expert's return",
    ),
}
JOINT: dict[str, Task] = {
    "joint_rest_trap": Task(
        "joint PPO, team reward, Bucket Brigade rest_trap, 1M steps",
        TEAM,
        0.95,
        partial(brigade, BucketBrigade("rest_trap")),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 0.999 (exact); published PPO 307.8 a night [1], where uniform play has 302.9",
    ),
    "joint_minimal_specialization": Task(
        "joint PPO, team reward, Bucket Brigade minimal_specialization, 1M steps",
        TEAM,
        0.95,
        partial(brigade, BucketBrigade("minimal_specialization")),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 1 (exact); published PPO -81.6 a night [2], where uniform play has -87.9",
    ),
    "joint_kappa_0.1": Task(
        "joint PPO, team reward, Bucket Brigade minimal_specialization with kappa 0.1, 2.5M steps",
        replace(TEAM, ppo=replace(TEAM.ppo, steps=2_500_000)),
        0.9,
        partial(brigade, BucketBrigade("minimal_specialization", kappa=0.1)),
        unit="of the gap from uniform play to the optimum",
        beside="scripted spread 1 (exact); published PPO -98.3 a night [2], where uniform play has -98.9",
    ),
    "joint_signalling": Task(
        "joint PPO, signalling, 4 referents, 600k steps",
        SIGNALLING,
        0.95,
        partial(signalling, "open"),
        unit="of the optimum",
        beside="published 0.677 ± 0.172 of 0.906 [3]",
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
}
POKER: dict[str, tuple[str, float, dict[str, Oracle]]] = {
    "kuhn": (
        "Kuhn poker",
        0.02,
        {
            "ppo": PPO(steps=200_000, num_lanes=512, horizon=8),
            "recurrent_ppo": RecurrentPPO(
                steps=300_000,
                num_lanes=256,
                horizon=8,
                sequence=8,
                minibatches=4,
                epochs=4,
                learning_rate=5e-3,
                gamma=1.0,
                gae_lambda=0.95,
                entropy_start=0.2,
                units=32,
                span=4,
            ),
            "dqn": DQN(
                steps=50_000,
                num_lanes=64,
                horizon=4,
                gradient_steps=32,
                minibatch=256,
                gamma=1.0,
                epsilon_end=0.2,
                target_rate=0.02,
                hidden=(64,),
            ),
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
            "ppo": PPO(steps=2_000_000, num_lanes=2048, horizon=8),
            "recurrent_ppo": RecurrentPPO(
                steps=1_600_000,
                num_lanes=512,
                horizon=8,
                sequence=8,
                minibatches=4,
                epochs=3,
                learning_rate=5e-3,
                gamma=1.0,
                gae_lambda=0.95,
                entropy_start=0.3,
                units=48,
                span=4,
                cell="gru",
            ),
            "dqn": DQN(
                steps=614_400,
                num_lanes=512,
                horizon=4,
                gradient_steps=40,
                minibatch=512,
                gamma=1.0,
                capacity=614_400,
                learning_starts=20_000,
                epsilon_end=0.1,
                target_rate=0.02,
            ),
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


TASKS: dict[str, Task] = {**CONTROL, **dict(responses()), **JOINT}
