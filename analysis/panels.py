"""What figures and pictures share: size and style, axes and names, heatmaps and intervals."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

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
PALETTE = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
SEQUENTIAL = "viridis"
"""Colours from low to high, none of them grey, which is that of cells of which nothing is known."""
QUIET = "0.45"
"""Ink of what is not to stand out, dark enough to be read on white and light grey."""
SMALLEST = 4.5
"""Points: smaller text cannot be read in print."""
MOST_TICKS = 16
Sketch = Callable[[Run], Figure | None]
Names = Sequence[str] | None
"""Names of policies; None for their indices."""
Arguments = ParamSpec("Arguments")
Drawing = TypeVar("Drawing")


def styled(draw: Callable[Arguments, Drawing]) -> Callable[Arguments, Drawing]:
    """What draws in the project's style, whoever calls it."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawing:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def axis_or_new(axis: Axes | None, width: float, height: float) -> Axes:
    """The axis to draw on: the caller's, or the only one of a new figure of so many inches."""
    return Figure(figsize=(width, height)).subplots() if axis is None else axis


def inches(axis: Axes) -> tuple[float, float]:
    """Width and height of an axis once everything on its figure has been given its room."""
    figure = axis.figure.figure  # the whole one, of a subfigure too
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    axis.apply_aspect()
    box = axis.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi


def checked_names(names: Names, count: int) -> list[str]:
    """`count` names, the indices where there are none. Raises ValueError for another number of them."""
    if names is not None and len(names) != count:
        raise ValueError(f"names must be one for each of {count} policies; got {len(names)}: {list(names)}")
    return [str(index) for index in range(count)] if names is None else [str(name) for name in names]


def player_names(names: Sequence[Names] | None, shape: tuple[int, ...]) -> list[list[str]]:
    """Each player's names of its policies, their indices where there are none.

    Raises ValueError for names that are not one list a player, of one name a policy.
    """
    if names is not None and (len(names) != len(shape) or any(isinstance(own, str) for own in names)):
        raise ValueError(f"names must be {len(shape)} lists, one a player of {shape} policies; got {names}")
    return [checked_names(own, count) for own, count in zip(names or [None] * len(shape), shape, strict=True)]


def profile_names(names: Sequence[Names] | None, shape: tuple[int, ...]) -> list[str]:
    """Names of all joint profiles in C order: 0-1 of indices, "opera, football" of names. Errors as `player_names`."""
    between = "-" if names is None else ", "
    return [between.join(profile) for profile in itertools.product(*player_names(names, shape))]


def shortened(names: Sequence[str], most: int) -> list[str]:
    """Names of at most so many letters that are told apart where the whole ones are; indices where none such are.

    Cut are their ends, or where that is not enough their middles, or their beginnings.

    >>> shortened(["scripted rush", "scripted turtle"], 12)
    ['scripted ru…', 'scripted tu…']
    >>> shortened(["Striker, version 1", "Striker, version 2"], 6), shortened(["north-east", "north-west"], 3)
    (['Str…1', 'Str…2'], ['0', '1'])
    """
    for tail in (0, (most - 1) // 2, most - 1):
        head = most - 1 - tail
        cut = [
            name if len(name) <= most else f"{name[:head].rstrip()}…{name[len(name) - tail :].lstrip()}"
            for name in names
        ]
        if len(set(cut)) == len(set(names)):
            return cut
    return [str(index) for index in range(len(names))]


def key_below(axis: Axes, handles: Sequence[Artist], drop: float = 4.0, columns: int = 1) -> None:
    """A legend `drop` points below the axis, without touching it."""
    below = axis.transAxes + ScaledTranslation(0, -drop / 72, axis.figure.dpi_scale_trans)
    anchor: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below}
    axis.legend(handles=list(handles), ncols=columns, frameon=False, fontsize=7, borderpad=0, **anchor)


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
    return SEQUENTIAL, Normalize(low, high)


def write_estimates(
    axis: Axes,
    image: ScalarMappable,
    values: np.ndarray,
    errors: np.ndarray,
    room: tuple[float, float],
    quiet: np.ndarray | None = None,
) -> bool:
    """Print value and standard error in every cell of a heatmap that has (width, height) inches of room.

    Cells of NaN stay empty, those of the mask `quiet` are written in grey. The standard errors are left out where they
    do not fit, and all of it where it could not be read. Returns whether the standard errors are there.
    """
    cells = {
        where: _written(value, float(errors[where])) for where, value in np.ndenumerate(values) if np.isfinite(value)
    }
    if not cells:
        return False
    width, height = 72 * room[0] / values.shape[1], 72 * room[1] / values.shape[0]
    longest = max(max(len(value), len(error) + 2) for value, error in cells.values())
    both = min(7.0, width / (0.64 * longest), height / 2.8)
    alone = min(7.0, width / (0.64 * max(len(value) for value, _ in cells.values())), height / 1.5)
    size = both if both >= SMALLEST else alone
    if size < SMALLEST:
        return False
    for (row, column), (value, error) in cells.items():
        text = f"{value}\n± {error}" if size == both and error else value
        ink = QUIET if quiet is not None and quiet[row, column] else None
        write_cell(axis, image, (row, column), float(values[row, column]), text, size, ink)
    return size == both


def write_cell(
    axis: Axes,
    image: ScalarMappable,
    where: tuple[int, int],
    value: float,
    text: str,
    size: float,
    ink: str | None = None,
) -> None:
    """Print a cell's text: in `ink`, or black on light colours and white on dark ones, by their luminance."""
    dark = np.dot(image.to_rgba(np.asarray(value))[:3], (0.299, 0.587, 0.114)) < 0.5
    row, column = where
    about: Any = {"ha": "center", "va": "center", "size": size, "color": ink or ("w" if dark else "k")}
    axis.text(column, row, text, in_layout=False, **about)  # it is inside the panel, and need not be measured


def _written(value: float, error: float) -> tuple[str, str]:
    """A value and its standard error as they are written in a cell; three digits of what is exact, and no error."""
    return rounded(value, error) if error else (f"{round(value, 9) + 0.0:.3g}", "")


def intervals(axis: Axes, rows: Rows, colour: str, marker: str, label: str) -> None:
    """A metric over the iterations, with its 95 % intervals."""
    if rows:
        errors = [INTERVAL * row.get("standard_error", 0) for row in rows]
        x, y = [row["iteration"] for row in rows], [row["value"] for row in rows]
        axis.errorbar(x, y, errors, color=colour, marker=marker, markersize=4, capsize=2, label=label)
