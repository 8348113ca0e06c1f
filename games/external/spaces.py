"""Anybody's Gymnasium spaces as ours: rows of float32 features or pictures, and numbered or bounded actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

from games.external.contract import Fault

MAX_ONE_HOT = 2**16
"""Choices of a Discrete observation: each is a feature."""

MAX_BINS = 2**16
"""Values of a dimension of continuous actions."""

WHOLE = 2**53
"""Integers up to here are float64 numbers."""

IMAGES = ("flat", "keep")

Write = Callable[[Any, np.ndarray], None]
"""Writes an observation, or a part of one, into its float32 features."""


class Part(NamedTuple):
    """A leaf of an observation space."""

    path: tuple[Any, ...]  # keys that lead to it
    low: np.ndarray  # float32, of the shape it is shown in
    high: np.ndarray
    write: Write


@dataclass(frozen=True)
class Sight:
    """How an agent's observations become rows of ours; made by `sight`."""

    space: Box
    theirs: Space
    parts: tuple[Part, ...]
    masked: bool
    """The observation comes with the action mask, which is taken out of it."""
    strict: bool

    def write(self, observation: Any, row: np.ndarray) -> Any:
        """Write what was observed into `row`, and give the action mask that came with it, or None.

        Raises Fault for an observation of another shape or kind, one that is not finite, or, where `strict`, one
        outside its space.
        """
        if self.strict and not self.theirs.contains(observation):
            raise Fault("observations", f"an observation must be within {self.theirs}, got {_short(observation)}")
        if len(self.parts) == 1:
            self.parts[0].write(_at(observation, self.parts[0].path), row)
        else:
            start = 0
            for part in self.parts:
                part.write(_at(observation, part.path), row[start : start + part.low.size])
                start += part.low.size
        return _at(observation, ("action_mask",)) if self.masked else None


def sight(space: Space, images: str = "flat", strict: bool = False) -> Sight:
    """How observations of a space are seen: Box, Discrete (one-hot), MultiDiscrete, MultiBinary, Dict, Tuple, nested.

    Leaves are flattened and follow each other. Pictures (a Box of uint8 with two or three axes) are scaled to [0, 1] by
    their bounds; with `images="keep"` an observation that is one picture stays one, (H, W) or (C, H, W). The entry
    "action_mask" of a Dict is no part of what is seen.

    Raises ValueError for spaces of no fixed size (Text, Graph, Sequence) and any other.
    """
    masked = isinstance(space, Dict) and "action_mask" in space.spaces
    leaves = [(path, leaf) for path, leaf in _leaves(space, ()) if not (masked and path[0] == "action_mask")]
    if not leaves:
        raise ValueError(f"an observation space must have something to see, got {space}")
    if images == "keep" and len(leaves) == 1 and _is_picture(leaves[0][1]):
        parts = [_kept_picture(*leaves[0])]
    else:
        parts = [_part(path, leaf) for path, leaf in leaves]
    low, high = ([getattr(part, end) for part in parts] for end in ("low", "high"))
    joined = (low[0], high[0]) if len(parts) == 1 else (np.concatenate(low), np.concatenate(high))
    return Sight(Box(*joined, dtype=np.float32), space, tuple(parts), masked, strict)


def _leaves(space: Space, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Space]]:
    if isinstance(space, Dict):
        return [leaf for key, part in space.spaces.items() for leaf in _leaves(part, (*path, key))]
    if isinstance(space, Tuple):
        return [leaf for key, part in enumerate(space.spaces) for leaf in _leaves(part, (*path, key))]
    return [(path, space)]


def _part(path: tuple[Any, ...], space: Space) -> Part:
    if _is_picture(space):
        assert isinstance(space, Box)
        ones = np.ones(space.low.size, np.float32)
        return Part(path, 0 * ones, ones, _scaled(space, space.shape))
    if isinstance(space, Box):
        with np.errstate(over="ignore"):  # float64's largest numbers are infinite in float32
            low, high = (end.astype(np.float32).ravel() for end in (space.low, space.high))
        return Part(path, low, high, _numbers(space.shape))
    if isinstance(space, MultiBinary):
        ones = np.ones(int(np.prod(space.shape)), np.float32)
        return Part(path, 0 * ones, ones, _numbers(space.shape))
    if isinstance(space, Discrete | MultiDiscrete):
        size = int(np.sum(space.nvec if isinstance(space, MultiDiscrete) else space.n))
        if size > MAX_ONE_HOT:
            raise ValueError(f"{space} would be {size} one-hot features{_where(path)}: wrap it in less")
        ones = np.ones(size, np.float32)
        return Part(path, 0 * ones, ones, _one_hots(space) if isinstance(space, MultiDiscrete) else _one_hot(space))
    raise ValueError(
        f"observations must be Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple, of a fixed size; got "
        f"{type(space).__name__}{_where(path)}: wrap the environment in one that pads or encodes it"
    )


def _where(path: tuple[Any, ...]) -> str:
    return f" at {list(path)}" if path else ""


def _numbers(shape: tuple[int, ...]) -> Write:
    def write(value: Any, row: np.ndarray) -> None:
        array = _array(value, shape)
        row[:] = array.reshape(-1)
        if array.dtype.kind == "f" and not np.isfinite(row).all():
            raise Fault("observations", f"an observation must be finite (in float32), got {_short(value)}")

    return write


def _one_hot(space: Discrete) -> Write:
    size, start = int(space.n), int(space.start)

    def write(value: Any, row: np.ndarray) -> None:
        try:
            choice = index(value) - start
        except TypeError:
            choice = -1
        if not 0 <= choice < size:
            raise Fault("observations", f"an observation must be a whole number in {space}, got {_short(value)}")
        row[:] = 0
        row[choice] = 1

    return write


def _one_hots(space: MultiDiscrete) -> Write:
    counts, starts = space.nvec.ravel(), np.asarray(space.start).ravel()
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def write(value: Any, row: np.ndarray) -> None:
        array = _array(value, space.shape)
        choices = array.reshape(-1) - starts
        if array.dtype.kind == "f" or (choices < 0).any() or (choices >= counts).any():
            raise Fault("observations", f"an observation must be whole numbers in {space}, got {_short(value)}")
        row[:] = 0
        row[offsets + choices] = 1

    return write


def _is_picture(space: Space) -> bool:
    return isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def _scaled(space: Box, shape: tuple[int, ...], to_front: bool = False) -> Write:
    low = space.low.astype(np.float32) if space.low.any() else None
    span = np.maximum(space.high.astype(np.float32) - space.low, 1)
    span = span.flat[0] if (span == span.flat[0]).all() else span  # a number is faster

    def write(value: Any, row: np.ndarray) -> None:
        array = _array(value, space.shape)
        if array.dtype.kind == "f":
            raise Fault("observations", f"a picture must be of uint8, got {array.dtype}")
        scaled = (array if low is None else array - low) / span
        row[...] = (np.moveaxis(scaled, -1, 0) if to_front else scaled).reshape(row.shape)

    return write


def _kept_picture(path: tuple[Any, ...], space: Space) -> Part:
    assert isinstance(space, Box)
    shape = space.shape
    to_front = len(shape) == 3 and shape[2] <= shape[0]  # channels are the shortest axis
    if to_front:
        shape = (shape[2], *shape[:2])
    return Part(path, np.zeros(shape, np.float32), np.ones(shape, np.float32), _scaled(space, shape, to_front))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise Fault("observations", f"an observation must have {key!r}, got {_short(value)}") from None
    return value


def _array(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise Fault("observations", f"an observation must be numbers of shape {shape}, got {_short(value)}") from None
    if array.shape != shape or array.dtype.kind not in "fiub":
        got = f"{array.dtype} {array.shape}"
        raise Fault("observations", f"an observation must be numbers of shape {shape}, got {got}")
    return array


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:120]} ..."


@dataclass(frozen=True)
class Moves:
    """How our actions become an agent's; made by `moves`."""

    space: Discrete | MultiDiscrete | Box
    decode: Callable[[Any], Any]

    def write_mask(self, mask: Any, legal: Sequence[np.ndarray]) -> None:
        """Write an action mask into one boolean row [A_f] a factor.

        It is an array [A] for Discrete; for the others a sequence of arrays, one a factor, or one array of all. Raises
        Fault for one of another length, or that leaves no choice.
        """
        sizes = [len(row) for row in legal]
        try:
            parts = _by_factor(mask, sizes)
        except (TypeError, ValueError, LookupError):  # no sequence, or lists of different lengths
            raise Fault("masks", f"an action mask must have {sizes} entries, got {_short(mask)}") from None
        if [part.shape for part in parts] != [row.shape for row in legal]:
            raise Fault("masks", f"an action mask must have {sizes} entries, got {[part.shape for part in parts]}")
        for part, row in zip(parts, legal, strict=True):
            if part.dtype.kind not in "biu":
                raise Fault("masks", f"an action mask must be of integers or booleans, got {part.dtype}")
            row[:] = part
            if not row.any():
                raise Fault("masks", "an agent that is asked to act must have a legal action, got a mask of zeros")


def _by_factor(mask: Any, sizes: list[int]) -> list[np.ndarray]:
    if len(sizes) == 1:
        return [np.asarray(mask)]
    if len(mask) == len(sizes) and np.ndim(mask[0]) == 1:
        return [np.asarray(part) for part in mask]
    whole = np.asarray(mask)
    return np.split(whole, np.cumsum(sizes)[:-1]) if whole.ndim == 1 else [whole]


def check_bins(bins: int | None) -> None:
    """Raises ValueError for what cannot be a number of values."""
    if bins is not None and (not isinstance(bins, int) or not 2 <= bins <= MAX_BINS):
        raise ValueError(f"bins must be None or a whole number from 2 to {MAX_BINS}, got {bins!r}")


def moves(space: Space, bins: int | None = None) -> Moves:
    """How actions of a space are chosen.

    Discrete counts from 0; MultiDiscrete and MultiBinary are flat; Dict and Tuple of such are one MultiDiscrete; a
    bounded Box is (D,) float32, or with `bins` a MultiDiscrete of that many evenly spaced values a dimension.

    Raises ValueError for a Box without bounds, or with bounds beyond float32 (2**53 for whole numbers), one within Dict
    or Tuple without `bins`, a space without any choice, and any other space.
    """
    if isinstance(space, Discrete):
        start = int(space.start)
        return Moves(Discrete(int(space.n)), (lambda action: action + start) if start else int)
    if isinstance(space, Box) and bins is None:
        _check_bounded(space)
        _check_choice(space, space.low.size)
        low, high = space.low.ravel().astype(np.float32), space.high.ravel().astype(np.float32)
        return Moves(Box(low, high, dtype=np.float32), _boxed(space))
    sizes, decode = _numbered(space, bins)
    _check_choice(space, len(sizes))
    return Moves(MultiDiscrete(sizes), decode)


def _check_choice(space: Space, factors: int) -> None:
    if not factors:
        raise ValueError(f"an action space must have something to choose, got {space}")


def _check_bounded(space: Box) -> None:
    if not space.is_bounded():
        raise ValueError(
            f"actions must be bounded, got {space}: wrap the environment so that actions are clipped or rescaled "
            "from a bounded Box, such as gymnasium.wrappers.RescaleAction does"
        )
    most = WHOLE if np.issubdtype(space.dtype, np.integer) else np.finfo(np.float32).max
    if (space.low.astype(np.float64) < -most).any() or (space.high.astype(np.float64) > most).any():
        raise ValueError(
            f"actions must have bounds within ±{most:g}, got {space}: wrap the environment so that they do"
        )


def _boxed(space: Box) -> Callable[[np.ndarray], np.ndarray]:
    low, high, whole = space.low, space.high, np.issubdtype(space.dtype, np.integer)

    def decode(action: np.ndarray) -> np.ndarray:
        shaped = action.reshape(space.shape)
        # Bounds of float64 are not all float32 numbers: rounding must not lead outside.
        return np.clip(np.rint(shaped) if whole else shaped, low, high).astype(space.dtype)

    return decode


def _numbered(space: Space, bins: int | None) -> tuple[list[int], Callable[[np.ndarray], Any]]:
    """Numbers of choices per factor, and what the space's action is for choices [factors]."""
    if isinstance(space, Discrete):
        start = int(space.start)
        return [int(space.n)], lambda choices: int(choices[0]) + start
    if isinstance(space, MultiDiscrete):
        shape, starts = space.shape, np.asarray(space.start)
        return space.nvec.ravel().tolist(), lambda choices: (choices.reshape(shape) + starts).astype(space.dtype)
    if isinstance(space, MultiBinary):
        return [2] * int(np.prod(space.shape)), lambda choices: choices.reshape(space.shape).astype(space.dtype)
    if isinstance(space, Box) and bins is not None:
        _check_bounded(space)
        values = np.linspace(space.low.ravel(), space.high.ravel(), bins)  # [bins, D]
        decode, columns = _boxed(space), np.arange(values.shape[1])
        return [bins] * values.shape[1], lambda choices: decode(values[choices, columns])
    if isinstance(space, Dict | Tuple):
        names = list(space.spaces) if isinstance(space, Dict) else None
        inner = list(space.spaces.values()) if isinstance(space, Dict) else list(space.spaces)
        parts = [_numbered(part, bins) for part in inner]
        ends = np.cumsum([len(sizes) for sizes, _ in parts], dtype=int)

        def decode_parts(choices: np.ndarray) -> Any:
            pieces = np.split(choices, ends)[:-1]
            chosen = [decode(piece) for (_, decode), piece in zip(parts, pieces, strict=True)]
            return tuple(chosen) if names is None else dict(zip(names, chosen, strict=True))

        return [size for sizes, _ in parts for size in sizes], decode_parts
    more = ", which within Dict or Tuple needs bins=k" if isinstance(space, Box) else ""
    raise ValueError(f"actions must be Discrete, MultiDiscrete, MultiBinary, Box, Dict or Tuple; got {space}{more}")
