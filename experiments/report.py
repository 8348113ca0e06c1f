"""What a run says of each iteration, and in the end."""

import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from analysis.numbers import shown
from analysis.tables import MEASURES
from experiments.measures import Rows, find
from experiments.run import RunFolder, interpreter, invocation
from experiments.terminal import MEASURED

if TYPE_CHECKING:
    from experiments.psro_bucket_brigade import Config


def cells(rows: Rows) -> dict[str, str]:
    """One iteration's row of the table."""
    iteration = max(row["iteration"] for row in rows)  # the gap in the whole game is of the one before
    return {"iteration": str(iteration), **{name: shown(find(rows, metric)) for metric, name in MEASURED.items()}}


def summary(rows: Rows) -> dict[str, Any]:
    """What summary.json holds: what was measured of the last iteration."""
    last = max(row["iteration"] for row in rows)
    final = [row for row in rows if row["iteration"] == last]
    measured = {metric: row for metric in MEASURES if (row := find(final, metric)) is not None}
    return {"iteration": last, "measured": measured}


def report(run: RunFolder, config: "Config", rows: Rows, figures: int) -> list[str]:
    """Lines that say what was measured and how, also written to summary.json, and what to do next."""
    final = summary(rows)
    last, measured = final["iteration"], final["measured"]
    run.write_json("summary.json", final)
    bound = measured.get("full_gap")
    folder = shlex.quote(str(run.path))
    trained = f"; {bound['responses']} best responses of {config.gap_budget:,} steps" if bound else ""
    return [
        f"PSRO with {config.meta_solver} on {config.scenario} ({config.rules} rules), seed {config.seed}, "
        f"iteration {last}",
        f"(± standard error; {config.gap_episodes:,} episodes a strategy{trained}):",
        *(f"  {MEASURES[metric]:<30}{shown(row):<24}{row['kind']}" for metric, row in measured.items()),
        *([] if bound else ["  the gap in the whole game was not measured: --gap-steps was 0"]),
        f"in {run.path}:",
        f"  report.html, {figures} figures, run.json, metrics.jsonl, summary.json, policies, snapshots",
        "next:",
        f"  {config.resume_command(last + 4)}",
        f"  {invocation()} show {folder}",
        *([] if config.smoke else [f"  {invocation()} responses {folder}"]),
        *([f"  {interpreter()} -m tensorboard.main --logdir {folder}"] if find_spec("tensorboard") else []),
    ]
