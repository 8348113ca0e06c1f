"""Figures are functions of a run, drawn from its folder alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from analysis.figures import FIGURES, draw
from analysis.load import Run, load_run
from tests.analysis.handmade import write_run

ROOT = Path(__file__).resolve().parents[2]
SMALLEST_PRINT = 4.5  # points


def laid_out(figure: Figure) -> Figure:
    """The figure with everything in its place, at 72 dots an inch."""
    figure.set_dpi(72)
    FigureCanvasAgg(figure).draw()
    return figure


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(
    ("players", "iterations", "offset"), [(2, 0, 0), (2, 5, 1300), (2, 9, 0), (3, 6, -200), (4, 4, 1300), (4, 9, 1300)]
)
@pytest.mark.parametrize("name", ["payoffs", "meta_strategy"])
def test_text_stays_within_its_cell_and_can_be_read(
    tmp_path: Path, name: str, players: int, iterations: int, offset: float
) -> None:
    run = load_run(write_run(tmp_path / "run", players, iterations, offset=offset))
    figure = laid_out(FIGURES[name][0](run))
    for axis in figure.axes[:players]:
        cells = max(axis.images[0].get_array().shape)
        room = axis.get_window_extent()
        assert axis.texts
        for text in axis.texts:
            box = text.get_window_extent()
            assert text.get_size() >= SMALLEST_PRINT
            assert box.width <= room.width / cells
            assert box.height <= room.height / cells


def test_standard_errors_that_do_not_fit_are_told_in_the_title(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "run", players=4, iterations=9))
    figure = FIGURES["payoffs"][0](run)
    assert all("standard errors 3.2 to 3.2" in axis.get_title() for axis in figure.axes[:4])


def test_gains_and_losses_get_colours_that_part_at_zero(tmp_path: Path) -> None:
    signed, positive = (
        FIGURES["payoffs"][0](load_run(write_run(tmp_path / str(offset), 2, 2, offset=offset))).axes[0].images[0]
        for offset in (0, 1300)
    )
    assert (signed.get_cmap().name, positive.get_cmap().name) == ("PuOr", "viridis")
    assert signed.norm(0) == pytest.approx(0.5)


def test_intervals_are_drawn_for_all_that_has_errors(stored: Run) -> None:
    left, right = FIGURES["convergence"][0](stored).axes
    assert [len(container.get_children()) > 1 for axis in (left, right) for container in axis.containers] == [True] * 3
    gap = stored.series("team_return")[-1]
    (_, caps, _) = right.containers[0]
    low, high = (cap.get_ydata()[-1] for cap in caps)
    assert (low, high) == pytest.approx(
        (gap["value"] - 1.96 * gap["standard_error"], gap["value"] + 1.96 * gap["standard_error"])
    )


def test_learning_curves_have_bands(stored: Run) -> None:
    figure = FIGURES["learning_curves"][0](stored)
    assert [len(axis.lines) for axis in figure.axes] == [2] * 4
    last = stored.series("learner/return")[-1]
    edges = figure.axes[last["player"]].collections[-1].get_paths()[0].vertices
    ends = edges[np.isclose(edges[:, 0], last["step"] / 1e3), 1]
    low, high = (last["value"] + sign * 1.96 * last["standard_error"] for sign in (-1, 1))
    assert (ends.min(), ends.max()) == pytest.approx((low, high))


def test_a_run_that_only_started_has_no_learning_curves(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "run", players=3, iterations=0))
    assert FIGURES["learning_curves"][0](run) is None


@pytest.mark.covered_elsewhere
def test_they_are_drawn_at_print_size_without_the_code_that_trained(copy: Path) -> None:
    code = (
        f"import sys; from pathlib import Path; from analysis.figures import draw; "
        f"print(*draw(Path({str(copy)!r})), sep='\\n'); "
        "assert not {'torch', 'marl', 'games'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [Path(line) for line in done.stdout.splitlines()]
    assert files == [copy / "figures" / f"{name}.png" for name in FIGURES if name != "duels"]
    for file in files:
        pixels = imread(file)
        assert pixels.shape[1] >= 1500  # 5 inches at 300 dots
        assert np.ptp(pixels) > 0.5


def test_duels_are_a_panel_a_rival_and_points_where_there_are_any(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "run", players=2, iterations=1))
    assert FIGURES["duels"][0](run) is None
    rows = [
        {"metric": metric, "iteration": i, "player": player, "against": rival, "value": i / 2, "unit": unit}
        for metric, unit in (("duel_return", "return per episode"), ("duel_points", "share of points"))
        for i in range(2)
        for rival in ("uniform", "follow")
        for player in range(2)
    ]
    figure = FIGURES["duels"][0](run._replace(metrics=rows))
    assert [axis.get_title() for axis in figure.axes] == ["against uniform", "against follow"]
    assert figure.axes[0].get_ylabel() == "share of points"
    figure = FIGURES["duels"][0](run._replace(metrics=rows[:8]))
    assert figure.axes[0].get_ylabel() == "return per episode"
    assert [line.get_ydata().tolist() for line in figure.axes[1].lines[:1]] == [[0, 0.5]]


def test_what_is_no_run_is_told(tmp_path: Path, copy: Path) -> None:
    with pytest.raises(ValueError, match="is no run folder"):
        draw(tmp_path)
    table = copy / "snapshots" / "0001" / "payoffs.npz"
    table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    with pytest.raises(ValueError, match="damaged"):
        load_run(copy)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", players=2, iterations=0)
    objects = dict.fromkeys(("mean", "standard_error", "episodes", "sigma"), np.array([object()]))
    np.savez(run / "snapshots" / "0000" / "payoffs.npz", **objects)
    with pytest.raises(ValueError, match="damaged"):
        load_run(run)
