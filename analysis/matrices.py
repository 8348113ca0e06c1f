"""Pictures of payoff matrices: named policies, written values, and what is not significant in grey."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike

from analysis.numbers import INTERVAL
from analysis.panels import (
    SEQUENTIAL,
    Names,
    axis_or_new,
    checked_names,
    heatmap,
    inches,
    payoff_scale,
    styled,
    write_estimates,
)

CELL = 0.62
"""Inches a cell takes where there is room."""
UNCLEAR = 0.9
"""Grey, from black to white, of cells that are not told from the reference."""
ROUNDING = 1e-9
"""Of the largest value: what exact values may differ by and be the same."""
LETTER = 0.07
"""Inches a letter of a name takes."""
Reference = float | Literal["mirror"]


@styled
def payoff_matrix(
    values: ArrayLike,
    errors: ArrayLike | None = None,
    names: Names = None,
    columns: Names = None,
    reference: Reference | None = None,
    label: str = "payoff",
    axis: Axes | None = None,
) -> Axes:
    """What each policy (row) earns against each other one (column): values [k_0, k_1], NaN where they have not met.

    `errors` [k_0, k_1] are standard errors, 0 where a value is exact. Cells are grey that differ from the `reference`
    by less than 1.96 of them: a number (0 of gains, 0.5 of shares of games won) or "mirror", in a square matrix the
    cell on the other side of the diagonal, which then is white. Columns are named as rows are, where there are as many.
    `label` is what the values are, with their unit. Numbers that could not be read are left out, and names thinned:
    both are sized for the room that the `axis` has now, so put several pictures into subfigures, where they keep it, of
    a figure of layout="constrained".
    Raises ValueError for what is no such matrix, and for names that are not one a policy.

    >>> axis = payoff_matrix([[0, 1, -1], [-1, 0, 1], [1, -1, 0]], names=("rock", "scissors", "paper"))
    >>> axis.figure.savefig("matrix.png")  # doctest: +SKIP
    """
    table, spread = _checked(values, errors)
    rows = checked_names(names, table.shape[0])
    across = rows if columns is None and table.shape[0] == table.shape[1] else checked_names(columns, table.shape[1])
    axis = axis_or_new(axis, _side(table.shape[1], rows), _side(table.shape[0], across))
    unclear = _unclear(table, spread, reference)
    image = heatmap(axis, table, *_colours(table, reference))
    own = np.eye(*table.shape) == 1 if reference == "mirror" else np.zeros(table.shape, dtype=bool)
    greys = np.select([unclear, own & np.isfinite(table)], [UNCLEAR, 1.0], np.nan)
    axis.imshow(greys, cmap="gray", norm=Normalize(0, 1), aspect="auto")
    axis.set(facecolor="w", xlabel="opponent’s policy", ylabel="own policy")
    axis.patch.set(hatch="////", edgecolor="0.8")  # seen where there is no value
    axis.tick_params(length=0)
    told = "the exchanged cell" if reference == "mirror" else f"{reference:g}" if reference is not None else ""
    grey = f"\ngrey: not told from {told} (95 %)" if unclear.any() else ""
    bar = axis.figure.colorbar(image, ax=axis, label=label + grey, shrink=0.85)
    bar.outline.set_visible(False)  # type: ignore[operator]
    _name_ticks(axis, rows, across)
    write_estimates(axis, image, table, spread, inches(axis), quiet=unclear | own)
    return axis


def _side(cells: int, names: list[str]) -> float:
    """Inches for so many cells, and for names beside them."""
    return min(7.0, 1.7 + CELL * cells + LETTER * max(map(len, names)))


def _checked(values: ArrayLike, errors: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    table = np.asarray(values, dtype=float)
    spread = np.zeros_like(table) if errors is None else np.asarray(errors, dtype=float)
    if table.ndim != 2 or not table.size or np.isinf(table).any() or np.isnan(table).all():
        raise ValueError(f"a payoff matrix is [k_0, k_1] numbers, NaN for pairs that have not met; got {table.shape}")
    if spread.shape != table.shape or not (spread[np.isfinite(table)] >= 0).all():
        raise ValueError(f"errors must be standard errors >= 0, one for each of {table.shape}; got {spread.shape}")
    return table, spread


def _unclear(table: np.ndarray, errors: np.ndarray, reference: Reference | None) -> np.ndarray:
    """Where a cell cannot be told from the reference at 95 %; nowhere without one."""
    if reference is None:
        return np.zeros(table.shape, dtype=bool)
    rounding = ROUNDING * np.nanmax(np.abs(table))
    if reference != "mirror":
        return np.abs(table - reference) <= INTERVAL * errors + rounding
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"only a square matrix has a mirror; got {table.shape}: give a number as reference")
    alike = np.abs(table - table.T) <= INTERVAL * np.hypot(errors, errors.T) + rounding
    return alike & ~np.eye(len(table), dtype=bool)


def _colours(table: np.ndarray, reference: Reference | None) -> tuple[str, Normalize]:
    """Away from a reference that is a number to both sides, else as payoffs are coloured; none is grey or white beside
    cells that are so by themselves.
    """
    known = table[np.isfinite(table)]
    if reference == "mirror":
        return SEQUENTIAL, Normalize(known.min(), known.max())
    if reference is None:
        return payoff_scale([known])
    reach = np.abs(known - reference).max() or 1.0
    return "PuOr", Normalize(reference - reach, reference + reach)


def _name_ticks(axis: Axes, rows: list[str], columns: list[str]) -> None:
    """Names along both sides, as large as cells let them be, upright below where they do not fit; not all of many."""
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xticks(range(len(columns)), columns)
    width, height = (72 * length for length in inches(axis))
    _thin(axis.set_yticks, rows, height / len(rows))
    broadest = 0.62 * 8 * max(map(len, columns))
    if broadest <= width / len(columns):
        axis.tick_params(axis="x", labelsize=8)
    else:
        _thin(axis.set_xticks, columns, width / len(columns), rotation=90)


def _thin(ticks: Callable, names: list[str], pitch: float, **options: float) -> None:
    """Every name at `pitch` points from the next, or every so many where lines of 6 points do not fit."""
    step = math.ceil(6 * 1.15 / pitch)
    ticks(range(0, len(names), step), names[::step], fontsize=min(8.0, step * pitch / 1.15), **options)
