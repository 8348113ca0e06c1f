"""What the figures share: their size and style, panels for players, heatmaps and intervals."""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.load import Rows, Run
from analysis.numbers import INTERVAL, rounded

WIDTH = 7.0
"""Inches: one column of text."""
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.4,
    "image.interpolation": "nearest",
}
# Okabe & Ito's colours, told apart by nearly everyone.
BLUE, ORANGE = "#0072B2", "#D55E00"
SMALLEST = 4.5
"""Points: smaller text cannot be read in print."""
MOST_TICKS = 16
Sketch = Callable[[Run], Figure | None]


def styled(figure: Sketch) -> Sketch:
    """The figure in the project's style, whoever calls it."""

    @wraps(figure)
    def drawn(run: Run) -> Figure | None:
        with rc_context(STYLE):
            return figure(run)

    return drawn


def grid(panels: int, height: float, columns: int = 2, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `panels` axes, each row `height` inches high."""
    columns = min(panels, columns)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(WIDTH, height * rows))
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for unused in axes[panels:]:
        unused.remove()
    return figure, list(axes[:panels])


def heatmap(axis: Axes, values: np.ndarray, colours: str, scale: Normalize) -> ScalarMappable:
    """Cells [rows, columns]; grey where there is no value."""
    image = axis.imshow(values, cmap=colormaps[colours], norm=scale, aspect="auto")
    axis.set_facecolor("0.88")
    for ticks, count in ((axis.set_xticks, values.shape[1]), (axis.set_yticks, values.shape[0])):
        ticks(range(0, count, math.ceil(count / MOST_TICKS)))
    axis.spines[:].set_visible(False)
    return image


def payoff_scale(blocks: Sequence[np.ndarray]) -> tuple[str, Normalize]:
    """Colours for payoffs: from low to high, or away from zero on both sides where there are gains and losses."""
    low, high = min(block.min() for block in blocks), max(block.max() for block in blocks)
    if low < 0 < high:
        return "PuOr", Normalize(-max(-low, high), max(-low, high))
    return "cividis", Normalize(low, high)


def write_estimates(axis: Axes, image: ScalarMappable, values: np.ndarray, errors: np.ndarray, inches: tuple) -> bool:
    """Print value and standard error in every cell of a heatmap of (width, height) `inches`.

    The standard errors are left out where they do not fit, and all of it where it could not be read. Returns whether
    the standard errors are there.
    """
    if not errors.any():
        cells = {where: (f"{round(value, 9) + 0.0:.3g}", "") for where, value in np.ndenumerate(values)}
    else:
        cells = {where: rounded(value, float(errors[where])) for where, value in np.ndenumerate(values)}
    width, height = 72 * inches[0] / values.shape[1], 72 * inches[1] / values.shape[0]
    longest = max(max(len(value), len(error) + 2) for value, error in cells.values())
    both = min(7.0, width / (0.64 * longest), height / 2.8)
    alone = min(7.0, width / (0.64 * max(len(value) for value, _ in cells.values())), height / 1.5)
    size = both if both >= SMALLEST else alone
    if size < SMALLEST:
        return False
    for (row, column), (value, error) in cells.items():
        text = f"{value}\n± {error}" if size == both and error else value
        write_cell(axis, image, (row, column), float(values[row, column]), text, size)
    return size == both


def write_cell(axis: Axes, image: ScalarMappable, where: tuple[int, int], value: float, text: str, size: float) -> None:
    """Print a cell's text: black on light colours and white on dark ones, by their luminance."""
    dark = np.dot(image.to_rgba(np.asarray(value))[:3], (0.299, 0.587, 0.114)) < 0.5
    row, column = where
    about: Any = {"ha": "center", "va": "center", "size": size, "color": "w" if dark else "k"}
    axis.text(column, row, text, in_layout=False, **about)  # it is inside the panel, and need not be measured


def intervals(axis: Axes, rows: Rows, colour: str, marker: str, label: str) -> None:
    """A metric over the iterations, with its 95 % intervals."""
    if rows:
        errors = [INTERVAL * row.get("standard_error", 0) for row in rows]
        x, y = [row["iteration"] for row in rows], [row["value"] for row in rows]
        axis.errorbar(x, y, errors, color=colour, marker=marker, markersize=4, capsize=2, label=label)
