"""The run kept under tests/data, which tests/data/run.md tells how to make."""

import shutil
from pathlib import Path

import pytest

from analysis.load import Run, load_run

STORED = Path(__file__).resolve().parents[1] / "data" / "run"


@pytest.fixture(scope="session")
def stored() -> Run:
    """A real run of two iterations, as it was read."""
    return load_run(STORED)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The stored run again, to be written to or harmed."""
    return Path(shutil.copytree(STORED, tmp_path / "run"))
