"""Tables and text on a terminal, or in a pipe."""

import time
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 140


class Screen(Console):
    """Shows what it is given as it is: square brackets are no markup, and numbers are not coloured."""

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False)
        if not self.is_terminal:
            self.width = PIPED_WIDTH

    def on_broken_pipe(self) -> NoReturn:
        """Nobody reads on: let the command end as any other whose reader has gone."""
        raise BrokenPipeError


def bare_table(headers: Iterable[str], rows: Iterable[Iterable[str]], title: str = "") -> Table:
    """A table without lines."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def age(moment: float) -> str:
    """How long ago that many seconds since 1970 were, as `3 min`."""
    seconds = max(0.0, time.time() - moment)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
