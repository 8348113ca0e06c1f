"""The response graph of alpha-rank: which profiles evolution moves to, and where it stays."""

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from analysis.load import Run
from analysis.panels import styled
from metasolvers import alpha_rank, fixation_edges

NODES = 12
"""Profiles shown: more cannot be read on a page."""
Edges = tuple[np.ndarray, np.ndarray, np.ndarray]  # source, target, log fixation probability

FAINTEST = 1e-4
"""Share below which a profile counts as not played; the bottom of the colour scale."""


@styled
def response_graph(run: Run) -> Figure | None:
    """The joint profiles alpha-rank plays most, and the deviations that selection favours between them.

    Where it plays few, the nearest rivals of the first are shown too: what it is one deviation away from. A node is a
    joint profile, named by the players' policy indices, with its share of the stationary distribution. An arrow is one
    player's change of policy whose fixation probability exceeds the neutral 1 / m, black where it is certain
    [Omidshafiei et al. 2019, section 2]. None for runs that solve zero-sum games otherwise.
    """
    if run.config["meta_solver"] == "zero_sum_nash":
        return None
    payoffs = run.iterations[-1].mean
    selection = {"alpha": run.config["alpha"], "population_size": run.config["population_size"]}
    mass, edges = alpha_rank(payoffs, **selection).ravel(), fixation_edges(payoffs, **selection)
    shown = _chosen(mass, edges)
    angles = [math.pi / 2 - 2 * math.pi * place / len(shown) for place in range(len(shown))]
    places = {node: (math.cos(angle), math.sin(angle)) for node, angle in zip(shown, angles, strict=True)}
    figure = Figure(figsize=(6.0, 5.0))
    axis = figure.subplots()
    _edges(axis, places, edges, -math.log(selection["population_size"]))
    _nodes(axis, figure, places, mass, payoffs.shape[1:])
    axis.set(xlim=(-1.6, 1.6), ylim=(-1.3, 1.3), aspect="equal")
    axis.axis("off")
    figure.suptitle(
        f"Response graph of alpha-rank (alpha {selection['alpha']:g}, m {selection['population_size']}):\n"
        f"{len(shown)} of {len(mass)} profiles, {mass[shown].sum():.1%} of the mass, named by each player's policy;\n"
        "arrows: favoured deviations, darker the likelier to take over",
        fontsize=9,
    )
    return figure


def _chosen(mass: np.ndarray, edges: Edges) -> list[int]:
    """Profiles to show: those played, by mass, then deviations from the first, the least unfavourable ones first."""
    source, target, log_fixation = edges
    first = int(np.argmax(mass))
    leaving = np.flatnonzero(source == first)
    rivals = target[leaving[np.argsort(-log_fixation[leaving], kind="stable")]]
    played = [node for node in np.argsort(-mass, kind="stable") if mass[node] >= FAINTEST]
    return [int(node) for node in dict.fromkeys([*played, *rivals])][:NODES]


def _nodes(axis: Axes, figure: Figure, places: dict, mass: np.ndarray, shape: tuple[int, ...]) -> None:
    scale = LogNorm(FAINTEST, 1, clip=True)
    colours = ScalarMappable(scale, colormaps["Blues"])
    for node, (x, y) in places.items():
        axis.scatter(x, y, s=520, color=colours.to_rgba(mass[node]), edgecolor="0.2", linewidth=0.8, zorder=3)
        dark = scale(mass[node]) > 0.55
        share = f"{mass[node]:.0%}" if mass[node] >= 0.005 else "<1%" if mass[node] >= FAINTEST else "0"
        axis.text(x, y, share, ha="center", va="center", size=7, color="w" if dark else "k", zorder=4)
        name = "-".join(str(index) for index in np.unravel_index(node, shape))
        axis.text(1.36 * x, 1.19 * y, name, ha="center", va="center", size=8)
    figure.colorbar(colours, ax=axis, label="share of the stationary distribution", shrink=0.6)


def _edges(axis: Axes, places: dict, edges: Edges, neutral: float) -> None:
    for source, target, log_fixation in zip(*edges, strict=True):
        if source in places and target in places and log_fixation > neutral + 1e-9:
            strength = (log_fixation - neutral) / -neutral  # 0 neutral, 1 certain
            style = {
                "arrowstyle": "-|>",
                "color": str(0.75 * (1 - strength)),
                "linewidth": 0.5 + strength,
                "shrinkA": 12,
                "shrinkB": 12,
                "connectionstyle": "arc3,rad=0.08",
            }
            axis.annotate("", places[target], places[source], arrowprops=style, zorder=2)
