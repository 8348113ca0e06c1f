"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.exact import Exact
from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO
from marl.oracles.recurrent_ppo import RecurrentPPO

ORACLES: dict[str, type] = {"exact": Exact, "ppo": PPO, "recurrent_ppo": RecurrentPPO}

__all__ = ["ORACLES", "PPO", "Exact", "Learner", "Oracle", "Progress", "RecurrentPPO"]
