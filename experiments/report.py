"""What a run says of each iteration, and in the end."""

import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING

from analysis.numbers import shown
from experiments.measures import Rows, find
from experiments.run import RunFolder, interpreter

if TYPE_CHECKING:
    from experiments.psro_bucket_brigade import Config


def cells(rows: Rows) -> dict[str, str]:
    """One iteration's row of the table. `gap before` is of the meta-strategy that the new policies answered."""
    policies = find(rows, "policies_per_player")
    assert policies is not None
    return {
        "iteration": str(policies["iteration"]),
        "policies": str(policies["value"]),
        "gap": shown(find(rows, "restricted_gap")),
        "gap before": shown(find(rows, "full_gap")),
        "team return": shown(find(rows, "team_return")),
        "per night": shown(find(rows, "team_return_per_night")),
    }


def report(run: RunFolder, config: "Config", rows: Rows, figures: int) -> list[str]:
    """Lines that say what was measured and how, also written to summary.json, and what to do next."""
    last = max(row["iteration"] for row in rows)
    final = [row for row in rows if row["iteration"] == last]
    measured = {
        "profiles of policies": find(final, "profiles"),
        "team return per episode": find(final, "team_return"),
        "team return per night": find(final, "team_return_per_night"),
        "gap among the policies found": find(final, "restricted_gap"),
        "gap in the whole game": find(final, "full_gap"),
    }
    known = {name: row for name, row in measured.items() if row is not None}
    folder = shlex.quote(str(run.path))
    run.write_json("summary.json", {"iteration": last, "measured": known})
    bound = known.get("gap in the whole game")
    trained = f"; {bound['responses']} best responses of {config.gap_budget:,} steps" if bound else ""
    return [
        f"PSRO with {config.meta_solver} on {config.scenario} ({config.rules} rules), seed {config.seed}, "
        f"iteration {last}",
        f"(± standard error; {config.gap_episodes:,} episodes a strategy{trained}):",
        *(f"  {name:<30}{shown(row):<24}{row['kind']}" for name, row in known.items()),
        *([] if bound else ["  the gap in the whole game was not measured: --gap-steps was 0"]),
        f"in {run.path}:",
        f"  report.html, {figures} figures, run.json, metrics.jsonl, summary.json, policies, snapshots",
        "next:",
        f"  {config.resume_command(last + 4)}",
        f"  {interpreter()} -m counterplay.main show {folder}",
        *([] if config.smoke else [f"  {interpreter()} -m experiments.responses {folder}"]),
        *([f"  {interpreter()} -m tensorboard.main --logdir {folder}"] if find_spec("tensorboard") else []),
    ]
