"""A picture of each game: its payoffs, its response graph, and the shares as selection grows."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.graph import policy_graph, profile_graph
from analysis.matrices import payoff_matrix
from analysis.panels import styled
from analysis.sweeps import mass_against_alpha
from metasolvers.sweep import sweep, sweep_single
from papers.alpharank_2019.quantities import Game, Result, one_population, selection

HEIGHT, DPI = 4.2, 100
ALPHAS = np.geomspace(1e-3, 1e3, 37)
"""Intensities per payoff unit: from where all are about equally likely to where every ranking here has settled."""


class Panel(NamedTuple):
    title: str
    width: float
    """Inches."""
    draw: Callable[..., Axes]


@styled
def picture(game: Game, results: list[Result]) -> Figure:
    """A game, its graph and sweep at the parameters of the first shares published, in a row."""
    shares = [result for result in results if result["quantity"] == "share"]
    panels = [*_matrices(game), *_graph(game, shares), _sweep(game, shares[0])]
    figure = Figure(figsize=(sum(panel.width for panel in panels), HEIGHT), dpi=DPI)
    figure.set_layout_engine("constrained", w_pad=0.12)
    axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=[panel.width for panel in panels])[0]
    for panel, axis in zip(panels, axes, strict=True):
        panel.draw(axis=axis)
        axis.set_title(panel.title, fontsize=9)
    return figure


def _matrices(game: Game) -> list[Panel]:
    """What the first player earns against all others' profiles; what the second does too, where that tells more."""
    first, *others = game.payoffs
    against = [", ".join(names) for names in itertools.product(*game.policies[1:])]
    matrix = first.reshape(len(first), -1)
    told = len(others) == 1 and (np.array_equal(first, others[0].T) or np.array_equal(first, -others[0]))
    panels = [_matrix(game, "payoffs" if told else "the first player’s payoffs", matrix, game.policies[0], against)]
    if len(others) == 1 and not told:
        panels.append(_matrix(game, "the second player’s", others[0].T, *game.policies[::-1]))
    return panels


def _matrix(game: Game, title: str, matrix: np.ndarray, own: list[str], others: list[str]) -> Panel:
    width = max(3.6, 1.4 + 0.36 * len(others))
    return Panel(title, width, partial(payoff_matrix, matrix, names=own, columns=others, label=game.label))


def _graph(game: Game, results: list[Result]) -> list[Panel]:
    """The response graph. There is none under global selection, where it matters how many the mutants are."""
    for result in results:
        if result.get("selection") != "global":
            graph = partial(profile_graph, game.payoffs, names=game.policies, **selection(result))
            if one_population(result):
                graph = partial(policy_graph, game.payoffs, names=game.policies[0], **selection(result))
            title = f"response graph, {_model(result)}, alpha {result['alpha']:g}, m {result['population_size']}"
            return [Panel(title, 3.8 + 0.12 * max(map(len, game.states(result))), graph)]
    return []


def _sweep(game: Game, result: Result) -> Panel:
    """Shares from hardly any selection to where they have settled, which is marked."""
    parameters = {name: value for name, value in selection(result).items() if name != "alpha"}
    one = one_population(result)
    swept = (sweep_single if one else sweep)(game.payoffs, ALPHAS, **parameters)
    settled = swept.settled if swept.settled != ALPHAS[0] else None
    names: Any = game.policies[0] if one else game.policies
    line = partial(mass_against_alpha, swept.alphas, swept.pi, names=names, settled=settled)
    return Panel(f"shares as selection grows, {_model(result)}, m {result['population_size']}", 4.6, line)


def _model(result: Result) -> str:
    return "one population" if one_population(result) else "a population each"
