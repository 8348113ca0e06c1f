"""What others' learners reach under the same protocol: `python -m papers.oracles.peers --task ppo_cart_pole --seed 0`.

Stable-Baselines3 and sb3-contrib, each with the hyperparameters that rl-baselines3-zoo gives for the task
[DLR-RM/rl-baselines3-zoo, hyperparams/*.yml, MIT]. Flickering CartPole has none; it takes those of CartPoleNoVel-v1
(recurrent) and CartPole-v1 (without memory).
"""

import operator
import sys
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import tyro

from papers.oracles.flickering import Flickering
from papers.oracles.lines import THEIRS, Line, complete, known
from papers.oracles.protocol import EPISODES, FRESH, SEEDS, Watch, curve

PACKAGES = ("stable_baselines3", "sb3_contrib", "gymnasium", "torch", "numpy")


@dataclass(frozen=True)
class Peer:
    """A learner of Stable-Baselines3, the environment it learns in, and how."""

    algorithm: str
    env: str
    steps: int
    settings: dict[str, Any]
    num_envs: int = 1
    normalize: bool = False
    """Observations and returns by running means, as the zoo's `normalize: true`."""
    blank: float = 0.0
    """Probability of a blank observation."""
    network: dict[str, Any] = field(default_factory=dict)
    """policy_kwargs."""

    def make(self) -> gymnasium.Env:
        env = gymnasium.make(self.env)
        return Flickering(env, self.blank) if self.blank else env


def plain(setting: Any) -> Any:
    """A setting as the algorithm takes it: the zoo's "lin_0.2" falls from 0.2 to 0 as what remains goes from 1 to 0."""
    if isinstance(setting, str) and setting.startswith("lin_"):
        return partial(operator.mul, float(setting.removeprefix("lin_")))
    return setting


PPO_CART_POLE = {
    "n_steps": 32,
    "batch_size": 256,
    "gae_lambda": 0.8,
    "gamma": 0.98,
    "n_epochs": 20,
    "ent_coef": 0.0,
    "learning_rate": "lin_0.001",
    "clip_range": "lin_0.2",
}
PEERS = {
    "ppo_cart_pole": Peer("PPO", "CartPole-v1", 100_000, PPO_CART_POLE, num_envs=8),
    "dqn_cart_pole": Peer(
        "DQN",
        "CartPole-v1",
        50_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
        network={"net_arch": [256, 256]},
    ),
    "a2c_cart_pole": Peer("A2C", "CartPole-v1", 500_000, {"ent_coef": 0.0}, num_envs=8),
    "sac_pendulum": Peer("SAC", "Pendulum-v1", 20_000, {"learning_rate": 1e-3}),
    "sac_mountain_car_continuous": Peer(
        "SAC",
        "MountainCarContinuous-v0",
        50_000,
        {
            "learning_rate": 3e-4,
            "buffer_size": 50_000,
            "batch_size": 512,
            "ent_coef": 0.1,
            "train_freq": 32,
            "gradient_steps": 32,
            "gamma": 0.9999,
            "tau": 0.01,
            "learning_starts": 0,
            "use_sde": True,
        },
        network={"log_std_init": -3.67, "net_arch": [64, 64]},
    ),
    "recurrent_ppo_flickering": Peer(
        "RecurrentPPO",
        "CartPole-v1",
        1_000_000,
        PPO_CART_POLE,
        num_envs=8,
        normalize=True,
        blank=0.5,
        network={
            "ortho_init": False,
            "activation_fn": "ReLU",
            "lstm_hidden_size": 64,
            "enable_critic_lstm": True,
            "net_arch": {"pi": [64], "vf": [64]},
        },
    ),
    "ppo_flickering": Peer("PPO", "CartPole-v1", 1_000_000, PPO_CART_POLE, num_envs=8, blank=0.5),
}


def main(task: tuple[str, ...] = (), seed: tuple[int, ...] = SEEDS, results: Path = THEIRS) -> int:
    """Train Stable-Baselines3's learners, play the final policies, and append a line of JSON for each.

    Args:
        task: Which tasks, by default all.
        seed: Of the learners and of the environments they learn in; they are played in fresh ones.
        results: File the lines are appended to; what it already has is not run once more.
    """
    complete(results, known(task, PEERS), lambda name: seed, run)
    return 0


def run(task: str, seed: int, steps: int | None = None) -> Line:
    """The line of results: settings, returns of the final policy's episodes, learning curve, seconds, versions."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    peer = PEERS[task]
    steps = steps or peer.steps
    ended: list[tuple[int, float]] = []

    class Returns(BaseCallback):
        def _on_step(self) -> bool:
            infos = [info["episode"] for info in self.locals["infos"] if "episode" in info]
            ended.extend((self.num_timesteps, float(info["r"])) for info in infos)
            return True

    model, env = learner(peer, seed)
    with Watch() as watch:
        model.learn(steps, callback=Returns())
    fresh = played(peer, env, FRESH + seed)
    returns: Any
    lengths: Any
    returns, lengths = evaluate_policy(
        model, fresh, n_eval_episodes=EPISODES, deterministic=True, return_episode_rewards=True
    )
    return {
        "task": task,
        "learner": f"{type(model).__module__.partition('.')[0].replace('_', '-')} {peer.algorithm}",
        "seed": seed,
        "steps": int(model.num_timesteps),
        "mean": float(np.mean(returns)),
        "returns": [round(float(value), 4) for value in returns],
        "lengths": [int(length) for length in lengths],
        "wall_seconds": watch.wall,
        "cpu_seconds": watch.cpu,
        "curve": curve(ended, steps),
        "settings": {"num_envs": peer.num_envs, "normalize": peer.normalize, **peer.settings, **peer.network},
        "versions": {package: version(package) for package in PACKAGES},
    }


def learner(peer: Peer, seed: int) -> tuple[Any, Any]:
    """The learner and the vector of environments it learns in."""
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize
    from torch import nn

    env = make_vec_env(peer.make, n_envs=peer.num_envs, seed=seed)
    if peer.normalize:
        env = VecNormalize(env, gamma=peer.settings["gamma"])
    settings, network = {name: plain(value) for name, value in peer.settings.items()}, dict(peer.network)
    if "activation_fn" in network:
        network["activation_fn"] = getattr(nn, network["activation_fn"])
    policy = "MlpLstmPolicy" if peer.algorithm == "RecurrentPPO" else "MlpPolicy"
    kind = getattr(stable_baselines3, peer.algorithm, None) or getattr(sb3_contrib, peer.algorithm)
    return kind(policy, env, seed=seed, device="cpu", policy_kwargs=network or None, **settings), env


def played(peer: Peer, env: Any, seed: int) -> Any:
    """A fresh environment to play in, which normalises observations as the one learned in came to do."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    fresh = make_vec_env(peer.make, n_envs=1, seed=seed)
    if peer.normalize:
        fresh = VecNormalize(fresh, training=False, norm_reward=False)
        fresh.obs_rms = env.obs_rms
    return fresh


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
