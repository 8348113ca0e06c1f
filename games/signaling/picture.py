"""Signalling as a picture: what the speaker sees and says, what is heard of it, and what is guessed."""

from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from games.bucket_brigade.icons import SKIN
from games.canvas import DIM, INK, ORANGE, PALE, SEATS, SKY_BLUE, WHITE, Canvas, Colour, mixed
from games.signaling.rules import Signaling, State

WIDTH, HEIGHT = 800, 480
BACK, LOW, BUBBLE = (20, 25, 46), (34, 42, 72), (52, 62, 98)
SPEAKER, LISTENERS, FLOOR = 120.0, 680.0, 330.0
"""Where they stand; the strip of past rounds is below the floor."""
SIDES = (0, 4, 3, 5, 6, 8)
"""Corners of the referents' shapes, 0 for a disc, as often as it takes; every second round of them is hollow."""
STRIP = 8
"""Past rounds that are shown at most."""


class Lane(NamedTuple):
    """One lane's state as plain numbers; codes as the state has them, registers newest first."""

    step: int
    referent: int
    said: list[list[int]]
    heard: list[list[int]]
    guesses: list[list[int]]
    truths: list[int]
    rewards: list[float]


def frame(game: Signaling, state: State, lane: int = 0) -> np.ndarray:
    """[480, 800, 3] uint8 picture of one lane, equal for equal states."""
    seen = Lane(
        step=int(state.step[lane]),
        referent=int(state.referent[lane]),
        said=state.said[lane].tolist(),
        heard=game.medium.codes(state.line)[lane, 0].tolist(),
        guesses=state.guesses[lane].tolist(),
        truths=state.truths[lane].tolist(),
        rewards=state.rewards[lane].tolist(),
    )
    canvas = Canvas(WIDTH, HEIGHT)
    for band in range(12):
        top = band * FLOOR / 12
        canvas.box(0, top, WIDTH, top + FLOOR / 12, mixed(BACK, LOW, band / 11))
    canvas.box(0, FLOOR, WIDTH, HEIGHT, mixed(BACK, INK, 0.5))
    guessed = seen.step > 0 and seen.step % 2 == 0
    _heading(canvas, game, seen)
    _speaker(canvas, game, seen, guessed)
    _message(canvas, game, seen, guessed)
    _listeners(canvas, game, seen, guessed)
    _past(canvas, game, seen, guessed)
    return canvas.pixels()


def _heading(canvas: Canvas, game: Signaling, seen: Lane) -> None:
    playing = min(seen.step // 2 + (seen.step % 2 or not seen.step), game.rounds)
    canvas.text(24, 28, "SIGNALLING", 15, DIM, "lm", bold=True)
    phase = "the speaker knows" if not seen.step else "a message" if seen.step % 2 else "the guess"
    canvas.text(WIDTH / 2, 28, phase, 20)
    canvas.text(WIDTH - 24, 28, f"round {playing} of {game.rounds}", 15, DIM, "rm")


def _speaker(canvas: Canvas, game: Signaling, seen: Lane, guessed: bool) -> None:
    """The speaker, the referent of the round on its mind, and the one to come."""
    x, y = SPEAKER, FLOOR - 62
    _bust(canvas, x, y, 92, SEATS[0])
    canvas.text(x, FLOOR - 12, "speaker", 14, DIM)
    for distance, radius in ((58, 5), (68, 8)):
        canvas.disc(x - 8, y - distance, radius, BUBBLE)
    canvas.box(x - 62, 66, x + 62, 184, BUBBLE, 42)
    referent(canvas, x, 125, 74, seen.truths[0] - 1 if guessed else seen.referent)
    if guessed and not game.lasting and seen.step < 2 * game.rounds:
        canvas.text(x + 72, 84, "next", 12, DIM, "lm")
        referent(canvas, x + 86, 108, 26, seen.referent)


def _message(canvas: Canvas, game: Signaling, seen: Lane, guessed: bool) -> None:
    """What was said, what the channel is like, and what came out of it."""
    left, right, y = SPEAKER + 110, LISTENERS - (110 if game.listeners == 1 else 190), 232.0
    medium, middle = game.medium, (left + right) / 2
    words = [name for name, value in (("noise", medium.noise), ("erasure", medium.erasure)) if value]
    told = [medium.control] * (medium.control != "open") + [f"{word} {getattr(medium, word):g}" for word in words]
    told += [f"delay {medium.delay}"] * (medium.delay > 0)
    severed = medium.control == "severed"
    ends = [(left, middle - 24), (middle + 24, right)] if severed else [(left, right)]
    for start, stop in ends:
        canvas.line([(start, y), (stop, y)], mixed(BUBBLE, PALE, 0.25), 4)
    if severed:
        for side in (-12, 12):
            canvas.line([(middle + side - 7, y + 14), (middle + side + 7, y - 14)], ORANGE, 4)
    canvas.text(middle, y + 62, ", ".join(told) or "open channel", 13, DIM)
    if seen.step:
        _tiles(canvas, left + 34, y, _voiced(game, seen.said[0]), 1 - medium.silence, "says")
        _tiles(canvas, right - 34, y, seen.heard[0], 1 - medium.silence, "is heard")


def _voiced(game: Signaling, said: list[int]) -> list[int]:
    """Codes of what was said, with silence as nothing, as hearers have it."""
    return [code - game.silence for code in said]


def _tiles(canvas: Canvas, x: float, y: float, codes: list[int], shift: int, word: str) -> None:
    size = min(54.0, 120 / len(codes))
    canvas.text(x, y - 46, word, 13, DIM)
    for place, code in enumerate(codes):
        symbol(canvas, x + (place - (len(codes) - 1) / 2) * 1.12 * size, y, size, code - shift if code else None)


def _listeners(canvas: Canvas, game: Signaling, seen: Lane, guessed: bool) -> None:
    """Everyone who hears, its guess, and what everyone earned by the last step."""
    number = game.listeners
    room = (FLOOR - 60) / number
    size = min(92.0, 0.8 * room)
    for index in range(number):
        y = FLOOR - 62 if number == 1 else 56 + (index + 0.55) * room
        colour = SEATS[1 + index % (len(SEATS) - 1)]
        _bust(canvas, LISTENERS, y, size, colour)
        if guessed:
            _guess(canvas, seen.guesses[0][index] - 1, LISTENERS, y, size, number == 1)
        if guessed or seen.rewards[1 + index]:
            _reward(canvas, WIDTH - 14, y, seen.rewards[1 + index], max(11.0, 0.2 * size))
    if number == 1:
        canvas.text(LISTENERS, FLOOR - 12, "listener", 14, DIM)
    if guessed or seen.rewards[0]:
        _reward(canvas, SPEAKER - 52, FLOOR - 62, seen.rewards[0], 18)


def _guess(canvas: Canvas, guess: int, x: float, y: float, size: float, alone: bool) -> None:
    """Above a listener who stands alone, else beside it."""
    if alone:
        canvas.polygon([(x - 14, 178), (x + 14, 178), (x, 206)], BUBBLE)
        canvas.box(x - 62, 66, x + 62, 184, BUBBLE, 24)
        referent(canvas, x, 125, 74, guess)
    else:
        canvas.box(x - 1.5 * size, y - 0.42 * size, x - 0.62 * size, y + 0.42 * size, BUBBLE, 0.2 * size)
        referent(canvas, x - 1.06 * size, y, 0.62 * size, guess)


def _past(canvas: Canvas, game: Signaling, seen: Lane, guessed: bool) -> None:
    """Rounds that are remembered, the last one rightmost: referent, what was said, the first listener's guess."""
    rounds = [place for place, truth in enumerate(seen.truths) if truth][:STRIP]
    canvas.text(24, FLOOR + 22, "referent, message, guess", 13, DIM, "lm")
    waits = 0 if guessed or not seen.step else 1  # the round under way has been spoken of
    for column, place in enumerate(reversed(rounds)):
        x = 70 + column * (WIDTH - 60) / STRIP
        referent(canvas, x, FLOOR + 56, 28, seen.truths[place] - 1)
        if place + waits < len(seen.said):
            codes = _voiced(game, seen.said[place + waits])
            size = min(24.0, 80 / len(codes))
            for index, code in enumerate(codes):
                at = x + (index - (len(codes) - 1) / 2) * 1.12 * size
                symbol(canvas, at, FLOOR + 91, size, code - 1 + game.silence if code else None)
        referent(canvas, x, FLOOR + 126, 28, seen.guesses[place][0] - 1)
    if not rounds:
        canvas.text(WIDTH / 2, FLOOR + 84, "nothing has been guessed yet", 15, mixed(DIM, INK, 0.4))


def referent(canvas: Canvas, x: float, y: float, size: float, number: int) -> None:
    """A coloured shape, with its number."""
    colour, sides = SEATS[number % len(SEATS)], SIDES[number % len(SIDES)]
    hollow = number // len(SIDES) % 2 == 1
    _shape(canvas, x, y, size / 2, sides, colour)
    if hollow:
        _shape(canvas, x, y, 0.36 * size, sides, BUBBLE)
    dark = sum(colour) <= 330 or hollow
    down = 0.06 * size if sides == 3 else 0.0
    canvas.text(x, y + down, str(number), 0.34 * size, WHITE if dark else INK, bold=True)


def _shape(canvas: Canvas, x: float, y: float, radius: float, sides: int, colour: Colour) -> None:
    if sides == 0:
        canvas.disc(x, y, 0.92 * radius, colour)
        return
    start = pi / 4 if sides == 4 else -pi / 2
    y += 0.14 * radius if sides == 3 else 0
    turns = [start + 2 * pi * corner / sides for corner in range(sides)]
    canvas.polygon([(x + 1.1 * radius * cos(turn), y + 1.1 * radius * sin(turn)) for turn in turns], colour)


def symbol(canvas: Canvas, x: float, y: float, size: float, number: int | None) -> None:
    """A tile with a letter, a number where letters run out; an empty one where nothing came through."""
    half, fill = size / 2, PALE if number is not None else BUBBLE
    canvas.box(x - half, y - half, x + half, y + half, fill, 0.22 * size)
    if number is None:
        canvas.line([(x - 0.2 * size, y), (x + 0.2 * size, y)], DIM, max(1.5, 0.06 * size))
    else:
        text = chr(ord("A") + number) if number < 26 else str(number)
        canvas.text(x, y, text, 0.62 * size / max(1.0, 0.6 * len(text)), INK, bold=True)


def _bust(canvas: Canvas, x: float, y: float, size: float, colour: Colour) -> None:
    """Head and shoulders around (x, y)."""
    canvas.disc(x, y + 0.44 * size, 0.5 * size, (0, 0, 0, 80), squash=0.2)
    canvas.box(x - 0.34 * size, y - 0.02 * size, x + 0.34 * size, y + 0.46 * size, colour, 0.22 * size)
    canvas.disc(x, y - 0.18 * size, 0.24 * size, mixed(BACK, INK, 0.3))
    canvas.disc(x, y - 0.18 * size, 0.21 * size, SKIN)
    for side in (-1, 1):
        canvas.disc(x + side * 0.07 * size, y - 0.2 * size, 0.022 * size, INK)


def _reward(canvas: Canvas, x: float, y: float, reward: float, size: float) -> None:
    colour = SKY_BLUE if reward > 0 else ORANGE if reward < 0 else DIM
    canvas.text(x, y, f"{reward:+.3g}", size, colour, "rm", bold=True)
