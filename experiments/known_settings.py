"""Settings that are known to work, by game; and what to begin with where none are."""

import re
from dataclasses import replace
from typing import Any

from marl.oracles import NFSP, PPO, SAC, RecurrentPPO

OURS: dict[str, Any] = {
    "ppo": PPO(steps=400_000, num_lanes=512, horizon=16, learning_rate=3e-3, gae_lambda=0.9, entropy_start=0.01),
    "gap_episodes": 4096,
}
"""For games whose rules are pure functions: many lanes cost little."""

STEPPED: dict[str, Any] = {
    "iterations": 3,
    "episodes": 64,
    "ppo": PPO(
        steps=100_000,
        num_lanes=32,
        horizon=64,
        epochs=4,
        learning_rate=2e-3,
        gae_lambda=0.95,
        entropy_start=0.01,
        minibatches=4,
    ),
    "recurrent_ppo": RecurrentPPO(steps=100_000, num_lanes=32, horizon=64, entropy_start=0.01),
    "gap_episodes": 200,
    "duel_episodes": 400,
}
"""For environments that are stepped one by one: steps are dear."""

KNOWN: dict[str, dict[str, Any]] = {
    "cart_pole": {
        "ppo": PPO(
            steps=100_000,
            num_lanes=64,
            horizon=32,
            epochs=4,
            learning_rate=2e-3,
            gamma=0.98,
            gae_lambda=0.95,
            entropy_start=0.0,
        ),
    },
    "mountain_car_continuous": {
        "sac": SAC(
            steps=50_000,
            gradient_steps=16,
            learning_rate=1e-3,
            n_step=10,
            learning_starts=5_000,
            hold=20,
            temperature=0.1,
        ),
    },
    "leduc_poker": {
        "nfsp": NFSP(
            dqn=replace(
                NFSP().dqn,
                steps=3_000_000,
                num_lanes=256,
                horizon=8,
                gradient_steps=8,
                minibatch=256,
                capacity=32_768,
                epsilon_start=1.0,  # a larger game takes more exploration
                epsilon_end=0.1,
                epsilon_share=0.9,
                hidden=(128,),
            ),
            hidden=(128,),
        ),
    },
    "connect_four": {
        "iterations": 1,
        "meta_solver": "latest",  # against who always wins all policies tie, and equilibria of the table may be uniform
        "ppo": replace(STEPPED["ppo"], steps=400_000, greedy=False),
        "gap_steps": 0,
        "gap_episodes": 100,
        "duel_episodes": 1000,
    },
    "pong": {
        "ppo": replace(OURS["ppo"], steps=1_500_000, gamma=0.97, gae_lambda=0.95),
        "gap_steps": 0,
        "score_against": ("uniform", "follow"),
    },
    "signaling": {
        "iterations": 8,
        "meta_solver": "max_welfare_cce",
        "episodes": 1024,
        "warm_start": False,  # fresh networks find other codes
        "ppo": replace(
            OURS["ppo"],
            steps=16_384,
            num_lanes=128,
            horizon=8,
            epochs=2,
            minibatches=4,
            learning_rate=4e-3,
            entropy_start=0.1,
            entropy_end=0.05,
            hidden=(32,),
        ),
        "gap_steps": 0,
        "gap_episodes": 1000,
    },
    "simple_tag": {
        "iterations": 2,
        "episodes": 32,
        "ppo": replace(STEPPED["ppo"], steps=65_536, gamma=0.95),
        "gap_steps": 0,
        "gap_episodes": 100,
        "teams": ("0,1,2", "3"),  # those who chase, and who runs away
    },
}
"""By name, without package and version: what differs from the above."""


def settings_of(game: str) -> dict[str, Any]:
    """Options of `experiments.psro` for a game by its name and parameters."""
    from games import GAMES
    from games.openspiel import PREFIX

    name = game.partition("(")[0]
    kind = OURS if name in GAMES or name.startswith(PREFIX) else STEPPED
    known = re.sub(r"_v\d+$", "", re.split(r"[./:]", name)[-1])
    return kind | KNOWN.get(known, {})
