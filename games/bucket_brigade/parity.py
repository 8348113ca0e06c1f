"""Bucket Brigade beside published values, and beside other implementations: `python -m games.bucket_brigade.parity`."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro

from games.bucket_brigade.rules import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.game import Policy
from games.play import Episodes, play
from games.spelling import unknown

REFERENCES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("reference.json").read_text())["quantities"]
"""Rows of kind `published`, or `measured`: our own measurement of another implementation, never published."""

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
    ours: float
    se: float

    @property
    def z(self) -> float:
        error = np.hypot(self.se, self.quantity["se"])
        return float((self.ours - self.quantity["reference"]) / error)

    @property
    def ok(self) -> bool:
        return abs(self.z) < TOLERANCE


def samples(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows in groups that one sample of episodes answers: neighbours of the same game, policies and episodes."""
    names = ("scenario", "rules", "max_nights", "cell", "policies", "fresh")
    return [list(group) for _, group in groupby(rows, lambda row: [row.get(name) for name in names])]


def compare(sample: Sequence[dict[str, Any]], episodes: int, seed: int) -> list[Comparison]:
    """Every row of a sample beside the mean of the same fresh episodes, in the row's unit."""
    played = measure(sample[0], episodes, seed)
    values = [UNITS[quantity["unit"]](played) for quantity in sample]
    return [
        Comparison(quantity, float(value.mean()), float(value.std(ddof=1) / np.sqrt(episodes)))
        for quantity, value in zip(sample, values, strict=True)
    ]


def measure(quantity: dict[str, Any], episodes: int, seed: int) -> Episodes:
    """Episodes of the row's game and policies: returns and won [episodes, N], lengths [episodes]."""
    game = BucketBrigade(quantity["scenario"], quantity["rules"], quantity["max_nights"], **quantity.get("cell", {}))
    policies = quantity["policies"] * (game.N if len(quantity["policies"]) == 1 else 1)
    profile = [policy_of(game, spec) for spec in policies]
    played = play(game, [profile], episodes, seed, [f"parity/{quantity['quantity']}"])
    return Episodes(*(part[0] for part in played))


def policy_of(game: BucketBrigade, spec: str | dict[str, Any]) -> Policy:
    """A scripted policy by its name, or by its name and fields."""
    fields = {"name": spec} if isinstance(spec, str) else dict(spec)
    return policy(fields.pop("name"), game, **fields)


HEADER = f"{'quantity':52}{'unit':24}{'kind':11}{'reference':>9}{'se':>8}{'ours':>11}{'se':>8}{'z':>7}  ok   source"


def line(row: Comparison) -> str:
    """The row's line of the table under `HEADER`."""
    quantity = row.quantity
    return (
        f"{quantity['quantity']:52}{quantity['unit']:24}{quantity['kind']:11}"
        f"{quantity['reference']:9.2f}{quantity['se']:8.2f}"
        f"{row.ours:11.2f}{row.se:8.2f}{row.z:+7.2f}  {'ok ' if row.ok else 'NO '}  {quantity['source']}"
    )


def main(episodes: int = 4000, seed: int = 0, only: str = "") -> int:
    """Print every reference value beside ours; the exit code is 1 where one disagrees, 2 for invalid arguments.

    Args:
        episodes: Fresh episodes per value, but for those that name a number of their own.
        seed: Seed of the episodes.
        only: Only quantities whose name contains this text.
    """
    problem = None
    if not any(only in quantity["quantity"] for quantity in REFERENCES):
        problem = unknown("quantity", only, [quantity["quantity"] for quantity in REFERENCES])
    elif episodes < 2 or seed < 0:
        problem = ValueError(f"parity needs at least 2 episodes and a seed of at least 0, got {episodes} and {seed}")
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(HEADER)
    rows = []
    for row in _compared(only, episodes, seed):
        rows.append(row)
        print(line(row), flush=True)
    wrong, worst = sum(not row.ok for row in rows), max(abs(row.z) for row in rows)
    kinds = [row.quantity["kind"] for row in rows]
    print(
        f"{len(rows)} values, {wrong} beyond {TOLERANCE} standard errors; worst |z| {worst:.2f}; "
        f"{kinds.count('published')} published, {kinds.count('measured')} measured"
    )
    return int(wrong > 0)


def _compared(only: str, episodes: int, seed: int) -> Iterator[Comparison]:
    """The rows whose names contain `only`, from the samples of all rows: what is left out changes no other number."""
    for sample in samples(REFERENCES):
        if any(only in quantity["quantity"] for quantity in sample):
            rows = compare(sample, sample[0].get("fresh", episodes), seed)
            yield from (row for row in rows if only in row.quantity["quantity"])


if __name__ == "__main__":
    sys.exit(tyro.cli(main, prog="python -m games.bucket_brigade.parity"))
