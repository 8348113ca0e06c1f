"""What pictures of Bucket Brigade are made of: houses, fires, rubble and people, in pixels of the finished picture."""

import numpy as np

from games.canvas import (  # noqa: F401 - for who draws by these icons
    BLUE,
    DIM,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SEATS,
    SKY_BLUE,
    SMOOTH,
    VERMILLION,
    WHITE,
    YELLOW,
    Canvas,
    Colour,
    Points,
    font,
    mixed,
    seat_colour,
)
from games.lettering import seat_number

SKIN, WINDOW, CHAR, STONE = (246, 214, 180), (255, 236, 170), (44, 38, 40), (138, 134, 138)
WATER = (150, 215, 245)


def house(canvas: Canvas, x: float, y: float, size: float, colour: Colour) -> None:
    """A house with its lights on, in its owner's colour."""
    _walls(canvas, x, y, size, mixed(colour, INK, 0.12), mixed(colour, INK, 0.5))
    for side in (-1, 1):
        left, top = x + (0.17 * side - 0.08) * size, y + 0.02 * size
        canvas.box(left, top, left + 0.16 * size, top + 0.16 * size, WINDOW)
    canvas.box(x - 0.08 * size, y + 0.24 * size, x + 0.08 * size, y + 0.46 * size, mixed(colour, INK, 0.7))


def burning_house(canvas: Canvas, x: float, y: float, size: float, colour: Colour) -> None:
    """A dark house in flames."""
    canvas.glow(x, y - 0.15 * size, 1.25 * size, ORANGE, 0.55)
    flame(canvas, x, y - 0.02 * size, 1.1 * size)
    _walls(canvas, x, y + 0.08 * size, 0.8 * size, mixed(colour, CHAR, 0.62), CHAR)
    for side in (-1, 1):
        left, top = x + (0.14 * side - 0.07) * size, y + 0.1 * size
        canvas.box(left, top, left + 0.14 * size, top + 0.15 * size, ORANGE)
    flame(canvas, x - 0.26 * size, y + 0.2 * size, 0.46 * size, lean=-0.08)
    flame(canvas, x + 0.28 * size, y + 0.22 * size, 0.4 * size, lean=0.1)


def flame(canvas: Canvas, x: float, y: float, size: float, lean: float = 0.05) -> None:
    """Tongues of fire around (x, y), `size` high."""
    for colour, scale in ((VERMILLION, 1.0), (ORANGE, 0.68), (YELLOW, 0.38)):
        for shift, height, tilt in ((-0.2, 0.66, -0.12), (0.2, 0.72, 0.14), (0.0, 1.0, lean)):
            foot = y + 0.42 * size
            canvas.polygon(_tongue(x + shift * size * scale, foot, size * scale * height, tilt * size * scale), colour)


def _tongue(x: float, foot: float, height: float, lean: float) -> Points:
    turn = np.linspace(0, 2 * np.pi, 28)
    side, up = np.sin(turn) * np.sin(turn / 2) ** 1.4, (1 + np.cos(turn)) / 2
    xs = x + 0.36 * height * side + lean * np.sin(up * np.pi * 0.9)
    return [(float(a), float(b)) for a, b in zip(xs, foot - up * height, strict=True)]


def ruin(canvas: Canvas, x: float, y: float, size: float, colour: Colour) -> None:
    """What is left of a house: stumps of its walls, rubble and smoke."""

    def at(*points: tuple[float, float]) -> Points:
        return [(x + across * size, y + down * size) for across, down in points]

    for across, down, radius in ((0.06, -0.06, 0.15), (0.16, -0.26, 0.11), (0.08, -0.42, 0.07)):
        canvas.disc(x + across * size, y + down * size, radius * size, (*DIM, 70))
    wall = mixed(colour, CHAR, 0.7)
    canvas.polygon(at((-0.38, 0.46), (-0.38, 0.0), (-0.3, 0.08), (-0.25, 0.02), (-0.2, 0.2), (-0.2, 0.46)), wall)
    canvas.polygon(at((0.38, 0.46), (0.38, 0.12), (0.31, 0.2), (0.26, 0.14), (0.22, 0.3), (0.22, 0.46)), wall)
    for across, down, radius, shade in ((-0.12, 0.36, 0.13, 0.0), (0.14, 0.38, 0.12, 0.25), (0.02, 0.28, 0.12, 0.45)):
        stone = mixed(STONE, INK, shade)
        corners = [
            (across + radius * float(np.cos(turn)) * 1.15, down + radius * float(np.sin(turn)) * 0.85)
            for turn in np.linspace(0.3, 2 * np.pi + 0.3, 6)[:-1] + shade
        ]
        canvas.polygon(at(*corners), stone)


HOUSES = (house, burning_house, ruin)
"""By the code of a house's state: SAFE, BURNING, RUINED."""


def _walls(canvas: Canvas, x: float, y: float, size: float, wall: Colour, roof: Colour) -> None:
    canvas.box(x + 0.2 * size, y - 0.42 * size, x + 0.31 * size, y - 0.1 * size, roof)
    canvas.box(x - 0.36 * size, y - 0.1 * size, x + 0.36 * size, y + 0.46 * size, wall)
    canvas.polygon([(x - 0.5 * size, y - 0.04 * size), (x, y - 0.5 * size), (x + 0.5 * size, y - 0.04 * size)], roof)


def person(canvas: Canvas, x: float, y: float, size: float, seat: int, works: bool | None, signal: int | None) -> None:
    """An agent: upright with a bucket, or dozing; None, None before the first night. The bubble is its signal."""
    colour = seat_colour(seat)
    if works is False:
        y += 0.08 * size
    canvas.disc(x, y + 0.47 * size, 0.36 * size, (0, 0, 0, 80), squash=0.3)
    canvas.box(x - 0.28 * size, y - 0.16 * size, x + 0.28 * size, y + 0.5 * size, INK, 0.24 * size)
    canvas.box(x - 0.25 * size, y - 0.13 * size, x + 0.25 * size, y + 0.47 * size, colour, 0.21 * size)
    canvas.disc(x, y - 0.24 * size, 0.21 * size, INK)
    canvas.disc(x, y - 0.24 * size, 0.18 * size, SKIN)
    helmet = [(x - 0.26 * size, y - 0.26 * size)]
    helmet += [
        (x + 0.2 * size * float(np.cos(turn)), y - 0.28 * size - 0.22 * size * float(np.sin(turn)))
        for turn in np.linspace(np.pi, 0, 12)
    ]
    canvas.polygon([*helmet, (x + 0.26 * size, y - 0.26 * size)], mixed(colour, INK, 0.3))
    seat_number(canvas, x, y + 0.17 * size, 0.5 * size, seat)
    if works:
        bucket(canvas, x + 0.36 * size, y + 0.3 * size, 0.36 * size)
    elif works is False:
        doze(canvas, x + 0.3 * size, y - 0.12 * size, 0.34 * size)
    if signal is not None:
        bubble(canvas, x - 0.4 * size, y - 0.42 * size, 0.42 * size, signal)


def bucket(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.ring(x, y - 0.22 * size, 0.42 * size, PALE, 0.08 * size)
    half, foot = 0.5 * size, 0.34 * size
    sides = [(x - half, y - 0.25 * size), (x + half, y - 0.25 * size), (x + foot, y + half), (x - foot, y + half)]
    canvas.polygon(sides, PALE)
    canvas.disc(x, y - 0.25 * size, half, WATER, squash=0.36)


def doze(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.text(x, y, "z", 1.0 * size, WHITE, bold=True)
    canvas.text(x + 0.5 * size, y - 0.55 * size, "z", 0.8 * size, WHITE, bold=True)


def bubble(canvas: Canvas, x: float, y: float, size: float, signal: int) -> None:
    """A speech bubble: bright for signal 1, dark for 0."""
    fill, ink = (WHITE, INK) if signal else ((70, 78, 104), WHITE)
    canvas.polygon([(x + 0.1 * size, y + 0.3 * size), (x + 0.55 * size, y + 0.8 * size), (x + 0.45 * size, y)], fill)
    canvas.box(x - 0.5 * size, y - 0.5 * size, x + 0.5 * size, y + 0.5 * size, fill, 0.24 * size)
    canvas.text(x, y, str(signal), 0.8 * size, ink, bold=True)


def water(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], size: float) -> None:
    """Drops thrown in an arc from a bucket."""
    for share in np.linspace(0.1, 1, 7):
        x = start[0] + (end[0] - start[0]) * share
        y = start[1] + (end[1] - start[1]) * share - 1.6 * size * float(np.sin(share * np.pi))
        canvas.disc(x, y, (0.08 + 0.09 * float(share)) * size, WATER)


def meter(canvas: Canvas, x: float, y: float, width: float, share: float) -> None:
    """How far a fire is put out: a bar around (x, y), as full of water as `share` says."""
    left, height = x - width / 2, max(3.0, 0.1 * width)
    canvas.box(left, y - height / 2, left + width, y + height / 2, INK)
    canvas.box(left, y - height / 2, left + width * min(share, 1.0), y + height / 2, WATER)


def well(canvas: Canvas, x: float, y: float, size: float) -> None:
    """Where the water comes from."""
    canvas.disc(x, y + 0.2 * size, 0.5 * size, (0, 0, 0, 70), squash=0.55)
    canvas.disc(x, y + 0.15 * size, 0.42 * size, mixed(STONE, INK, 0.45), squash=0.6)
    canvas.disc(x, y + 0.06 * size, 0.42 * size, STONE, squash=0.6)
    canvas.disc(x, y + 0.06 * size, 0.31 * size, mixed(WATER, BLUE, 0.6), squash=0.6)
    for side in (-1, 1):
        post = x + side * 0.38 * size
        canvas.box(post - 0.035 * size, y - 0.5 * size, post + 0.035 * size, y + 0.1 * size, (122, 92, 70))
    canvas.polygon(
        [(x - 0.55 * size, y - 0.42 * size), (x, y - 0.75 * size), (x + 0.55 * size, y - 0.42 * size)], (146, 108, 82)
    )
