"""Figures as small files."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from analysis.panels import styled


@styled
def write(figure: Figure, path: Path) -> None:
    """A PNG of 256 colours, a third of the bytes. The method keeps rare colours, as those of thin lines."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    path.parent.mkdir(parents=True, exist_ok=True)
    fewer = drawn.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    fewer.save(path, optimize=True)
