"""A run of PSRO from where its folder ends: train, evaluate, solve, measure, save, show."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from analysis.figures import draw
from analysis.report import write
from experiments.answers import COUNTING, Answer, Job, answered, at, jobs, pipeline
from experiments.checks import MOST_PROFILES
from experiments.ending import Ending, counted, ending
from experiments.measures import answer_rows, concept
from experiments.metrics import Rows, learning_rows
from experiments.report import report
from experiments.run import RunFolder, changes, to_lines
from experiments.stop import Stop
from experiments.terminal import Display, Forecast, Stopwatch, display
from experiments.tracker import Tracker, trackers
from games.game import Policy
from games.versus import Populations
from marl.atomic import BrokenCheckpoint, verify, whole_folder, write_atomic
from marl.checkpoint import (
    PolicyStore,
    finished_iterations,
    load_snapshot,
    save_snapshot,
    snapshot_path,
    snapshot_units,
)
from marl.failpoints import failpoint
from marl.oracles import Oracle
from marl.psro import Payoffs, Snapshot, best_response, psro
from marl.targets import mixture, recommendations
from marl.workers import Unit, Workers, workers_of

if TYPE_CHECKING:
    from experiments.command import Plan

T = TypeVar("T")


def solve(plan: "Plan", run: RunFolder, stop: Stop) -> None:
    """Do what is left of a run; at the end draw its figures and say what was measured.

    Raises BrokenCheckpoint where the folder is not as a run left it, before anything is trained.
    """
    torch.set_num_threads(plan.config.threads)
    for note in changes(run.path, plan.config.device):
        print(note)
    prepare = partial(torch.set_num_threads, plan.config.threads)
    with (
        display(plan.values.view) as show,
        workers_of(plan.workers, len(plan.groups or plan.game.agents), prepare) as where,
    ):
        session = Session(plan, run, stop, show, where)
        session.restore()
        for snapshot in session.snapshots():
            session.finish(snapshot)
        rows = session.final_gap()
        failpoint("run finished")
        show.working("drawing figures")
        figures = draw(run.path)
        show.working("writing the report")
        write(run.path)
    assert session.ended is not None
    print("\n".join(report(run, plan.config, rows, len(figures), session.ended)))


class Session:
    """What is left of a run, from where its folder ends."""

    def __init__(self, plan: "Plan", run: RunFolder, stop: Stop, show: Display, workers: Workers):
        self.plan, self.config, self.run, self.stop, self.show = plan, plan.config, run, stop, show
        self.workers, self.values = workers, plan.values
        self.players = range(len(plan.game.agents))
        self.groups = plan.groups or tuple((player,) for player in self.players)
        self.learner = {player: group[0] for group in self.groups for player in group}
        """Whose best responses a player plays: those of the first of its group."""
        self.learners = [group[0] for group in self.groups]
        self.store, self.folder = PolicyStore(run.path / "policies"), run.path / "snapshots"
        self.trackers: list[Tracker] = []
        self.rows: Rows = []
        self.latest: Snapshot | None = None
        self.units = [[f"initial/{self.learner[player]}"] for player in self.players]
        """Of every player's policies."""
        self.jobs: list[Job] = []
        self.answers: list[list[Answer]] = [[] for _ in self.players]
        """What the last iteration trained, and of it, by player, what it found."""
        self.planned: tuple[Snapshot, list[Job]] | None = None
        """A snapshot and the jobs that follow it, which are counted before they are done."""
        self.ended: Ending | None = None
        self.began = time.monotonic()
        self.forecast = Forecast(*self._work(0))

    def restore(self) -> None:
        """Verify what is done, all of it before anything is written; then show it."""
        done = finished_iterations(self.folder)
        if done - 1 > self.config.iterations:
            raise ValueError(f"{self.run.path} already has {done - 1} iterations: ask for at least as many")
        finished = [snapshot_path(self.folder, iteration) for iteration in range(done)]
        for path in (*finished, *(self.run.path / "gap").glob("[0-9]*"), *self.store.folder.glob("[!.]*")):
            verify(path)
        if done:
            self.latest = load_snapshot(self.folder, done - 1, self.store)
            self.units = snapshot_units(self.folder, done - 1)
            self.forecast = Forecast(*self._work(done))
        else:
            for player in self.learners:
                if f"initial/{player}" not in self.store:
                    self.store.save(f"initial/{player}", self.plan.initial[player], [])
        self.trackers = trackers(self.run)
        for path in finished:
            self._publish(read_rows(path))

    def snapshots(self) -> Iterator[Snapshot]:
        """The iterations that are left, until the run ends; each is to be finished."""
        initial = self._everyones({player: [self.store.load(f"initial/{player}").policy] for player in self.learners})
        config, plan = self.config, self.plan
        left = psro(initial, self.respond, self.evaluate, plan.solve, config.iterations, self.latest)
        while (ended := self._ending()) is None:
            yield next(left)
        self.ended = ended

    def _ending(self) -> Ending | None:
        """Why no iteration follows; None where one does."""
        if self.latest is None:
            return None
        config, iteration = self.config, self.latest.iteration
        repeats = self.plan.oracle.total_steps == 0 and config.meta_solver not in COUNTING
        if ended := ending(self.rows, config.stop_at, config.patience, repeats):
            return ended
        if iteration >= config.iterations:
            return Ending(f"{counted(iteration)} {'was' if iteration == 1 else 'were'} asked for", iteration + 4)
        if config.max_minutes is not None and time.monotonic() - self.began >= 60 * config.max_minutes:
            return Ending(f"{config.max_minutes:g} minutes are over (--max-minutes)", config.iterations)
        added = Counter(job.player for job in self._jobs(self.latest))
        sizes = [len(mine) + added[self.learner[i]] for i, mine in enumerate(self.latest.populations)]
        if math.prod(sizes) > MOST_PROFILES:
            return Ending(f"{math.prod(sizes):,} profiles of policies would come next, more than {MOST_PROFILES:,}")
        return None

    def respond(self, before: Snapshot) -> list[list[Policy]]:
        """Every player's new policies; of those who share a population, what the first of them has found."""
        levels = [self._jobs(before)]
        if self.config.pipeline > 1:
            load = lambda unit: self.store.load(unit).policy  # noqa: E731
            levels = pipeline(before, self.config.pipeline, self._jobs, self._extended, load)
        self.jobs = [job for level in levels for job in level]
        policies = self.trained(f"train/{before.iteration + 1}", self.plan.oracle, self.jobs)
        find = None if self.config.meta_solver in COUNTING else self.values.find
        found = answered(levels[0], policies[: len(levels[0])], before.populations, find)
        self.answers = self._by_player(found)
        new = [[answer for answer in mine if answer.new] for mine in self.answers]
        self.units = [[*had, *(answer.unit for answer in mine)] for had, mine in zip(self.units, new, strict=True)]
        return [[answer.policy for answer in mine] for mine in new]

    def _jobs(self, snapshot: Snapshot) -> list[Job]:
        if self.planned is None or self.planned[0] is not snapshot:
            name, plan = f"train/{snapshot.iteration + 1}", self.plan
            warm_start = self.config.warm_start and plan.oracle.total_steps > 0
            self.planned = snapshot, jobs(snapshot, name, self.learners, plan.groups, plan.aim, warm_start)
        return self.planned[1]

    def _extended(self, below: Snapshot, level: int) -> Snapshot:
        """The snapshot with the policies that were at that level of the pipeline in its iteration."""
        units = {player: f"train/{below.iteration}/{player}/{level}" for player in self.learners}
        found = self._everyones({player: self.store.load(unit).policy for player, unit in units.items()})
        populations = [[*old, new] for old, new in zip(below.populations, found, strict=True)]
        payoffs = self.evaluate(populations, below.payoffs)
        return Snapshot(below.iteration, populations, payoffs, self.plan.solve(populations, payoffs))

    def _by_player(self, answers: Sequence[Answer]) -> list[list[Answer]]:
        found = {player: [answer for answer in answers if answer.player == player] for player in self.learners}
        return self._everyones(found)

    def _everyones(self, learned: Mapping[int, T]) -> list[T]:
        """What each player has of that which the learners have."""
        return [learned[self.learner[player]] for player in self.players]

    def trained(self, name: str, oracle: Oracle, jobs: Sequence[Job]) -> list[Policy]:
        """The policy of every job: from the store, or trained, stored and read back."""
        missing = {job.unit: job for job in jobs if job.unit not in self.store}
        self.forecast.skipped("steps", (len(jobs) - len(missing)) * oracle.total_steps)
        curves: dict[str, list[dict[str, float]]] = {unit: [] for unit in missing}
        watch = Stopwatch()

        def progress(unit: str, update: dict[str, float]) -> None:
            self.stop.check()
            before = curves[unit][-1]["steps"] if curves[unit] else 0
            if update["steps"] <= before:  # it is begun again, as after a worker died
                curves[unit].clear()
                before = 0
            # There is no mean return before an episode has ended.
            curves[unit].append({key: value for key, value in update.items() if np.isfinite(value)})
            self.forecast.spent("steps", int(update["steps"] - before), watch.lap())
            shares = ", ".join(
                f"{missing[unit].player} {c[-1]['steps'] / oracle.total_steps:.0%}" for unit, c in curves.items() if c
            )
            speed = self.forecast.speed("steps")
            self.show.working(f"training {name}, player {shares}; {speed:,.0f} steps/s; {self.forecast} left")

        work = [
            # An answer that is computed at once has nothing to watch.
            Unit(unit, self._training(oracle, job), oracle.total_steps > 0)
            for unit, job in missing.items()
        ]
        for unit, policy in self.workers.run(work, progress):
            failpoint("unit finished")
            self.store.save(unit, policy, curves.pop(unit))
            self.stop.check()
        return [self.store.load(job.unit).policy for job in jobs]

    def _training(self, oracle: Oracle, job: Job) -> Callable[..., Policy]:
        config, plan, sigma = self.config, self.plan, job.target.sigma
        return partial(
            best_response,
            plan.game,
            oracle,
            job.populations,
            sigma,
            job.player,
            config.seed,
            job.unit,
            reward=config.reward,
            device=plan.device,
            start=job.start,
        )

    def evaluate(self, populations: Populations, known: Payoffs | None) -> Payoffs:
        """The payoff table, with the profiles it lacked."""
        self.show.working("evaluating new profiles")
        start, held = Stopwatch(), 0 if known is None else known.mean[0].size
        table = self.values.evaluate(populations, known, self.workers)
        self.forecast.spent("profiles", table.mean[0].size - held, start.lap())
        return table

    def finish(self, snapshot: Snapshot) -> None:
        """Measure an iteration, save it, and show it."""
        self.show.working("measuring the meta-strategy, and deviations from it")
        iteration = snapshot.iteration
        rows = self.values.measure(snapshot, self.latest, self.answers, self._how(), self.workers)
        if iteration:
            evaluate = partial(self.values.evaluate, known=None, workers=self.workers)
            rows += answer_rows(snapshot, self.answers, self.config.reward, evaluate)
            curves = {job.unit: self.store.load(job.unit).curve for job in self.jobs}
            rows += learning_rows(curves, "level" if self.config.pipeline > 1 else "response")
        failpoint("iteration finished")
        save_snapshot(self.folder, snapshot, self.units, self.store, {"metrics.jsonl": to_lines(rows)})
        self.latest = snapshot
        timing = self._timing(iteration)
        self.run.append_line("timing.jsonl", timing)
        self._publish(rows, **{"CPU s": f"{timing['cpu_seconds']}"})

    def _how(self) -> str:
        """How the last best responses were trained."""
        found = {answer.unit for mine in self.answers for answer in mine}
        warm = any(job.start is not None for job in self.jobs if job.unit in found)
        return "warm-started" if warm else "fresh"

    def final_gap(self) -> Rows:
        """All metrics of the run, with those of the full gap of the last meta-strategy, trained for once."""
        snapshot, oracle = self.latest, self.plan.last_oracle
        assert snapshot is not None
        if oracle is not None:
            name = f"{snapshot.iteration:04d}"
            path = self.run.path / "gap" / name
            if not path.exists():
                with whole_folder(path) as folder:
                    write_atomic(folder / "metrics.jsonl", to_lines(self._measure_gap(snapshot, oracle)))
            rows = read_rows(path)
            for tracker in self.trackers:
                tracker.write(rows)
            self.rows += rows
        for tracker in self.trackers:
            tracker.close()
        return self.rows

    def _measure_gap(self, snapshot: Snapshot, oracle: Oracle) -> Rows:
        """Of fresh responses: after every recommendation, where the meta-strategy claims that none is worth it."""
        name = f"gap/{snapshot.iteration}"
        told = concept(self.config.meta_solver, snapshot.sigma) == "CE gap"
        wanted = jobs(snapshot, name, self.learners, self.plan.groups, at(recommendations if told else mixture), False)
        found = answered(wanted, self.trained(name, oracle, wanted), snapshot.populations, None)
        self.show.working("scoring deviations from the meta-strategy")
        return self.values.gap(snapshot, self._by_player(found), name, self.workers)

    def _publish(self, rows: Rows, **more: str) -> None:
        self.rows += rows
        for tracker in self.trackers:
            tracker.write(rows)
        speed = self.forecast.speed("steps")
        more |= {"steps/s": f"{speed:,.0f}", "time left": str(self.forecast)} if speed else {}
        iteration = max(row["iteration"] for row in rows)  # a gap from best responses is of the one before
        self.show.row({"iteration": str(iteration)} | self.values.cells(rows) | more)

    def _work(self, done: int) -> tuple[int, int]:
        """Training steps and profiles that are left after `done` iterations, the first of which only evaluates."""
        plan, players, iterations = self.plan, len(self.players), self.config.iterations
        rounds = iterations - max(done - 1, 0)
        last = plan.last_oracle.total_steps if plan.last_oracle else 0
        steps = len(self.learners) * (rounds * self.config.pipeline * plan.oracle.total_steps + last)
        return steps, (iterations + 1) ** players - done**players

    def _timing(self, iteration: int) -> dict[str, object]:
        seconds = {f"{kind}_seconds": round(spent, 3) for kind, spent in self.forecast.seconds.items()}
        speeds = {f"{kind}_per_second": round(self.forecast.speed(kind), 1) for kind in self.forecast.seconds}
        cpu = {"cpu_seconds": round(time.process_time(), 2)}
        return {"iteration": iteration, "finished": datetime.now(UTC).isoformat(), **seconds, **speeds, **cpu}


def read_rows(folder: Path) -> Rows:
    """The metrics of one iteration's folder. Raises BrokenCheckpoint where they are none."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    if not rows or not all(isinstance(row, dict) and {"metric", "iteration", "value"} <= row.keys() for row in rows):
        raise BrokenCheckpoint(f"{folder / 'metrics.jsonl'} holds no metrics: it was not written by this command")
    return rows
