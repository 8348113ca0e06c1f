"""Figures are drawn from a run folder alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from analysis.figures import draw, main
from analysis.load import load_run
from tests.analysis.handmade import write_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("players", "iterations"), [(2, 2), (4, 1)])
def test_every_figure_is_drawn_at_print_size(tmp_path: Path, players: int, iterations: int) -> None:
    files = draw(write_run(tmp_path / "run", players, iterations))
    assert {file.stem for file in files} == {
        "payoffs",
        "meta_strategy",
        "response_graph",
        "learning_curves",
        "convergence",
    }
    for file in files:
        pixels = imread(file)
        assert pixels.shape[1] >= 1500  # 5 inches at 300 dots
        assert np.ptp(pixels) > 0.5


def test_a_run_that_only_started_has_no_learning_curves(tmp_path: Path) -> None:
    files = draw(write_run(tmp_path / "run", players=3, iterations=0))
    assert "learning_curves" not in {file.stem for file in files}
    assert len(files) == 4


def test_the_command_draws_again_without_the_code_that_trained(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", players=2, iterations=1)
    code = (
        f"import sys; from analysis.figures import main; assert main([{str(run)!r}]) == 0; "
        "assert not {'torch', 'marl', 'games'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(".png") == 5


def test_what_is_no_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "is no run folder" in capsys.readouterr().err
    run = write_run(tmp_path / "run", players=2, iterations=1)
    table = run / "snapshots" / "0001" / "payoffs.npz"
    table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    with pytest.raises(ValueError, match="damaged"):
        load_run(run)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", players=2, iterations=0)
    arrays = {"mean": np.array([object()]), "standard_error": np.zeros(1), "sigma": np.ones(1)}
    np.savez(run / "snapshots" / "0000" / "payoffs.npz", **arrays)
    with pytest.raises(ValueError, match="damaged"):
        load_run(run)
