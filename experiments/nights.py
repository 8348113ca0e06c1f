"""Bucket Brigade in a terminal: a coloured line a night."""

from collections.abc import Iterable, Iterator

from rich.style import Style
from rich.text import Text

from games.bucket_brigade import BucketBrigade, State
from games.bucket_brigade.rules import BURNING, RUINED, SAFE, WORK
from games.canvas import ORANGE, Colour, seat_colour

MARKS = {SAFE: "■", BURNING: "▲", RUINED: "×"}
LEGEND = (
    f"{MARKS[SAFE]} safe, in its owner's colour   {MARKS[BURNING]} burning   {MARKS[RUINED]} ruined\n"
    "w3·1 works at house 3, signals 1   r3·0 rests there, signals 0   then its reward"
)
CELL = 13
"""Columns of an agent."""


def table(game: BucketBrigade, states: Iterable[State]) -> Iterator[Text]:
    """The lines of an episode, of states whose first lane it was."""
    yield Text(LEGEND, Style(dim=True))
    yield header(game)
    for state in states:
        yield night(game, state)


def header(game: BucketBrigade) -> Text:
    """What stands in the columns of `night`."""
    line = Text("night  ")
    line.append("".join(f"{house % 10} " for house in range(game.H)), Style(dim=True))
    for seat, agent in enumerate(game.agents):
        line.append(f"{agent:>{CELL}}", _style(seat_colour(seat)))
    return line


def night(game: BucketBrigade, state: State) -> Text:
    """The first lane of a state: the ring, and what everyone did to get there."""
    number = int(state.night[0])
    line = Text(f"{number:>5}  ")
    for house, code in enumerate(state.houses[0].tolist()):
        styles = {SAFE: _style(seat_colour(house % game.N)), BURNING: _style(ORANGE, bold=True)}
        line.append(MARKS[code], styles.get(code, Style(dim=True)))
        line.append(" ")
    for seat in range(game.N if number else 0):
        works = int(state.modes[0, seat]) == WORK
        did = f"{'w' if works else 'r'}{int(state.positions[0, seat])}·{int(state.signals[0, seat])}"
        cell = f"{did} {float(state.rewards[0, seat]):+.1f}"
        line.append(f"{cell:>{CELL}}", _style(seat_colour(seat), bold=True) if works else Style(dim=True))
    return line


def _style(colour: Colour, bold: bool = False) -> Style:
    return Style(color="#{:02x}{:02x}{:02x}".format(*colour), bold=bold)
