"""What is measured of every iteration of PSRO, as rows of metrics.jsonl."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from games.game import Game, Playable, Policy
from games.tree_game import TreeGame
from marl.exact import ExactTable, exact_gap, exact_returns
from marl.population import HERE, Estimate, Value, duel_value, episodes_won, full_gap, mixture_value, points_won
from marl.workers import Unit, Workers
from metasolvers import cce_gap, is_product

if TYPE_CHECKING:
    from marl.psro import Snapshot  # torch

Rows = list[dict[str, Any]]
EPISODE = "return per episode"
CANCELS = 1e-6
"""Largest sum of returns that is rounding, and nothing that anybody gains."""


def measure(
    game: Game | Playable,
    snapshot: "Snapshot",
    before: "Snapshot | None",
    trained: str,
    episodes: int,
    seed: int,
    moment: str,
    workers: Workers = HERE,
) -> Rows:
    """Rows of one iteration, whose best responses were `trained` ("fresh" or "warm-started") against that of `before`.

    `moment` is what a step is called: a night, or just a step. Gaps are scored on `episodes` fresh episodes a strategy:
    on those of the payoff table, from which sigma was solved, sigma looks better than it is.
    """
    iteration = snapshot.iteration
    value = mixture_value(game, snapshot.populations, snapshot.sigma, episodes, seed, f"meta/{iteration}")
    rows = [
        *size_rows(snapshot),
        metric("restricted_gap", restricted_gap(game, snapshot, episodes, seed, workers), EPISODE, iteration),
        *play_rows(value, iteration, moment),
    ]
    if before is not None:
        responses = [[population[-1]] for population in snapshot.populations]
        rows += gap_rows(game, before, responses, trained, episodes, seed, f"full/{before.iteration}", workers)
    return rows


def exact_rows(game: TreeGame, snapshot: "Snapshot") -> Rows:
    """Rows of one iteration, all exact; `concept` tells what the gap in the whole game is of this meta-strategy."""
    iteration, table, sigma = snapshot.iteration, snapshot.payoffs, snapshot.sigma
    assert isinstance(table, ExactTable)
    gap = exact_gap(game, snapshot.populations, table, sigma)
    concept = "NashConv" if is_product(sigma) else "CCE gap"
    restricted = Estimate(cce_gap(table.mean, sigma), 0.0, "exact")
    return [
        *size_rows(snapshot),
        metric("restricted_gap", restricted, EPISODE, iteration),
        metric("full_gap", gap.total, EPISODE, iteration, concept=concept),
        *(metric("full_gain", gain, EPISODE, iteration, player=player) for player, gain in enumerate(gap.gains)),
        *(
            metric("return", value, EPISODE, iteration, player=player)
            for player, value in enumerate(exact_returns(table, sigma))
        ),
    ]


def size_rows(snapshot: "Snapshot") -> Rows:
    """How large the empirical game is."""
    iteration = snapshot.iteration
    return [
        count("policies_per_player", len(snapshot.populations[0]), iteration),
        count("profiles", snapshot.sigma.size, iteration),
    ]


def restricted_gap(
    game: Game | Playable, snapshot: "Snapshot", episodes: int, seed: int, workers: Workers = HERE
) -> Estimate:
    """Gap of the meta-strategy among the policies found; nobody can deviate where there is but one profile."""
    if snapshot.sigma.size == 1:
        return Estimate(0.0, 0.0, "exact")
    nobody: list[list[Policy]] = [[] for _ in snapshot.populations]
    unit = f"restricted/{snapshot.iteration}"
    gap = full_gap(game, snapshot.populations, snapshot.sigma, nobody, episodes, seed, unit, workers)
    return gap.total._replace(kind="estimate")


def gap_rows(
    game: Game | Playable,
    snapshot: "Snapshot",
    responses: Sequence[Sequence[Policy]],
    trained: str,
    episodes: int,
    seed: int,
    unit: str,
    workers: Workers = HERE,
) -> Rows:
    """Lower bound on the full game's gap of a meta-strategy, from best responses to it and how they were trained."""
    gap = full_gap(game, snapshot.populations, snapshot.sigma, responses, episodes, seed, unit, workers)
    return [
        metric("full_gap", gap.total, EPISODE, snapshot.iteration, responses=trained),
        *(
            metric("full_gain", gain, EPISODE, snapshot.iteration, player=player, responses=trained)
            for player, gain in enumerate(gap.gains)
        ),
    ]


def play_rows(value: Value, iteration: int, moment: str) -> Rows:
    """What the meta-strategy's play brings: the team, each player, and how long it lasts, in steps called `moment`."""
    steps = value.lengths
    length = Estimate(float(steps.mean()), float(steps.std(ddof=1) / math.sqrt(len(steps))), "estimate")
    return [
        metric("team_return", value.team, EPISODE, iteration),
        metric(f"team_return_per_{moment}", value.team_per_step, f"return per {moment}", iteration),
        metric(f"{moment}s", length, f"{moment}s per episode", iteration),
        *(
            metric("return", earned, EPISODE, iteration, player=player)
            for player, earned in enumerate(_each_return(value))
        ),
    ]


class Duels(NamedTuple):
    """The players of each team, with the meta-strategy, against scripted policies in all other seats."""

    rivals: Mapping[str, Sequence[Policy]]
    """By name, a policy a seat."""
    teams: Sequence[Sequence[int]]
    episodes: int
    """Of each team against each rival."""


def duel_rows(game: Game | Playable, snapshot: "Snapshot", duels: Duels, seed: int, workers: Workers = HERE) -> Rows:
    """What the players of each team earn in its duels.

    Where what is won is lost by others, also the team's share of these points, and how many of the episodes it wins.
    """
    iteration = snapshot.iteration
    units = {
        f"duel/{iteration}/{name}/{'-'.join(map(str, team))}": (name, team)
        for name in duels.rivals
        for team in duels.teams
    }
    play = partial(duel_value, game, snapshot.populations, snapshot.sigma)
    work = [
        Unit(unit, partial(play, team, duels.rivals[name], duels.episodes, seed, unit))
        for unit, (name, team) in units.items()
    ]
    values = dict(workers.run(work))
    rows = []
    for unit, (name, team) in units.items():
        value = values[unit]
        earned = _each_return(value)
        rows += [metric("duel_return", earned[i], EPISODE, iteration, player=i, against=name) for i in team]
        if abs(value.returns.sum(axis=1)).max() < CANCELS and value.returns.any():
            where: Any = {"player": team[0], "against": name}
            rows.append(metric("duel_points", points_won(value, team), "share of points", iteration, **where))
            rows.append(metric("duel_wins", episodes_won(value, team), "share of episodes", iteration, **where))
    return rows


def _each_return(value: Value) -> list[Estimate]:
    """A player."""
    pairs = zip(value.mean.tolist(), value.standard_error.tolist(), strict=True)
    return [Estimate(mean, error, "estimate") for mean, error in pairs]


def learning_rows(curves: Mapping[int, list[dict[str, float]]], iteration: int) -> Rows:
    """The learners' reports of one iteration, by player, an entry an update."""
    rows = []
    for player, report in ((player, report) for player, curve in curves.items() for report in curve):
        rows += report_rows(report, iteration=iteration, player=player)
    return rows


def report_rows(report: Mapping[str, float], **where: int) -> Rows:
    """What a learner reported of one update, `where` being whose it is."""
    rows = []
    for name, value in report.items():
        if name not in ("update", "steps", "return_error"):
            error = {"standard_error": report["return_error"]} if name == "return" and "return_error" in report else {}
            row = {"metric": f"learner/{name}", **where, "step": int(report["steps"]), "value": value}
            rows.append({**row, **error, "kind": "estimate"})
    return rows


def metric(name: str, estimate: Estimate, unit: str, iteration: int, **more: int | str) -> dict[str, Any]:
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
