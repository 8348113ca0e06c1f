"""Run folders as tables: dicts of columns of equal length, NumPy arrays where every entry is a number.

`pandas.DataFrame(columns(run.metrics))` is a data frame, for those who have pandas.
"""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from analysis.load import Iteration, Rows, Run
from analysis.numbers import plus_minus, share, shown

MEASURES = {
    "policies_per_player": "policies per player",
    "profiles": "profiles of policies",
    "restricted_gap": "gap among the policies found",
    "full_gap": "gap in the whole game",
    "independent_gap": "NashConv of the marginals",
    "non_improving": "responses that gain nothing",
    "duplicates": "responses that were there",
    "team_return": "team return per episode",
    "team_return_per_night": "team return per night",
    "team_return_per_step": "team return per step",
    "nights": "nights per episode",
    "steps": "steps per episode",
}
"""What is measured of a whole iteration: metric -> what it is called."""

SHORT = {
    "policies_per_player": "policies",
    "profiles": "profiles",
    "restricted_gap": "gap found",
    "full_gap": "gap, whole game",
    "team_return": "team return",
    "team_return_per_night": "per night",
    "team_return_per_step": "per step",
    "nights": "nights",
    "steps": "steps",
}
"""Short names of those of `MEASURES` that tables of iterations have: rows of an ordinary run fit 100 columns."""


LEAST_SHARE = 1e-3
"""Probability below which a profile counts as hardly played."""


class Curve(NamedTuple):
    """One best response's return while it learned, as its learner reported it."""

    player: int
    iteration: int
    response: int  # its number among the player's in this iteration, or its level in a pipeline; 0 for the first
    steps: np.ndarray  # [U] environment steps
    value: np.ndarray  # [U] mean return per episode
    error: np.ndarray  # [U] its standard error; nan where none is known


def iteration_table(run: Run) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows, for people, of what was measured of every iteration."""
    found = measures(run)
    known = [metric for metric in SHORT if any(metric in rows for rows in found)]
    rows = [
        (str(i), *(shown(rows.get(metric)).replace("at least", "≥") for metric in known))
        for i, rows in enumerate(found)
    ]
    return ("iter", *(SHORT[metric] for metric in known)), rows


DUELS = {"duel_return": "return", "duel_points": "share of points", "duel_wins": "share of episodes won"}
"""What is measured of a meta-strategy against scripted policies: metric -> what it is called."""


def duel_table(rows: Rows) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows, for people, of what the last meta-strategy earns against scripted policies."""
    found: dict[tuple[str, int], dict[str, str]] = {}
    for row in rows:
        if row["metric"] in DUELS:
            known = found.setdefault((row["against"], row["player"]), {})
            known[row["metric"]] = shown(row)  # the last iteration's stays
    known_metrics = [metric for metric in DUELS if any(metric in known for known in found.values())]
    lines = [
        (against, f"player {player}", *(known.get(metric, "") for metric in known_metrics))
        for (against, player), known in found.items()
    ]
    return ("against", "player", *(DUELS[metric] for metric in known_metrics)), lines


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Rows as columns, in the order in which their names first appear; None where a row has no such entry."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def measures(run: Run) -> list[dict[str, dict[str, Any]]]:
    """Per iteration, the row of each of MEASURES that was taken; the last one where it was taken again.

    The gap in the whole game stands with the meta-strategy it is of, not with the best responses that found it.
    """
    found: list[dict[str, dict[str, Any]]] = [{} for _ in run.iterations]
    for row in run.metrics:
        if row["metric"] in MEASURES and row["iteration"] < len(found):
            found[row["iteration"]][row["metric"]] = row
    return found


def payoff_table(iteration: Iteration) -> dict[str, np.ndarray]:
    """The joint profiles of an iteration, likeliest first; K profiles of N players.

    profile [K, N] policy indices; probability [K] under the meta-strategy; episodes [K]; mean and standard_error
    [K, N], returns per episode.
    """
    players = iteration.sigma.ndim
    order = np.argsort(-iteration.sigma.ravel(), kind="stable")
    return {
        "profile": np.stack(np.unravel_index(order, iteration.sigma.shape), axis=1),
        "probability": iteration.sigma.ravel()[order],
        "episodes": iteration.episodes.ravel()[order],
        "mean": iteration.mean.reshape(players, -1).T[order],
        "standard_error": iteration.standard_error.reshape(players, -1).T[order],
    }


def profile_table(
    iteration: Iteration, most: int | None = None, least: float = 0.0
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows, for people, of an iteration's joint profiles, likeliest first, with returns per episode.

    At most `most` of them, of a probability of at least `least` under the meta-strategy.
    """
    played = payoff_table(iteration)
    count = int((played["probability"] >= least).sum())
    rows = [
        (
            "-".join(map(str, profile)),
            share(probability),
            *(plus_minus(*pair) for pair in zip(mean, error, strict=True)),
            f"{episodes:,}",
        )
        for profile, probability, episodes, mean, error in islice(zip(*played.values(), strict=True), most)
    ]
    players = (f"player {player}" for player in range(iteration.sigma.ndim))
    return ("profile", "probability", *players, "episodes"), rows[:count]


def meta_strategies(run: Run) -> list[np.ndarray]:
    """Per player [k_i, iterations]: its marginal of each meta-strategy; nan where a policy was not there yet."""
    tables = [np.full((size, len(run.iterations)), np.nan) for size in run.iterations[-1].sigma.shape]
    for column, iteration in enumerate(run.iterations):
        for player, table in enumerate(tables):
            others = tuple(axis for axis in range(run.players) if axis != player)
            table[: iteration.sigma.shape[player], column] = iteration.sigma.sum(axis=others)
    return tables


def policies(run: Run) -> dict[str, list[Any]]:
    """Every player's policies: player, index, the unit of work that made it, and its share of the meta-strategy."""
    final = [table[:, -1] for table in meta_strategies(run)]
    rows = [
        {"player": player, "policy": index, "unit": unit, "share": float(final[player][index])}
        for player, units in enumerate(run.iterations[-1].policies)
        for index, unit in enumerate(units)
    ]
    return columns(rows)


def learning_curves(run: Run) -> list[Curve]:
    """Every best response's curve, by player, iteration and number or level."""
    grouped: dict[tuple[int, int, int], Rows] = {}
    for row in run.series("learner/return"):
        number = row.get("response") or row.get("level") or 0
        grouped.setdefault((row["player"], row["iteration"], number), []).append(row)
    return [
        Curve(
            *key,
            np.array([row["step"] for row in rows]),
            np.array([row["value"] for row in rows]),
            np.array([row.get("standard_error", np.nan) for row in rows]),
        )
        for key, rows in sorted(grouped.items())
    ]
