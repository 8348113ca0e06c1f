"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.exact import Exact
from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO
from marl.oracles.sac import SAC

ORACLES: dict[str, type] = {"exact": Exact, "ppo": PPO, "sac": SAC}

__all__ = ["ORACLES", "PPO", "SAC", "Exact", "Learner", "Oracle", "Progress"]
