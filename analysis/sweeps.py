"""Pictures of a ranking as the intensity of selection grows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from analysis.panels import PALETTE, QUIET, Names, axis_or_new, checked_names, inches, profile_names, styled

MINOR = 0.02
"""Share of the stationary distribution below which a line stays grey."""
ALIKE = 0.005
"""Lines that differ by less everywhere would hide each other."""
LINE = 11.0
"""Points from one label to the next."""


@styled
def mass_against_alpha(
    alphas: ArrayLike,
    masses: ArrayLike,
    names: Names | Sequence[Names] = None,
    settled: float | None = None,
    axis: Axes | None = None,
) -> Axes:
    """Shares of the stationary distribution [T, k] or [T, k_1, ..., k_N] over the intensities `alphas` [T] > 0.

    The six that end highest are coloured, and named at their ends; others, and what ends below 2 % and half of what it
    has without selection, are grey. `names` are the k policies', or one list a player; `settled` is an alpha to mark.
    `axis` is where to draw; a figure of several pictures wants layout="constrained". Raises ValueError for what is no
    such sweep, and for names that are not one a policy.
    """
    intensities, shares, labels = _checked(alphas, masses, names)
    axis = axis_or_new(axis, 5.5, 3.4)
    leading = [line for line in np.argsort(-shares[-1], kind="stable")[: len(PALETTE)] if _leads(shares, line)]
    others = [line for line in range(len(labels)) if line not in leading]
    point = "." if len(intensities) == 1 else ""
    axis.plot(intensities, shares[:, others], color="0.75", linewidth=0.8, marker=point, zorder=1)
    for place, line in enumerate(leading):
        about: Any = {"linestyle": _dashes(shares, leading, place), "marker": point, "zorder": 2}
        axis.plot(intensities, shares[:, line], color=PALETTE[place], linewidth=1.8, **about)
    axis.set(xscale="log", ylim=(-0.03, 1.03))
    axis.set(xlabel="intensity of selection alpha", ylabel="share of the stationary distribution")
    axis.margins(x=0)
    if settled is not None:
        axis.axvline(settled, color=QUIET, linewidth=0.8, linestyle=":", zorder=0)
        text = f"settled at {settled:.3g} "
        axis.text(settled, _widest_gap(shares[-1]), text, color=QUIET, size=7, rotation=90, ha="right", va="center")
    ends = [(shares[-1, line], labels[line], PALETTE[place]) for place, line in enumerate(leading)]
    if others:
        ends.append((shares[-1, others].mean(), f"{len(others)} other{'s' * (len(others) > 1)}", QUIET))
    _name_ends(axis, float(intensities[-1]), ends)
    return axis


def _checked(
    alphas: ArrayLike, masses: ArrayLike, names: Names | Sequence[Names]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    intensities, shares = np.asarray(alphas, dtype=float), np.asarray(masses, dtype=float)
    if intensities.ndim != 1 or not (intensities > 0).all() or not (np.diff(intensities) > 0).all():
        raise ValueError(f"alphas must grow from above 0, where a logarithmic axis begins; got {intensities}")
    if shares.ndim < 2 or len(shares) != len(intensities) or not (np.abs(shares - 0.5) <= 0.5 + 1e-9).all():
        raise ValueError(f"masses must be shares in [0, 1], a row an alpha of {len(intensities)}; got {shares.shape}")
    shape = shares.shape[1:]
    labels = checked_names(names, *shape) if len(shape) == 1 else profile_names(names, shape)  # type: ignore[arg-type]
    return intensities, shares.reshape(len(shares), -1), labels


def _leads(shares: np.ndarray, line: int) -> bool:
    return shares[-1, line] >= min(MINOR, 0.5 / shares.shape[1])


def _dashes(shares: np.ndarray, leading: list, place: int) -> str | tuple[float, tuple[float, float]]:
    """A whole line, or where several coincide, dashes that leave gaps for the others'."""
    own = shares[:, leading[place]]
    alike = [other for other, line in enumerate(leading) if np.abs(shares[:, line] - own).max() < ALIKE]
    return "-" if len(alike) == 1 else (5.0 * alike.index(place), (5.0, 5.0 * (len(alike) - 1)))


def _widest_gap(shares: np.ndarray) -> float:
    """The middle of the widest part of [0, 1] that has no share in it."""
    heights = np.unique([0.0, *shares, 1.0])
    below = np.diff(heights).argmax()
    return float(heights[below : below + 2].mean())


def _name_ends(axis: Axes, last: float, ends: list[tuple[float, str, str]]) -> None:
    """A label right of each (height, name, colour), moved up or down so that none touches the next."""
    low, high = axis.get_ylim()
    gap = (high - low) * LINE / (72 * inches(axis)[1])
    order = sorted(range(len(ends)), key=lambda end: -ends[end][0])
    heights = spread([ends[end][0] for end in order], gap, low, high)
    for end, height in zip(order, heights, strict=True):
        share, name, colour = ends[end]
        lead = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
        lead["relpos"] = (0, 0.5)  # from the middle of its left side, so as not to cross other names
        axis.annotate(
            name,
            (last, share),
            xytext=(1.03, height),
            textcoords=axis.get_yaxis_transform(),
            arrowprops=lead,
            color=colour,
            size=8,
            va="center",
            annotation_clip=False,
        )


def spread(heights: list[float], gap: float, low: float, high: float) -> list[float]:
    """Falling heights in [low, high] moved until `gap` lies between neighbours, by the least sum of squares.

    That is an isotonic regression, by pooling those that would overlap. Where there is no room for all, the first
    stand above `high`.

    >>> spread([0.5, 0.5, 0.0], 0.25, 0.0, 1.0)
    [0.625, 0.375, 0.0]
    """
    pools: list[tuple[float, int]] = []  # mean of heights + place * gap, which must not rise; and of how many
    for place, height in enumerate(heights):
        level, members = height + place * gap, 1
        while pools and pools[-1][0] < level:
            above, more = pools.pop()
            level, members = (level * members + above * more) / (members + more), members + more
        pools.append((level, members))
    levels = [level for level, members in pools for _ in range(members)]
    lowest = low + gap * (len(heights) - 1)
    return [max(lowest, min(high, level)) - place * gap for place, level in enumerate(levels)]
