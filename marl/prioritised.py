"""Prioritised replay: which rows to learn from, the more surprising the likelier."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from games.numbers import real, whole


class SumTree:
    """Weights of `capacity` leaves, and the sums over pairs of them, pairs of pairs, ...: all float64, on the CPU.

    Batches of leaves go through the levels together. Sums are always taken afresh from the two below, so that no
    rounding adds up.

    >>> tree = SumTree(3)
    >>> tree.put(np.array([0, 2]), np.array([1.0, 3.0]))
    >>> tree.find(np.array([0.5, 1.5, 3.5]))
    array([0, 2, 2])
    """

    def __init__(self, capacity: int):
        self.capacity = whole("capacity", capacity)
        self.levels = (self.capacity - 1).bit_length()
        self.first = 2**self.levels  # node 1 is the root, those below node i are 2 i and 2 i + 1
        self.nodes = np.zeros(2 * self.first)

    @property
    def total(self) -> float:
        return float(self.nodes[1])

    def __getitem__(self, leaves: np.ndarray) -> np.ndarray:
        """[M] weights."""
        return self.nodes[leaves + self.first]

    def put(self, leaves: np.ndarray, weights: np.ndarray) -> None:
        """Set weights [M]; the last one counts where a leaf is named twice."""
        nodes, where = self.nodes, leaves + self.first
        nodes[where] = weights
        for _ in range(self.levels):
            where >>= 1
            below = 2 * where
            nodes[where] = nodes[below] + nodes[below + 1]

    def find(self, sums: np.ndarray) -> np.ndarray:
        """[M] the leaf in whose share of the running sum each of `sums`, in [0, total), falls; never of weight 0."""
        nodes, left, where = self.nodes, sums.copy(), np.ones(len(sums), np.int64)
        for _ in range(self.levels):
            where *= 2
            before = nodes[where]
            beyond = (left >= before) & (nodes[where + 1] > 0)  # rounding may reach past the last weight
            left -= before * beyond
            where += beyond
        return where - self.first


class Prioritised:
    """Draws places of a replay with probability p^alpha / sum p^alpha, p their priorities [Schaul et al. 2016].

    Places are added with the highest priority there ever was. `weights` of what is drawn make up for the preference,
    wholly so at beta = 1, and are scaled to 1 for the least likely row drawn.
    """

    FLOOR = 1e-6
    """Added to every error, so that each row keeps a chance."""

    def __init__(self, capacity: int, alpha: float):
        self.alpha = real("alpha", alpha, 0, 1)
        self.tree = SumTree(capacity)
        self.highest = 1.0
        self.size = 0

    def add(self, places: np.ndarray) -> None:
        """Rows were pushed to these places [M], perhaps over others."""
        self.tree.put(places, np.full(len(places), self.highest**self.alpha))
        self.size = max(self.size, int(places.max(initial=-1)) + 1)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """[M] places by float64 uniforms [M], one from each M-th part of all the priority there is.

        Raises ValueError while there are none.
        """
        if not self.size:
            raise ValueError("nothing was added yet: play before drawing by priority")
        count = len(uniforms)
        return self.tree.find((np.arange(count) + uniforms) * (self.tree.total / count))

    def weights(self, places: np.ndarray, beta: float) -> np.ndarray:
        """[M] float32 importance weights (size P)^-beta over their largest."""
        shares = self.tree[places] * (self.size / self.tree.total)
        weights = shares**-beta
        return (weights / weights.max()).astype(np.float32)

    def update(self, places: np.ndarray, errors: np.ndarray) -> None:
        """The rows at places [M] now miss their targets by `errors` [M], of either sign."""
        priorities = np.abs(errors).astype(np.float64) + self.FLOOR
        self.highest = max(self.highest, float(priorities.max()))
        self.tree.put(places, priorities**self.alpha)

    def state_dict(self) -> dict[str, Any]:
        first = self.tree.first
        return {"size": self.size, "highest": self.highest, "leaves": self.tree.nodes[first : first + self.size].copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.size, self.highest = state["size"], state["highest"]
        self.tree.nodes[:] = 0
        self.tree.put(np.arange(self.size), np.asarray(state["leaves"]))
