"""Runs to look at, and to harm."""

from pathlib import Path

import pytest

from experiments.psro_bucket_brigade import main
from tests.experiments.tiny import TINY


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run that nothing interrupted."""
    run = tmp_path_factory.mktemp("finished") / "run"
    assert main([*TINY, "--run-dir", str(run)]) == 0
    return run


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures, and the report that holds them, take longer than all else of a tiny run; one test looks at them."""
    monkeypatch.setattr("experiments.session.draw", lambda path: [])
    monkeypatch.setattr("experiments.training.draw", lambda path: [])
    monkeypatch.setattr("experiments.session.write", lambda path: None)
