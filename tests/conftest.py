"""Fixtures for all tests."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import settings

from games.lanes import tree_map

settings.register_profile("counterplay", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("counterplay")


class Arrays(NamedTuple):
    """One kind of arrays that kernels must work on."""

    name: str
    put: Callable[[np.ndarray], Any]
    """From NumPy."""

    def freeze(self, tree: Any) -> Any:
        """The same nested tuples of arrays; read-only where the kind is."""
        return tree_map(_read_only, tree) if self.name == "read-only" else tree


def _read_only(array: np.ndarray) -> np.ndarray:
    array = np.array(array)
    array.setflags(write=False)
    return array


KINDS = {"numpy": np.array, "read-only": _read_only, "torch": lambda array: torch.from_numpy(np.array(array))}


@pytest.fixture(params=list(KINDS))
def xp(request: pytest.FixtureRequest) -> Arrays:
    """NumPy, read-only NumPy (catches writes into arguments) and torch."""
    return Arrays(request.param, KINDS[request.param])
