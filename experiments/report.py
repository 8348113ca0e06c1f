"""What a run says of each iteration, and in the end."""

import shlex
from importlib.util import find_spec
from typing import Any

from analysis.numbers import shown
from analysis.tables import DUELS, MEASURES, duel_table
from experiments.config import Config
from experiments.ending import Ending, improves
from experiments.metrics import Rows, find
from experiments.placement import resume_command
from experiments.run import RunFolder, interpreter, invocation

RANKING = ("alpha_rank", "alpha_limit", "response_graph")
"""Meta-solvers that ask how often deviations gain, not how much."""


def summary(rows: Rows) -> dict[str, Any]:
    """What summary.json holds: what was measured of the last iteration."""
    last = max(row["iteration"] for row in rows)
    final = [row for row in rows if row["iteration"] == last]
    measured = {metric: row for metric in MEASURES if (row := find(final, metric)) is not None}
    duels = [row for row in final if row["metric"] in DUELS]
    return {"iteration": last, "measured": measured} | ({"duels": duels} if duels else {})


def report(run: RunFolder, config: Config, rows: Rows, figures: int, ended: Ending) -> list[str]:
    """Lines that say what was measured and how, also in summary.json, why the run ended, and what to do next."""
    final = summary(rows)
    last, measured = final["iteration"], final["measured"]
    run.write_json("summary.json", final | {"ended": ended._asdict()})
    bound = measured.get("full_gap")
    folder = shlex.quote(str(run.path))
    further = [] if config.smoke else config.further
    longer = f"{resume_command(config, ended.iterations)} {ended.options}".rstrip()
    return [
        *config.headline(last, bound and bound.get("responses")),
        *(_measured(metric, row, rows) for metric, row in measured.items()),
        *_duels(final.get("duels", [])),
        *_notes(config, rows),
        f"  ended: {ended.why}",
        *([] if bound else ["  the gap in the whole game was not measured: --gap-steps was 0"]),
        f"in {run.path}:",
        f"  report.html, {figures} figures, run.json, metrics.jsonl, summary.json, policies, snapshots",
        "next:",
        *([f"  {longer}"] if ended.iterations is not None else []),
        *(f"  {invocation()} {command} {folder}" for command in ("show", *further)),
        *([f"  {interpreter()} -m tensorboard.main --logdir {folder}"] if find_spec("tensorboard") else []),
    ]


def _measured(metric: str, row: dict[str, Any], rows: Rows) -> str:
    """A line; of gaps with what they are of, of the last responses that gained nothing with how many there were."""
    value, kind = shown(row), row["kind"]
    if "concept" in row:
        joined = {"exact": "exact ", "lower bound": "lower bound on the ", "estimate": "estimate of the "}[kind]
        kind = f"{joined}{row['concept']}, {row['unit']}"
    if metric == "non_improving":
        found = [gain for gain in rows if gain["metric"] == "response_gain" and gain["iteration"] == row["iteration"]]
        value, kind = f"{value} of {len(found)}", f"{kind}, of the last iteration"
    return f"  {MEASURES[metric]:<30}{value:<24}{kind}"


def _notes(config: Config, rows: Rows) -> list[str]:
    """What is to be known of best responses that gained nothing, and of theory that does not hold."""
    found = [row for row in rows if row["metric"] == "response_gain"]
    idle = [row for row in found if not improves(row)]
    copies = sum(row["value"] for row in rows if row["metric"] == "duplicates")
    notes = []
    if idle or copies:
        already = f"{copies} {'was' if copies == 1 else 'were'} there already"
        notes.append(f"  in all iterations, {len(idle)} of {len(found)} best responses gained nothing; {already}")
    preferring = getattr(config, "response", "best") == "preference"
    if config.meta_solver in RANKING and not preferring:
        notes.append(
            f"  heuristic: {config.meta_solver} with best responses by value; its theory is of preference-based"
        )
        notes.append("  ones [Muller et al. 2020]: psro-openspiel --response preference, in small games")
    if preferring and config.meta_solver in RANKING:
        notes.append("  alpha-PSRO: responses are preference-based, and may well gain nothing by value")
    if getattr(config, "targets", "mixture") == "rectified":
        notes.append("  heuristic: PSRO_rN, of rectified responses, may end away from an equilibrium")
    if preferring and config.meta_solver not in RANKING:
        notes.append(
            f"  heuristic: {config.meta_solver} with preference-based responses; their theory is of alpha_rank"
        )
        notes.append("  [Muller et al. 2020]: --meta-solver alpha_rank, or --response best")
    return notes


def _duels(rows: Rows) -> list[str]:
    """What the last meta-strategy earns against scripted policies, a line a player."""
    (_, _, *headers), lines = duel_table(rows)
    told = [
        (f"{player} against {against}", ", ".join(f"{n} {v}" for n, v in zip(headers, values, strict=True) if v))
        for against, player, *values in lines
    ]
    return [f"  {who:<30}{what}" for who, what in told]
