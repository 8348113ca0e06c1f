"""`SB3Policy` as files of `marl.policy_files`: nothing of theirs is pickled."""

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from torch import Tensor

from games.game import Policy, factors
from marl.policy_files import LEARNT, Kind, Packed, Stored
from marl.sb3.build import Blueprint
from marl.sb3.policy import SB3Policy

SPACES = ("observation_space", "action_space")


def _pack(policy: SB3Policy) -> Packed:
    plan = policy.plan
    # Copies, for extractors of features may be one, and safetensors keeps no tensor twice.
    tensors = {name: part.clone(memory_format=torch.contiguous_format) for name, part in policy.tensors.items()}
    spaces = {}
    for name in SPACES:
        spaces[name], bounds = _pack_space(name, getattr(plan, name))
        tensors |= bounds
    about = {"algorithm": plan.algorithm, "network": plan.policy, "settings": plan.settings}
    return about | spaces | {"greedy": policy.greedy}, tensors


def _unpack(stored: Stored) -> Policy:
    tensors = dict(stored.tensors)
    seen, acts_in = (_unpack_space(stored, name, tensors) for name in SPACES)
    if not isinstance(seen, Box):
        raise ValueError(f"{stored.path}: observation_space should be bounds, got {seen}")
    for name, part in tensors.items():
        if not part.isfinite().all():
            raise ValueError(f"{stored.tensors_path}: {name} should be finite numbers, got some that are not")
    names = stored.value("algorithm", str), stored.value("network", str), stored.value("settings", dict)
    greedy = stored.value("greedy", bool)
    return stored.made("no such network", lambda: SB3Policy(Blueprint(*names, seen, acts_in), tensors, greedy))


def _pack_space(name: str, space: Space) -> Packed:
    if isinstance(space, Box):
        bounds = {f"{name}.{end}": torch.from_numpy(getattr(space, end).copy()) for end in ("low", "high")}
        return {"dtype": str(space.dtype)}, bounds
    return {"choices": list(factors(space)), "flat": space.shape == ()}, {}


def _unpack_space(stored: Stored, name: str, tensors: dict[str, Tensor]) -> Space:
    """The space, whose bounds are taken out of the tensors."""
    about: dict[str, Any] = stored.value(name, dict)
    try:
        if "choices" in about:
            return Discrete(*about["choices"]) if about["flat"] else MultiDiscrete(about["choices"])
        low, high = (tensors.pop(f"{name}.{end}").numpy() for end in ("low", "high"))
        return Box(low, high, dtype=np.dtype(about["dtype"]).type)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise ValueError(
            f"{stored.path}: {name} should be a space's choices, or bounds, got {about}: {error!r}"
        ) from error


LEARNT[SB3Policy] = Kind(_pack, _unpack)
