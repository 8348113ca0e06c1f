"""Two sides' rows of results on the same games, set beside each other: how soon each comes how close to equilibrium.

A line of results (`analysis.lines`) holds `game`, `title`, `row`, `algorithm`, `whose` (OURS or PEER), `seed`, `budget`
and `points`, a list of (CPU seconds, environment steps or None, NashConv); or, instead of them, an `error`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.lines import Line

OURS, PEER = "ours", "OpenSpiel"
SOLVED = 1e-5
"""NashConv that counts as none."""
IMPROVED = 0.99
"""Times the NashConv of the beginning that it takes to have learnt something."""


class Side(NamedTuple):
    """What became of one row of a game: medians over its seeds."""

    seeds: int
    budget: float
    """Seconds of the processor that it was given."""
    points: int
    """Of the seed that was measured most often."""
    start: float
    last: float
    """NashConv in the end."""
    best: float
    """The lowest NashConv on the way, that most seeds come to."""
    seconds: float
    """Of the processor, in all: the last measurement may be of before."""
    rate: float
    """Environment steps a second; nan where there are none."""

    @property
    def improved(self) -> bool:
        return self.best <= max(IMPROVED * self.start, SOLVED)

    @property
    def solved(self) -> bool:
        """Whether it began at an equilibrium, so that there was nothing to learn."""
        return self.start <= SOLVED


class Pair(NamedTuple):
    """An algorithm on a game, on both sides; a side is None where it has not come to anything, or cannot run."""

    game: str
    algorithm: str
    ran: bool
    """Whether both can run."""
    ours: Side | None
    theirs: Side | None
    level: float
    """NashConv that both come to; nan where one has learnt nothing, or begins below what the other comes to."""
    our_seconds: float
    """To the level; nan without one."""
    their_seconds: float

    @property
    def ratio(self) -> float:
        """How many times sooner ours gets there."""
        return self.their_seconds / self.our_seconds

    @property
    def ahead(self) -> str:
        """Who gets to the level first; without one, whose NashConv is lower in the end, if it has fallen.

        Nobody is where a row cannot run, and where a side began at an equilibrium, as uniform play may be: that is no
        merit of its algorithm.
        """
        if not self.ran or any(side is not None and side.solved for side in (self.ours, self.theirs)):
            return ""
        if not math.isnan(self.ratio):
            return OURS if self.ratio >= 1 else PEER
        ours, theirs = (math.inf if side is None else max(side.last, SOLVED) for side in (self.ours, self.theirs))
        lower, whose = (self.ours, OURS) if ours < theirs else (self.theirs, PEER)
        return whose if ours != theirs and lower is not None and lower.last < lower.start else ""


def of(lines: Sequence[Line], **wanted: object) -> list[Line]:
    """The lines whose entries are these."""
    return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]


def names(lines: Sequence[Line], entry: str) -> list[str]:
    """What an entry of the lines is, each once, in their order."""
    return list(dict.fromkeys(line[entry] for line in lines))


def side(lines: Sequence[Line]) -> Side | None:
    """Of one row's lines, a seed each."""
    courses = [np.array([(point[0], point[2]) for point in line["points"]]) for line in lines if line.get("points")]
    if not courses:
        return None
    ran = [line for line in lines if line.get("points")]
    rates = [line["steps"] / line["cpu_seconds"] if line["steps"] else math.nan for line in ran]
    lowest = sorted(float(course[:, 1].min()) for course in courses)
    start, last, seconds, rate = (
        float(np.median(values))
        for values in (
            [course[0, 1] for course in courses],
            [course[-1, 1] for course in courses],
            [line["cpu_seconds"] for line in ran],
            rates,
        )
    )
    # Of an even number the upper middle one: what lies between the two, half of the seeds never come to.
    return Side(
        len(courses), ran[-1]["budget"], max(map(len, courses)), start, last, lowest[len(lowest) // 2], seconds, rate
    )


def seconds_to(lines: Sequence[Line], level: float) -> float:
    """Median CPU seconds until NashConv is first no larger than a level, of the seeds that have run.

    Infinite where most of them never come there.
    """
    ran = [line["points"] for line in lines if line.get("points")]
    found = [min((point[0] for point in points if point[2] <= level), default=math.inf) for points in ran]
    return float(np.median(found))


def pair(lines: Sequence[Line], game: str, algorithm: str) -> Pair:
    """Both sides of an algorithm on a game. Ours may be of several rows, as long as each is of other games."""
    both = of(lines, game=game, algorithm=algorithm)
    mine, others = of(both, whose=OURS), [line for line in both if line["whose"] != OURS]
    ours, theirs = side(mine), side(others)
    level = math.nan
    if ours and theirs and ours.improved and theirs.improved and max(ours.start, theirs.start) > SOLVED:
        level = max(ours.best, theirs.best, SOLVED)
        if level > IMPROVED * min(ours.start, theirs.start):  # one side begins there
            level = math.nan
    times = (math.nan, math.nan) if math.isnan(level) else (seconds_to(mine, level), seconds_to(others, level))
    ran = not all("error" in line for line in mine) and not all("error" in line for line in others)
    return Pair(game, algorithm, ran, ours, theirs, level, *times)


def pairs(lines: Sequence[Line]) -> list[Pair]:
    """Every algorithm on every game that both sides have lines of."""
    return [pair(lines, *which) for which, sides in _sides(lines) if len(sides) == 2]


def unpaired(lines: Sequence[Line]) -> list[tuple[str, str, str]]:
    """(game, algorithm, whose) of those that one side alone has lines of."""
    return [(game, algorithm, sides[0]) for (game, algorithm), sides in _sides(lines) if len(sides) == 1]


def _sides(lines: Sequence[Line]) -> list[tuple[tuple[str, str], list[str]]]:
    """Of every game and algorithm, who has lines."""
    return [
        ((game, algorithm), names(of(lines, game=game, algorithm=algorithm), "whose"))
        for game in names(lines, "game")
        for algorithm in names(of(lines, game=game), "algorithm")
    ]


def distance(ours: Line, theirs: Line) -> float:
    """Total variation between the joint distributions that two lines of alpha-rank hold."""
    return float(np.abs(np.array(ours["sigma"]) - np.array(theirs["sigma"])).sum() / 2)
