"""Training steps per second of PPO on CartPole beside Stable-Baselines3's and rlox's, and of a whole team at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch

from counterplay.bench.ppo import bare_passes
from counterplay.bench.row import Row
from games import make_game
from games.lanes import GameLanes
from games.play import play
from marl.oracles import PPO, JointTraining
from marl.oracles.ppo_learner import PPOLearner

OURS = PPO(
    steps=100_000,
    num_lanes=256,
    horizon=16,
    epochs=4,
    minibatches=4,
    learning_rate=8e-3,
    gamma=0.99,
    gae_lambda=0.95,
)
"""64 x 64, as all of them."""
SHAPES = ((8, 128), (64, 32))
"""Environments and steps of the peers' rollouts: the faster is told."""
PEER_MINIBATCH, PEER_RATE = 256, 3e-3
"""With which they learn the task in as many steps and epochs."""
EPISODES = 100
SEEDS = (0, 1, 2)
ROUNDS = 8
TEAM = JointTraining(PPO(num_lanes=1024, horizon=8, gae_lambda=0.5), "shared", team_share=1.0)


class Learnt(NamedTuple):
    """Trainings, and what their greedy policies earn."""

    steps: float
    """A CPU second, of the fastest."""
    earns: float
    """On average over SEEDS."""


def rows() -> Iterator[Row]:
    """CPU seconds of one core; all learners train for the same number of steps, ours without its shares first."""
    torch.set_num_threads(1)
    ours = _over_seeds(_ours)
    peers = {"Stable-Baselines3": _stable_baselines3, "rlox": _rlox}
    for name, train in peers.items():
        peer = max((_over_seeds(train, *shape) for shape in SHAPES), key=lambda learnt: learnt.steps)
        note = f"earns {ours.earns:.0f}, the peer {peer.earns:.0f} after {OURS.total_steps:,} steps"
        yield Row("PPO on cart_pole", ours.steps, "steps/s", name, peer.steps, ours.steps / peer.steps, ">= 10", note)
    learner = _learner()
    learner.update()
    bare = _best(partial(_seconds, bare_passes(learner, written_out=True)))
    ceiling = OURS.batch / bare
    share = ours.steps / ceiling
    yield Row("  the same", ours.steps, "steps/s", "its bare networks", ceiling, share, "", _shares(_learner()))
    yield _team()


def _over_seeds(train: Callable[..., Learnt], *shape: int) -> Learnt:
    steps, earns = zip(*(train(seed, *shape) for seed in SEEDS), strict=True)
    return Learnt(max(steps), float(np.mean(earns)))


def _learner(seed: int = 0) -> PPOLearner:
    return PPOLearner(OURS, GameLanes(make_game("cart_pole"), OURS.num_lanes), [0], seed, "cpu", {})


def _ours(seed: int) -> Learnt:
    learner, start = _learner(seed), process_time()
    while not learner.finished:
        learner.update()
    seconds = process_time() - start
    return Learnt(OURS.total_steps / seconds, _earned(learner.policies[0]))


def _stable_baselines3(seed: int, envs: int, steps: int) -> Learnt:
    from stable_baselines3 import PPO as Theirs
    from stable_baselines3.common.env_util import make_vec_env

    model = Theirs(
        "MlpPolicy",
        make_vec_env("CartPole-v1", envs, seed=seed),
        n_steps=steps,
        batch_size=PEER_MINIBATCH,
        n_epochs=OURS.epochs,
        learning_rate=lambda left: PEER_RATE * left,
        gamma=OURS.gamma,
        gae_lambda=OURS.gae_lambda,
        seed=seed,
        device="cpu",
    )
    seconds = _seconds(lambda: model.learn(OURS.total_steps))
    earns = _earned(Predicts(lambda seen: model.predict(seen, deterministic=True)[0]))
    return Learnt(OURS.total_steps / seconds, earns)


def _rlox(seed: int, envs: int, steps: int) -> Learnt:
    from rlox.algorithms.ppo import PPO as Theirs

    torch.manual_seed(seed)  # of its networks, which its own seed does not reach
    model = Theirs(
        "CartPole-v1",
        n_envs=envs,
        seed=seed,
        n_steps=steps,
        batch_size=PEER_MINIBATCH,
        n_epochs=OURS.epochs,
        learning_rate=PEER_RATE,
        gamma=OURS.gamma,
        gae_lambda=OURS.gae_lambda,
        ent_coef=0.0,
    )
    seconds = _seconds(lambda: model.train(OURS.total_steps))
    return Learnt(OURS.total_steps / seconds, _earned(Predicts(lambda seen: model.predict(seen).numpy())))


@dataclass(frozen=True)
class Predicts:
    """Plays somebody's function of observations."""

    function: Callable[[np.ndarray], np.ndarray]
    noise_size = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Any, legal: Any, memory: None, noise: Any) -> tuple[Any, None]:
        return self.function(observation).astype(np.int64), None


def _earned(policy: Any) -> float:
    """Mean return of a policy's fresh episodes."""
    return float(play(make_game("cart_pole"), [[policy]], EPISODES, 1, ["earned"]).returns.mean())


def _shares(learner: PPOLearner) -> str:
    """Where the time of some updates goes: the environment, inference, learning, and what holds them together."""
    trainee, lanes, spent = learner.trainees[0], learner.lanes, dict[str, float]()
    for part, thing, names in (
        ("environment", lanes, ("step", "observe", "final_observations", "noise", "reset")),
        ("inference", trainee, ("act",)),
        ("learning", trainee, ("improve",)),
    ):
        for name in names:
            setattr(thing, name, _timed(getattr(thing, name), spent, part))
    whole = _seconds(lambda: [learner.update() for _ in range(min(20, OURS.updates))])
    told = [f"{part} {seconds / whole:.0%}" for part, seconds in spent.items()]
    return ", ".join([*told, f"the rest {1 - sum(spent.values()) / whole:.0%}"])


def _timed(function: Callable, spent: dict[str, float], part: str) -> Callable:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] = spent.get(part, 0.0) + process_time() - start

    return timed


def _team() -> Row:
    """A step of the team is one of a lane, in which all four learn."""
    game = make_game("bucket_brigade", scenario="minimal_specialization")
    seats = range(len(game.agents))
    learner = TEAM.learner(GameLanes(game, TEAM.num_lanes), seats, 0)
    steps = TEAM.ppo.batch / _best(partial(_seconds, learner.update))
    name = f"joint PPO on bucket_brigade, {len(seats)} learn"
    return Row(name, steps, "team steps/s", "published, at least", 800.0, steps / 800.0, ">= 10")


def _seconds(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start


def _best(measured: Callable[[], float]) -> float:
    """Of some rounds: other load only ever slows them."""
    return min(measured() for _ in range(ROUNDS))
