"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.exact import Exact
from marl.oracles.joint import JointTraining
from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO

ORACLES: dict[str, type] = {"exact": Exact, "joint": JointTraining, "ppo": PPO}

__all__ = ["ORACLES", "PPO", "Exact", "JointTraining", "Learner", "Oracle", "Progress"]
