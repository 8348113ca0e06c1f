"""Pictures of populations: policies as points of a plane in which cycles are round and ladders are straight."""

import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike

from analysis.panels import ORANGE, QUIET, Names, axis_or_new, checked_names, inches, key_below, styled
from metasolvers.hodge import disc_components
from metasolvers.nash_averaging import nash_averaging

PLAYED = 1e-6
"""Probability from which a policy is in the support of the equilibrium."""
MOST_NAMED = 12
"""Policies up to which others than those of the equilibrium are named."""
SIDES = np.array([-1.0, 1.0])
FARTHEST = 12
"""Steps of a line by which a name may be moved off its point."""
Box = tuple[float, float, float, float]
"""Left, low, right, high."""
LETTER, LINE = 4.8, 9.5
"""Points that a letter of a name takes across, and a line up."""


@styled
def population_plane(
    matrix: ArrayLike,
    names: Names = None,
    ratings: ArrayLike | None = None,
    label: str = "mean payoff",
    axis: Axes | None = None,
) -> Axes:
    """Policies in the plane of the disc game that comes nearest to an antisymmetric matrix [k, k].

    Entry i, j is what i wins from j; twice the triangle that i, j and the origin (+) span is close to it, counted
    against the clock. So cycles run around the origin, while policies that differ in strength alone lie on a line
    [Balduzzi et al. 2018, section 4.2]. Colour is each policy's `ratings` [k], by default its mean payoff against all;
    policies of a Nash equilibrium of the population have a ring, and always their name. Of up to 12 policies others are
    named too, where there is room. `axis` is where to draw; a figure of several pictures wants layout="constrained".
    Raises ValueError for a matrix that is not antisymmetric, and for names or ratings that are not one a policy.

    >>> axis = population_plane([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], names=("rock", "paper", "scissors"))
    >>> axis.get_xlabel()
    'first disc, x (√payoff), 100 % of the game'
    """
    sizes, discs = disc_components(matrix)
    table = np.asarray(matrix, dtype=float)
    points = discs[0] if len(discs) else np.zeros((len(table), 2))
    labels = checked_names(names, len(table))
    worth = table.mean(axis=1) if ratings is None else np.asarray(ratings, dtype=float)
    if worth.shape != (len(table),):
        raise ValueError(f"ratings must be one for each of {len(table)} policies; got {worth.shape}")
    played = nash_averaging(table).p > PLAYED
    axis = axis_or_new(axis, 4.4, 3.8)
    axis.plot(0, 0, "+", color="0.5", markersize=9, zorder=1)
    x, y = points.T
    dots = axis.scatter(x, y, s=34, c=worth, cmap="cividis", edgecolor="w", linewidth=0.6, zorder=3)
    dots.set_norm(_scale(worth, np.abs(table).max()))
    about: Any = {"s": 95, "facecolor": "none", "edgecolor": ORANGE, "linewidth": 1.4, "zorder": 2}
    ring = axis.scatter(x[played], y[played], label="Nash equilibrium", **about)
    share = sizes[0] ** 2 / (sizes**2).sum() if len(sizes) else 1.0
    axis.set(xlabel=f"first disc, x (√payoff), {share:.0%} of the game".replace("%", " %"), ylabel="y (√payoff)")
    seen = np.vstack([points, np.zeros(2)])
    middle, reach = (seen.max(axis=0) + seen.min(axis=0)) / 2, 0.65 * np.ptp(seen, axis=0).max() or 1.0
    axis.set(xlim=middle[0] + reach * SIDES, ylim=middle[1] + reach * SIDES, aspect="equal")
    axis.figure.colorbar(dots, ax=axis, label=label, shrink=0.7)
    key_below(axis, [ring], drop=34)
    _name(axis, points, labels, played)
    return axis


def _scale(worth: np.ndarray, largest: float) -> Normalize:
    """From the lowest to the highest; where they differ by rounding alone, all are in the middle."""
    same = np.ptp(worth) <= 1e-9 * largest
    wider = (largest or 1.0) if same else 0.0
    return Normalize(worth.min() - wider, worth.max() + wider)


def _name(axis: Axes, points: np.ndarray, names: list[str], played: np.ndarray) -> None:
    """Names beside their points, in the first of eight directions that is free within the axis.

    Those that are played come first: where none is free, they stand further off, at the end of a line, at worst where
    they hide the least. Others then have no name.
    """
    inches(axis)  # lays out, so that the data have their places
    scale = 72 / axis.figure.dpi
    places = axis.transData.transform(points) * scale
    room = np.asarray(axis.bbox.extents) * scale
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    outward = places - axis.transData.transform((0, 0)) * scale
    wanted = [i for i in range(len(names)) if played[i] or len(names) <= MOST_NAMED]
    for i in sorted(wanted, key=lambda i: not played[i]):
        first = round(math.atan2(outward[i][1], outward[i][0]) / (math.pi / 4))
        angles = [(first + turn) * math.pi / 4 for turn in (0, 1, -1, 2, -2, 3, -3, 4)]
        steps = range(FARTHEST if played[i] else 1)
        tried = [_Spot.of(places[i], names[i], angle, step) for step in steps for angle in angles]
        best = min(tried, key=lambda spot: spot.hides(taken, room))  # the first of those that hide nothing
        if played[i] or best.hides(taken, room) == 0:
            taken.append(best.box)
            about: Any = {"xytext": best.shift, "textcoords": "offset points", "ha": best.aside, "va": "center"}
            line = {"arrowstyle": "-", "color": QUIET, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 6}
            about["arrowprops"] = line if math.hypot(*best.shift) > 12 else None
            axis.annotate(names[i], points[i], in_layout=False, annotation_clip=False, size=8, **about)


class _Spot(NamedTuple):
    """Where a name may stand, in points."""

    box: Box
    shift: tuple[float, float]
    aside: str

    @classmethod
    def of(cls, place: np.ndarray, name: str, angle: float, step: int) -> "_Spot":
        """Beside a place, or so many steps further off."""
        x, y = (8 + LINE * step) * math.cos(angle), (11 + LINE * step) * math.sin(angle)
        width = LETTER * len(name)
        aside = "center" if abs(x) < 1 else "left" if x > 0 else "right"
        left = place[0] + x - {"left": 0, "center": width / 2, "right": width}[aside]
        return cls((left, place[1] + y - LINE / 2, left + width, place[1] + y + LINE / 2), (x, y), aside)

    def hides(self, taken: list[Box], room: np.ndarray) -> float:
        """Square points of it that are taken, or outside of the room."""
        whole, within = (_common(self.box, np.array([other])).item() for other in (self.box, room))
        return float(_common(self.box, np.array(taken)).sum()) + whole - within


def _common(box: Box, others: np.ndarray) -> np.ndarray:
    """Areas that it has in common with each of other boxes [n, 4]."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return np.prod(np.maximum(sides, 0), axis=1)
