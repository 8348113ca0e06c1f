"""Scripted teams on small rings, exactly: `python -m games.bucket_brigade.small_rings`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tyro

from games.bucket_brigade.markov import deviation_gains, exact_returns, gap_closed
from games.bucket_brigade.optimum import team_optimum
from games.bucket_brigade.rules import DIALECTS, BucketBrigade
from games.bucket_brigade.scripted import policy

TEAMS = ("uniform", "always_rest", "firefighter", "specialist", "spread")

COLUMNS = ("rules", "team", "return of each agent", "gain of its best response", "NashConv", "team", "gap closed")


class Row(NamedTuple):
    """What a team of one scripted policy earns, and could."""

    rules: str
    team: str
    returns: np.ndarray  # [N]
    gains: np.ndarray  # [N] of each agent's best response
    closed: float
    """Where the team's return lies between uniform play, 0, and the optimum, 1."""


def rows(scenario: str, rules: str, max_nights: int) -> Iterator[Row]:
    """Every team under one of the rules, or both. Raises ValueError for rings that are too large."""
    for dialect in [rules] if rules else DIALECTS:
        game = BucketBrigade(scenario, dialect, max_nights)
        profiles = {team: [policy(team, game)] * game.N for team in TEAMS}
        random, best = exact_returns(game, profiles["uniform"]).sum(), team_optimum(game).value
        for team, profile in profiles.items():
            returns = exact_returns(game, profile)
            closed = gap_closed(float(returns.sum()), float(random), best)
            yield Row(dialect, team, returns, deviation_gains(game, profile), closed)


def words(row: Row) -> tuple[str, ...]:
    """The row's entries under `COLUMNS`."""
    agents = (" ".join(f"{value + 0.0:.3f}" for value in values.round(6)) for values in (row.returns, row.gains))
    nash_conv, team = f"{row.gains.clip(min=0).sum():.3f}", f"{row.returns.sum():.3f}"
    return row.rules, row.team, *agents, nash_conv, team, f"{row.closed:.1%}"


def main(scenario: str = "v2_minimal", rules: str = "", max_nights: int = 1000, markdown: Path | None = None) -> int:
    """Exact returns and best responses of teams on a ring of two or three houses; all numbers are per episode.

    Args:
        scenario: One whose game can be written out.
        rules: Only these; by default both.
        max_nights: Cap on the nights of an episode.
        markdown: Write the table into this file as well.
    """
    if markdown and not markdown.parent.is_dir():
        raise ValueError(f"wanted a file in a folder that is there, got {markdown}: make {markdown.parent} first")
    layout = "{:8}{:13}{:37}{:37}{:>10}{:>11}{:>12}"
    lines: list[tuple[str, ...]] = [COLUMNS, ("---",) * 4 + ("--:",) * 3]
    for number, row in enumerate(rows(scenario, rules, max_nights)):
        if not number:
            print(layout.format(*COLUMNS))
        lines.append(words(row))
        print(layout.format(*words(row)), flush=True)
    if markdown:
        markdown.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, prog="python -m games.bucket_brigade.small_rings"))
