"""Policies as files: JSON for what they are, safetensors for what they learnt; a round trip plays the same actions."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from games.bucket_brigade.genomes import FullGenome, Genome
from games.bucket_brigade.scripted import AlwaysRest, Firefighter, Specialist, Spread
from games.exact import TabularPolicy
from games.exact.strategies import MASS_TOLERANCE
from games.game import Policy
from games.policies import Uniform, UniformBox
from games.pong.scripted import Follow
from marl.cells import CELLS
from marl.gaussian import GaussianPolicy
from marl.networks import Layers
from marl.policies import NeuralPolicy
from marl.recurrent import RecurrentPolicy

FORMAT = 1
SCRIPTED: dict[str, type] = {
    scripted.__name__: scripted
    for scripted in (Uniform, UniformBox, AlwaysRest, Firefighter, Follow, FullGenome, Genome, Specialist, Spread)
}
"""Policies that are dataclasses of plain values, by class name: what `load_policy` may build."""


class Stored:
    """A policy's two files, read: what is missing or wrong in them is a ValueError that names the file and the key."""

    def __init__(self, stem: str | PathLike):
        self.path, self.tensors_path = _path(stem, ".json"), _path(stem, ".safetensors")
        try:
            self.about = json.loads(self.path.read_text())
        except ValueError as error:
            raise ValueError(f"{self.path} is not JSON: {error}") from error
        self._tensors: dict[str, Tensor] | None = None

    def value(self, key: str, kind: type) -> Any:
        """What the JSON holds under a key."""
        if not isinstance(self.about, dict) or not isinstance(self.about.get(key), kind):
            got = self.about.get(key, "nothing") if isinstance(self.about, dict) else self.about
            raise ValueError(f"{self.path}: {key} should be of type {kind.__name__}, got {got!r}")
        return self.about[key]

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        """A tensor of finite numbers."""
        found = self.tensors.get(name)
        if found is None or (tuple(found.shape), found.dtype) != (shape, dtype):
            got = "nothing" if found is None else f"shape {tuple(found.shape)} of {found.dtype}"
            raise ValueError(f"{self.tensors_path}: {name} should have shape {shape} of {dtype}, got {got}")
        if not found.isfinite().all():
            raise ValueError(f"{self.tensors_path}: {name} should be finite numbers, got some that are not")
        return found

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """All that was learnt, by name."""
        if self._tensors is None:
            try:
                self._tensors = load_file(self.tensors_path)
            except SafetensorError as error:
                raise ValueError(f"{self.tensors_path} is not a safetensors file: {error}") from error
        return self._tensors

    def layers(self) -> Layers:
        """Of a perceptron, with convolutions before it or not; see `packed_layers`."""
        sizes = self.sizes(least=2)
        return self.numbered([*self.filters(), *((height, width) for width, height in pairwise(sizes))])

    def filters(self) -> list[tuple[int, ...]]:
        """Shapes [O, C, k, k] of convolutions, if there are any."""
        shapes = self.value("convolutions", list) if "convolutions" in self.about else []
        for shape in shapes:
            if not isinstance(shape, list) or len(shape) != 4 or not all(type(n) is int and n > 0 for n in shape):
                raise ValueError(f"{self.path}: convolutions should be shapes [O, C, k, k], got {shape}")
        return [tuple(shape) for shape in shapes]

    def sizes(self, least: int) -> list[int]:
        """Of layers one after the other, that of the first one's input included."""
        sizes = self.value("layers", list)
        if len(sizes) < least or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(f"{self.path}: layers should be at least {least} sizes, got {sizes}")
        return sizes

    def numbered(self, shapes: Sequence[tuple[int, ...]]) -> Layers:
        """Layers of weights of these shapes, by number."""
        return [
            (self.tensor(f"{index}.weight", shape), self.tensor(f"{index}.bias", shape[:1]))
            for index, shape in enumerate(shapes)
        ]

    def part(self, key: str) -> "Stored":
        """What is kept under a key of the JSON, with the tensors of that prefix, as if it had files of its own."""
        part = copy(self)
        part.about = self.value(key, dict)
        prefix = f"{key}."
        part._tensors = {
            name.removeprefix(prefix): found for name, found in self.tensors.items() if name.startswith(prefix)
        }
        return part

    def made(self, complaint: str, kind: Callable[..., Policy], *values: Any) -> Policy:
        """The policy of such values; that they make none is said with the complaint."""
        try:
            return kind(*values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.path}: {complaint}: {error}") from error


Packed = tuple[dict[str, Any], dict[str, Tensor]]  # what JSON keeps, and what safetensors keeps


class Kind(NamedTuple):
    """How policies of a class that learnt something are taken apart for their files, and put together again."""

    pack: Callable[[Any], Packed]
    unpack: Callable[[Stored], Policy]


def packed_layers(layers: Layers) -> Packed:
    """A perceptron's sizes under "layers", shapes under "convolutions" if it has some before them, weights by number.

    `Stored.layers` reads that.
    """
    tensors = {}
    for index, (weight, bias) in enumerate(layers):
        tensors[f"{index}.weight"], tensors[f"{index}.bias"] = weight.contiguous(), bias.contiguous()
    filters = [list(weight.shape) for weight, _ in layers if weight.ndim == 4]
    dense = layers[len(filters) :]
    about: dict[str, Any] = {"layers": [dense[0][0].shape[1], *(len(bias) for _, bias in dense)]}
    return about | ({"convolutions": filters} if filters else {}), tensors


def _pack_neural(policy: NeuralPolicy) -> Packed:
    about, tensors = packed_layers(policy.layers)
    return about | {"choices": policy.choices, "flat": policy.flat, "greedy": policy.greedy}, tensors


def _unpack_neural(stored: Stored) -> Policy:
    choices, flat, greedy = stored.value("choices", list), stored.value("flat", bool), stored.value("greedy", bool)
    if not choices or not all(type(number) is int and number > 0 for number in choices):
        raise ValueError(f"{stored.path}: choices should be whole numbers > 0, one a factor, got {choices}")
    return stored.made("choices do not fit", NeuralPolicy, stored.layers(), tuple(choices), flat, greedy)


def _pack_gaussian(policy: GaussianPolicy) -> Packed:
    about, tensors = packed_layers(policy.layers)
    return about | {"low": policy.low.tolist(), "high": policy.high.tolist(), "greedy": policy.greedy}, tensors


def _unpack_gaussian(stored: Stored) -> Policy:
    low, high, greedy = stored.value("low", list), stored.value("high", list), stored.value("greedy", bool)
    return stored.made("low and high do not fit", GaussianPolicy, stored.layers(), low, high, greedy)


def _pack_recurrent(policy: RecurrentPolicy) -> Packed:
    about, tensors = packed_layers(policy.core)
    head, head_tensors = LEARNT[type(policy.head)].pack(policy.head)
    about |= {"cell": policy.cell, "layers": about["layers"][:-2], "units": policy.units}
    about["head"] = {"policy": type(policy.head).__name__} | head
    return about, tensors | {f"head.{name}": found for name, found in head_tensors.items()}


def _unpack_recurrent(stored: Stored) -> Policy:
    cell, units, sizes = stored.value("cell", str), stored.value("units", int), stored.sizes(least=1)
    if cell not in CELLS:
        raise ValueError(f"{stored.path}: cell should be one of {', '.join(CELLS)}, got {cell!r}")
    gates = CELLS[cell].gates * units
    torso = [*stored.filters(), *((height, width) for width, height in pairwise(sizes))]
    core = stored.numbered([*torso, (gates, sizes[-1]), (gates, units)])
    return stored.made("head does not fit", RecurrentPolicy, core, _unpacked(stored.part("head")))


def _pack_tabular(policy: TabularPolicy) -> Packed:
    (states, features), actions = policy.rows.shape, policy.table.shape[1]
    about = {"states": states, "features": features, "actions": actions}
    return about, {part: torch.from_numpy(getattr(policy, part)) for part in ("rows", "table")}


def _unpack_tabular(stored: Stored) -> Policy:
    states, features, actions = (stored.value(size, int) for size in ("states", "features", "actions"))
    rows = stored.tensor("rows", (states, features)).numpy()
    table = stored.tensor("table", (states, actions), torch.float64).numpy()
    if not ((table >= 0).all() and (np.abs(table.sum(axis=1) - 1) <= MASS_TOLERANCE).all()):
        raise ValueError(f"{stored.tensors_path}: every row of table should be non-negative and sum to 1")
    return TabularPolicy(rows, table)


LEARNT: dict[type, Kind] = {
    NeuralPolicy: Kind(_pack_neural, _unpack_neural),
    GaussianPolicy: Kind(_pack_gaussian, _unpack_gaussian),
    RecurrentPolicy: Kind(_pack_recurrent, _unpack_recurrent),
    TabularPolicy: Kind(_pack_tabular, _unpack_tabular),
}
"""Policies with tensors to keep, by class: what `load_policy` may build besides."""

ELSEWHERE = {"SB3Policy": "marl.sb3.files"}
"""Modules that add a class to LEARNT when they are imported, by its name: they need packages not everybody has."""


def save_policy(policy: Policy, stem: str | PathLike) -> None:
    """Write `stem`.json, and `stem`.safetensors for a policy that learnt.

    Raises ValueError for a policy of a class that is neither in LEARNT nor in SCRIPTED.
    """
    named, tensors = _packed(policy)
    if type(policy) in LEARNT:
        save_file(tensors, _path(stem, ".safetensors"))
    _path(stem, ".json").write_text(json.dumps(named) + "\n")


def same_files(one: Policy, other: Policy) -> bool:
    """Whether two policies are of one class, with equal parameters, bit for bit. Raises ValueError as `save_policy`."""
    if type(one) is not type(other):
        return False
    (about, tensors), (others_about, others) = _packed(one), _packed(other)
    alike = about == others_about and tensors.keys() == others.keys()
    return alike and all(torch.equal(tensors[name], others[name]) for name in tensors)


def _packed(policy: Policy) -> Packed:
    check_savable(policy)
    tensors: dict[str, Tensor] = {}
    if type(policy) in LEARNT:
        about, tensors = LEARNT[type(policy)].pack(policy)
    else:
        assert is_dataclass(policy)
        about = {"fields": {entry.name: getattr(policy, entry.name) for entry in fields(policy) if entry.init}}
    return {"format": FORMAT, "policy": type(policy).__name__} | about, tensors


def check_savable(policy: Policy) -> None:
    """Raises ValueError for a policy that `save_policy` cannot write."""
    _import(type(policy).__name__)
    if type(policy) not in LEARNT and SCRIPTED.get(type(policy).__name__) is not type(policy):
        raise ValueError(f"can save {', '.join(_known())}, got {policy!r}: add its class to SCRIPTED, or to LEARNT")


def load_policy(stem: str | PathLike) -> Policy:
    """The policy that `save_policy` wrote.

    Raises ValueError naming the file, and the key where one is missing or wrong; FileNotFoundError without files;
    ModuleNotFoundError for a policy of a package that is not installed.
    """
    stored = Stored(stem)
    if stored.value("format", int) != FORMAT:
        raise ValueError(f"{stored.path}: format should be {FORMAT}, got {stored.about['format']}")
    return _unpacked(stored)


def _unpacked(stored: Stored) -> Policy:
    name = stored.value("policy", str)
    _import(name)
    for kind, (_, unpack) in LEARNT.items():
        if kind.__name__ == name:
            return unpack(stored)
    if name not in SCRIPTED:
        raise ValueError(f"{stored.path}: policy should be one of {', '.join(_known())}, got {name!r}")
    values = {key: _as_tuple(value) for key, value in stored.value("fields", dict).items()}
    return stored.made(f"fields do not make a {name}", lambda: SCRIPTED[name](**values))


def _import(name: str) -> None:
    if name in ELSEWHERE:
        import_module(ELSEWHERE[name])


def _known() -> list[str]:
    return [*dict.fromkeys([*(kind.__name__ for kind in LEARNT), *ELSEWHERE]), *sorted(SCRIPTED)]


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value


def _path(stem: str | PathLike, suffix: str) -> Path:
    return Path(fspath(stem) + suffix)
