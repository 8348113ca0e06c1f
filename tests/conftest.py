"""Fixtures for all tests."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from coverage import Coverage
from hypothesis import settings

from games.lanes import tree_map


@pytest.fixture(scope="session", autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Games are compiled anew, once for all processes that test, and nothing is left in the user's folders."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUNTERPLAY_CACHE", str(folder / "cache"))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Tests marked `covered_elsewhere` run with coverage switched off, and so do the processes they start.

    (pytest-cov's own `no_cover` leaves another measurement running where pytest-xdist's workers are processes that are
    measured themselves.)
    """
    paused = []
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("covered_elsewhere"):
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
            while measuring := Coverage.current():
                measuring.stop()
                paused.append(measuring)
        try:
            return (yield)
        finally:
            for measuring in reversed(paused):
                measuring.start()


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
