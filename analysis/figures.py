"""The figures of a PSRO run, drawn from its folder alone: `python -m analysis.figures runs/<name>`.

They are made to be printed: one column of text wide (7 inches), 300 dots per inch, colours that the colour-blind and a
grey printer keep apart, intervals of 1.96 standard errors (95 %) wherever a number was estimated.
"""

import argparse
import io
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.graph import response_graph
from analysis.load import Run, load_run

WIDTH = 7.0  # inches
INTERVAL = 1.96  # standard errors either side: 95 % of a normal distribution
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.4,
    "savefig.dpi": 300,
}
# Okabe & Ito's colours, told apart by nearly everyone.
BLUE, ORANGE = "#0072B2", "#D55E00"


def payoff_matrices(run: Run) -> Figure:
    """Each player's return for its policy (rows) against one policy of all others (columns), in the last iteration.

    With two players this is the whole table. With more, column c shows the profiles in which everyone else plays the
    policy of the same index, that is of the same iteration.
    """
    last = run.iterations[-1]
    players = len(last.mean)
    columns = min(last.mean.shape[1:])
    blocks = [_against_index(table, columns) for table in (last.mean, last.standard_error)]
    scale = Normalize(min(block.min() for block in blocks[0]), max(block.max() for block in blocks[0]))
    figure, axes = _grid(players, panel=3.2)
    for player, axis in enumerate(axes):
        image = _heatmap(axis, blocks[0][player], "cividis", scale)
        _annotate(axis, image, blocks[0][player], blocks[1][player])
        other = "opponent's policy" if players == 2 else "policy of all others"
        axis.set(title=f"player {player}", ylabel="own policy", xlabel=f"{other} (index)")
    figure.colorbar(image, ax=axes, label="mean return per episode", shrink=0.8)
    figure.suptitle("Empirical payoffs ± standard error", fontsize=10)
    return figure


def meta_strategies(run: Run) -> Figure:
    """Each player's marginal of the meta-strategy (rows: its policies), iteration by iteration (columns)."""
    players = run.iterations[-1].sigma.ndim
    figure, axes = _grid(players, panel=2.6)
    for player, axis in enumerate(axes):
        shares = np.full((run.iterations[-1].sigma.shape[player], len(run.iterations)), np.nan)
        for column, iteration in enumerate(run.iterations):
            marginal = iteration.sigma.sum(axis=tuple(i for i in range(players) if i != player))
            shares[: len(marginal), column] = marginal
        image = _heatmap(axis, shares, "Blues", Normalize(0, 1))
        for (row, column), share in np.ndenumerate(shares):
            if share >= 0.005 and shares.size <= 150:
                dark = share > 0.55
                axis.text(column, row, f"{share:.2f}", ha="center", va="center", size=6, color="w" if dark else "k")
        axis.set(title=f"player {player}", ylabel="policy (index)", xlabel="iteration")
    figure.colorbar(image, ax=axes, label="probability under the meta-strategy", shrink=0.8)
    figure.suptitle(f"Meta-strategy ({run.config['meta_solver']}), marginals", fontsize=10)
    return figure


def learning_curves(run: Run) -> Figure | None:
    """Each player's best responses while they learn, a line per iteration; None before the first."""
    rows = run.series("learner/return")
    if not rows:
        return None
    iterations = sorted({row["iteration"] for row in rows})
    colours = dict(zip(iterations, colormaps["viridis"](np.linspace(0, 0.9, len(iterations))), strict=True))
    figure, axes = _grid(max(row["player"] for row in rows) + 1, panel=2.3, sharey=True)
    for player, axis in enumerate(axes):
        for iteration in iterations:
            curve = [row for row in rows if (row["player"], row["iteration"]) == (player, iteration)]
            steps = np.array([row["step"] for row in curve]) / 1e3
            value = np.array([row["value"] for row in curve])
            marker = "." if len(curve) < 20 else ""
            axis.plot(steps, value, color=colours[iteration], marker=marker, label=f"iteration {iteration}")
        axis.set(title=f"player {player}", xlabel="environment steps (thousands)")
        axis.label_outer()
    figure.supylabel("return per episode", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False, fontsize=7)
    reward = "the team's reward" if run.config["reward"] == "team" else "its own reward"
    figure.suptitle(f"Best responses in training, each on {reward}", fontsize=10)
    return figure


def convergence(run: Run) -> Figure:
    """Gaps of the meta-strategy, and what its play brings the team, over the iterations."""
    figure = Figure(figsize=(WIDTH, 2.8))
    left, right = figure.subplots(1, 2)
    _intervals(left, run.series("restricted_gap"), BLUE, "o", "among the policies found (estimate)")
    _intervals(left, run.series("full_gap"), ORANGE, "^", "in the whole game (lower bound)")
    left.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    left.set(xlabel="iteration", ylabel="gap (return per episode)", title="Coarse correlated equilibrium gap")
    left.legend(frameon=False, fontsize=7)
    _intervals(right, run.series("team_return"), BLUE, "o", "")
    right.set(xlabel="iteration", ylabel="team return per episode", title="Play of the meta-strategy")
    for axis in (left, right):
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle("Bars: 95 % intervals", fontsize=8, color="0.3")
    return figure


FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "payoffs": payoff_matrices,
    "meta_strategy": meta_strategies,
    "response_graph": response_graph,
    "learning_curves": learning_curves,
    "convergence": convergence,
}


def draw(path: Path) -> list[Path]:
    """Draw all figures of the run at `path` into its figures/; returns their files.

    Raises ValueError for a folder that is no run, or has nothing to draw yet.
    """
    run = load_run(path)
    folder = path / "figures"
    folder.mkdir(exist_ok=True)
    files = []
    with rc_context(STYLE):
        for name, function in FIGURES.items():
            figure = function(run)
            if figure is not None:
                files.append(folder / f"{name}.png")
                _save(figure, files[-1])
    return files


def _against_index(table: np.ndarray, columns: int) -> list[np.ndarray]:
    """[N][k_i, columns]: table[i] where player i plays the row and all others the column."""
    players = len(table)
    return [
        np.stack([np.moveaxis(table[i], i, 0)[(slice(None), *(c,) * (players - 1))] for c in range(columns)], axis=1)
        for i in range(players)
    ]


def _grid(panels: int, panel: float, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `panels` axes in two columns, each row `panel` inches high."""
    rows = math.ceil(panels / 2)
    figure = Figure(figsize=(WIDTH, panel * rows))
    axes = figure.subplots(rows, min(panels, 2), squeeze=False, **options).ravel()
    for unused in axes[panels:]:
        unused.remove()
    return figure, list(axes[:panels])


def _heatmap(axis: Axes, values: np.ndarray, colours: str, scale: Normalize) -> Any:
    image = axis.imshow(values, cmap=colormaps[colours], norm=scale, aspect="auto")
    axis.set_xticks(range(values.shape[1]))
    axis.set_yticks(range(values.shape[0]))
    axis.spines[:].set_visible(False)
    return image


def _annotate(axis: Axes, image: Any, values: np.ndarray, errors: np.ndarray) -> None:
    """Print value and standard error in every cell, where there is room for them."""
    if max(values.shape) > 10:
        return
    size = min(7.0, 40 / max(values.shape))
    for (row, column), value in np.ndenumerate(values):
        # Black on light cells and white on dark ones, by the luminance of the cell's colour.
        dark = np.dot(image.cmap(image.norm(value))[:3], (0.299, 0.587, 0.114)) < 0.5
        text = f"{value:.4g}\n± {errors[row, column]:.2g}"
        axis.text(column, row, text, ha="center", va="center", size=size, color="w" if dark else "k")


def _intervals(axis: Axes, rows: list[dict[str, Any]], colour: str, marker: str, label: str) -> None:
    if rows:
        errors = [INTERVAL * row["standard_error"] for row in rows]
        x, y = [row["iteration"] for row in rows], [row["value"] for row in rows]
        axis.errorbar(x, y, errors, color=colour, marker=marker, markersize=4, capsize=2, label=label)


def _save(figure: Figure, file: Path) -> None:
    """Write the PNG under another name first, so that `file` is never half a picture."""
    picture = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(picture, format="png")
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    temporary.write_bytes(picture.getvalue())
    os.replace(temporary, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0, or 2 after a message where there is nothing to draw."""
    parser = argparse.ArgumentParser(prog="python -m analysis.figures", description="Draw the figures of a run again.")
    parser.add_argument("run", type=Path, help="run folder, e.g. runs/rest_trap-0")
    try:
        for file in draw(parser.parse_args(arguments).run):
            print(file)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
