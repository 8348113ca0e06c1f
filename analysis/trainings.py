"""Folders of trainings (`counterplay train`) as tables: only what is on disk, with nothing of the code that made it."""

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from analysis.kinds import NUMBER, SPREAD, TEXT, WHOLE, Kinds, check, optional
from analysis.load import Rows, command_of, read_settings
from analysis.numbers import decimals, exactly, shown

ROW: Kinds = {"metric": TEXT, "value": NUMBER, "kind": TEXT, "step": optional(WHOLE), "play": optional(TEXT)}
ROW |= {"player": optional(WHOLE)}
ROW |= {"standard_error": optional(SPREAD), "low": optional(NUMBER), "high": optional(NUMBER)}

WATCHED = {
    "nash_conv": "NashConv",
    "average_loss": "average's loss",
    "average_uniform_loss": "uniform's loss",
    "win_rate": "win rate",
    "rating": "rating",
    "staleness": "staleness",
    "explained_variance": "explained variance",
    "q_mean": "mean Q",
    "entropy": "entropy",
    "approx_kl": "KL",
    "actor_grad_norm": "actor's gradient norm",
    "grad_norm": "gradient norm",
}
"""Diagnostics -> what they are called; those of self-play and of fictitious play come first."""
FLOOR = "average_uniform_loss"
"""Beside the average's loss."""
MOST_WATCHED = 3
"""One more where self-play takes so many: the table of a training still fits 80 columns."""


class Trained(NamedTuple):
    """A training's folder, as far as it had got when it was read."""

    path: Path
    settings: dict[str, Any]  # run.json: the configuration, versions, machine, git commit
    metrics: Rows

    @property
    def config(self) -> dict[str, Any]:
        return self.settings["config"]

    @property
    def asked(self) -> int | None:
        """Steps of the budget, where the oracle has one."""
        settings = self.config.get(self.config["oracle"], {})
        learning = settings.get(settings.get("response", "ppo"), settings)  # joint training's are those of its PPO
        return learning.get("steps")

    @property
    def steps(self) -> int:
        """Steps done, as far as metrics tell."""
        return max((row["step"] for row in self.metrics if "step" in row), default=0)

    @property
    def own(self) -> Rows:
        """Metrics but those of other players, where several learned."""
        seat = self.config["seat"]
        return [row for row in self.metrics if row.get("player", seat) == seat]

    @property
    def evaluation(self) -> Rows:
        """What the policy earned in the end; nothing before."""
        return [row for row in self.metrics if row["metric"].startswith("evaluation/")]

    @property
    def gap(self) -> dict[str, Any] | None:
        """The last row of the NashConv of those who learned together, in the end the first way that they play."""
        told = [row for row in self.evaluation if row["metric"] == "evaluation/nash_conv"]
        return next(iter(told[:1] or [row for row in self.metrics if row["metric"] == "learner/nash_conv"][-1:]), None)


def load_training(path: Path) -> Trained:
    """All but weights of a training's folder. Raises ValueError for a folder that is none, or is damaged."""
    settings = read_settings(path)
    if command_of(settings["config"]) != "train":
        raise ValueError(f"{path} is a run of PSRO, and no training")
    file = path / "metrics.jsonl"
    return Trained(path, settings, read_metrics(file) if file.exists() else [])


def read_metrics(file: Path) -> Rows:
    """The rows of a training's metrics.jsonl. Raises ValueError where they are not as a training writes them."""
    try:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            check(row, ROW, file.name)
    except ValueError as error:
        raise ValueError(f"{file.parent} is damaged: {error}") from error
    return rows


def learned_together(config: dict[str, Any]) -> bool:
    """Whether a training is one in which others learn too, who are kept with its policy."""
    oracle = config["oracle"]
    return oracle == "nfsp" or (oracle == "joint" and not config["joint"]["opponents"])


def used(settings: dict[str, Any]) -> dict[str, Any]:
    """run.json of a training without what decides nothing: fictitious play meets no opponents, and learns responses in
    one of the ways that it has settings of."""
    config = dict(settings["config"])
    if config["oracle"] == "nfsp":
        del config["against"]
        ways, response = {"dqn", "ppo"}, config["nfsp"]["response"]
        config["nfsp"] = {name: value for name, value in config["nfsp"].items() if name not in ways - {response}}
    return {**settings, "config": config}


def team_share(config: dict[str, Any]) -> float:
    """Of the sum over all players' returns in what a training is for: 0 is the player's own return, 1 the team's."""
    settings = config.get(config["oracle"], {})
    return 1.0 if config["reward"] == "team" else float(settings.get("team_share", 0.0))


def learned_return(config: dict[str, Any]) -> str:
    """What the return of a training is called, by whose rewards it learned to earn."""
    share = team_share(config)
    if 0 < share < 1:
        return f"return ({1 - share:g} own + {share:g} the team’s)"
    return "the team’s return" if share else "return"


def watched(reported: Iterable[str]) -> dict[str, str]:
    """The diagnostics to show of those that a learner reports -> what they are called."""
    known = set(reported)
    most = MOST_WATCHED + ("win_rate" in known)
    return dict(islice(((name, called) for name, called in WATCHED.items() if name in known), most))


def curve_table(rows: Rows, most: int = 10) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows, for people, of at most so many reports of a learner, the last one included.

    Where some tell more than others (an exact gap is not computed every time), they are of these.
    """
    reports: dict[int, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["metric"].startswith("learner/"):
            reports.setdefault(row.get("step", 0), {})[row["metric"].removeprefix("learner/")] = row
    shown_of = watched(name for report in reports.values() for name in report)
    whole = [step for step, report in reports.items() if report.keys() >= shown_of.keys()]
    steps = sorted(whole or reports, reverse=True)
    lines = [
        (f"{step:,}", shown(reports[step].get("return")), *(_cell(reports[step].get(name)) for name in shown_of))
        for step in reversed(steps[:: -(-len(steps) // most) or 1])
    ]
    return ("steps", "return", *shown_of.values()), lines


def evaluation_table(rows: Rows) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows, for people, of what a policy earned, by how it played."""
    by_play: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["metric"].startswith("evaluation/"):
            by_play.setdefault(row["play"], {})[row["metric"].removeprefix("evaluation/")] = row
    solved = any("nash_conv" in found for found in by_play.values())
    lines: list[tuple[str, ...]] = [
        (play, shown(found["return"]), _middle(found["interquartile_mean"]), shown(found["steps"]))
        + ((shown(found.get("nash_conv")),) if solved else ())
        for play, found in by_play.items()
    ]
    return ("play", "mean return", "interquartile mean", "steps") + (("NashConv (exact)",) if solved else ()), lines


def _middle(row: dict[str, Any]) -> str:
    """With its interval, as 12.3 [11.2, 13.5]."""
    width = row["high"] - row["low"]
    if not width:
        return exactly(row["value"])
    value, low, high = (f"{row[key]:.{decimals(width / 4)}f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _cell(row: dict[str, Any] | None) -> str:
    return "" if row is None else brief(row["value"])


def brief(value: float) -> str:
    """A diagnostic in three digits, as 0.0123; whole where that is in the thousands, as 1,234."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e6 else f"{value:.3g}"
