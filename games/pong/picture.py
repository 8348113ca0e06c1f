"""Pong as a picture: the court by night, the ball with its trail, and the score.

python -m games.pong.picture draws those in docs/.
"""

import sys
from functools import lru_cache
from math import hypot
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from games.canvas import DIM, INK, PALE, SKY_BLUE, WHITE, YELLOW, Canvas, mixed
from games.pong.rules import Params, Places, Pong, State

WIDTH, HEIGHT = 640, 480
LEFT, TOP, RIGHT, BOTTOM = 36.0, 80.0, 604.0, 436.0
"""The court's walls and ends."""
CENTRE = ((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2)
BALL, THICK, BEHIND = 7.0, 11.0, 12.0
"""Radius of the ball; a paddle's thickness, and the room behind it."""
ACROSS = (RIGHT - LEFT) / 2 - BEHIND - THICK - BALL
UP = (BOTTOM - TOP) / 2 - BALL
"""Pixels of a unit of x and y, so that what touches by the rules touches here."""
COLOURS = (SKY_BLUE, YELLOW)
COURT = (22, 30, 58)
SHOWN = 25
"""Seed of the episode in docs/: a short one of good rallies."""
Spot = tuple[float, float]


class Lane(NamedTuple):
    """One lane's state as plain numbers."""

    now: Places
    before: Places
    dx: float
    dy: float
    point: float
    left_points: int
    right_points: int
    steps: int


def frame(game: Pong, params: Params, state: State, lane: int = 0) -> np.ndarray:
    """[480, 640, 3] uint8 picture of one lane, equal for equal states."""
    now, before = (Places(*(float(place[lane]) for place in places)) for places in (state.now, state.before))
    seen = Lane(now, before, *(field[lane].item() for field in state[2:]))
    canvas = Canvas(WIDTH, HEIGHT, _court().copy())
    _score(canvas, game, seen)
    reach = float(params.reach[lane if len(params.reach) > 1 else 0])
    for seat, y in enumerate((seen.now.left, seen.now.right)):
        _paddle(canvas, seat, y, reach * UP - BALL)
    _trail(canvas, seen)
    x, y = _spot(seen.now)
    x += seen.point * (BEHIND + THICK)  # past the paddle that missed it
    canvas.glow(x, y, 2.5 * BALL, WHITE, 0.4)
    canvas.disc(x, y, BALL, WHITE)
    _footer(canvas, game, params, seen, lane)
    return canvas.pixels()


@lru_cache(maxsize=1)
def _court() -> Image.Image:
    """What never changes: the floor, its walls, and the net."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.box(LEFT, TOP - 6, RIGHT, BOTTOM + 6, mixed(DIM, INK, 0.35), 4)
    canvas.box(LEFT, TOP, RIGHT, BOTTOM, COURT)
    canvas.ring(*CENTRE, 54, mixed(COURT, PALE, 0.12), 2)
    for dot in range(21):
        y = TOP + (dot + 0.5) * (BOTTOM - TOP) / 21
        canvas.box(CENTRE[0] - 2, y - 5, CENTRE[0] + 2, y + 5, mixed(COURT, PALE, 0.4), 1)
    return canvas.image


def _spot(places: Places) -> Spot:
    return CENTRE[0] + places.x * ACROSS, CENTRE[1] - places.y * UP


def _score(canvas: Canvas, game: Pong, seen: Lane) -> None:
    x, y = CENTRE[0], 40.0
    canvas.text(x, y - 2, ":", 36, DIM)
    for seat, (points, side) in enumerate(zip((seen.left_points, seen.right_points), (-1, 1), strict=True)):
        won, colour = seen.point == -side, COLOURS[seat]
        canvas.text(x + 44 * side, y, str(points), 46, WHITE if won else colour, bold=True)
        words = "wins" if won and points >= game.points else "scores" if won else ""
        ends, anchor = ((LEFT, RIGHT)[seat], "lr"[seat] + "m")
        canvas.text(ends, y, f"{game.agents[seat]} {words}".strip(), 20, colour, anchor, bold=won)
        if won:  # the end that the ball went out at
            end = RIGHT if seat == 0 else LEFT
            inner = end + 6 * side
            canvas.box(min(end, inner), TOP, max(end, inner), BOTTOM, colour)


def _paddle(canvas: Canvas, seat: int, y: float, half: float) -> None:
    front = CENTRE[0] + (ACROSS + BALL) * (1 if seat else -1)
    back, middle = front + THICK * (1 if seat else -1), CENTRE[1] - y * UP
    canvas.glow((front + back) / 2, middle, 1.5 * half, COLOURS[seat], 0.3)
    canvas.box(min(front, back), middle - half, max(front, back), middle + half, COLOURS[seat], THICK / 2)


def _trail(canvas: Canvas, seen: Lane) -> None:
    """Fainter and fainter to where the ball was a step ago; a served ball has been nowhere."""
    (x, y), (old_x, old_y) = _spot(seen.now), _spot(seen.before)
    if seen.now.x == 0 and abs(seen.before.x) == 1:
        return
    dots = int(hypot(x - old_x, y - old_y) / 2)
    for dot in range(dots, 0, -1):
        share = dot / dots
        colour = mixed(COURT, WHITE, 0.5 * (1 - share))
        canvas.disc(x + (old_x - x) * share, y + (old_y - y) * share, BALL * (1 - 0.6 * share), colour)


def _footer(canvas: Canvas, game: Pong, params: Params, seen: Lane, lane: int) -> None:
    y = HEIGHT - 20.0
    canvas.text(LEFT, y, f"step {seen.steps}", 15, DIM, "lm")
    canvas.text(CENTRE[0], y, f"first to {game.points}", 15, DIM)
    top = float(params.top_speed[lane if len(params.top_speed) > 1 else 0])
    share = min(abs(seen.dx) / top, 1.0)
    canvas.text(RIGHT - 112, y, "speed", 15, DIM, "rm")
    canvas.box(RIGHT - 100, y - 4, RIGHT, y + 4, mixed(INK, DIM, 0.35), 4)
    if share:
        canvas.box(RIGHT - 100, y - 4, RIGHT - 100 + 100 * share, y + 4, PALE, 4)


def main(folder: str | PathLike = "docs") -> None:
    """Write an episode of two rule-based players as pong.gif, and its last picture as pong.png."""
    from games import film
    from games.play import states
    from games.pong.scripted import Follow

    game = Pong(points=1)
    episode = list(states(game, [Follow.of(game, 0.5), Follow.of(game, 0.5)], SHOWN, "picture"))
    pictures = [frame(game, params, state) for params, state in episode]
    film.save(pictures, Path(folder, "pong.gif"), fps=20)
    Image.fromarray(pictures[-1]).save(Path(folder, "pong.png"), optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
