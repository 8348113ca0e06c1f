"""Published values of Bucket Brigade against fresh episodes of ours: `python -m games.bucket_brigade.parity`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro

from games.bucket_brigade.rules import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.game import Policy
from games.play import Episodes, play
from games.spelling import unknown

PUBLISHED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("published.json").read_text())["quantities"]

TOLERANCE = 3.5
"""Standard errors, of both sides together, within which a value agrees."""

UNITS: dict[str, Callable[[Episodes], np.ndarray]] = {
    "team per night": lambda played: played.returns.sum(-1) / played.lengths,
    "team per episode": lambda played: played.returns.sum(-1),
    "mean agent per episode": lambda played: played.returns.mean(-1),
    "agent 0 per episode": lambda played: played.returns[:, 0],
    "agent 1 per episode": lambda played: played.returns[:, 1],
    "agent 2 per episode": lambda played: played.returns[:, 2],
    "agent 3 per episode": lambda played: played.returns[:, 3],
}


class Comparison(NamedTuple):
    quantity: dict[str, Any]
    measured: float
    se: float

    @property
    def z(self) -> float:
        error = np.hypot(self.se, self.quantity["se"])
        return float((self.measured - self.quantity["published"]) / error)

    @property
    def ok(self) -> bool:
        return abs(self.z) < TOLERANCE


def compare(quantity: dict[str, Any], episodes: int, seed: int) -> Comparison:
    """A row of `PUBLISHED` beside the mean of fresh episodes, in the row's unit."""
    played = measure(quantity, episodes, seed)
    values = UNITS[quantity["unit"]](played)
    return Comparison(quantity, float(values.mean()), float(values.std(ddof=1) / np.sqrt(episodes)))


def measure(quantity: dict[str, Any], episodes: int, seed: int) -> Episodes:
    """Episodes of the row's game and players: returns [episodes, N], lengths [episodes]."""
    game = BucketBrigade(quantity["scenario"], quantity["rules"], quantity["max_nights"], **quantity.get("cell", {}))
    players = quantity["players"] * (game.N if len(quantity["players"]) == 1 else 1)
    profile = [player(game, spec) for spec in players]
    returns, lengths = play(game, [profile], episodes, seed, [f"parity/{quantity['quantity']}"])
    return Episodes(returns[0], lengths[0])


def player(game: BucketBrigade, spec: str | dict[str, Any]) -> Policy:
    """A scripted player by its name, or by its name and fields."""
    fields = {"name": spec} if isinstance(spec, str) else dict(spec)
    return policy(fields.pop("name"), game, **fields)


HEADER = f"{'quantity':52}{'unit':24}{'published':>11}{'se':>8}{'measured':>11}{'se':>8}{'z':>7}  ok   source"


def line(row: Comparison) -> str:
    """The row's line of the table under `HEADER`."""
    quantity = row.quantity
    return (
        f"{quantity['quantity']:52}{quantity['unit']:24}{quantity['published']:11.2f}{quantity['se']:8.2f}"
        f"{row.measured:11.2f}{row.se:8.2f}{row.z:+7.2f}  {'ok ' if row.ok else 'NO '}  {quantity['source']}"
    )


def main(episodes: int = 4000, seed: int = 0, only: str = "") -> int:
    """Print every published value beside ours; the exit code is 1 where one disagrees, 2 for arguments that cannot be.

    Args:
        episodes: Fresh episodes per value, but for those that name a number of their own.
        seed: Seed of the episodes.
        only: Only quantities whose name contains this text.
    """
    asked = [quantity for quantity in PUBLISHED if only in quantity["quantity"]]
    problem = None
    if not asked:
        problem = unknown("published quantity", only, [quantity["quantity"] for quantity in PUBLISHED])
    elif episodes < 2 or seed < 0:
        problem = ValueError(f"parity needs at least 2 episodes and a seed of at least 0, got {episodes} and {seed}")
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(HEADER)
    rows = []
    for quantity in asked:
        rows.append(compare(quantity, quantity.get("fresh", episodes), seed))
        print(line(rows[-1]), flush=True)
    wrong, worst = sum(not row.ok for row in rows), max(abs(row.z) for row in rows)
    print(f"{len(rows)} values, {wrong} beyond {TOLERANCE} standard errors; worst |z| {worst:.2f}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(tyro.cli(main, prog="python -m games.bucket_brigade.parity"))
