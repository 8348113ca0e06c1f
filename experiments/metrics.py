"""What was measured or reported, as rows of metrics.jsonl (docs/run_folder.md)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from marl.population import Estimate

Rows = list[dict[str, Any]]
EPISODE = "return per episode"
COUNTED = {"nash_conv", "epsilon", "reservoir", "pool", "epochs"}
"""What learners report that is computed or set, and no estimate."""


def metric(name: str, estimate: "Estimate", unit: str, iteration: int, **more: int | str) -> dict[str, Any]:
    """The row of a measured number, in a unit such as `EPISODE`; `more` says whose it is, or of what."""
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


def learning_rows(curves: Mapping[str, list[dict[str, float]]], part: Literal["response", "level"]) -> Rows:
    """The learners' reports of one iteration, by the unit of their work, an entry an update.

    `part` is what the last number of a unit's name counts: a player's responses, or levels of its pipeline.
    """
    rows = []
    for unit, curve in curves.items():
        iteration, player, *number = map(int, unit.split("/")[1:])
        where = {"iteration": iteration, "player": player} | ({part: number[0]} if number else {})
        for report in curve:
            rows += report_rows(report, **where)
    return rows


def report_rows(report: Mapping[str, float], **where: int) -> Rows:
    """What a learner reported of one update, `where` being whose it is.

    Where several seats learn, the report names what is of one alone `.../seat`.
    """
    rows = []
    for told, value in report.items():
        name, _, seat = told.partition("/")
        if name in ("update", "steps", "return_error"):
            continue
        row: dict[str, Any] = {"metric": f"learner/{name}", **where, "step": int(report["steps"]), "value": value}
        if seat:
            row["player"] = int(seat)
        error = report.get(told.replace("return", "return_error")) if name == "return" else None
        if error is not None:
            row["standard_error"] = error
        if name == "nash_conv":
            row["unit"] = EPISODE
        rows.append({**row, "kind": "exact" if name in COUNTED else "estimate"})
    return rows
