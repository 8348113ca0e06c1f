"""Pictures of response graphs: which profiles evolution moves to, and where it stays."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from analysis.load import Run
from analysis.panels import (
    PALETTE,
    SMALLEST,
    Names,
    axis_or_new,
    checked_names,
    inches,
    key_below,
    player_names,
    shortened,
    styled,
)
from metasolvers import alpha_rank, check_payoffs, fixation_edges
from metasolvers.response_graphs import responses, sink_components
from metasolvers.single_population import alpha_rank_single, fixation_edges_single, sink_components_single

NODES = 16
"""Nodes shown: more cannot be read on a page."""
CROWD = 8
"""Nodes from which names have less room."""
NODE = 23.0
"""Points across a node, where there is room."""
FAINTEST = 1e-4
"""Share below which a profile counts as not played; where its colour ends."""
TRANSIENT, SEVENTH = "0.5", "0.2"
"""Colours of what is in no sink component, and of sink components from the seventh on."""
SLACK = 1e-9
"""Of a deviation's strength: what is neither favoured nor disfavoured by more is neutral."""
FAMILY = ("alpha_rank", "alpha_limit", "response_graph")
"""Meta-solvers whose answers live on this graph."""
Edges = tuple[np.ndarray, np.ndarray, np.ndarray]  # source, target, log fixation probability


class Landscape(NamedTuple):
    """K profiles, or policies of a single population, between which evolution moves."""

    names: list[list[str]]
    """Each player's policies, or those of the single population."""
    mass: np.ndarray
    """[K] shares of the stationary distribution."""
    edges: Edges
    neutral: float
    """Log fixation probability without selection."""
    sinks: list[list[int]]
    """The sink components: sets of nodes that no deviation leads out of, if it does not lose."""
    between: str = ", "
    """What stands between the names of a profile's policies."""


@styled
def profile_graph(
    payoffs: ArrayLike,
    alpha: float = 10.0,
    population_size: int = 50,
    normalize: bool = True,
    names: Sequence[Names] | None = None,
    axis: Axes | None = None,
) -> Axes:
    """The response graph of payoffs [N, k_1, ..., k_N] and alpha-rank's mass on it.

    A node is a joint profile with its share of the stationary distribution, coloured if it is in a sink component: a
    colour a component, the fuller the more is played there. An arrow is one player's change of policy whose fixation
    probability exceeds the neutral 1 / m, black where it is certain [Omidshafiei et al. 2019, section 2]; what is
    neutral is dashed. Of more than 16 profiles the heaviest of every sink component is shown, then those that are
    played, and the nearest rivals of the heaviest; the key counts the sink components that find no room. `names` are
    one list of policies a player; where they find no room, a player's are cut so that they are told apart, or give way
    to indices. `axis` is where to draw; a figure of several pictures wants layout="constrained". Errors as
    `alpha_rank`, and ValueError for names that are not one a policy.
    """
    table = check_payoffs(payoffs)
    mass = alpha_rank(table, alpha, population_size, normalize).ravel()
    edges = fixation_edges(table, alpha, population_size, normalize)
    return _draw(axis, _landscape(table, mass, edges, population_size, names))


@styled
def policy_graph(
    payoffs: ArrayLike,
    alpha: float = 10.0,
    population_size: int = 50,
    normalize: bool = True,
    names: Names = None,
    axis: Axes | None = None,
) -> Axes:
    """The response graph of a single population in a symmetric game, and alpha-rank's mass on it.

    A node is one of k policies that all may play, an arrow a mutant that selection favours; otherwise as in
    `profile_graph`. Payoffs, and errors, as in `metasolvers.single_population.alpha_rank_single`, with local selection:
    those of a matrix M are np.stack([M, M.T]). `axis` is where to draw; a figure of several pictures wants
    layout="constrained".
    """
    mass = alpha_rank_single(payoffs, alpha, population_size, normalize)
    edges = fixation_edges_single(payoffs, alpha, population_size, normalize)
    labels = checked_names(names, len(mass))
    return _draw(axis, Landscape([labels], mass, edges, -math.log(population_size), sink_components_single(payoffs)))


@styled
def response_graph(run: Run) -> Figure | None:
    """The joint profiles alpha-rank plays most, and the deviations that selection favours between them.

    Drawn as `profile_graph` is. None for runs whose meta-solver is not of alpha-rank's family.
    """
    solver, last = run.config["meta_solver"], run.iterations[-1]
    if solver not in FAMILY:
        return None
    alpha, population_size = run.config["alpha"], run.config["population_size"]
    finite = solver == "alpha_rank"
    edges = fixation_edges(last.mean, alpha, population_size) if finite else _limit_edges(last.mean, population_size)
    axis = _draw(None, _landscape(last.mean, last.sigma.ravel(), edges, population_size))
    selection = f"alpha {alpha:g}, m {population_size}" if finite else "alpha without bound"
    axis.figure.suptitle(f"Response graph ({solver}, {selection}); profiles are named by each player’s policy", size=9)
    return axis.figure.figure


def _limit_edges(table: np.ndarray, population_size: int) -> Edges:
    """Every single-player deviation, certain to fixate where it gains and never where it loses."""
    moves = responses(table)
    log_fixation = np.where(moves.better, 0.0, np.where(moves.worse, -np.inf, -math.log(population_size)))
    return moves.graph.source, moves.graph.target, log_fixation


def _landscape(
    table: np.ndarray, mass: np.ndarray, edges: Edges, population_size: int, names: Sequence[Names] | None = None
) -> Landscape:
    """That of the joint profiles of a payoff table."""
    shape = table.shape[1:]
    sinks = [[int(np.ravel_multi_index(profile, shape)) for profile in sink] for sink in sink_components(table)]
    between = "-" if names is None else ", "
    return Landscape(player_names(names, shape), mass, edges, -math.log(population_size), sinks, between)


def _draw(axis: Axes | None, land: Landscape) -> Axes:
    """Nodes round a circle, edges between them, and a key."""
    axis = axis_or_new(axis, 6.0, 5.0)
    axis.axis("off")
    axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
    order = _around(_chosen(land), land)
    turns = [math.pi / 2 - 2 * math.pi * place / len(order) for place in range(len(order))]
    radius = 1.0 if len(order) > 1 else 0.0
    places = {node: (radius * math.cos(turn), radius * math.sin(turn)) for node, turn in zip(order, turns, strict=True)}
    for node, turn, name in zip(order, turns, _labels(land, order), strict=True):
        _name(axis, places[node], turn, name)
    edges = _edges_between(order, land)
    key_below(axis, [*_key(land, order), *_key_of_edges(edges)], drop=14)
    spacing = 72 * min(inches(axis)) / 2.6 * 2 * math.sin(math.pi / max(len(order), 3))
    across = min(NODE, 0.7 * spacing)
    for source, target, strength in edges:
        _edge(axis, places[source], places[target], strength, shrink=across / 2 + 1)
    colours = {node: colour for sink, colour in _coloured(land) for node in sink}
    for node, place in places.items():
        _node(axis, place, land.mass[node], colours.get(node, TRANSIENT), across)
    return axis


def _chosen(land: Landscape) -> list[int]:
    """Nodes to show, by mass: all of few, else the heaviest of each sink, what is played, and the heaviest's rivals.

    Its rivals are the deviations from it, the likeliest first.
    """
    by_mass = [int(node) for node in np.argsort(-land.mass.round(9), kind="stable")]  # rounding decides nothing
    if len(by_mass) <= NODES:
        return by_mass
    source, target, log_fixation = land.edges
    leaving = np.flatnonzero(source == by_mass[0])
    rivals = target[leaving[np.argsort(-log_fixation[leaving], kind="stable")]]
    played = [node for node in by_mass if land.mass[node] >= FAINTEST]
    rank = np.argsort(by_mass).tolist()
    of_sinks = [min(sink, key=rank.__getitem__) for sink, _ in _coloured(land)]
    chosen = list(dict.fromkeys([*of_sinks, *played, *map(int, rivals)]))[:NODES]
    return sorted(chosen, key=rank.__getitem__)


def _edges_between(nodes: list[int], land: Landscape) -> list[tuple[int, int, float]]:
    """(source, target, strength) of the deviations between them that are favoured, and of neutral ones one way.

    The strength is 0 where neutral and 1 where certain, linear in the logarithm of the fixation probability.
    """
    source, target, log_fixation = land.edges
    strength = 1 - log_fixation / land.neutral
    favoured, neutral = strength > SLACK, (np.abs(strength) <= SLACK) & (source < target)
    shown = np.flatnonzero(np.isin(source, nodes) & np.isin(target, nodes) & (favoured | neutral))
    return [(int(source[edge]), int(target[edge]), float(strength[edge]) * favoured[edge]) for edge in shown]


def _around(nodes: list[int], land: Landscape) -> list[int]:
    """The nodes in an order round a circle, from the first, that keeps edges short: swaps of two while they do."""
    joined = np.zeros((len(nodes), len(nodes)))
    for source, target, _ in _edges_between(nodes, land):
        joined[nodes.index(source), nodes.index(target)] += 1
    joined += joined.T
    steps = np.arange(len(nodes))
    chords = np.sin(np.pi * np.abs(steps[:, None] - steps) / len(nodes))
    order = np.arange(len(nodes))
    best, improved = (joined * chords).sum(), True
    while improved:
        improved = False
        for i in range(1, len(nodes)):
            for j in range(i + 1, len(nodes)):
                swapped = order.copy()
                swapped[[i, j]] = order[[j, i]]
                length = (joined[np.ix_(swapped, swapped)] * chords).sum()
                if length < best - 1e-9:
                    order, best, improved = swapped, length, True
    return [nodes[place] for place in order]


def _coloured(land: Landscape) -> list[tuple[list[int], str]]:
    """Each sink component and its colour, those with the most mass first; grey from the seventh on."""
    heaviest = sorted(land.sinks, key=lambda sink: -land.mass[sink].sum())
    return [(sink, PALETTE[place] if place < len(PALETTE) else SEVENTH) for place, sink in enumerate(heaviest)]


def _labels(land: Landscape, nodes: list[int]) -> list[str]:
    """Names of nodes in up to three lines, or two narrower ones in a crowd, of as many letters as all find room for."""
    width, lines = (13, 2) if len(nodes) > CROWD else (20, 3)
    profiles = np.transpose(np.unravel_index(nodes, [len(own) for own in land.names]))
    longest = max(len(name) for own in land.names for name in own)
    for most in range(max(min(longest, width * lines), 1), 0, -1):
        names = [shortened(own, most) for own in land.names]
        joined = [land.between.join(own[i] for own, i in zip(names, profile, strict=True)) for profile in profiles]
        wrapped = [textwrap.wrap(name, width) for name in joined]
        if max(map(len, wrapped)) <= lines:
            break
    return ["\n".join(parts) for parts in wrapped]


def _name(axis: Axes, place: tuple[float, float], turn: float, name: str) -> None:
    """Outside the circle, in the direction of `turn`."""
    x, y = math.cos(turn), math.sin(turn)
    aside = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
    upright = "center" if abs(y) < 0.35 else "bottom" if y > 0 else "top"
    away = NODE / 2 + 4
    shift: Any = {"xytext": (away * x, away * y), "textcoords": "offset points", "annotation_clip": False}
    axis.annotate(name, place, ha=aside, va=upright, size=8, **shift)


def _node(axis: Axes, place: tuple[float, float], mass: float, colour: str, across: float) -> None:
    """A disc of so many points with its share of the mass, the fuller of colour the larger that is."""
    full = float(LogNorm(FAINTEST, 1, clip=True)(mass))
    fill = full * np.array(to_rgb(colour)) + (1 - full)
    axis.scatter(*place, s=across**2, color=[fill], edgecolor=colour, linewidth=1.5, zorder=3)
    share = f"{mass:.0%}" if mass >= 0.005 else "<1%" if mass >= FAINTEST else "0"
    ink: Any = {"color": "w" if fill @ (0.299, 0.587, 0.114) < 0.5 else "k", "size": max(SMALLEST, 7 * across / NODE)}
    axis.text(*place, share, ha="center", va="center", zorder=4, in_layout=False, **ink)


def _edge(axis: Axes, source: tuple[float, float], target: tuple[float, float], strength: float, shrink: float) -> None:
    """An arrow, darker the stronger, or a dashed line that ends `shrink` points before both places.

    It is bent towards the centre, the shorter the more, so as to pass by the nodes between.
    """
    style: Any = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.8, "linestyle": "--"}
    if strength:
        style = {"arrowstyle": "-|>", "color": str(0.75 * (1 - strength)), "linewidth": 0.5 + strength}
    bend = 0.3 - 0.12 * math.dist(source, target)
    clockwise = source[0] * target[1] < source[1] * target[0]
    style |= {"connectionstyle": f"arc3,rad={bend if clockwise else -bend}", "shrinkA": shrink, "shrinkB": shrink}
    axis.annotate("", target, source, arrowprops=style, zorder=2)


def _key_of_edges(edges: list[tuple[int, int, float]]) -> list[Line2D]:
    """What the kinds of edges are that there are."""
    arrow, dashes = {"color": "k", "marker": ">", "markersize": 4}, {"color": "0.6", "linestyle": "--"}
    kinds: list[tuple[bool, Any, str]] = [
        (any(strength for *_, strength in edges), arrow, "favoured deviation, the darker the likelier to take over"),
        (not all(strength for *_, strength in edges), dashes, "deviation that neither gains nor loses"),
    ]
    return [Line2D([], [], linewidth=1.0, label=label, **style) for there, style, label in kinds if there]


def _key(land: Landscape, shown: list[int]) -> list[Line2D]:
    """What the colours of the nodes shown are, and how much is not shown."""
    dots: Any = {"marker": "o", "linestyle": "", "markersize": 6}
    key, seen, sinks = [], set(shown), _coloured(land)
    for sink, colour in sinks[: len(PALETTE)]:
        size = "1 node" if len(sink) == 1 else f"{len(sink)} nodes"
        label = f"sink component of {size}: {land.mass[sink].sum():.1%} of the mass"
        key.append(Line2D([], [], color=colour, label=label, **dots))
    greys = [sink for sink, _ in sinks[len(PALETTE) :] if seen & set(sink)]
    if greys:
        label = f"{_more(greys)}: {sum(land.mass[sink].sum() for sink in greys):.1%} of the mass"
        key.append(Line2D([], [], color=SEVENTH, label=label, **dots))
    hidden = [sink for sink, _ in sinks if not seen & set(sink)]
    if hidden:
        key.append(Line2D([], [], linestyle="", label=f"and {_more(hidden)}, not shown"))
    inside = [node for sink in land.sinks for node in sink]
    if seen - set(inside):
        key.append(
            Line2D([], [], color=TRANSIENT, label=f"passed through: {max(1 - land.mass[inside].sum(), 0):.1%}", **dots)
        )
    if len(shown) < len(land.mass):
        text = f"{len(shown)} of {len(land.mass)} nodes shown, {land.mass[shown].sum():.1%} of the mass"
        key.append(Line2D([], [], linestyle="", label=text))
    return key


def _more(sinks: list[list[int]]) -> str:
    return f"{len(sinks)} more sink component{'s' * (len(sinks) > 1)}"
