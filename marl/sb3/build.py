"""Stable-Baselines3's objects from plain values: algorithms from settings, networks from blueprints."""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import LinearSchedule

from games.spelling import unknown
from marl.oracles.sb3 import ALGORITHMS, OURS, SB3
from marl.sb3.vec_env import VecEnvView

CLASSES = {
    "activation_fn": "torch.nn",
    "features_extractor_class": "stable_baselines3.common.torch_layers",
    "optimizer_class": "torch.optim",
}
"""Settings of networks that are classes, and the modules that have them."""

SCHEDULED = ("clip_range", "clip_range_vf", "delta_std", "learning_rate")
"""Settings that may fall linearly: "lin_0.001"."""


class Blueprint(NamedTuple):
    """All that a network is but its weights, as plain values and spaces."""

    algorithm: str
    policy: str
    settings: dict[str, Any]
    """Arguments of the network's class by name, classes by theirs; without those of its optimiser."""
    observation_space: Box
    action_space: Space


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    return getattr(import_module(ALGORITHMS[name].package), name)


def algorithm(oracle: SB3, view: VecEnvView, seed: int, device: str) -> BaseAlgorithm:
    """The oracle's algorithm, set up to learn from the view; draws from the process's generators.

    Its rates fall over the oracle's whole training, however little of it is learnt at a time; it logs to nowhere.
    Raises ValueError for settings that it does not have, or cannot use; and where it cannot learn in such spaces.
    """
    kind = algorithm_class(oracle.algorithm)
    known = signature(kind).parameters.keys() - OURS
    for name in oracle.settings:
        if name not in known:
            raise unknown(f"setting of {oracle.algorithm}", name, known)
    if oracle.network not in kind.policy_aliases:
        raise unknown(f"policy of {oracle.algorithm}", oracle.network, kind.policy_aliases)
    made = {name: _made(name, value, view) for name, value in oracle.settings.items()}
    if "Cnn" in oracle.network and view.observation_space.dtype != np.uint8:
        made["policy_kwargs"] = {"normalize_images": False} | made.get("policy_kwargs", {})  # pictures are in [0, 1]
    if "buffer_size" in known:  # or it takes the memory of a million transitions, however few there will be
        made.setdefault("buffer_size", min(1_000_000, oracle.total_steps))
    try:
        model = kind(oracle.network, view, seed=seed, device=device, **made)  # type: ignore[arg-type]
    except (AssertionError, NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(
            f"{oracle.algorithm} cannot learn to act in {view.action_space} from {view.observation_space} with "
            f"{oracle.settings}: {error}"
        ) from error
    follow = model._update_current_progress_remaining
    model._update_current_progress_remaining = (  # type: ignore[method-assign]
        lambda num_timesteps, total_timesteps: follow(num_timesteps, oracle.total_steps)
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


def blueprint(oracle: SB3, model: BaseAlgorithm) -> Blueprint:
    """Of the network that an algorithm learns with."""
    # Algorithms add numbers to what they were given, such as how many critics there are.
    numbers = {name: value for name, value in model.policy_kwargs.items() if isinstance(value, bool | int | float)}
    settings = numbers | oracle.settings.get("policy_kwargs", {})
    if model.use_sde:
        settings["use_sde"] = True
    settings = {name: value for name, value in settings.items() if not name.startswith("optimizer_")}
    assert isinstance(model.observation_space, Box)
    return Blueprint(oracle.algorithm, oracle.network, settings, model.observation_space, model.action_space)


def network(plan: Blueprint, tensors: Mapping[str, torch.Tensor]) -> BasePolicy:
    """The network with these weights, to be played with: it is where they are, and learns no more.

    Raises ValueError where plan and weights do not fit.
    """
    kind = algorithm_class(plan.algorithm).policy_aliases[plan.policy]
    given = {name: _made(name, value) for name, value in plan.settings.items()}
    if "lr_schedule" in signature(kind).parameters:
        given["lr_schedule"] = _no_learning
    try:
        with torch.random.fork_rng(devices=[]):  # it begins with weights drawn at random
            made = kind(plan.observation_space, plan.action_space, **given)
        made.load_state_dict(tensors)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"weights do not fit a {plan.policy} of {plan.algorithm} with {plan.settings}: {error}"
        ) from error
    device = next(iter(tensors.values())).device
    made.requires_grad_(False).set_training_mode(False)
    return made.to(device)


def _made(name: str, value: Any, view: VecEnvView | None = None) -> Any:
    """A setting as Stable-Baselines3 takes it."""
    if name == "policy_kwargs":
        return {part: _made(part, inner) for part, inner in value.items()}
    if name in CLASSES and isinstance(value, str):
        found = getattr(import_module(CLASSES[name]), value, None)
        if not isinstance(found, type):
            raise unknown(f"{name} of {CLASSES[name]}", value, dir(import_module(CLASSES[name])))
        return found
    if name in SCHEDULED and isinstance(value, str):
        kind, _, start = value.partition("_")
        try:
            return {"lin": lambda rate: LinearSchedule(rate, 0.0, 1.0)}[kind](float(start))
        except (KeyError, ValueError):
            raise ValueError(f"{name} is a number, or one that falls to 0 as in 'lin_0.001', got {value!r}") from None
    if name == "action_noise" and value is not None and view is not None:
        size = view.action_space.shape or ()
        return NormalActionNoise(np.zeros(size, np.float32), np.full(size, value, np.float32))
    return value


def _no_learning(progress_remaining: float) -> float:
    return 0.0
