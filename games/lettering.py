"""Pictures that say more than they show: a panel of who plays, and a state's text as on a typewriter."""

from collections.abc import Sequence
from functools import lru_cache
from textwrap import wrap
from typing import NamedTuple

import numpy as np

from games.canvas import DIM, INK, ORANGE, SKY_BLUE, WHITE, Canvas, Colour, font, mixed, seat_colour, typewriter

WIDTH, HEIGHT = 960, 640
PANEL = 656.0
"""Left edge of what the panel says; the picture proper has what is left of it."""
SIZES = (72, 60, 50, 42, 36, 30, 25, 21, 18, 15, 13, 11, 9)
WHOLE = 21
"""Of letters, in steps: text that grows a little from state to state keeps its size. Larger ones break no lines."""
GROUND = (30, 38, 70)
"""Of what lies on the sheet."""
LINE, LETTER = 1.3, 0.602
"""Height of a line and width of a letter, in sizes of the typewriter's face."""


class Player(NamedTuple):
    """A seat's line in the panel."""

    name: str
    note: str
    """What it did last, or that it is to move."""
    reward: float
    lit: bool = True
    """Whether the note matters now."""


def page(title: str, heading: str, text: str, players: Sequence[Player]) -> np.ndarray:
    """[640, 960, 3] uint8: a text, as large as it fits, beside the panel."""
    canvas = sheet()
    left, top, right, bottom = 40.0, 40.0, PANEL - 56, HEIGHT - 40.0
    lines, size = fitted(text, right - left, bottom - top)
    wide, high = max(map(len, lines)) * LETTER * size, len(lines) * LINE * size
    x, y = (left + right - wide) / 2, (top + bottom - high) / 2
    canvas.box(x - 24, y - 16, x + wide + 24, y + high + 16, GROUND, 14)
    for number, line in enumerate(lines):
        canvas.text(x, y + (number + 0.5) * LINE * size, line, size, WHITE, "lm", face=typewriter)
    panel(canvas, title, heading, players)
    return canvas.pixels()


def sheet() -> Canvas:
    """The dark ground of a picture with a panel."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.box(0, 0, PANEL - 16, HEIGHT, mixed(INK, (40, 54, 100), 0.45))
    return canvas


@lru_cache
def fitted(text: str, width: float, height: float) -> tuple[list[str], float]:
    """The text's lines, wrapped where they must be, and the largest of `SIZES` in which they fit.

    Where not even the smallest will do, the lines in the middle are left out.
    """
    given = text.expandtabs(4).rstrip().splitlines() or [""]
    for size in SIZES:
        letters, rows = int(width / (LETTER * size)), int(height / (LINE * size))
        lines = [part for line in given for part in _wrapped(line, letters)]
        if len(lines) <= rows and (size <= WHOLE or lines == given):
            return lines, size
    return [*lines[: rows // 2], "...", *lines[len(lines) - (rows - 1) // 2 :]], SIZES[-1]


def _wrapped(line: str, letters: int) -> list[str]:
    """A line as it is where it is short enough; its parts else."""
    if len(line) <= letters:
        return [line]
    return wrap(line, letters, subsequent_indent="  ", replace_whitespace=False, drop_whitespace=True) or [""]


def panel(canvas: Canvas, title: str, heading: str, players: Sequence[Player]) -> None:
    """What is played, where the episode stands, and a line for every player."""
    left, right = PANEL, WIDTH - 24.0
    canvas.text(left, 40, clipped(title, 15, right - left), 15, DIM, "lm", bold=True)
    canvas.text(left, 84, heading, 34, anchor="lm")
    height = min(64.0, (HEIGHT - 160) / len(players))
    for seat, player in enumerate(players):
        y, size = 136 + (seat + 0.5) * height, min(17.0, 0.5 * height)
        badge(canvas, left + 18, y, min(36.0, 0.8 * height), seat)
        paid = signed(player.reward)
        canvas.text(right, y, paid, min(18.0, 0.52 * height), reward_colour(player.reward), "rm", bold=True)
        room = right - left - 58 - font(18).getlength(paid)
        colour = WHITE if player.lit else DIM
        if not player.note:
            canvas.text(left + 48, y, clipped(player.name, size, room), size, DIM, "lm")
        elif height > 44:
            canvas.text(left + 48, y - 10, clipped(player.note, size, room), size, colour, "lm")
            canvas.text(left + 48, y + 11, clipped(player.name, 13, room), 13, DIM, "lm")
        else:
            canvas.text(left + 48, y, clipped(f"{player.name}  {player.note}", size, room), size, colour, "lm")


def badge(canvas: Canvas, x: float, y: float, size: float, seat: int) -> None:
    """A player's number on its colour."""
    canvas.box(x - 0.5 * size, y - 0.5 * size, x + 0.5 * size, y + 0.5 * size, seat_colour(seat), 0.25 * size)
    seat_number(canvas, x, y, size, seat)


def seat_number(canvas: Canvas, x: float, y: float, width: float, seat: int) -> None:
    """A player's number, to be read on its colour."""
    number, dark = str(seat), sum(seat_colour(seat)) <= 330
    size = (0.8, 0.66, 0.5)[len(number) - 1] * width
    canvas.text(x, y, number, size, WHITE if dark else INK, bold=True)


def signed(reward: float) -> str:
    return f"{reward:+.4g}" if reward else "0"


def reward_colour(reward: float) -> Colour:
    return SKY_BLUE if reward > 0 else ORANGE if reward < 0 else DIM


def clipped(text: str, size: float, room: float) -> str:
    """The text, cut off where there is no room for all of it."""
    if font(size).getlength(text) <= room:
        return text
    return next((f"{text[:n]}…" for n in range(len(text), 0, -1) if font(size).getlength(f"{text[:n]}…") <= room), "")
