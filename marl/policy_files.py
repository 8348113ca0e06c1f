"""Policies as files: JSON for what they are, safetensors for what they learnt; a round trip plays the same actions."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, from_numpy

from games.bucket_brigade.genomes import FullGenome, Genome
from games.bucket_brigade.scripted import AlwaysRest, Firefighter, Specialist, Spread
from games.exact import TabularPolicy
from games.exact.strategies import MASS_TOLERANCE
from games.game import Policy
from games.policies import Uniform
from games.pong.scripted import Follow
from marl.policies import NeuralPolicy

FORMAT = 1
SCRIPTED: dict[str, type] = {
    scripted.__name__: scripted
    for scripted in (Uniform, AlwaysRest, Firefighter, Follow, FullGenome, Genome, Specialist, Spread)
}
"""Policies that are dataclasses of plain values, by class name: what `load_policy` may build."""


def save_policy(policy: Policy, stem: str | PathLike) -> None:
    """Write `stem`.json, and `stem`.safetensors for a neural or tabular policy.

    Raises ValueError for a policy that is neither of these nor of a class in SCRIPTED.
    """
    check_savable(policy)
    name = type(policy).__name__
    if isinstance(policy, NeuralPolicy):
        tensors = {}
        for index, (weight, bias) in enumerate(policy.layers):
            tensors[f"{index}.weight"], tensors[f"{index}.bias"] = weight.contiguous(), bias.contiguous()
        save_file(tensors, _path(stem, ".safetensors"))
        sizes = [policy.features, *(len(bias) for _, bias in policy.layers)]
        about = {"layers": sizes, "choices": policy.choices, "flat": policy.flat, "greedy": policy.greedy}
    elif isinstance(policy, TabularPolicy):
        save_file({part: from_numpy(getattr(policy, part)) for part in ("rows", "table")}, _path(stem, ".safetensors"))
        (states, features), actions = policy.rows.shape, policy.table.shape[1]
        about = {"states": states, "features": features, "actions": actions}
    else:
        assert is_dataclass(policy)
        about = {"fields": {entry.name: getattr(policy, entry.name) for entry in fields(policy) if entry.init}}
    _path(stem, ".json").write_text(json.dumps({"format": FORMAT, "policy": name} | about) + "\n")


def check_savable(policy: Policy) -> None:
    """Raises ValueError for a policy that `save_policy` cannot write."""
    if not isinstance(policy, NeuralPolicy | TabularPolicy) and SCRIPTED.get(type(policy).__name__) is not type(policy):
        raise ValueError(
            f"can save neural and tabular policies and {sorted(SCRIPTED)}, got {policy!r}: add its class to SCRIPTED"
        )


def load_policy(stem: str | PathLike) -> Policy:
    """The policy that `save_policy` wrote.

    Raises ValueError naming the file, and the key where one is missing or wrong; FileNotFoundError without files.
    """
    path = _path(stem, ".json")
    try:
        about = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if _entry(path, about, "format", int) != FORMAT:
        raise ValueError(f"{path}: format should be {FORMAT}, got {about['format']}")
    name = _entry(path, about, "policy", str)
    if name == NeuralPolicy.__name__:
        return _neural(path, about, _path(stem, ".safetensors"))
    if name == TabularPolicy.__name__:
        return _tabular(path, about, _path(stem, ".safetensors"))
    if name not in SCRIPTED:
        known = [NeuralPolicy.__name__, TabularPolicy.__name__, *sorted(SCRIPTED)]
        raise ValueError(f"{path}: policy should be one of {', '.join(known)}, got {name!r}")
    values = {key: _as_tuple(value) for key, value in _entry(path, about, "fields", dict).items()}
    try:
        return SCRIPTED[name](**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: fields do not make a {name}: {error}") from error


def _neural(path: Path, about: dict, weights_path: Path) -> NeuralPolicy:
    sizes, choices = _entry(path, about, "layers", list), _entry(path, about, "choices", list)
    flat, greedy = _entry(path, about, "flat", bool), _entry(path, about, "greedy", bool)
    tensors = _tensors(weights_path)
    if len(sizes) < 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(f"{path}: layers should be at least two sizes, got {sizes}")
    layers = []
    for index, (width, height) in enumerate(pairwise(sizes)):
        for part, shape in (("weight", (height, width)), ("bias", (height,))):
            _shaped(weights_path, tensors, f"{index}.{part}", shape)
        layers.append((tensors[f"{index}.weight"], tensors[f"{index}.bias"]))
    try:
        return NeuralPolicy(layers, tuple(choices), flat, greedy)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: choices do not fit: {error}") from error


def _tabular(path: Path, about: dict, table_path: Path) -> TabularPolicy:
    states, features, actions = (_entry(path, about, size, int) for size in ("states", "features", "actions"))
    tensors = _tensors(table_path)
    rows = _shaped(table_path, tensors, "rows", (states, features)).numpy()
    table = _shaped(table_path, tensors, "table", (states, actions)).numpy()
    if not ((table >= 0).all() and (np.abs(table.sum(axis=1) - 1) <= MASS_TOLERANCE).all()):
        raise ValueError(f"{table_path}: every row of table should be non-negative and sum to 1")
    return TabularPolicy(rows, table)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error


def _shaped(path: Path, tensors: Mapping[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    found = tensors.get(name)
    if found is None or tuple(found.shape) != shape:
        got = "nothing" if found is None else f"shape {tuple(found.shape)}"
        raise ValueError(f"{path}: {name} should have shape {shape}, got {got}")
    return found


def _entry(path: Path, about: Any, key: str, kind: type) -> Any:
    if not isinstance(about, dict) or not isinstance(about.get(key), kind):
        got = about.get(key, "nothing") if isinstance(about, dict) else about
        raise ValueError(f"{path}: {key} should be of type {kind.__name__}, got {got!r}")
    return about[key]


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value


def _path(stem: str | PathLike, suffix: str) -> Path:
    return Path(fspath(stem) + suffix)
