"""States of learners as files: a skeleton in JSON, arrays and tensors in safetensors; nothing is ever unpickled.

What `Learner.state_dict` gives - dicts, lists, tuples, text, numbers, None, NumPy arrays and tensors, in one another -
comes back with equal values, kinds, dtypes and memory layouts; named tuples come back as tuples, tensors on the CPU.

state.json             the skeleton: text, numbers, None and lists as they are; all else as an object that begins with
                       its kind: {"dict": {...}}, {"tuple": [...]}, {"tensor": "/actor/0"}, {"float": "7ff0..."}
state.safetensors      every array and tensor, named by its way through the skeleton (a JSON pointer)
manifest.json          the sha256 of both
"""

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from marl.atomic import BrokenCheckpoint, read_json, verify, whole_folder, write_atomic, write_parts

FORMAT = 1
SKELETON, ARRAYS = "state.json", "state.safetensors"
CODES = {
    **{torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"},
    **{torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8"},
    **{torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL"},
}
"""What safetensors calls a dtype; others are kept as bytes, and named in the skeleton."""
NUMPY_CODES = {
    np.dtype(str(dtype).removeprefix("torch.")): code for dtype, code in CODES.items() if dtype != torch.bfloat16
}
MAPPED = 2**20
"""Bytes from which on an array is not read but mapped: it shares the file's memory until it is written to."""
LINE = 64
"""Bytes whose multiple a file's data begin at."""
FAR = 2**63
"""Whole numbers from which on are not left to the JSON readers of others."""


class Part(NamedTuple):
    """An array or tensor on its way to a file."""

    code: str  # safetensors' dtype
    shape: tuple[int, ...]
    alignment: int  # bytes
    size: int  # bytes
    data: Callable[[], np.ndarray]  # the bytes; asked for one part after the other, for they may come from a GPU


def save_state(folder: Path, state: Any, files: Mapping[str, bytes] | None = None) -> None:
    """Write a state, and `files` beside it, into a folder that is there whole or not at all.

    What is in the CPU's memory is written from where it is, without a copy if it is dense. Raises ValueError for what
    is no plain container, array or tensor, naming it by its keys, and OSError where the disk refuses, or the folder is
    there already.

    >>> from tempfile import TemporaryDirectory
    >>> state = {"steps": 8, "layers": (np.ones(2, np.float32), torch.zeros(1, dtype=torch.bfloat16)), 0: float("nan")}
    >>> with TemporaryDirectory() as folder:
    ...     save_state(Path(folder) / "state", state)
    ...     load_state(Path(folder) / "state")
    {'steps': 8, 'layers': (array([1., 1.], dtype=float32), tensor([0.], dtype=torch.bfloat16)), 0: nan}
    """
    parts: dict[str, Part] = {}
    skeleton = {"format": FORMAT, "state": _encoded(state, "", parts)}
    with whole_folder(folder) as path:
        write_parts(path / ARRAYS, _safetensors(parts))
        write_atomic(path / SKELETON, (json.dumps(skeleton, allow_nan=False) + "\n").encode())
        for name, data in (files or {}).items():
            write_atomic(path / name, data)


def load_state(folder: Path) -> Any:
    """The state that `save_state` wrote. The folder may be removed even while arrays are mapped from it.

    Raises BrokenCheckpoint, naming file and key, for files that are missing or not as they were written.
    """
    verify(folder)
    path = folder / SKELETON
    skeleton = read_json(path)
    if not isinstance(skeleton, dict) or skeleton.get("format") != FORMAT or "state" not in skeleton:
        raise BrokenCheckpoint(f"{path} is no state of format {FORMAT}: use the version of counterplay that wrote it")
    try:
        tensors = load_file(folder / ARRAYS)
    except (SafetensorError, OSError) as error:
        raise BrokenCheckpoint(f"{folder / ARRAYS} is not readable safetensors ({error})") from error
    return _Reader(path, tensors).decoded(skeleton["state"], "")


def _encoded(value: Any, key: str, parts: dict[str, Part]) -> Any:
    """The value in JSON; its arrays become `parts` by their keys."""
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return _kept(value, key, parts)
    if isinstance(value, int):
        return int(value) if -FAR <= value < FAR else {"int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if isinstance(value, list | tuple):
        items = [_encoded(item, f"{key}/{i}", parts) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        if all(type(name) is str for name in value):
            return {"dict": {name: _encoded(item, _below(key, name), parts) for name, item in value.items()}}
        pairs = [[name, item] for name, item in value.items()]
        return {"items": [_encoded(pair, f"{key}/{i}", parts) for i, pair in enumerate(pairs)]}
    raise _unsavable(value, key)


def _below(key: str, name: str) -> str:
    """A JSON pointer [RFC 6901] one step longer: no two values have the same."""
    return f"{key}/" + name.replace("~", "~0").replace("/", "~1")


def _unsavable(value: Any, key: str) -> ValueError:
    kind = f"{type(value).__name__} of {value.dtype}" if hasattr(value, "dtype") else type(value).__name__
    return ValueError(
        f"{key or 'the state'} is a {kind}, which cannot be saved: states are made of dict, list, tuple, str, int, "
        "float, bool, None, and of NumPy arrays and dense tensors of plain numbers or text"
    )


def _kept(value: Any, key: str, parts: dict[str, Part]) -> dict[str, Any]:
    """What the skeleton says of an array, which becomes a part.

    Axes are written in the order of the memory, which may decide the last bit of what is computed with them.
    """
    array: Any
    if isinstance(value, Tensor):
        kind, array = "tensor", value.detach()
        plain = array.layout == torch.strided and not array.is_quantized
        code, dtype = CODES.get(array.dtype), str(array.dtype).removeprefix("torch.")
        alignment = array.element_size()
    else:
        kind, array = ("array", value) if isinstance(value, np.ndarray) else ("scalar", np.asarray(value))
        plain = array.dtype.kind not in "OV" and type(array) in (np.ndarray, np.memmap)
        code, dtype = NUMPY_CODES.get(array.dtype), array.dtype.str
        alignment = array.dtype.alignment
    if not plain:
        raise _unsavable(value, key)
    axes = _memory_order(array)
    size, shape = array.nbytes, tuple(array.shape[axis] for axis in axes)
    parts[key] = Part(code or "U8", shape if code else (size,), alignment, size, partial(_bytes, array, axes))
    about: dict[str, Any] = {kind: key}
    if code is None:
        about |= {"dtype": dtype, "shape": shape}
    return about | ({} if axes == sorted(axes) else {"axes": axes})


def _memory_order(array: Any) -> list[int]:
    """Axes, those of the longest strides first."""
    axes = list(range(array.ndim))
    if array.is_contiguous() if isinstance(array, Tensor) else array.flags.c_contiguous:
        return axes
    strides = array.stride() if isinstance(array, Tensor) else array.strides
    return sorted(axes, key=lambda axis: -abs(strides[axis]))


def _bytes(array: Any, axes: list[int]) -> np.ndarray:
    """The data of an array or tensor, axis by axis; a view where they lie so in the CPU's memory."""
    if isinstance(array, Tensor):
        flat = array.permute(axes).resolve_conj().resolve_neg().contiguous().cpu().reshape(-1)
        flat = flat if flat.stride(0) == 1 else flat.clone(memory_format=torch.contiguous_format)  # one, of any stride
        return flat.view(torch.uint8).numpy()
    return np.ascontiguousarray(array.transpose(axes)).reshape(-1).view(np.uint8)


def _safetensors(parts: Mapping[str, Part]) -> Iterator[bytes | memoryview]:
    """The pieces of a file: the length of a header, the header, the data without gaps, at multiples of their sizes."""
    header, end = {}, 0
    ordered = dict(sorted(parts.items(), key=lambda item: -item[1].alignment))
    for name, part in ordered.items():
        header[name] = {"dtype": part.code, "shape": part.shape, "data_offsets": [end, end + part.size]}
        end += part.size
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % LINE)
    yield len(text).to_bytes(8, "little")
    yield text
    for part in ordered.values():
        yield part.data().data


class _Reader(NamedTuple):
    """Makes values of a skeleton read from `path`, and of the tensors beside it."""

    path: Path
    tensors: dict[str, Tensor]

    def decoded(self, node: Any, key: str) -> Any:
        if isinstance(node, list):
            return [self.decoded(item, f"{key}/{i}") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), "")
        try:
            return self._of_kind(kind, node, key)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, struct.error) as error:
            if isinstance(error, BrokenCheckpoint):
                raise
            raise BrokenCheckpoint(
                f"{self.path}: {key or 'the state'} is no {kind} as it is written ({error})"
            ) from error

    def _of_kind(self, kind: str, node: dict[str, Any], key: str) -> Any:
        match kind:
            case "dict":
                return {name: self.decoded(item, _below(key, name)) for name, item in node["dict"].items()}
            case "items":
                return {name: item for name, item in self.decoded(node["items"], key)}
            case "tuple":
                return tuple(self.decoded(node["tuple"], key))
            case "int":
                return int(node["int"], 16)
            case "float":
                return struct.unpack(">d", bytes.fromhex(node["float"]))[0]
            case "tensor" | "array" | "scalar":
                return self._array(kind, node)
        raise ValueError("there is no such kind")

    def _array(self, kind: str, node: dict[str, Any]) -> Any:
        stored = self.tensors[node[kind]]
        found: Any = stored if stored.nbytes >= MAPPED else stored.clone()
        found = found if kind == "tensor" else found.numpy()
        if "dtype" in node:
            dtype = getattr(torch, node["dtype"]) if kind == "tensor" else np.dtype(node["dtype"])
            found = found.view(dtype).reshape(node["shape"])
        if "axes" in node:
            back = np.argsort(node["axes"]).tolist()
            found = found.permute(back) if kind == "tensor" else found.transpose(back)
        return found[()] if kind == "scalar" else found
