"""One page with every kind of picture of a table: `python -m analysis.gallery docs/gallery.png`."""

import argparse
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from analysis.embeddings import population_plane
from analysis.fields import simplex_field, square_field
from analysis.graph import profile_graph
from analysis.matrices import payoff_matrix
from analysis.panels import STYLE
from analysis.sweeps import mass_against_alpha
from metasolvers.replicator_dynamics import replicator_path_single
from metasolvers.sweep import sweep

SIZE, COLUMNS = (4.4, 4.0), 3
"""Inches of a picture, and how many go beside one another."""
DOTS_PER_INCH = 75

RPS = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
HANDS = ("rock", "paper", "scissors")
WITH_TRUCE = (*HANDS, "truce")


def tournament(axis: Axes | None = None) -> Axes:
    """Shares of 60 games a pair that eight versions of a policy win; the first and the last have not met."""
    strength = np.linspace(-0.9, 0.9, 8)
    chance = 1 / (1 + np.exp(strength - strength[:, None]))
    won = np.triu(np.random.default_rng(5).binomial(60, chance), 1)
    share = (won + np.tril(60 - won.T, -1)) / 60 + 0.5 * np.eye(8)
    error = np.sqrt(share * (1 - share) / 60) * (1 - np.eye(8))
    share[0, -1] = share[-1, 0] = np.nan
    names = [f"v{version}" for version in range(8)]
    return payoff_matrix(share, error, names, reference=0.5, label="share of games won", axis=axis)


def stakes_or_truce() -> np.ndarray:
    """Rock, paper, scissors with stakes that differ, or a truce that both want: payoffs [2, 4, 4]."""
    own = np.full((4, 4), -3.0)
    own[:3, :3] = RPS * [1.0, 1.5, 2.0]
    own[:3, 3], own[3, 3] = -2.0, 0.5
    return np.stack([own, own.T])


def two_sinks(axis: Axes | None = None) -> Axes:
    """Under weak selection most of the mass is in the cycle, not in the truce."""
    return profile_graph(stakes_or_truce(), alpha=0.2, names=[WITH_TRUCE, WITH_TRUCE], axis=axis)


def growing_selection(axis: Axes | None = None) -> Axes:
    """Under strong selection all mass is in the truce."""
    swept = sweep(stakes_or_truce(), np.geomspace(1e-2, 10, 61))
    return mass_against_alpha(swept.alphas, swept.pi, [WITH_TRUCE, WITH_TRUCE], swept.settled, axis)


def coordination(axis: Axes | None = None) -> Axes:
    """All stakes differ: in a game with symmetries, rounding decides which stream lines there is room for."""
    payoffs = np.array([[[4, 0], [0, 1]], [[1.5, 0], [0, 2.5]]])
    return square_field(payoffs, [("opera", "football")] * 2, axis=axis)


def spiral(axis: Axes | None = None) -> Axes:
    """Winning brings more than losing costs, so that the centre attracts."""
    game = RPS + 0.2 * (RPS > 0)
    path = list(replicator_path_single(game, np.linspace(0, 25, 250), [0.05, 0.1, 0.85]))
    return simplex_field(game, HANDS, [np.array(path)], axis)


def spinning_top(axis: Axes | None = None) -> Axes:
    """Policies that beat others by strength, and by where they stand on a circle, the less the stronger they are.

    What games of skill look like [Czarnecki et al. 2020].
    """
    turn, strength = 2.4 * np.arange(60), np.linspace(0, 1, 60)
    x, y = np.array([np.cos(turn), np.sin(turn)]) * (1.05 - strength) ** 0.5
    matrix = np.outer(x, y) - np.outer(y, x) + 0.5 * (strength[:, None] - strength)
    return population_plane(matrix, label="mean gain per game", axis=axis)


PICTURES: dict[str, Callable[[Axes], Axes]] = {
    "A tournament: what is significant has colour": tournament,
    "Response graph: sink components have colours": two_sinks,
    "Alpha-rank as selection grows": growing_selection,
    "Replicator field of a coordination game": coordination,
    "Replicator field of rock, paper, scissors that pays to win": spiral,
    "A population that climbs out of its cycles": spinning_top,
}
"""By title."""


def page() -> Image.Image:
    """All pictures under their titles."""
    width, height = (round(side * DOTS_PER_INCH) for side in SIZE)
    sheet = Image.new("RGB", (COLUMNS * width, -(-len(PICTURES) // COLUMNS) * height), "white")
    for place, (title, draw) in enumerate(PICTURES.items()):
        with rc_context(STYLE):
            figure = Figure(figsize=SIZE)
            figure.suptitle(title, size=10)
            draw(figure.subplots())
        picture = io.BytesIO()
        figure.savefig(picture, dpi=DOTS_PER_INCH, facecolor="w")
        sheet.paste(Image.open(picture), (place % COLUMNS * width, place // COLUMNS * height))
    return sheet


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m analysis.gallery", description=__doc__)
    parser.add_argument("file", type=Path, help="PNG to write")
    file = parser.parse_args(arguments).file
    page().save(file, format="png", optimize=True)
    print(file)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
