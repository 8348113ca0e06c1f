"""A run of PSRO from where its folder ends: train, evaluate, solve, measure, save, show."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from analysis.figures import draw
from analysis.report import write
from experiments.measures import Rows, learning_rows
from experiments.report import report
from experiments.run import RunFolder, changes, to_lines
from experiments.stop import Stop
from experiments.terminal import Display, Forecast, Stopwatch, display
from experiments.tracker import Tracker, trackers
from games.game import Policy
from games.versus import Populations
from marl.atomic import BrokenCheckpoint, verify, whole_folder, write_atomic
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot, save_snapshot, snapshot_path
from marl.failpoints import failpoint
from marl.oracles import Oracle
from marl.psro import Payoffs, Snapshot, best_response, psro
from marl.workers import Unit, Workers, workers_of
from metasolvers.symmetric import symmetrised

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
    longer = not plan.values.enough(rows)
    print("\n".join(report(run, plan.config, rows, len(figures), longer)))


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
            self.forecast = Forecast(*self._work(done))
        else:
            for player in self.learners:
                if f"initial/{player}" not in self.store:
                    self.store.save(f"initial/{player}", self.plan.initial[player], [])
        self.trackers = trackers(self.run)
        for path in finished:
            self._publish(read_rows(path))

    def snapshots(self) -> Iterator[Snapshot]:
        """The iterations that are left, or until the values are good enough; each is to be finished."""
        initial = self._everyones({player: [self.store.load(f"initial/{player}").policy] for player in self.learners})
        solver, iterations = self.plan.solver, self.config.iterations
        left = psro(initial, self.respond, self.evaluate, solver, iterations, self.latest)
        for snapshot in () if self.values.enough(self.rows) else left:
            yield snapshot
            if self.values.enough(self.rows):
                return

    def respond(self, populations: Populations, sigma: np.ndarray, iteration: int) -> list[Policy]:
        """Every player's best response to sigma; of those who share a population, that of the first."""
        starts = [self._start(population) for population in populations]
        return self.trained(f"train/{iteration}", self.plan.oracle, populations, sigma, starts)

    def _everyones(self, learned: Mapping[int, T]) -> list[T]:
        """What each player has of that which the learners have."""
        return [learned[self.learner[player]] for player in self.players]

    def _start(self, population: Sequence[Policy]) -> Policy | None:
        """What the next best response goes on from: the player's latest policy, where it was trained."""
        trained = len(population) > 1 and self.plan.oracle.total_steps > 0
        return population[-1] if self.config.warm_start and trained else None

    def trained(
        self, name: str, oracle: Oracle, populations: Populations, sigma: np.ndarray, starts: list[Policy | None]
    ) -> list[Policy]:
        """Every player's best response, the unit `name`/player: from the store, or trained, stored and read back."""
        units = {f"{name}/{player}": player for player in self.learners}
        missing = {unit: player for unit, player in units.items() if unit not in self.store}
        self.forecast.skipped("steps", (len(units) - len(missing)) * oracle.total_steps)
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
                f"{missing[unit]} {c[-1]['steps'] / oracle.total_steps:.0%}" for unit, c in curves.items() if c
            )
            speed = self.forecast.speed("steps")
            self.show.working(f"training {name}, player {shares}; {speed:,.0f} steps/s; {self.forecast} left")

        config = self.config
        if self.plan.groups:  # what the first of a group meets is what they all meet on average
            sigma = symmetrised(sigma, self.groups)
        train = partial(
            best_response, self.plan.game, oracle, populations, sigma, reward=config.reward, device=self.plan.device
        )
        work = [
            # An answer that is computed at once has nothing to watch.
            Unit(unit, partial(train, player, config.seed, unit, start=starts[player]), oracle.total_steps > 0)
            for unit, player in missing.items()
        ]
        for unit, policy in self.workers.run(work, progress):
            failpoint("unit finished")
            self.store.save(unit, policy, curves.pop(unit))
            self.stop.check()
        return self._everyones({player: self.store.load(unit).policy for unit, player in units.items()})

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
        warm = self.latest is not None and any(self._start(population) for population in self.latest.populations)
        trained = "warm-started" if warm else "fresh"
        rows = self.values.measure(snapshot, self.latest, trained, self.workers)
        if iteration:
            curves = {player: self.store.load(f"train/{iteration}/{player}").curve for player in self.learners}
            rows += learning_rows(curves, iteration)
        units = self._everyones(
            {
                player: [f"initial/{player}", *(f"train/{i}/{player}" for i in range(1, iteration + 1))]
                for player in self.learners
            }
        )
        failpoint("iteration finished")
        save_snapshot(self.folder, snapshot, units, self.store, {"metrics.jsonl": to_lines(rows)})
        self.latest = snapshot
        timing = self._timing(iteration)
        self.run.append_line("timing.jsonl", timing)
        self._publish(rows, **{"CPU s": f"{timing['cpu_seconds']}"})

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
        unit = f"gap/{snapshot.iteration}"
        fresh: list[Policy | None] = [None for _ in self.players]
        responses = [[found] for found in self.trained(unit, oracle, snapshot.populations, snapshot.sigma, fresh)]
        self.show.working("scoring deviations from the meta-strategy")
        return self.values.gap(snapshot, responses, unit, self.workers)

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
        steps = len(self.learners) * (rounds * plan.oracle.total_steps + last)
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
