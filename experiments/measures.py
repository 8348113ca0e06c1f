"""What is measured of every iteration of PSRO, as rows of metrics.jsonl."""

import math
from typing import Any

import numpy as np

from games.game import Game
from marl.population import Estimate, PayoffTable, Value, mixture_value, restricted_gap
from marl.psro import Snapshot

Rows = list[dict[str, Any]]
EPISODE, NIGHT = "return per episode", "return per night"


def measure(game: Game, snapshot: Snapshot, before: np.ndarray | None, episodes: int, seed: int) -> Rows:
    """Rows of one iteration; `before` is the meta-strategy its best responses were trained against."""
    iteration = snapshot.iteration
    value = mixture_value(game, snapshot.populations, snapshot.sigma, episodes, seed, f"meta/{iteration}")
    rows = [
        count("policies_per_player", len(snapshot.populations[0]), iteration),
        count("profiles", snapshot.sigma.size, iteration),
        metric("restricted_gap", restricted_gap(snapshot.payoffs, snapshot.sigma), EPISODE, iteration),
        *play_rows(value, iteration),
    ]
    if before is not None:
        rows.append(metric("full_gap", gap_before(snapshot.payoffs, before), EPISODE, iteration - 1))
    return rows


def play_rows(value: Value, iteration: int) -> Rows:
    """What the meta-strategy's play brings: the team, each player, and how long it lasts."""
    nights = value.lengths
    length = Estimate(float(nights.mean()), float(nights.std(ddof=1) / math.sqrt(len(nights))), "estimate")
    players = zip(value.mean.tolist(), value.standard_error.tolist(), strict=True)
    return [
        metric("team_return", value.team, EPISODE, iteration),
        metric("team_return_per_night", value.team_per_step, NIGHT, iteration),
        metric("nights", length, "nights per episode", iteration),
        *(
            metric("return", Estimate(mean, error, "estimate"), EPISODE, iteration, player=player)
            for player, (mean, error) in enumerate(players)
        ),
    ]


def gap_before(table: PayoffTable, before: np.ndarray) -> Estimate:
    """Lower bound on the full game's gap of a meta-strategy `before`, from the policies found since.

    They were trained to gain most against it, and the table has what they do gain: no episode more is needed. It is a
    lower bound in expectation, because better deviations may exist.
    """
    padded = np.zeros(table.episodes.shape[1:])
    padded[tuple(slice(0, k) for k in before.shape)] = before
    return restricted_gap(table, padded)._replace(kind="lower bound")


def learning_rows(curves: list[list[dict[str, float]]], iteration: int) -> Rows:
    """The learners' reports of one iteration, `curves[player]`, an entry an update.

    What a learner calls `x_error` is the standard error of its `x`.
    """
    rows = []
    for player, report in ((player, report) for player, curve in enumerate(curves) for report in curve):
        where = {"iteration": iteration, "player": player, "step": int(report["steps"])}
        for name, value in report.items():
            if name not in ("update", "steps") and not name.endswith("_error"):
                error = {"standard_error": report[f"{name}_error"]} if f"{name}_error" in report else {}
                rows.append({"metric": f"learner/{name}", **where, "value": value, **error, "kind": "estimate"})
    return rows


def metric(name: str, estimate: Estimate, unit: str, iteration: int, **more: int) -> dict[str, Any]:
    value, error, kind = estimate
    return {
        "iteration": iteration,
        "metric": name,
        **more,
        "value": float(value),
        "standard_error": float(error),
        "kind": kind,
        "unit": unit,
    }


def count(name: str, number: int, iteration: int) -> dict[str, Any]:
    """A number that is known exactly."""
    return {"iteration": iteration, "metric": name, "value": number, "kind": "exact"}


def find(rows: Rows, name: str) -> dict[str, Any] | None:
    """The last row of a metric, or None."""
    return next((row for row in reversed(rows) if row["metric"] == name), None)


def shown(row: dict[str, Any] | None) -> str:
    """A metric for people: `at least 12.3 ± 0.4`; as many decimals as its standard error is worth."""
    if row is None:
        return ""
    error = row.get("standard_error")
    if error is None:
        return f"{row['value']:g}"
    decimals = 1 if error <= 0 else max(0, 1 - math.floor(math.log10(error)))
    prefix = "at least " if row["kind"] == "lower bound" else ""
    return f"{prefix}{row['value']:.{decimals}f} ± {error:.{decimals}f}"
