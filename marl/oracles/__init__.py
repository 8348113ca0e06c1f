"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.dqn import DQN
from marl.oracles.exact import Exact
from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO

ORACLES: dict[str, type] = {"dqn": DQN, "exact": Exact, "ppo": PPO}

__all__ = ["DQN", "ORACLES", "PPO", "Exact", "Learner", "Oracle", "Progress"]
