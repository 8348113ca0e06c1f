"""Oracles: one algorithm a file, found by name in ORACLES."""

from marl.oracles.a2c import A2C
from marl.oracles.behavioural_cloning import BehaviouralCloning
from marl.oracles.dqn import DQN
from marl.oracles.exact import Exact
from marl.oracles.joint import JointTraining
from marl.oracles.nfsp import NFSP
from marl.oracles.oracle import Learner, Oracle, Progress
from marl.oracles.ppo import PPO
from marl.oracles.recurrent_ppo import RecurrentPPO
from marl.oracles.sac import SAC
from marl.oracles.sb3 import SB3

ORACLES: dict[str, type] = {
    "a2c": A2C,
    "behavioural_cloning": BehaviouralCloning,
    "dqn": DQN,
    "exact": Exact,
    "joint": JointTraining,
    "nfsp": NFSP,
    "ppo": PPO,
    "recurrent_ppo": RecurrentPPO,
    "sac": SAC,
    "sb3": SB3,
}

__all__ = [
    "A2C",
    "DQN",
    "NFSP",
    "ORACLES",
    "PPO",
    "SAC",
    "SB3",
    "BehaviouralCloning",
    "Exact",
    "JointTraining",
    "Learner",
    "Oracle",
    "Progress",
    "RecurrentPPO",
]
