"""Normal-form games as pictures: the payoff matrix with what was played in it, and what that paid."""

from functools import lru_cache

import numpy as np
from PIL import Image

from games.canvas import DIM, INK, WHITE, Canvas, font, mixed, seat_colour
from games.lettering import GROUND, HEIGHT, PANEL, WIDTH, Player, badge, clipped, panel, sheet

LEFT, TOP, RIGHT, BOTTOM = 28.0, 28.0, PANEL - 44, 612.0
"""What there is for the matrix and its margins."""
LARGEST, LEGIBLE = 176.0, 42.0
"""Height and width of a cell: at most, and where its payoffs can be written in it; others show colours alone."""
MOST = 64
"""More actions than these are no matrix to look at."""
LIT = (255, 250, 225)


def frame(payoffs: np.ndarray, labels: tuple[str, ...], heading: str, joint: list[int] | None, paid: list[float]):
    """[640, 960, 3] uint8 of payoffs [N, k_1, ..., k_N], and what everyone played last, None before the first round."""
    choices = payoffs.shape[1:]
    names = labels or tuple(map(str, range(max(choices))))
    if len(choices) == 2 and max(choices) <= MOST:
        canvas = Canvas(WIDTH, HEIGHT, _matrix(payoffs.tobytes(), choices, names).copy())
        if joint is not None:
            _light(canvas, payoffs, names, joint)
    else:
        canvas = sheet()
        _rows(canvas, choices, names, joint)
    notes = ["" if joint is None else f"plays {names[choice]}" for choice in joint or choices]
    players = [Player(f"player_{seat}", note, pay) for seat, (note, pay) in enumerate(zip(notes, paid, strict=True))]
    panel(canvas, "NORMAL-FORM GAME", heading, players)
    return canvas.pixels()


class Grid:
    """Where the cells of a matrix and the names of its actions are."""

    def __init__(self, choices: tuple[int, ...], names: tuple[str, ...]):
        rows, columns = choices
        self.margin = min(150.0, 30 + max(font(16).getlength(name) for name in names[:rows]))
        self.head = 40.0
        self.size = min(LARGEST, (RIGHT - LEFT - self.margin - 40) / columns, (BOTTOM - TOP - self.head - 40) / rows)
        self.legible = self.size >= LEGIBLE
        self.x = (LEFT + RIGHT + self.margin + 40 - columns * self.size) / 2
        self.y = (TOP + BOTTOM + self.head + 40 - rows * self.size) / 2
        self.gap = 0.03 * self.size if self.legible else 0.0

    def corner(self, row: float, column: float) -> tuple[float, float]:
        return self.x + column * self.size, self.y + row * self.size

    def name(self, canvas: Canvas, seat: int, choice: int, names: tuple[str, ...], lit: bool) -> None:
        """An action's name beside its row or column."""
        text = min(16.0, max(13.0, 0.2 * self.size))
        colour = mixed(seat_colour(seat), WHITE, 0.5 if lit else 0.15)
        if seat == 0:
            _, y = self.corner(choice + 0.5, 0)
            canvas.text(self.x - 10, y, clipped(names[choice], text, self.margin), text, colour, "rm", bold=lit)
        else:
            x, _ = self.corner(0, choice + 0.5)
            room = self.size - 4 if self.legible else 200.0
            canvas.text(x, self.y - 20, clipped(names[choice], text, room), text, colour, bold=lit)


@lru_cache(maxsize=4)
def _matrix(content: bytes, choices: tuple[int, ...], names: tuple[str, ...]) -> Image.Image:
    """The matrix before anyone has played.

    A cell's halves have the colours of the players, brighter where they are paid more.
    """
    payoffs, grid = np.frombuffer(content, np.float32).reshape(2, *choices), Grid(choices, names)
    low, high = (end(payoffs, axis=(1, 2), keepdims=True).astype(np.float64) for end in (np.min, np.max))
    bright = (payoffs - low) / np.where(high > low, high - low, 1)
    canvas = sheet()
    for row, column in np.ndindex(*choices):
        _cell(canvas, grid, row, column, [mixed(GROUND, seat_colour(s), 0.55 * bright[s, row, column]) for s in (0, 1)])
        if grid.legible:
            _pays(canvas, grid, row, column, payoffs, [mixed(seat_colour(seat), WHITE, 0.6) for seat in (0, 1)])
    badge(canvas, grid.x - 24 - (grid.margin - 30 if grid.legible else 0) / 2, grid.y - 52, 26, 0)
    badge(canvas, grid.corner(0, choices[1] / 2)[0], grid.y - 52, 26, 1)
    if grid.legible:
        for seat in (0, 1):
            for choice in range(choices[seat]):
                grid.name(canvas, seat, choice, names, lit=False)
    return canvas.image


def _cell(canvas: Canvas, grid: Grid, row: int, column: int, halves: list) -> None:
    """Row player's half below, column player's above."""
    (left, top), (right, bottom) = grid.corner(row, column), grid.corner(row + 1, column + 1)
    gap = grid.gap
    left, top, right, bottom = left + gap, top + gap, right - gap, bottom - gap
    canvas.polygon([(left, top), (left, bottom), (right, bottom)], halves[0])
    canvas.polygon([(left, top), (right, top), (right, bottom)], halves[1])


def _pays(canvas: Canvas, grid: Grid, row: int, column: int, payoffs: np.ndarray, inks: list) -> None:
    size = min(26.0, 0.24 * grid.size)
    for seat, (across, down) in enumerate(((0.3, 0.72), (0.7, 0.28))):
        x, y = grid.corner(row + down, column + across)
        shown = (f"{payoffs[seat, row, column]:.{digits}g}" for digits in (4, 3, 2))
        text = next((text for text in shown if font(size).getlength(text) <= 0.55 * grid.size), "")
        canvas.text(x, y, text, size, inks[seat], bold=True)


def _light(canvas: Canvas, payoffs: np.ndarray, names: tuple[str, ...], joint: list[int]) -> None:
    """The cell that was played."""
    grid, (row, column) = Grid(payoffs.shape[1:], names), joint
    (left, top), (right, bottom) = grid.corner(row, column), grid.corner(row + 1, column + 1)
    edge = max(3.0, 0.05 * grid.size)
    canvas.glow((left + right) / 2, (top + bottom) / 2, 1.1 * grid.size + 8, WHITE, 0.5)
    canvas.box(left - edge, top - edge, right + edge, bottom + edge, LIT, 2 * edge)
    if grid.legible:
        canvas.polygon([(left, top), (right, top), (right, bottom)], mixed(LIT, seat_colour(1), 0.3))
        canvas.polygon([(left, top), (left, bottom), (right, bottom)], mixed(LIT, seat_colour(0), 0.3))
        _pays(canvas, grid, row, column, payoffs, [mixed(seat_colour(seat), INK, 0.6) for seat in (0, 1)])
    for seat, choice in enumerate(joint):
        grid.name(canvas, seat, choice, names, lit=True)


def _rows(canvas: Canvas, choices: tuple[int, ...], names: tuple[str, ...], joint: list[int] | None) -> None:
    """A row of actions for every player, the last one played lit."""
    height = min(96.0, (BOTTOM - TOP) / len(choices))
    top = (TOP + BOTTOM - height * len(choices)) / 2
    for seat, number in enumerate(choices):
        y, left = top + (seat + 0.5) * height, LEFT + 56
        badge(canvas, LEFT + 20, y, min(36.0, 0.7 * height), seat)
        width, half = (RIGHT - left) / number, min(26.0, 0.36 * height)
        for choice in range(number):
            lit = joint is not None and joint[seat] == choice
            x, gap = left + choice * width, min(4.0, 0.1 * width)
            fill = seat_colour(seat) if lit else GROUND
            canvas.box(x + gap, y - half, x + max(width - gap, 2.0), y + half, fill, min(8.0, 0.2 * width))
            if width >= LEGIBLE:
                text = clipped(names[choice], min(17.0, half), width - 4 * gap)
                canvas.text(x + width / 2, y, text, min(17.0, half), INK if lit else DIM, bold=lit)
