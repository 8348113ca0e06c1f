"""Compiled game trees on disk, so that a big one is walked once a machine."""

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from games.tree import Information, Nodes, Tree
from games.tree_game import Sight

FORMAT = 1
"""Of the files; those of another format are not read."""


class Keys(NamedTuple):
    """Names of information states, one after the other. (Headers of safetensors files must stay below 100 MB.)"""

    text: np.ndarray  # uint8 UTF-8
    ends: np.ndarray  # [I] int64


def folder() -> Path:
    """Where compiled games are kept: $COUNTERPLAY_CACHE, or `counterplay` in the user's cache folder."""
    home = os.environ.get("COUNTERPLAY_CACHE")
    if home:
        return Path(home)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "counterplay"


def cached_tree(origin: str, compiled: Callable[[], Tree]) -> Tree:
    """The tree of that origin, from its file or else `compiled()`, which is then kept for the next time.

    A file that cannot be read, or is of another origin or format, is written again; where nothing can be written, a
    warning says so. Raises what compiling raises.
    """
    name = f"tree, format {FORMAT}. {origin}"
    found = _load(name, (Nodes, Information, Keys))
    if found is not None:
        nodes, information, keys = found
        return Tree(nodes, information, _unpacked(keys))
    tree = compiled()
    _save(name, (tree.nodes, tree.information, _packed(tree.keys)))
    return tree


def cached_sight(origin: str, compiled: Callable[[], Sight]) -> Sight:
    """What is seen in a game, as `cached_tree`."""
    name = f"sight, format {FORMAT}. {origin}"
    found = _load(name, (Sight,))
    if found is not None:
        return found[0]
    sight = compiled()
    _save(name, (sight,))
    return sight


def _packed(keys: Sequence[str]) -> Keys:
    encoded = [key.encode() for key in keys]
    ends = np.cumsum([len(key) for key in encoded], dtype=np.int64)
    return Keys(np.frombuffer(b"".join(encoded), np.uint8), ends)


def _unpacked(keys: Keys) -> list[str]:
    text = keys.text.tobytes()
    return [text[begin:end].decode() for begin, end in pairwise([0, *keys.ends.tolist()])]


def _path(name: str) -> Path:
    return folder() / f"{sha256(name.encode()).hexdigest()[:32]}.safetensors"


def _save(name: str, parts: Sequence[Any]) -> None:
    arrays = {
        f"{type(part).__name__}.{field}": np.ascontiguousarray(array)
        for part in parts
        for field, array in part._asdict().items()
    }
    data, path = save(arrays, {"name": _sealed(name, arrays)}), _path(name)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)  # whole or absent, whoever else writes it too
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        warn(f"a compiled game could not be kept ({error}); set COUNTERPLAY_CACHE to a folder", stacklevel=4)


def _load(name: str, kinds: Sequence[Any]) -> list | None:
    """Parts of these kinds; None where the file is missing, damaged, or does not hold them."""
    try:
        with safe_open(_path(name), framework="np") as file:
            about = file.metadata() or {}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (it is no mapping)
        if about.get("name") != _sealed(name, arrays):
            return None
        return [kind(*(arrays[f"{kind.__name__}.{field}"] for field in kind._fields)) for kind in kinds]
    except (OSError, SafetensorError, KeyError):
        return None


def _sealed(name: str, arrays: dict[str, np.ndarray]) -> str:
    """The name, and sha256 of what is in the file: a damaged one would give wrong values without a word."""
    total = sha256()
    for field, array in sorted(arrays.items()):
        total.update(f"{field} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return f"{name}, sha256 {total.hexdigest()}"
