"""Pictures of the replicator dynamics: where strategies move, how fast, and where they rest."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import ArrayLike

from analysis.panels import ORANGE, Names, axis_or_new, checked_names, key_below, player_names, styled
from metasolvers import check_payoffs
from metasolvers.replicator_dynamics import replicator_field, replicator_field_single

Field = Callable[[np.ndarray], np.ndarray]
"""From a point of the plane to its velocity there."""

POINTS = 33
"""Places along a side at which the field is computed; stream lines run between them."""
SAME = 1e-9
"""Shares, and payoff differences as a share of the largest, below which they are rounding."""
ROUNDING = 1e-6
"""By which probabilities of a path may leave [0, 1], and sums of them 1."""
WANTED = {
    2: "a path is [T, 2] numbers in [0, 1], how often each player plays its first policy, as in "
    "[(x[0], y[0]) for x, y in replicator_path(...)]",
    3: "a path is [T, 3] probabilities that sum to 1, one row a time, as in list(replicator_path_single(...))",
}
"""What a path is, by its width."""
CORNERS = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
"""Of the 3-simplex: the first policy on top, then left and right."""
KINDS = {"attracting": "k", "neutral": "0.6", "not attracting": "w"}
"""Rest points by whether strategies near them come closer, and what they are filled with."""


@styled
def square_field(
    payoffs: ArrayLike, names: Sequence[Names] | None = None, paths: Sequence[ArrayLike] = (), axis: Axes | None = None
) -> Axes:
    """Replicator dynamics of two populations in a 2x2 game: payoffs [2, 2, 2].

    Across, how often the first player plays its first policy; up, how often the second does. Stream lines are darker
    where strategies move faster, dotted where a player is indifferent. Rest points are black if they attract, white if
    not, grey if their linearisation does neither; where a whole edge is at rest, its ends are. `names` are those of
    each player's two policies. `paths`, or a single one, are drawn on top, from a dot: [T, 2] probabilities of the two
    first policies. `axis` is where to draw; a figure of several pictures wants layout="constrained". Raises ValueError
    for payoffs of another shape, and for what is no such path.

    >>> from metasolvers.replicator_dynamics import replicator_path
    >>> pennies = [[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]
    >>> orbit = replicator_path(pennies, range(9), start=[(0.5, 0.5), (0.8, 0.2)])
    >>> axis = square_field(pennies, paths=[(x[0], y[0]) for x, y in orbit])
    """
    table = check_payoffs(payoffs)
    if table.shape != (2, 2, 2):
        raise ValueError(f"the square is that of two players with two policies, payoffs [2, 2, 2]; got {table.shape}")
    drawn = _checked_paths(paths, 2)
    first = [own[0] if names else f"policy {own[0]}" for own in player_names(names, (2, 2))]
    axis = axis_or_new(axis, 4.4, 3.8)

    def field(point: np.ndarray) -> np.ndarray:
        velocity = replicator_field(table, [(share, 1 - share) for share in np.clip(point, 0, 1)])
        return np.array([own[0] for own in velocity])

    corners = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    _streams(axis, field, np.linspace(0, 1, POINTS), np.linspace(0, 1, POINTS), corners)
    up, across = _indifference(table)
    points = list(corners) + [np.array([across, up])] * (across is not None and up is not None)
    for where, line in ((across, axis.axvline), (up, axis.axhline)):
        if where is not None:
            line(where, color="0.4", linewidth=0.9, linestyle=":", zorder=2)
    inward = [np.where(point < 0.5, 1.0, -1.0) * np.eye(2) for point in points]
    _rest(axis, field, points, inward, max(map(np.ptp, table)))
    _draw_paths(axis, drawn)
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axis.set(xlabel=f"player 0: probability of {first[0]}", ylabel=f"player 1: probability of {first[1]}")
    return axis


@styled
def simplex_field(
    matrix: ArrayLike, names: Names = None, paths: Sequence[ArrayLike] = (), axis: Axes | None = None
) -> Axes:
    """Replicator dynamics of one population with three policies: matrix [3, 3], what the row earns against the column.

    A point is a mixture, nearer to a corner the more often it plays that policy. Stream lines are darker where the
    mixture moves faster. Rest points are black if they attract, white if not, grey if their linearisation does neither;
    where a whole edge is at rest, its ends are. `paths`, or a single one, are drawn on top, from a dot: [T, 3]
    mixtures. `axis` is where to draw; a figure of several pictures wants layout="constrained". Raises ValueError for a
    matrix of another shape, and for what is no such path.

    >>> from metasolvers.replicator_dynamics import replicator_path_single
    >>> game = [[0, -1, 2], [2, 0, -1], [-1, 2, 0]]
    >>> axis = simplex_field(game, paths=list(replicator_path_single(game, range(9), start=[0.8, 0.1, 0.1])))
    """
    table = np.asarray(matrix, dtype=float)
    if table.shape != (3, 3) or not np.isfinite(table).all():
        raise ValueError(f"the simplex is that of three policies, a matrix [3, 3] of numbers; got {table.shape}")
    drawn, corners = _checked_paths(paths, 3), checked_names(names, 3)
    axis = axis_or_new(axis, 4.4, 3.8)
    axis.axis("off")
    to_mixture = np.linalg.inv(np.vstack([CORNERS.T, np.ones(3)]))

    def field(point: np.ndarray) -> np.ndarray:
        mixture = np.maximum(to_mixture @ (*point, 1.0), 0.0)
        return replicator_field_single(table, mixture / mixture.sum()) @ CORNERS

    _streams(axis, field, np.linspace(0, 1, POINTS), np.linspace(0, CORNERS[0, 1], POINTS), CORNERS)
    mixtures = _rest_mixtures(table)
    points = [mixture @ CORNERS for mixture in mixtures]
    inward = [np.delete(CORNERS - CORNERS[mixture.argmax()], mixture.argmax(), axis=0) for mixture in mixtures]
    _rest(axis, field, points, inward, np.ptp(table))
    _draw_paths(axis, [path @ CORNERS for path in drawn])
    for (x, y), name, va in zip(CORNERS, corners, ("bottom", "top", "top"), strict=True):
        shift = (0, 8 if va == "bottom" else -8)
        axis.annotate(name, (x, y), xytext=shift, textcoords="offset points", ha="center", va=va)
    axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, CORNERS[0, 1] + 0.03), aspect="equal")
    return axis


def speeds() -> Colormap:
    """Light where slow, but seen on white."""
    return ListedColormap(colormaps["YlGnBu"](np.linspace(0.3, 1, 256)))


def _streams(axis: Axes, field: Field, across: np.ndarray, up: np.ndarray, corners: np.ndarray) -> None:
    """Stream lines within the polygon of `corners`, coloured by speed."""
    inside = Path(corners).contains_points
    places = np.stack(np.meshgrid(across, up), axis=-1)
    velocity = np.apply_along_axis(field, -1, places)
    speed = np.hypot(*np.moveaxis(velocity, -1, 0))
    outline = PathPatch(Path([*corners, corners[0]], closed=True), facecolor="none", edgecolor="0.3", linewidth=1.0)
    axis.add_patch(outline)
    velocity[~inside(places.reshape(-1, 2), radius=0.03).reshape(speed.shape)] = np.nan
    fastest = speed[np.isfinite(velocity[..., 0])].max() or 1.0
    about: Any = {"color": speed, "cmap": speeds(), "norm": Normalize(0, fastest), "linewidth": 0.9, "arrowsize": 0.8}
    streams = axis.streamplot(across, up, velocity[..., 0], velocity[..., 1], **about)
    streams.lines.set_clip_path(outline)
    axis.figure.colorbar(streams.lines, ax=axis, label="speed (probability × payoff)", shrink=0.7)


def _indifference(table: np.ndarray) -> list[float | None]:
    """How often the other plays its first policy where each player earns the same with both of its own, if anywhere."""
    # What the first policy of each player earns more, where the other plays its second and its first policy.
    gains = (table[0, 0, ::-1] - table[0, 1, ::-1], table[1, ::-1, 0] - table[1, ::-1, 1])
    return [
        float(never / (never - always)) if min(never, always) < -slack and max(never, always) > slack else None
        for (never, always), slack in zip(gains, (SAME * np.ptp(own) for own in table), strict=True)
    ]


def _rest_mixtures(matrix: np.ndarray) -> list[np.ndarray]:
    """Mixtures [3] at rest: corners, and what alone makes all policies of a support earn the same."""
    found, unit = [], (matrix - matrix.min()) / (np.ptp(matrix) or 1.0)
    for size in (1, 2, 3):
        for support in itertools.combinations(range(3), size):
            own = unit[np.ix_(support, support)]
            system = np.block([[own, -np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            if np.linalg.matrix_rank(system) == size + 1:
                shares = np.linalg.solve(system, np.eye(size + 1)[-1])[:size]
                if (shares > SAME).all():
                    found.append(np.zeros(3))
                    found[-1][list(support)] = shares
    return found


def _rest(axis: Axes, field: Field, points: list[np.ndarray], inward: list[np.ndarray], reach: float) -> None:
    """Mark rest points; `inward` are two directions [2, 2] from each one that stay inside."""
    kinds = [_kind(field, point, directions, reach) for point, directions in zip(points, inward, strict=True)]
    about: Any = {"s": 44, "edgecolor": "k", "linewidth": 1.0, "zorder": 5, "clip_on": False}
    shown = []
    for kind, colour in KINDS.items():
        here = np.array([point for point, its in zip(points, kinds, strict=True) if its == kind]).reshape(-1, 2)
        if len(here):
            shown.append(axis.scatter(here[:, 0], here[:, 1], color=colour, label=kind, **about))
    if shown:
        key_below(axis, shown, drop=34 if axis.axison else 14, columns=len(shown))


def _kind(field: Field, point: np.ndarray, directions: np.ndarray, reach: float) -> str:
    """How strategies near a rest point move, by the eigenvalues of the field's Jacobian there."""
    step = 1e-4
    change = [
        (4 * field(point + step * way) - field(point + 2 * step * way) - 3 * field(point)) / (2 * step)
        for way in directions
    ]
    growth = np.linalg.eigvals(np.linalg.solve(directions, np.array(change))).real
    if growth.max() > 1e-5 * reach:
        return "not attracting"
    return "attracting" if growth.max() < -1e-5 * reach else "neutral"


def _checked_paths(paths: Sequence[ArrayLike], width: int) -> list[np.ndarray]:
    """Paths [T, width]; one that is alone becomes a list of one."""
    try:
        lines = [np.asarray(path, dtype=float) for path in paths]
        if lines and all(line.ndim == 1 for line in lines):
            lines = [np.array(lines)]
    except (TypeError, ValueError):  # rows of unlike lengths, or no numbers
        raise ValueError(f"{WANTED[width]}; got {paths!r:.80}") from None
    for line in lines:
        if line.shape[1:] != (width,) or not len(line) or not (np.abs(line - 0.5) <= 0.5 + ROUNDING).all():
            raise ValueError(f"{WANTED[width]}; got {line.shape}, {line.tolist()!r:.80}")
        if width == 3 and not _sums_to_one(line):
            raise ValueError(f"{WANTED[width]}; got rows that sum to {line.sum(axis=1).min():g} and more")
    if width == 2 and len(lines) > 1 and all(line.shape == (2, 2) and _sums_to_one(line) for line in lines):
        raise ValueError(f"{WANTED[width]}; got {len(lines)} pairs of strategies")
    return lines


def _sums_to_one(line: np.ndarray) -> bool:
    return bool((np.abs(line.sum(axis=1) - 1) <= ROUNDING).all())


def _draw_paths(axis: Axes, paths: list[np.ndarray]) -> None:
    for path in paths:
        axis.plot(path[:, 0], path[:, 1], color=ORANGE, linewidth=1.6, zorder=4)
        axis.plot(path[0, 0], path[0, 1], "o", color=ORANGE, markersize=4, zorder=4)
