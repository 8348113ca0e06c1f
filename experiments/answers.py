"""The best responses of one iteration: what is to be trained, against whom, and what came of it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from games.game import Policy
from games.versus import Populations
from marl.targets import Target, Targets
from metasolvers.symmetric import symmetrised

if TYPE_CHECKING:
    from marl.psro import Snapshot  # torch

COUNTING = ("uniform", "latest")
"""Meta-solvers for which policies count as often as they were found, as fictitious play does."""


Aim = Callable[["Snapshot", int], list[Target]]
"""(snapshot, player) -> a target for every response."""


def at(targets: Targets) -> Aim:
    """Those that ask for nothing but payoffs and the meta-strategy."""
    return lambda snapshot, player: targets(snapshot.payoffs.mean, snapshot.sigma, player)


class Job(NamedTuple):
    """One best response to be trained: the unit of work of that name."""

    unit: str
    player: int
    populations: Populations
    target: Target
    start: Policy | None
    """What training goes on from; from scratch for None."""


class Answer(NamedTuple):
    """A best response that was found."""

    unit: str
    player: int
    target: Target
    policy: Policy
    number: int
    """Its number in the player's population."""
    new: bool
    """Whether it had to be added, as the population did not hold it."""


def jobs(
    snapshot: "Snapshot",
    name: str,
    learners: Sequence[int],
    groups: Sequence[Sequence[int]],
    aim: Aim,
    warm_start: bool,
) -> list[Job]:
    """A job for every target of every learner: `name`/player, and `name`/player/number for those after its first.

    Where players share populations, what the first of a group meets is what they all meet on average.
    """
    fair = snapshot._replace(sigma=symmetrised(snapshot.sigma, groups)) if groups else snapshot
    found = []
    for player in learners:
        population = snapshot.populations[player]
        for number, target in enumerate(aim(fair, player)):
            start = _latest(population, target.own) if warm_start else None
            unit = f"{name}/{player}" + (f"/{number}" if number else "")
            found.append(Job(unit, player, target.populations or snapshot.populations, target, start))
    return found


def pipeline(
    before: "Snapshot",
    levels: int,
    plan: Callable[["Snapshot"], list[Job]],
    extended: Callable[["Snapshot", int], "Snapshot"],
    load: Callable[[str], Policy],
) -> list[list[Job]]:
    """By level, the jobs of the iteration after `before`; those of the lowest end with it [McAleer et al. 2020,
    arXiv:2006.08555, Pipeline PSRO].

    A policy goes on as level j - 1 where it was level j, so it is trained for as many iterations as there are levels;
    all levels begin in the first iteration, and what ends with iteration i before that had i of them alone.
    Every level is trained against the meta-strategy of all policies below it: those of `before`, and those in training
    as the iteration before left them, so that all levels can be trained side by side. `plan` gives the jobs against a
    snapshot, `extended` the snapshot with the policies that were at a level in its iteration, `load` those of a unit.
    """
    found, below = [plan(before)], before
    for level in range(1, levels):
        below = extended(below, level) if before.iteration else below
        found.append([job._replace(unit=f"{job.unit}/{level}") for job in plan(below)])
    if before.iteration:
        for level, mine in enumerate(found[:-1]):
            names = [f"train/{before.iteration}/{job.player}/{level + 1}" for job in mine]
            found[level] = [job._replace(start=load(name)) for job, name in zip(mine, names, strict=True)]
    return found


def answered(
    jobs: Sequence[Job],
    policies: Sequence[Policy],
    populations: Populations,
    find: Callable[[int, Policy, Sequence[Policy]], int | None] | None,
) -> list[Answer]:
    """What was found, in the order of the jobs; policies that `find` finds among the player's are not new."""
    held = [list(population) for population in populations]
    answers = []
    for job, policy in zip(jobs, policies, strict=True):
        mine = held[job.player]
        index = find(job.player, policy, mine) if find else None
        answers.append(
            Answer(job.unit, job.player, job.target, policy, len(mine) if index is None else index, index is None)
        )
        mine += [policy] if index is None else []
    return answers


def _latest(population: Sequence[Policy], own: int | None) -> Policy | None:
    """One of the player's policies, the latest by default, where it was trained: the first was there before."""
    index = len(population) - 1 if own is None else own
    return population[index] if index else None
