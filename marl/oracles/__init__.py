"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO

ORACLES: dict[str, type] = {"ppo": PPO}

__all__ = ["ORACLES", "PPO", "Learner", "Oracle", "Progress"]
