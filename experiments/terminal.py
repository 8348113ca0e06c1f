"""What a run shows while it goes: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from textwrap import fill
from types import TracebackType
from typing import NamedTuple, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from analysis.tables import SHORT

MEASURED = {
    "policies_per_player": SHORT["policies_per_player"],
    "restricted_gap": SHORT["restricted_gap"],
    "full_gap": f"{SHORT['full_gap']} (previous)",  # known once the next best responses are
    "team_return": SHORT["team_return"],
    "team_return_per_night": SHORT["team_return_per_night"],
    "team_return_per_step": SHORT["team_return_per_step"],
}
"""Metric -> its column."""
HEADER_WIDTH = 12

CAPTION = """gap found: what players gain by deviating to policies found
gap, whole game (previous): at least that of the meta-strategy before
± standard errors: where nothing is to be gained, gaps may be < 0"""


class View(NamedTuple):
    """What is shown of every iteration."""

    columns: tuple[str, ...]
    caption: str


def played(moment: str) -> View:
    """Of what is measured by play, in a game whose steps are called `moment`."""
    shown = [name for metric, name in MEASURED.items() if not metric.startswith("team_return_per_") or moment in metric]
    return View(("iteration", *shown, "steps/s", "time left"), CAPTION)


VALUE = "value of player 0"


def computed(correlated: str) -> View:
    """Of what is computed; `correlated` is the gap of meta-strategies in which players do not choose independently."""
    said = {"CCE gap": "coarse correlated equilibrium (CCE) gap", "CE gap": "correlated equilibrium (CE) gap"}
    return View(
        ("iteration", "policies", "NashConv", correlated, VALUE, "CPU s", "time left"),
        "exact values of the meta-strategy in the whole game: NashConv where players choose\n"
        f"independently, else the {said[correlated]}",
    )


class Display(Protocol):
    """Shows one row per iteration, and what is being worked on."""

    view: View
    """May be given other columns as long as there are no rows."""

    def row(self, cells: dict[str, str]) -> None:
        """A finished iteration; `cells` by column."""

    def working(self, text: str) -> None:
        """What is going on now."""

    def __enter__(self) -> "Display": ...

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class LiveTable:
    """A table that grows, over a line that tells what is being worked on."""

    def __init__(self, console: Console, view: View):
        self.rows: list[dict[str, str]] = []
        self.view = view
        self.status = ""
        self.live = Live(console=console, refresh_per_second=4, get_renderable=self._render)

    def row(self, cells: dict[str, str]) -> None:
        self.rows.append(cells)

    def working(self, text: str) -> None:
        self.status = text

    def __enter__(self) -> "LiveTable":
        self.live.__enter__()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.status = ""
        self.live.__exit__(kind, error, trace)

    def _render(self) -> Group:
        headers = ({"iteration": "iter", "time left": "left"}.get(name, name) for name in self.view.columns)
        columns = (Column(fill(header, HEADER_WIDTH), justify="right", no_wrap=True) for header in headers)
        # Bare, so that the rows of an ordinary run fit 80 columns.
        table = Table(*columns, caption=self.view.caption, box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for cells in self.rows:
            table.add_row(*(cells.get(name, "").replace("at least ", "≥") for name in self.view.columns))
        return Group(table, Text(self.status, style="dim"))


class PlainLines:
    """One line per iteration; no control characters."""

    def __init__(self, view: View):
        self.view = view

    def row(self, cells: dict[str, str]) -> None:
        self._print(" | ".join(f"{name} {cells[name]}" for name in self.view.columns if cells.get(name)))

    def working(self, text: str) -> None:
        pass

    def __enter__(self) -> "PlainLines":
        self._print(self.view.caption)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def _print(self, text: str) -> None:
        print(text, flush=True)


def display(view: View) -> Display:
    """A live table where stdout is a terminal, else plain lines."""
    return LiveTable(Console(), view) if sys.stdout is not None and sys.stdout.isatty() else PlainLines(view)


FEW_PROFILES = 15


class Forecast:
    """Time left, from the speeds so far: learner steps and profiles are counted, their costs measured."""

    def __init__(self, steps: int, profiles: int):
        self.left = {"steps": steps, "profiles": profiles}
        self.done = {"steps": 0, "profiles": 0}
        self.seconds = {"steps": 0.0, "profiles": 0.0}

    def spent(self, kind: str, amount: int, seconds: float) -> None:
        """`amount` steps or profiles took so many seconds."""
        self.done[kind] += amount
        self.left[kind] -= amount
        self.seconds[kind] += seconds

    def skipped(self, kind: str, amount: int) -> None:
        """`amount` steps or profiles were done before."""
        self.left[kind] -= amount

    def speed(self, kind: str) -> float:
        """Steps or profiles per second; 0 before the first."""
        return self.done[kind] / self.seconds[kind] if self.seconds[kind] else 0.0

    def __str__(self) -> str:
        if self.left["profiles"] and self.done["profiles"] < FEW_PROFILES:
            return "?"  # the first took as long as whatever had to be started for it
        speeds = {kind: self.speed(kind) for kind, left in self.left.items() if left > 0}
        if not all(speeds.values()):
            return "?"
        return clock(sum(self.left[kind] / speed for kind, speed in speeds.items()))


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


class Stopwatch:
    """Seconds since it was made, or since the last lap."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        lap, self.last = now - self.last, now
        return lap
