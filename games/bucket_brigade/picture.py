"""Bucket Brigade as a picture: the ring of houses by night, who went where and did what, and what it paid.

python -m games.bucket_brigade.picture draws those in docs/.
"""

import sys
from functools import lru_cache
from math import ceil, cos, pi, sin
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from games.bucket_brigade import icons
from games.bucket_brigade.rules import BURNING, RUINED, SAFE, WORK, BucketBrigade, State
from games.canvas import DIM, INK, ORANGE, PALE, WHITE, Canvas, mixed, seat_colour
from games.lettering import badge, reward_colour

WIDTH, HEIGHT = 960, 640
CENTRE, RING, GREEN_RADIUS = (320.0, 328.0), 232.0, 192.0
"""The houses' circle around its centre, and the village green within it."""
PANEL = (656.0, 936.0)
"""Left and right edge of what is written."""
SKY, LOW_SKY, GRASS, PATH = (13, 18, 42), (34, 44, 88), (24, 62, 58), (40, 84, 74)
LARGEST = 60.0
"""Height of a person who has all the room."""
Spot = tuple[float, float]


class Lane(NamedTuple):
    """One lane's state as plain numbers; before the first night nobody has gone anywhere."""

    houses: list[int]
    night: int
    positions: list[int]
    modes: list[int]
    signals: list[int]
    rewards: list[float]
    meters: list[float]  # empty where fires are put out at once
    announced: list[int]  # empty where nights have one phase
    second: int  # 1 once the bits of a night are announced


def frame(game: BucketBrigade, state: State, lane: int = 0) -> np.ndarray:
    """[640, 960, 3] uint8 picture of one lane, equal for equal states."""
    meters, phases = state.meters, state.phases
    seen = Lane(
        houses=state.houses[lane].tolist(),
        night=int(state.night[lane]),
        positions=state.positions[lane].tolist(),
        modes=state.modes[lane].tolist(),
        signals=state.signals[lane].tolist(),
        rewards=state.rewards[lane].tolist(),
        meters=[] if meters is None else meters[lane].tolist(),
        announced=[] if phases is None else phases.announced[lane].tolist(),
        second=0 if phases is None else int(phases.second[lane]),
    )
    canvas = Canvas(WIDTH, HEIGHT, _night_sky(len(seen.houses)).copy())
    _moon(canvas, seen.night)
    _ring(canvas, game, seen)
    _people(canvas, game, seen)
    _panel(canvas, game, seen)
    return canvas.pixels()


@lru_cache(maxsize=4)
def _night_sky(houses: int) -> Image.Image:
    """What is the same every night: sky, stars, and the green with the path along the houses."""
    canvas = Canvas(WIDTH, HEIGHT)
    bands = 16
    for band in range(bands):
        top = band * HEIGHT / bands
        canvas.box(0, top, WIDTH, top + HEIGHT / bands, mixed(SKY, LOW_SKY, band / (bands - 1)))
    stars = np.random.default_rng(7).random((90, 3))
    for across, down, bright in stars:
        canvas.disc(across * 640, down * HEIGHT, 0.6 + 1.1 * bright**3, mixed(SKY, WHITE, 0.3 + 0.6 * bright))
    canvas.disc(*CENTRE, RING + 0.62 * _house_size(houses), mixed(GRASS, INK, 0.35))
    canvas.disc(*CENTRE, RING + 0.25 * _house_size(houses), GRASS)
    canvas.ring(*CENTRE, GREEN_RADIUS + 6, PATH, 7)
    if houses <= 40:
        for house in range(houses):
            canvas.line([CENTRE, _spot(house, houses, RING)], mixed(GRASS, PATH, 0.45), 5)
    icons.well(canvas, *CENTRE, 74)
    canvas.box(640, 0, WIDTH, HEIGHT, mixed(SKY, INK, 0.5))
    return canvas.image


def _moon(canvas: Canvas, night: int) -> None:
    """A moon in its phase: new every eighth night."""
    x, y, radius = 64.0, 66.0, 30.0
    phase = night % 8 / 8
    canvas.glow(x, y, 2.2 * radius, WHITE, 0.25)
    canvas.disc(x, y, radius, (48, 56, 92))
    turns = np.linspace(-pi / 2, pi / 2, 40)
    lit = 1 if phase < 0.5 else -1  # waxing on the right, waning on the left
    edge = [(x + lit * radius * cos(turn), y + radius * sin(turn)) for turn in turns]
    bend = cos(2 * pi * phase)
    shadow = [(x + lit * bend * radius * cos(turn), y + radius * sin(turn)) for turn in turns[::-1]]
    canvas.polygon([*edge, *shadow], (250, 242, 212))


def _house_size(houses: int) -> float:
    return min(74.0, 0.84 * 2 * pi * RING / houses)


def _spot(house: float, houses: int, radius: float) -> Spot:
    """Where a house's direction, clockwise from the top, meets a circle."""
    turn = 2 * pi * house / houses - pi / 2
    return CENTRE[0] + radius * cos(turn), CENTRE[1] + radius * sin(turn)


def _ring(canvas: Canvas, game: BucketBrigade, seen: Lane) -> None:
    houses, size = len(seen.houses), _house_size(len(seen.houses))
    named = ceil(houses / 40)  # every house has its number where there is room
    for house in sorted(range(houses), key=lambda house: seen.houses[house] == BURNING):
        x, y = _spot(house, houses, RING)
        colour = seat_colour(house % game.N)
        canvas.disc(x, y + 0.46 * size, 0.5 * size, colour, squash=0.16)
        icons.HOUSES[seen.houses[house]](canvas, x, y, size, colour)
        if seen.meters and seen.houses[house] == BURNING:
            icons.meter(canvas, x, y + 0.56 * size, 0.8 * size, seen.meters[house])
    for house in range(0, houses, named):
        lit = ORANGE if seen.houses[house] == BURNING else DIM if seen.houses[house] == RUINED else WHITE
        text = max(9.0, min(16.0, 0.26 * size))
        canvas.text(*_spot(house, houses, RING + 0.56 * size + 0.9 * text), str(house), text, lit, bold=True)


def _people(canvas: Canvas, game: BucketBrigade, seen: Lane) -> None:
    """Everyone at the house it went to, workers nearest to it; around the well before the first night."""
    if not seen.night:
        size, spots = _places([list(range(game.N))], 2 * pi, 0.72 * GREEN_RADIUS)
        for seat, spot in spots.items():
            icons.person(canvas, *spot, size, seat, None, None)
        return
    houses = len(seen.houses)
    crowds = [[seat for seat in range(game.N) if seen.positions[seat] == house] for house in range(houses)]
    crowds = [sorted(crowd, key=lambda seat: seen.modes[seat] != WORK) for crowd in crowds]
    size, spots = _places(crowds, pi / 2, GREEN_RADIUS - 4)
    for seat, (x, y) in spots.items():
        if seen.modes[seat] == WORK:
            fire = _spot(seen.positions[seat], houses, RING - 0.1 * _house_size(houses))
            icons.water(canvas, (x, y - 0.1 * size), fire, 0.5 * size)
    for seat, (x, y) in sorted(spots.items(), key=lambda item: item[1][1]):  # who is nearer hides who is farther
        icons.person(canvas, x, y, size, seat, seen.modes[seat] == WORK, seen.signals[seat])


def _places(crowds: list[list[int]], widest: float, outside: float) -> tuple[float, dict[int, Spot]]:
    """The size of a person with which every crowd has room before its house, and where each person stands.

    A crowd keeps to its own house's sector of the green while people stay large enough; then it spreads half-way to the
    next house where somebody is, over the angle `widest` at most.
    """
    houses, busy = len(crowds), [house for house, crowd in enumerate(crowds) if crowd]
    size, widths = LARGEST, dict.fromkeys(busy, min(widest, 1.25 * 2 * pi / houses))
    while not all(_rows(len(crowds[house]), widths[house], outside - size / 2, size) for house in busy):
        size *= 0.94
        if size < 0.5 * LARGEST:
            widths = {house: min(widest, 2 * pi * _apart(house, busy, houses) / houses) for house in busy}
    spots = {}
    for house in busy:
        seats, width = iter(crowds[house]), widths[house]
        for radius, number in _rows(len(crowds[house]), width, outside - size / 2, size) or ():
            gap = width / number if width == 2 * pi else min(width / number, 1.25 * size / radius)
            for place in range(number):
                turn = (place - (number - 1) / 2) * gap
                spots[next(seats)] = _spot(house + turn * houses / (2 * pi), houses, radius)
    return size, spots


def _apart(house: int, busy: list[int], houses: int) -> int:
    """Houses from one to the nearest other in `busy`; all the way round where there is none."""
    ways = [(other - house) % houses for other in busy if other != house]
    return min((min(way, houses - way) for way in ways), default=houses)


def _rows(people: int, width: float, outside: float, size: float) -> list[tuple[float, int]] | None:
    """(radius, number of people) of each row of a crowd, from the outside in; None where there is no room for all."""
    rows, radius = [], outside
    while people:
        if radius < 0.42 * GREEN_RADIUS:
            return None
        number = min(people, max(1, int(radius * width / (1.25 * size))))
        rows.append((radius, number))
        people, radius = people - number, radius - 1.15 * size
    return rows


def _panel(canvas: Canvas, game: BucketBrigade, seen: Lane) -> None:
    left, right = PANEL
    canvas.text(left, 40, "BUCKET BRIGADE", 15, DIM, "lm", bold=True)
    canvas.text(right, 40, game.scenario, 15, DIM, "rm")
    canvas.text(left, 84, f"Night {seen.night}" if seen.night else "Nightfall", 38, anchor="lm")
    if seen.second:
        canvas.text(right, 64, "the next bits are announced", 13, DIM, "rm")
    for column, (code, word) in enumerate(((SAFE, "safe"), (BURNING, "burning"), (RUINED, "ruined"))):
        x = left + 16 + column * 96
        icons.HOUSES[code](canvas, x, 140, 34, PALE)
        canvas.text(x + 26, 132, str(seen.houses.count(code)), 18, anchor="lm", bold=True)
        canvas.text(x + 26, 150, word, 13, DIM, "lm")
    _table(canvas, game, seen, 182, 520)
    canvas.line([(left, 536), (right, 536)], mixed(DIM, INK, 0.5), 1)
    if seen.night:
        canvas.text(left, 554, "team, this night", 15, DIM, "lm")
        _reward(canvas, right, 554, sum(seen.rewards), 16)
    _legend(canvas, 592)


def _table(canvas: Canvas, game: BucketBrigade, seen: Lane, top: float, bottom: float) -> None:
    """What every agent did, where, what it signalled and earned; in columns of fewer words where agents are many."""
    left, right = PANEL
    columns = 1 if game.N <= 15 else 2 if game.N <= 36 else 4
    lines = ceil(game.N / columns)
    height, width = min(64.0, (bottom - top) / lines), (right - left) / columns
    for seat in range(game.N):
        x, y = left + seat // lines * width, top + (seat % lines + 0.5) * height
        if columns == 1:
            works, signal = (seen.modes[seat] == WORK, seen.signals[seat]) if seen.night else (None, None)
            icons.person(canvas, x + 0.45 * height, y, 0.8 * height, seat, works, signal)
        else:
            badge(canvas, x + 0.5 * height, y, 0.9 * height, seat)
        _deed(canvas, game, seen, seat, (x + (1.25 if columns < 4 else 1.1) * height, y), height, columns)
        if seen.night:
            _reward(canvas, x + width - (0 if columns == 1 else 8), y, seen.rewards[seat], min(18.0, 0.52 * height))


def _deed(canvas: Canvas, game: BucketBrigade, seen: Lane, seat: int, spot: Spot, height: float, columns: int) -> None:
    """What an agent did last, in one or two lines, or a letter where there is no room for them."""
    (x, y), size = spot, min(17.0, 0.5 * height)
    if not seen.night:
        if columns == 1:
            announced = f", announced {seen.announced[seat]}" if seen.second else ""
            canvas.text(x, y, f"{game.agents[seat]}{announced}", size, DIM, "lm")
        return
    works, at = seen.modes[seat] == WORK, seen.positions[seat]
    did = f"{'works' if works else 'rests'} at {at}" if columns < 4 else f"{'w' if works else 'r'} {at}"
    two_lines = height > 44
    canvas.text(x, y - (10 if two_lines else 0), did, size, WHITE if works else DIM, "lm")
    if two_lines:
        first = f"announced {seen.announced[seat]}" if seen.announced else game.agents[seat]
        canvas.text(x, y + 11, f"{first}, signal {seen.signals[seat]}", 13, DIM, "lm")


def _reward(canvas: Canvas, x: float, y: float, reward: float, size: float) -> None:
    canvas.text(x, y, f"{reward:+.1f}", size, reward_colour(reward), "rm", bold=True)


def _legend(canvas: Canvas, y: float) -> None:
    left, _ = PANEL
    icons.bucket(canvas, left + 10, y, 15)
    canvas.text(left + 24, y, "works", 13, DIM, "lm")
    icons.doze(canvas, left + 78, y + 4, 14)
    canvas.text(left + 96, y, "rests", 13, DIM, "lm")
    for x, signal in ((left + 150, 1), (left + 168, 0)):
        icons.bubble(canvas, x, y - 2, 15, signal)
    canvas.text(left + 182, y, "signal", 13, DIM, "lm")
    canvas.text(left, y + 25, "A house has its owner's colour.", 13, DIM, "lm")


def main(folder: str | PathLike = "docs") -> None:
    """Write an episode of a scripted team as bucket_brigade.gif, and its night of most fires as bucket_brigade.png."""
    from games import film
    from games.bucket_brigade.scripted import policy
    from games.play import states

    game = BucketBrigade("chain_reaction")
    team = [policy(name, game) for name in ("spread", "specialist", "genome hero", "genome liar")]
    episode = [state for _, state in states(game, team, 34, "picture")]
    film.save((frame(game, state) for state in episode), Path(folder, "bucket_brigade.gif"), fps=1.25)
    most = max(episode, key=lambda state: (state.houses == BURNING).sum())
    Image.fromarray(frame(game, most)).save(Path(folder, "bucket_brigade.png"), optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
