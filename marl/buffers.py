"""What learners remember: the latest transitions (replay), or a uniform sample of all there ever were (reservoir)."""

import sys
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from games.game import Array
from games.lanes import to_numpy
from games.numbers import whole

Parts = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape of each named part of a row, and what NumPy calls its numbers."""
Batch = Mapping[str, Array] | np.ndarray
"""M rows: every part [M, *shape]; fastest as one structured array of the `record` of the parts."""


def record(parts: Parts) -> np.dtype:
    """The structured kind of rows with these parts."""
    return np.dtype([(name, kind, shape) for name, (shape, kind) in parts.items()], align=True)


class Rows:
    """Room for `capacity` rows of named parts, each row in one piece, on a device.

    So a row is written, and found again, at one place of the memory. On the CPU that is NumPy's: it asks for large
    pages, which makes random rows twice as fast to read; and takes none before they are written to.
    """

    def __init__(self, capacity: int, parts: Parts, device: str | torch.device = "cpu"):
        self.capacity, self.device, self.record = whole("capacity", capacity), torch.device(device), record(parts)
        size = self.record.itemsize
        self._whole = np.dtype((np.void, size))  # is copied as it is, rather than part by part
        self._memory: Array
        if self.device.type == "cpu":
            self._memory = np.empty(self.capacity, self._whole)
        else:
            self._memory = torch.empty((self.capacity, size), dtype=torch.uint8, device=self.device)

    def packed(self, batch: Batch) -> np.ndarray:
        """The batch as a structured array. Raises ValueError for other parts than the rows have, or unlike lengths."""
        if isinstance(batch, np.ndarray) and (batch.dtype is self.record or batch.dtype == self.record):
            return batch
        shapes = {name: self.record[name].shape for name in self.record.names or ()}
        got = {} if isinstance(batch, np.ndarray) else {name: tuple(part.shape) for name, part in batch.items()}
        counts = {shape[:1] for shape in got.values()}
        if len(counts) != 1 or {name: shape[1:] for name, shape in got.items()} != shapes:
            raise ValueError(f"a batch must have rows {shapes}, equally many of each part; got shapes {got or batch}")
        rows = np.zeros(counts.pop()[0], self.record)  # between the parts, too: files are to be equal
        for name in shapes:
            rows[name] = to_numpy(batch[name])
        return rows

    def write(self, where: slice | np.ndarray, rows: np.ndarray) -> None:
        """Put packed rows into places `where`, all of them different."""
        if self.device.type == "cpu":
            self._memory[where] = rows.view(self._whole)
        else:
            self._memory[where] = torch.from_numpy(_bytes(rows)).to(self.device)

    def take(self, indices: np.ndarray) -> dict[str, Tensor]:
        """Copies of the rows at indices [M]; parts are views of them, at the same places of a line of memory always.

        (Matrix products may differ in the last bit with where their arguments lie.)
        """
        fields: Mapping[str, Any] = self.record.fields or {}
        if self.device.type == "cpu":
            rows = torch.empty((len(indices), self.record.itemsize), dtype=torch.uint8)
            array = rows.numpy()
            self._memory.take(indices, out=array.view(self._whole)[:, 0], mode="clip")  # "raise" would copy once more
            structured = array.view(self.record)[:, 0]
            return {name: torch.from_numpy(structured[name]) for name in fields}
        rows = self._memory.index_select(0, torch.as_tensor(indices, device=self.device))
        return {name: _part(rows, *field[:2]) for name, field in fields.items()}

    def state_dict(self, size: int) -> dict[str, Any]:
        """The first `size` rows, as bytes [size, size of a row]."""
        if self.device.type == "cpu":
            rows = torch.from_numpy(_bytes(self._memory[:size].copy()))
        else:
            rows = self._memory[:size].clone()
        return {"capacity": self.capacity, "record": str(self.record), "rows": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """How many rows there are now. Raises ValueError where they were of another capacity, or had other parts."""
        saved, wanted = (state["capacity"], state["record"]), (self.capacity, str(self.record))
        if saved != wanted:
            raise ValueError(f"{saved[0]:,} rows of {saved[1]} were saved: they cannot be {wanted[0]:,} of {wanted[1]}")
        rows = torch.as_tensor(state["rows"])
        self.write(slice(len(rows)), np.ascontiguousarray(rows.numpy(force=True)).view(self.record)[:, 0])
        return len(rows)


def _bytes(rows: np.ndarray) -> np.ndarray:
    """[M, size of a row] uint8 of structured rows [M]."""
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)


def _part(rows: Tensor, kind: np.dtype, first: int) -> Tensor:
    """[M, *shape] one part, that begins with byte `first`, of rows of bytes [M, size of a row]."""
    numbers = torch.from_numpy(np.empty(0, kind.base)).dtype
    end = first + prod(kind.shape) * kind.base.itemsize
    return rows[:, first:end].view(numbers).reshape(len(rows), *kind.shape)


class Replay:
    """The last `capacity` transitions, the oldest overwritten first [Lin 1992].

    >>> replay = Replay(3, {"reward": ((), "float32")})
    >>> for reward in (1.0, 2.0, 3.0, 4.0):
    ...     _ = replay.push({"reward": np.array([reward])})
    >>> replay.take(np.array([0, 1, 2]))["reward"]
    tensor([4., 2., 3.])
    """

    def __init__(self, capacity: int, parts: Parts, device: str | torch.device = "cpu"):
        self.rows = Rows(capacity, parts, device)
        self.size, self._next = 0, 0

    @property
    def capacity(self) -> int:
        return self.rows.capacity

    def push(self, batch: Batch) -> np.ndarray:
        """Add rows; where they went, [M] int64.

        Raises ValueError for other parts than the replay has, and for more rows than it holds.
        """
        rows = self.rows.packed(batch)
        count, capacity = len(rows), self.capacity
        if count > capacity:
            raise ValueError(f"{count} rows do not fit a replay of capacity {capacity}")
        first, end = self._next, self._next + count
        if end <= capacity:
            self.rows.write(slice(first, end), rows)
            places = np.arange(first, end)
        else:
            places = np.arange(first, end) % capacity
            self.rows.write(places, rows)
        self._next, self.size = end % capacity, min(self.size + count, capacity)
        return places

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """[M] indices of rows, all equally probable, by float64 uniforms [M] (`precise`).

        Raises ValueError while there are none.
        """
        if not self.size:
            raise ValueError("nothing was pushed yet: play before drawing from a replay")
        return np.minimum((uniforms * self.size).astype(np.int64), self.size - 1)

    def take(self, indices: np.ndarray) -> dict[str, Tensor]:
        """Copies of the rows at indices [M]."""
        return self.rows.take(indices)

    def state_dict(self) -> dict[str, Any]:
        return {"next": self._next, "rows": self.rows.state_dict(self.size)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict()`. Raises ValueError for one that no replay of this capacity and parts has."""
        size = self.rows.load_state_dict(state["rows"])
        following = whole("next", state["next"], 0, self.capacity - 1)
        if size < self.capacity and following != size:
            raise ValueError(f"after {size:,} of {self.capacity:,} rows the next has that number, got {following:,}")
        self.size, self._next = size, following


class Reservoir:
    """A uniform sample, without replacement, of all rows ever pushed [Vitter 1985, algorithm R].

    Row number t (from 0) of the stream is kept with probability min(1, capacity / (t + 1)), then in place of a row
    drawn uniformly. Pushing rows together or one by one leaves the same sample, bit for bit.
    """

    def __init__(self, capacity: int, parts: Parts, seed: int, device: str | torch.device = "cpu"):
        self.rows = Rows(capacity, parts, device)
        self.seen = 0
        self._generator = np.random.default_rng(seed)

    @property
    def capacity(self) -> int:
        return self.rows.capacity

    @property
    def size(self) -> int:
        """Rows that are kept."""
        return min(self.seen, self.capacity)

    def push(self, batch: Batch) -> None:
        """Offer rows. Raises ValueError for other parts than the reservoir has."""
        rows = self.rows.packed(batch)
        places = reservoir_places(self.seen, self.capacity, self._generator.random(len(rows)))
        kept = np.flatnonzero(places < self.capacity)[::-1]
        where, last = np.unique(places[kept], return_index=True)  # rows that later ones replace are never written
        self.rows.write(where, rows[kept[last]])
        self.seen += len(rows)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """[M] indices of rows, as `Replay.draw`."""
        if not self.size:
            raise ValueError("nothing was pushed yet: play before drawing from a reservoir")
        return np.minimum((uniforms * self.size).astype(np.int64), self.size - 1)

    def take(self, indices: np.ndarray) -> dict[str, Tensor]:
        """Copies of the rows at indices [M]."""
        return self.rows.take(indices)

    def state_dict(self) -> dict[str, Any]:
        rows, generator = self.rows.state_dict(self.size), self._generator.bit_generator.state
        return {"seen": self.seen, "generator": generator, "rows": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict()`. Raises ValueError for one that no reservoir of this capacity and parts has."""
        size, seen = self.rows.load_state_dict(state["rows"]), whole("seen", state["seen"], 0, sys.maxsize)
        if size != min(seen, self.capacity):
            raise ValueError(f"of {seen:,} rows {min(seen, self.capacity):,} are kept, got {size:,}")
        self.seen, self._generator.bit_generator.state = seen, state["generator"]


def reservoir_places(seen: int, capacity: int, uniforms: np.ndarray) -> np.ndarray:
    """[M] int64 places of a stream's rows seen, seen + 1, ...: those at `capacity` or beyond are not kept.

    The first rows fill the places in order; row t then draws one of t + 1 places by its float64 uniform.
    """
    row = seen + np.arange(len(uniforms))
    return np.where(row < capacity, row, np.minimum((uniforms * (row + 1)).astype(np.int64), row))


def precise(noise: np.ndarray) -> np.ndarray:
    """[M] float64 uniforms of 46 bits, from two columns [M, 2] of `games.noise.Noise`, of 23 bits each.

    23 bits would draw some of a million rows an eighth more often than others.
    """
    return noise[:, 0] + noise[:, 1].astype(np.float64) * 2.0**-23
