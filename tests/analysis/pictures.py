"""Pictures that the tests compare with tests/analysis/images; `python -m tests.analysis.pictures` draws those anew."""

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures import payoff_matrix, policy_graph
from analysis.gallery import PICTURES, WITH_TRUCE, stakes_or_truce

IMAGES = Path(__file__).with_name("images")
DOTS_PER_INCH = 50


def large_matrix() -> Axes:
    """Too many policies for numbers, or for all names, on an axis that is handed in."""
    axis = Figure(figsize=(4.4, 3.6), layout="constrained").subplots()
    angle = np.linspace(0, 4 * np.pi, 40)
    gains = np.sin(angle[:, None] - angle) + (angle[:, None] - angle) / 12
    names = [f"iteration {i}" for i in range(40)]
    return payoff_matrix(gains, np.full_like(gains, 0.1), names, reference=0, label="gain per episode", axis=axis)


def single_population() -> Axes:
    return policy_graph(stakes_or_truce(), alpha=0.5, names=WITH_TRUCE)


CASES: dict[str, Callable[..., Axes]] = {
    draw.__name__: draw for draw in (*PICTURES.values(), large_matrix, single_population)
}


def drawn(name: str) -> Axes:
    """The picture, whatever the style sheets of the machine say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        return CASES[name]()


def save(axis: Axes, file: Path) -> None:
    """As a small PNG."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        axis.figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="w")
    with Image.open(file) as image:
        image.convert("RGB").save(file, optimize=True)


if __name__ == "__main__":
    for name in CASES:
        save(drawn(name), IMAGES / f"{name}.png")
