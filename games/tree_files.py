"""Compiled game trees on disk, so that a big one is walked once a machine."""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from games.tree import Information, Nodes, Tree
from games.tree_game import Sight

FORMAT = 1
"""Of the files; those of another format are not read."""


def folder() -> Path:
    """Where compiled games are kept: $COUNTERPLAY_CACHE, or `counterplay` in the user's cache folder."""
    home = os.environ.get("COUNTERPLAY_CACHE")
    return Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "counterplay"


def cached_tree(origin: str, compiled: Callable[[], Tree]) -> Tree:
    """The tree of that origin, from its file or else `compiled()`, which is then kept for the next time.

    A file that cannot be read, or is of another origin or format, is written again; where nothing can be written, a
    warning says so. Raises what compiling raises.
    """
    name = f"tree, format {FORMAT}. {origin}"
    found = _load(name, (Nodes, Information))
    if found is not None:
        (nodes, information), text = found
        return Tree(nodes, information, json.loads(text))
    tree = compiled()
    _save(name, (tree.nodes, tree.information), json.dumps(tree.keys))
    return tree


def cached_sight(origin: str, compiled: Callable[[], Sight]) -> Sight:
    """What is seen in a game, as `cached_tree`."""
    name = f"sight, format {FORMAT}. {origin}"
    found = _load(name, (Sight,))
    if found is not None:
        return found[0][0]
    sight = compiled()
    _save(name, (sight,), "")
    return sight


def _path(name: str) -> Path:
    return folder() / f"{sha256(name.encode()).hexdigest()[:32]}.safetensors"


def _save(name: str, parts: Sequence[Any], text: str) -> None:
    arrays = {
        f"{type(part).__name__}.{field}": np.ascontiguousarray(array)
        for part in parts
        for field, array in part._asdict().items()
    }
    data, path = save(arrays, {"name": name, "text": text}), _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)  # whole or absent, whoever else writes it too
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        warn(f"a compiled game could not be kept ({error}); set COUNTERPLAY_CACHE to a folder", stacklevel=4)


def _load(name: str, kinds: Sequence[Any]) -> tuple[list, str] | None:
    """Parts of these kinds, and the text beside them; None where the file is missing or does not hold them."""
    try:
        with safe_open(_path(name), framework="np") as file:
            about = file.metadata() or {}
            if about.get("name") != name:
                return None
            parts = [kind(*(file.get_tensor(f"{kind.__name__}.{field}") for field in kind._fields)) for kind in kinds]
            return parts, about["text"]
    except (OSError, SafetensorError, KeyError):
        return None
