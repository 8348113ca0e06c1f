"""Scripted teams on small rings, exactly: `counterplay rings`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from games.bucket_brigade.markov import deviation_gains, exact_returns, gap_closed, optimal_team
from games.bucket_brigade.optimum import check_files
from games.bucket_brigade.rules import DIALECTS, BucketBrigade
from games.bucket_brigade.scripted import policy

TEAMS = ("uniform", "always_rest", "firefighter", "specialist", "spread")

COLUMNS = (
    "rules",
    "team",
    "return of each agent",
    "gain of its best response",
    "NashConv",
    "team return",
    "gap closed",
)


class Row(NamedTuple):
    """What a team of one scripted policy earns, and could."""

    rules: str
    team: str
    returns: np.ndarray  # [N]
    gains: np.ndarray  # [N] of each agent's best response
    closed: float
    """Where the team's return lies between uniform play, 0, and the optimum, 1."""


def rows(scenario: str, rules: str, max_nights: int, teams: Sequence[str] = TEAMS) -> Iterator[Row]:
    """Some teams under one of the rules, or both. Raises ValueError for rings that are too large."""
    for dialect in [rules] if rules else DIALECTS:
        game = BucketBrigade(scenario, dialect, max_nights)
        random, best = exact_returns(game, [policy("uniform", game)] * game.N).sum(), optimal_team(game).value
        for team in teams:
            profile = [policy(team, game)] * game.N
            returns = exact_returns(game, profile)
            closed = gap_closed(float(returns.sum()), float(random), best)
            yield Row(dialect, team, returns, deviation_gains(game, profile), closed)


def words(row: Row) -> tuple[str, ...]:
    """The row's entries under `COLUMNS`."""
    agents = (" ".join(f"{value + 0.0:.3f}" for value in values.round(6)) for values in (row.returns, row.gains))
    nash_conv, team = f"{row.gains.clip(min=0).sum():.3f}", f"{row.returns.sum():.3f}"
    return row.rules, row.team, *agents, nash_conv, team, f"{row.closed:.1%}"


def markdown_table(rows: Sequence[Row]) -> str:
    lines = [COLUMNS, ("---",) * 4 + ("--:",) * 3, *map(words, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(scenario: str = "v2_minimal", rules: str = "", max_nights: int = 1000, markdown: Path | None = None) -> int:
    """Exact returns and best responses of teams on a ring of two or three houses; all numbers are per episode.

    The gap closed is where the team's return lies between that of uniform play, 0 %, and the team optimum, 100 %. The
    exit code is 2 for invalid arguments.

    Args:
        scenario: One whose game can be written out.
        rules: Only these; by default both.
        max_nights: Cap on the nights of an episode.
        markdown: Write the table into this file as well.
    """
    layout = "{:8}{:13}{:37}{:37}{:>10}{:>13}{:>12}"
    solved: list[Row] = []
    try:
        check_files(markdown)
        for row in rows(scenario, rules, max_nights):
            if not solved:
                print(layout.format(*COLUMNS))
            solved.append(row)
            print(layout.format(*words(row)), flush=True)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    if markdown:
        markdown.write_text(markdown_table(solved))
    return 0
