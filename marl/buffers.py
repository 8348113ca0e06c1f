"""What learners remember: the latest transitions (replay), or a uniform sample of all there ever were (reservoir)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from games.game import Array
from games.numbers import whole
from marl.policies import tensor

Parts = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape of each named part of a row, and what NumPy calls its numbers."""
Batch = Mapping[str, Array]
"""M rows: every part [M, *shape]."""


class Rows:
    """`capacity` rows of named parts, each one array [capacity, *shape], written in place.

    On the CPU, NumPy's: it asks for large pages of memory, which makes random rows twice as fast to read; and takes
    none before it is written to.
    """

    def __init__(self, capacity: int, parts: Parts, device: str | torch.device = "cpu"):
        self.capacity, self.device = whole("capacity", capacity), torch.device(device)
        self.shapes = {name: tuple(shape) for name, (shape, _) in parts.items()}
        self._parts: dict[str, Array] = {
            name: self._empty((self.capacity, *shape), np.dtype(kind)) for name, (shape, kind) in parts.items()
        }

    def _empty(self, shape: tuple[int, ...], kind: np.dtype) -> Array:
        if self.device.type == "cpu":
            return np.empty(shape, kind)
        return torch.empty(shape, dtype=torch.from_numpy(np.empty(0, kind)).dtype, device=self.device)

    def count(self, batch: Batch) -> int:
        """How many rows the batch has. Raises ValueError where its parts are not those of the rows, of one length."""
        count = len(next(iter(batch.values())))
        fits = batch.keys() == self.shapes.keys() and all(
            tuple(batch[name].shape) == (count, *shape) for name, shape in self.shapes.items()
        )
        if not fits:
            got = {name: tuple(part.shape) for name, part in batch.items()}
            raise ValueError(f"a batch must have rows {self.shapes}, equally many of each part; got shapes {got}")
        return count

    def write(self, where: slice | np.ndarray, batch: Batch, which: slice | np.ndarray) -> None:
        """Rows `which` of the batch to places `where`, all of them different."""
        for name, part in self._parts.items():
            rows = batch[name]
            if self.device.type != "cpu":
                rows = tensor(rows, self.device)
            elif not isinstance(rows, np.ndarray):
                rows = rows.numpy(force=True)
            part[where] = rows[which]

    def take(self, indices: np.ndarray) -> dict[str, Tensor]:
        """Copies of the rows at indices [M]."""
        if self.device.type == "cpu":
            return {name: torch.from_numpy(part.take(indices, axis=0)) for name, part in self._parts.items()}
        where = torch.as_tensor(indices, device=self.device)
        return {name: part.index_select(0, where) for name, part in self._parts.items()}

    def state_dict(self, size: int) -> dict[str, Any]:
        """The first `size` rows."""
        parts = {name: torch.as_tensor(part[:size]).clone() for name, part in self._parts.items()}
        return {"capacity": self.capacity, "size": size, "parts": parts}

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """How many rows there are now. Raises ValueError where the rows were of another capacity."""
        if state["capacity"] != self.capacity:
            raise ValueError(f"rows were saved of capacity {state['capacity']:,}, and cannot fill {self.capacity:,}")
        everything = slice(state["size"])
        self.write(everything, {name: torch.as_tensor(part) for name, part in state["parts"].items()}, everything)
        return state["size"]


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
        count, capacity = self.rows.count(batch), self.capacity
        if count > capacity:
            raise ValueError(f"{count} rows do not fit a replay of capacity {capacity}")
        first = self._next
        before = min(count, capacity - first)
        self.rows.write(slice(first, first + before), batch, slice(before))
        if before < count:
            self.rows.write(slice(count - before), batch, slice(before, count))
        self._next, self.size = (first + count) % capacity, min(self.size + count, capacity)
        return (first + np.arange(count)) % capacity

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
        self.size, self._next = self.rows.load_state_dict(state["rows"]), state["next"]


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
        count = self.rows.count(batch)
        places = reservoir_places(self.seen, self.capacity, self._generator.random(count))
        kept = np.flatnonzero(places < self.capacity)[::-1]
        where, last = np.unique(places[kept], return_index=True)  # rows that later ones replace are never written
        self.rows.write(where, batch, kept[last])
        self.seen += count

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
        self.rows.load_state_dict(state["rows"])
        self.seen, self._generator.bit_generator.state = state["seen"], state["generator"]


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
