"""Conformance on the command line: of one environment or game, or of all there are."""

import os
import sys
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import tyro

from counterplay.screen import Screen, bare_table
from games.conformance import __main__ as one
from games.conformance.table import SUITES, Cell, complaints, page, table

COMMAND = "counterplay conform --all --markdown"


def main(
    made_by: Annotated[str, tyro.conf.Positional] = "",
    all: bool = False,
    markdown: bool = False,
    episodes: int = 5,
    seed: int = 0,
    max_steps: int = 500,
    skip: tuple[str, ...] = (),
    render_modes: tuple[str, ...] = (),
) -> int:
    """Ask every rule and print a table; the exit code is 1 where one is broken, 2 for invalid arguments.

    Args:
        made_by: A name that games.make knows, such as pong or connect_four, or an import path module:function of what
            makes a fresh environment (AEC or Parallel), a game of ours, or anything else that is played in lanes.
        all: Ask everything of every registered game, and our suite of some environments of others: takes minutes.
        markdown: Print that as a page.
        episodes: Episodes to play; a game's kernel plays a few steps of a few lanes instead.
        seed: Seed of the first episode.
        max_steps: Steps after which an episode is left unfinished.
        skip: Rules not to ask.
        render_modes: Render modes to try; the function is then called with render_mode.
    """
    if bool(made_by) == all or (markdown and not all):
        raise ValueError(
            "conform takes either a name, or an import path module:function, or --all, and --markdown with --all only"
        )
    return everything(markdown) if all else one.main(made_by, episodes, seed, max_steps, skip, render_modes)


def everything(as_markdown: bool) -> int:
    """The table of all games."""
    import torch

    def tensors(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(array))

    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows open where nobody sees them
    rows = list(_told(table(put=tensors)))
    if as_markdown:
        print(page(rows, COMMAND), end="")
    else:
        screen = Screen()
        shown = [(name, *map(str, cells.values())) for name, cells in rows]
        screen.print(bare_table(("game", *SUITES), shown))
        for complaint in complaints(rows):
            screen.print(complaint)
    return int(not all(found.sound for _, cells in rows for found in cells.values()))


def _told(rows: Iterator[tuple[str, dict[str, Cell]]]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Rows, named on standard error as they come."""
    for row in rows:
        print(row[0], file=sys.stderr)
        yield row
