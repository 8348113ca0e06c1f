"""What games are drawn on and with: a smooth canvas, in pixels of the finished picture, and the colours of seats."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, ...]
Points = list[tuple[float, float]]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

SMOOTH = 2
"""Everything is drawn this many times larger, then averaged down: smooth edges."""

# Palette for the colour-blind [Okabe & Ito 2008], without black, which the night swallows, and what fire needs last.
SKY_BLUE, GREEN, PURPLE, YELLOW = (86, 180, 233), (0, 158, 115), (204, 121, 167), (240, 228, 66)
BLUE, ORANGE, VERMILLION = (0, 114, 178), (230, 159, 0), (213, 94, 0)
PALE = (222, 222, 222)
SEATS = (SKY_BLUE, GREEN, PURPLE, YELLOW, BLUE, PALE, ORANGE, VERMILLION)

WHITE, INK, DIM = (245, 245, 240), (16, 20, 38), (150, 158, 180)


def mixed(colour: Colour, other: Colour, share: float) -> Colour:
    """`share` of the other colour in the first."""
    return tuple(round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))


def seat_colour(seat: int) -> Colour:
    """An agent's colour; lighter, then darker, from the ninth agent on, and then all over again."""
    shade, index = divmod(seat, len(SEATS))
    return mixed(SEATS[index], *((WHITE, 0.0), (WHITE, 0.45), (INK, 0.4))[shade % 3])


@lru_cache
def font(size: float) -> Font:
    """Pillow's own, so that pictures do not depend on the fonts of a machine."""
    return ImageFont.load_default(size)


@lru_cache
def typewriter(size: float) -> ImageFont.FreeTypeFont:
    """Every letter as wide as the others, and the same on every machine: DejaVu Sans Mono, as Matplotlib brings it."""
    import matplotlib  # takes a moment, which only such pictures need

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSansMono.ttf"), size)


class Canvas:
    """An image to draw on, in pixels of the finished picture."""

    def __init__(self, width: int, height: int, background: Image.Image | None = None):
        self.image = background or Image.new("RGB", (width * SMOOTH, height * SMOOTH), INK)
        self._draw = ImageDraw.Draw(self.image, "RGBA")

    def polygon(self, points: Points, fill: Colour) -> None:
        self._draw.polygon([(x * SMOOTH, y * SMOOTH) for x, y in points], fill)

    def disc(self, x: float, y: float, radius: float, fill: Colour, squash: float = 1.0) -> None:
        self._draw.ellipse(_box(x - radius, y - radius * squash, x + radius, y + radius * squash), fill)

    def ring(self, x: float, y: float, radius: float, outline: Colour, width: float) -> None:
        self._draw.ellipse(
            _box(x - radius, y - radius, x + radius, y + radius), outline=outline, width=round(width * SMOOTH)
        )

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour, radius: float = 0.0) -> None:
        self._draw.rounded_rectangle(_box(left, top, right, bottom), radius * SMOOTH, fill)

    def line(self, points: Points, fill: Colour, width: float) -> None:
        self._draw.line(
            [(x * SMOOTH, y * SMOOTH) for x, y in points], fill, max(1, round(width * SMOOTH)), joint="curve"
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        fill: Colour = WHITE,
        anchor: str = "mm",
        bold: bool = False,
        face: Callable[[float], Font] = font,
    ) -> None:
        stroke = max(0.4, size / 45) * SMOOTH if bold else 0
        self._draw.text(
            (x * SMOOTH, y * SMOOTH), text, fill, face(size * SMOOTH), anchor, stroke_width=stroke, stroke_fill=fill
        )

    def glow(self, x: float, y: float, radius: float, colour: Colour, strength: float) -> None:
        """Light that fades with the distance."""
        mask = _fading(max(1, round(2 * radius * SMOOTH)), strength)
        corner = (round((x - radius) * SMOOTH), round((y - radius) * SMOOTH))
        self.image.paste(Image.new("RGB", mask.size, colour), corner, mask)

    def pixels(self) -> np.ndarray:
        """[height, width, 3] uint8."""
        return np.asarray(self.image.reduce(SMOOTH))


def _box(left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
    return (left * SMOOTH, top * SMOOTH, right * SMOOTH, bottom * SMOOTH)


@lru_cache
def _fading(size: int, strength: float) -> Image.Image:
    line = np.linspace(-1, 1, size)
    distance = np.hypot(line[:, None], line[None, :])
    return Image.fromarray((255 * strength * np.clip(1 - distance, 0, 1) ** 2).astype(np.uint8))
