"""What is measured of every iteration of PSRO, as rows of metrics.jsonl."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from experiments.answers import Answer
from experiments.ending import improves
from experiments.metrics import EPISODE, Rows, count, metric
from games.game import Game, Playable, Policy
from games.tree_game import TreeGame
from games.versus import Populations
from marl.exact import ExactTable, exact_ce_gap, exact_gap, exact_nash_conv, exact_returns
from marl.population import (
    HERE,
    Estimate,
    FullGap,
    Value,
    duel_value,
    episodes_won,
    full_gap,
    mixture_value,
    points_won,
)
from marl.recommendations import full_ce_gap
from marl.workers import Unit, Workers
from metasolvers import META_SOLVERS, Concept, cce_gap, ce_gap, is_product

if TYPE_CHECKING:
    from marl.psro import Payoffs, Snapshot  # torch

CANCELS = 1e-6
"""Largest sum of returns that is rounding, and nothing that anybody gains."""


class Play(NamedTuple):
    """How gaps are scored."""

    episodes: int
    """Fresh ones of each strategy."""
    seed: int
    workers: Workers = HERE


def concept(solver: str, sigma: np.ndarray) -> str:
    """What a gap of a meta-strategy is of: the equilibrium that it claims to be, by what its meta-solver promises.

    NashConv where players choose independently; else the CE gap where it promises a correlated equilibrium, and the CCE
    gap where it promises a coarse one, or none at all.
    """
    return "NashConv" if is_product(sigma) else correlated(solver)


def correlated(solver: str) -> str:
    """The same of a meta-strategy of that meta-solver in which players do not choose independently."""
    return "CE gap" if promise(solver) is Concept.CORRELATED else "CCE gap"


def promise(solver: str) -> Concept | None:
    """What the answers of the meta-solver of that name are solutions of."""
    return META_SOLVERS[solver].concept if solver in META_SOLVERS else None


def measure(
    game: Game | Playable,
    solver: str,
    snapshot: "Snapshot",
    before: "Snapshot | None",
    answers: Sequence[Sequence[Answer]],
    trained: str,
    play: Play,
    moment: str,
) -> Rows:
    """Rows of one iteration, with the players' `answers` to that of `before`, which were `trained` ("fresh", ...).

    `moment` is what a step is called: a night, or just a step. Gaps are scored on fresh episodes: on those of the
    payoff table, from which sigma was solved, sigma looks better than it is.
    """
    iteration = snapshot.iteration
    unit = f"meta/{iteration}"
    value = mixture_value(game, snapshot.populations, snapshot.sigma, play.episodes, play.seed, unit)
    restricted = restricted_gap(game, solver, snapshot, play)
    rows = [
        *size_rows(snapshot),
        metric("restricted_gap", restricted, EPISODE, iteration, concept=concept(solver, snapshot.sigma)),
        *play_rows(value, iteration, moment),
    ]
    if before is not None:
        rows += gap_rows(game, solver, before, answers, trained, play, f"full/{before.iteration}")
    return rows


def exact_rows(game: TreeGame, solver: str, snapshot: "Snapshot") -> Rows:
    """Rows of one iteration, all exact; `concept` tells what its gaps are of.

    Where the meta-solver promises no equilibrium, and players do not choose independently, there is also the NashConv
    of what they would do if they did, each by its own marginal.
    """
    iteration, table, sigma = snapshot.iteration, snapshot.payoffs, snapshot.sigma
    assert isinstance(table, ExactTable)
    of = concept(solver, sigma)
    full, restricted = (exact_ce_gap, ce_gap) if of == "CE gap" else (exact_gap, cce_gap)
    gap = full(game, snapshot.populations, table, sigma)
    rows = [
        *size_rows(snapshot),
        metric("restricted_gap", Estimate(restricted(table.mean, sigma), 0.0, "exact"), EPISODE, iteration, concept=of),
        metric("full_gap", gap.total, EPISODE, iteration, concept=of),
        *(metric("full_gain", gain, EPISODE, iteration, player=player) for player, gain in enumerate(gap.gains)),
        *(
            metric("return", value, EPISODE, iteration, player=player)
            for player, value in enumerate(exact_returns(table, sigma))
        ),
    ]
    if of == "CCE gap" and promise(solver) is not Concept.COARSE:
        alone = exact_nash_conv(game, snapshot.populations, table, sigma).total
        rows.append(metric("independent_gap", alone, EPISODE, iteration, concept="NashConv"))
    return rows


def answer_rows(
    snapshot: "Snapshot",
    answers: Sequence[Sequence[Answer]],
    reward: str,
    evaluate: Callable[[Populations], "Payoffs"],
) -> Rows:
    """What every best response of an iteration gains, and how many gain nothing, or were there already.

    Where they were trained against others than the populations, `evaluate` finds what they earn there.
    """
    iteration, rows = snapshot.iteration, []
    own = [[answer for answer in found if answer.player == player] for player, found in enumerate(answers)]
    for player, found in enumerate(own):
        for number, answer in enumerate(found):
            payoffs, met = snapshot.payoffs, answer.target.populations
            if met is not None:
                mine = snapshot.populations[player]
                payoffs = evaluate([mine if i == player else others for i, others in enumerate(met)])
            gain = response_gain(payoffs, answer.target.sigma, player, answer.number, reward)
            several = {"response": number} if number else {}
            rows.append(metric("response_gain", gain, EPISODE, iteration, player=player, **several))
    copies = sum(not answer.new for found in own for answer in found)
    idle = sum(not improves(row) for row in rows)
    return [*rows, count("non_improving", idle, iteration), count("duplicates", copies, iteration)]


def response_gain(payoffs: "Payoffs", sigma: np.ndarray, player: int, index: int, reward: str = "own") -> Estimate:
    """What a player gains who always plays policy `index` of a payoff table, where it would play its part of sigma.

    sigma [k_1, ..., k_N] may be of fewer policies than the table, the first ones. With reward "team" the gain is
    everybody's together, with a standard error that is an upper bound: players' returns may be correlated.
    """
    held = np.pad(sigma, [(0, size - old) for size, old in zip(payoffs.mean.shape[1:], sigma.shape, strict=True)])
    change = -held
    np.moveaxis(change, player, 0)[index] += held.sum(axis=player)
    table, error = payoffs.mean, payoffs.standard_error
    mine, spread = (table.sum(axis=0), error.sum(axis=0)) if reward == "team" else (table[player], error[player])
    kind: Literal["exact", "estimate"] = "estimate" if payoffs.episodes.any() else "exact"
    return Estimate(float((change * mine).sum()), float(np.sqrt(((change * spread) ** 2).sum())), kind)


def size_rows(snapshot: "Snapshot") -> Rows:
    """How large the empirical game is."""
    iteration = snapshot.iteration
    return [
        count("policies_per_player", max(map(len, snapshot.populations)), iteration),
        count("profiles", snapshot.sigma.size, iteration),
    ]


def restricted_gap(game: Game | Playable, solver: str, snapshot: "Snapshot", play: Play) -> Estimate:
    """Gap of the meta-strategy among the policies found; nobody can deviate where there is but one profile.

    A lower bound on average: on the sample that selects it, another deviation than the best one may look best.
    """
    if snapshot.sigma.size == 1:
        return Estimate(0.0, 0.0, "exact")
    nobody: list[list[Answer]] = [[] for _ in snapshot.populations]
    return played_gap(game, solver, snapshot, nobody, play, f"restricted/{snapshot.iteration}").total


def gap_rows(
    game: Game | Playable,
    solver: str,
    snapshot: "Snapshot",
    answers: Sequence[Sequence[Answer]],
    trained: str,
    play: Play,
    unit: str,
) -> Rows:
    """Lower bound on the full game's gap of a meta-strategy, from the players' `answers` and how they were trained."""
    gap, iteration = played_gap(game, solver, snapshot, answers, play, unit), snapshot.iteration
    of = concept(solver, snapshot.sigma)
    return [
        metric("full_gap", gap.total, EPISODE, iteration, responses=trained, concept=of),
        *(
            metric("full_gain", gain, EPISODE, iteration, player=player, responses=trained)
            for player, gain in enumerate(gap.gains)
        ),
    ]


def played_gap(
    game: Game | Playable,
    solver: str,
    snapshot: "Snapshot",
    answers: Sequence[Sequence[Answer]],
    play: Play,
    unit: str,
) -> FullGap[Any]:
    """The gap of the meta-strategy's own concept, from the policies found and the players' new `answers`."""
    populations, sigma, (episodes, seed, workers) = snapshot.populations, snapshot.sigma, play
    found = [[answer for answer in mine if answer.new] for mine in answers]
    if concept(solver, sigma) != "CE gap":
        responses = [[answer.policy for answer in mine] for mine in found]
        return full_gap(game, populations, sigma, responses, episodes, seed, unit, workers)
    told = [
        [[answer.policy for answer in mine if answer.target.own in (None, k)] for k in range(len(population))]
        for mine, population in zip(found, populations, strict=True)
    ]
    return full_ce_gap(game, populations, sigma, told, episodes, seed, unit, workers)


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
