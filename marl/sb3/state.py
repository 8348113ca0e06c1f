"""What an algorithm of Stable-Baselines3 needs to go on from where it is, in plain containers, arrays and tensors."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor

from games.lanes import tree_leaves

PLAIN = (bool, int, float, np.ndarray, Tensor, type(None))
PASSING = ("start_time",)
"""Attributes of algorithms that say when, not what."""


class Generators:
    """The process's generators of random numbers, which Stable-Baselines3 draws from, kept apart for one learner.

    While a block of `swapped` runs, they are the learner's own; nobody else's draws disturb them, nor they anybody's.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.own = self._states()

    @contextmanager
    def swapped(self) -> Iterator[None]:
        others = self._states()
        self._set(self.own)
        try:
            yield
        finally:
            self.own = self._states()
            self._set(others)

    def _states(self) -> dict[str, Any]:
        version, words, gauss = random.getstate()
        states = {
            "random": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
            "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
            "torch": torch.get_rng_state(),
        }
        return states | ({"cuda": torch.cuda.get_rng_state(self.device)} if self.device.type == "cuda" else {})

    def _set(self, states: dict[str, Any]) -> None:
        words = states["random"]
        random.setstate((words["version"], tuple(words["words"].tolist()), words["gauss"]))
        np.random.set_state(states["numpy"])  # noqa: NPY002
        torch.set_rng_state(torch.as_tensor(states["torch"]))
        if "cuda" in states:
            torch.cuda.set_rng_state(torch.as_tensor(states["cuda"]), self.device)


def state_of(model: BaseAlgorithm) -> dict[str, Any]:
    """Networks, optimisers, replay, counters and the space's generator; `load` takes them.

    What a rollout holds is forgotten by its end, and what is logged is not kept.
    """
    replay = getattr(model, "replay_buffer", None)
    return {
        "parameters": deepcopy(model.get_parameters()),
        "attributes": _attributes(model),
        "lstm": [part.clone() for part in tree_leaves(getattr(model, "_last_lstm_states", None))],
        "space": deepcopy(_space_generator(model).state),
        "replay": None if replay is None else _attributes(replay, rows=None if replay.full else replay.pos),
    }


def load(model: Any, state: dict[str, Any]) -> None:
    """Go on from the `state_of` an algorithm with equal arguments, in place."""
    model.set_parameters(deepcopy(state["parameters"]), exact_match=True)  # optimisers would go on in the state itself
    _load(model, state["attributes"])
    for part, saved in zip(tree_leaves(getattr(model, "_last_lstm_states", None)), state["lstm"], strict=True):
        part.copy_(torch.as_tensor(saved))
    _space_generator(model).state = state["space"]
    if state["replay"] is not None:
        _load(model.replay_buffer, state["replay"])


def _space_generator(model: BaseAlgorithm) -> Any:
    """The bit generator of the space of actions, from which exploring algorithms draw some."""
    return model.action_space.np_random.bit_generator


def _attributes(owner: Any, rows: int | None = None) -> dict[str, Any]:
    """Numbers, arrays (their first rows alone) and tensors that an object has, copied."""
    kept = {name: value for name, value in vars(owner).items() if isinstance(value, PLAIN) and name not in PASSING}
    for name, value in kept.items():
        if isinstance(value, Tensor):
            kept[name] = value.detach().clone()
        elif isinstance(value, np.ndarray):
            kept[name] = value[:rows].copy()
    return kept


def _load(owner: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        now = getattr(owner, name)
        if isinstance(now, Tensor):
            now.data.copy_(torch.as_tensor(value))  # optimisers may hold it
        elif isinstance(now, np.ndarray) and value is not None:
            now[: len(value)] = value  # a buffer may have been filled but in part
        else:
            setattr(owner, name, deepcopy(value))
