"""A training from where its folder ends: learn, save, evaluate, show."""

import shlex
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from analysis.figures import draw
from analysis.numbers import shown
from analysis.robust import interval
from analysis.trainings import WATCHED, brief, evaluation_table, read_metrics, team_share, watched
from experiments.metrics import EPISODE, Rows, report_rows
from experiments.opponents import (
    TOGETHER,
    TRAINED,
    Opponents,
    beginnings,
    lanes_to_learn,
    load_opponents,
    met,
    save_opponents,
    together,
    with_own_expert,
)
from experiments.placement import settings
from experiments.run import RunFolder, changes, interpreter, invocation, to_lines
from experiments.solving import Solving, gap_of, solves
from experiments.stop import Stop
from experiments.terminal import Display, Forecast, Stopwatch, View, display
from experiments.tracker import Tracker, trackers
from games.game import Policy
from marl.atomic import remove, verify, whole_folder, write_atomic
from marl.checkpoint import PolicyStore, Stored
from marl.failpoints import failpoint
from marl.oracles import NFSP, Oracle
from marl.population import deviation_value
from marl.psro import placed
from marl.recurrent import RecurrentPolicy
from marl.training import Training

if TYPE_CHECKING:
    from experiments.train import Lesson

POINTS = 1000
"""Reports of a learning curve that are kept, about."""
LINES = 20
"""Of them that are shown while it learns, and have an exact NashConv where there is one, about."""
RESAMPLES = 2000
"""Of the bootstrap: ten times as many would move an interval by a twentieth of its width."""
FLUSH = 5.0
"""Seconds that metrics may wait to be written."""
VIEW = View(
    ("steps", "return", *WATCHED.values(), "steps/s", "time left"),
    "return: of each lane's last whole episode, while it learns, mean ± standard error",
)
EXACT = VIEW._replace(caption="return: the best response's, computed in the game's tree; exact")
"""Of the exact oracle, which plays no steps."""
FICTITIOUS = VIEW._replace(
    caption="return: of player {seat}'s best response, which explores, where it learns, mean ± standard error\n"
    "average's loss: of what it imitates, in nats"
)
"""Of neural fictitious self-play."""
SOLVED = "NashConv: of all players' policies, exact, return per episode"


def view_of(lesson: "Lesson") -> View:
    """What is shown of a training."""
    view = VIEW if lesson.oracle.total_steps else EXACT
    if isinstance(lesson.oracle, NFSP):
        view = FICTITIOUS._replace(caption=FICTITIOUS.caption.format(seat=lesson.config.seat))
    solved = solves(lesson.config, lesson.oracle, lesson.game)
    return view._replace(caption=f"{view.caption}\n{SOLVED}") if solved else view


def learn(lesson: "Lesson", run: RunFolder, stop: Stop) -> None:
    """Do what is left of a training; at the end say what was measured.

    Raises BrokenCheckpoint where the folder is not as a training left it, before anything is done.
    """
    config, store, folder = lesson.config, PolicyStore(run.path), run.path / "opponents"
    torch.set_num_threads(config.threads)
    for note in changes(run.path, config.device):
        print(note)
    if lesson.others is not None:
        save_opponents(folder, lesson.others, config.seat, lesson.start, lesson.expert)
    others, start = load_opponents(folder, lesson.game, config.seat)
    lesson = lesson._replace(oracle=with_own_expert(lesson.oracle, folder))
    kept = trackers(run)
    with display(view_of(lesson)) as show:
        if TRAINED not in store:
            trained, company = Course(lesson, run, stop, show, kept).trained(others, start)
            failpoint("unit finished")
            if company is not None:
                save_opponents(run.path / TOGETHER, company, config.seat)
            store.save(TRAINED, trained.policy, trained.curve)
        else:
            for tracker in kept:
                tracker.write(curve_rows(store.load(TRAINED).curve))
        if (run.path / "checkpoint").exists():
            remove(run.path / "checkpoint")  # replays may be large, and nothing is left to go on with
        show.working("playing fresh episodes")
        rows = _evaluation(lesson, run, met(run.path, lesson.game, config.seat), store.load(TRAINED).policy)
        for tracker in kept:
            tracker.write(rows)
            tracker.close()
        show.working("drawing the learning curve")
        draw(run.path)
    curve = store.load(TRAINED).curve
    steps = int(curve[-1]["steps"]) if curve else 0
    run.write_json("summary.json", {"steps": steps, "evaluation": rows})
    failpoint("run finished")
    print("\n".join(_report(lesson, run, steps, rows)))


def curve_rows(curve: list[dict[str, float]]) -> Rows:
    """Metrics of all that a learner reported."""
    return [row for report in curve for row in report_rows(report)]


def looked_at(report: Mapping[str, float], seat: int) -> dict[str, float]:
    """What a report tells of this seat, or of all, by plain names."""
    suffix = f"/{seat}"
    return {name.removesuffix(suffix): value for name, value in report.items() if "/" not in name.removesuffix(suffix)}


class Course:
    """The learning, shown and written as it goes."""

    def __init__(self, lesson: "Lesson", run: RunFolder, stop: Stop, show: Display, kept: list[Tracker]):
        self.lesson, self.run, self.stop, self.show, self.kept = lesson, run, stop, show, kept
        self.total = lesson.oracle.total_steps
        self.forecast, self.watch = Forecast(self.total, 0), Stopwatch()
        self.waiting: Rows = []
        self.flushed, self.steps = time.monotonic(), 0

    def trained(self, others: Opponents, start: Policy | None) -> tuple[Stored, Opponents | None]:
        """The policy and its curve, from the last checkpoint on, and who learned beside it (`opponents.together`).

        Ctrl-C ends it after an update, the state saved.
        """
        config, lesson = self.lesson.config, self.lesson
        about = {name: value for name, value in settings(config).items() if name not in config.extendable}
        folder = self.run.path / "checkpoint" if config.every else None
        taught = lanes_to_learn(lesson.oracle, lesson.game, others, config.seat, config.reward, lesson.device)
        with taught as (lanes, seats):
            warm = beginnings(lesson.oracle, others, config.seat, start)
            learner = lesson.oracle.learner(lanes, seats, config.seed, lesson.device, warm)
            log_every = max(1, self.total // POINTS)
            self.line_every = log_every * (POINTS // LINES)  # reports of these are kept, for it is a multiple
            if solves(config, lesson.oracle, lesson.game):
                learner = Solving(learner, lesson.game, self.line_every)
            training = Training(learner, folder, about, config.every or 1, log_every)
            self._go_on(training)
            try:
                with self.stop.patient():
                    policies = training.run(self._progress)
            finally:
                self._flush()
                self._time()
        found = {seat: placed(policy, "cpu") for seat, policy in policies.items()}
        return Stored(found[config.seat], training.curve), together(lesson.oracle, others, found)

    def _go_on(self, training: Training) -> None:
        self.training = training
        self.steps = training.steps
        self.forecast.skipped("steps", training.steps)
        self.waiting = curve_rows(training.curve)
        if training.steps:
            print(f"going on after {training.steps:,} of {self.total:,} steps")
        if not training.resumable:
            self.stop.advice += "; it begins again, for it has no checkpoints"
        self.watch.lap()

    def _progress(self, report: Mapping[str, float]) -> None:
        steps = int(report["steps"])
        self.forecast.spent("steps", steps - self.steps, self.watch.lap())
        before, self.steps = self.steps, steps
        speed = self.forecast.speed("steps")
        if self.total:
            self.show.working(f"training, {steps / self.total:.0%}; {speed:,.0f} steps/s; {self.forecast} left")
        latest = self.training.curve[-1]
        if int(latest["steps"]) == steps:  # it is kept
            self.waiting += report_rows(latest)
            if steps // self.line_every > before // self.line_every or self.training.learner.finished:
                self._show(looked_at(latest, self.lesson.config.seat), speed)
        if time.monotonic() - self.flushed > FLUSH:
            self._flush()
        self.stop.check()

    def _show(self, report: Mapping[str, float], speed: float) -> None:
        called = watched(report)
        self.show.view = self.show.view._replace(columns=("steps", "return", *called.values(), *VIEW.columns[-2:]))
        earned = {"value": report.get("return"), "standard_error": report.get("return_error", 0), "kind": "estimate"}
        cells = {"steps": f"{int(report['steps']):,}", "return": shown(earned) if "return" in report else ""}
        cells |= {name: brief(report[key]) for key, name in called.items()}
        self.show.row(cells | {"steps/s": f"{speed:,.0f}", "time left": str(self.forecast)})

    def _flush(self) -> None:
        for tracker in self.kept:
            tracker.write(self.waiting)
        self.waiting, self.flushed = [], time.monotonic()

    def _time(self) -> None:
        speed = round(self.forecast.speed("steps"), 1)
        seconds = {"steps_seconds": round(self.forecast.seconds["steps"], 3), "steps_per_second": speed}
        cpu = {"cpu_seconds": round(time.process_time(), 2)}
        now = datetime.now(UTC).isoformat()
        self.run.append_line("timing.jsonl", {"steps": self.steps, "finished": now, **seconds, **cpu})


def _evaluation(lesson: "Lesson", run: RunFolder, others: Opponents, policy: Policy) -> Rows:
    """What the policy earns in fresh episodes, as it is stored, or measured and stored."""
    folder = run.path / "evaluation"
    if not folder.exists():
        rows, arrays = measured(lesson, others, policy)
        with whole_folder(folder) as path:
            np.savez(path / "returns.npz", **arrays)
            write_atomic(path / "metrics.jsonl", to_lines(rows))
    verify(folder)
    return read_metrics(folder / "metrics.jsonl")


def measured(lesson: "Lesson", others: Opponents, policy: Policy) -> tuple[Rows, dict[str, Any]]:
    """Metrics of every way to play the policy, and the returns and lengths [E] of the episodes they are of.

    Returns are of the rewards that it learned to earn: its own, the team's, or a mixture of both.
    """
    share = team_share(settings(lesson.config))
    config, rows, arrays = lesson.config, list[dict[str, Any]](), dict[str, Any]()
    for play, player in ways(lesson.oracle, policy).items():
        value = deviation_value(
            lesson.game, *others, (config.seat, player), config.eval_episodes, config.seed, "evaluation"
        )
        returns = (1 - share) * value.returns[:, config.seat] + share * value.returns.sum(axis=1)
        middle, low, high = interval(returns, resamples=RESAMPLES)
        rows += [
            _row("return", returns, play, EPISODE),
            {"metric": "evaluation/interquartile_mean", "play": play, "value": middle, "low": low, "high": high}
            | {"kind": "estimate", "unit": EPISODE},
            _row("steps", value.lengths, play, "steps per episode"),
            *_solved(lesson, others.joined_by(config.seat, player), play),
        ]
        arrays |= {play: returns, f"{play}_steps": value.lengths}
    return rows, arrays


def _solved(lesson: "Lesson", company: Opponents, play: str) -> Rows:
    """NashConv of those who learned together, who all play in one of the `ways`, exact.

    Nothing where that is not what the training is about, or the game has no tree.
    """
    if not solves(lesson.config, lesson.oracle, lesson.game):
        return []
    everyone = [ways(lesson.oracle, population[0])[play] for population in company.populations]
    gap = gap_of(lesson.game, everyone)
    return [{"metric": "evaluation/nash_conv", "play": play, "value": gap, "kind": "exact", "unit": EPISODE}]


def _row(name: str, sample: np.ndarray, play: str, unit: str) -> dict:
    error = float(sample.std(ddof=1) / len(sample) ** 0.5)
    value = {"value": float(sample.mean()), "standard_error": error, "kind": "estimate"}
    return {"metric": f"evaluation/{name}", "play": play, **value, "unit": unit, "episodes": len(sample)}


def ways(oracle: Oracle, policy: Policy) -> dict[str, Policy]:
    """Greedy and drawn, where the oracle's policies may be either; else the policy as it is."""
    if not hasattr(oracle, "greedy"):
        return {"as handed out": policy}
    return {"greedy": _playing(policy, greedy=True), "drawn": _playing(policy, greedy=False)}


def _playing(policy: Any, greedy: bool) -> Any:
    if isinstance(policy, RecurrentPolicy):
        return RecurrentPolicy(policy.core, _playing(policy.head, greedy))
    kind, arguments = policy.__reduce__()  # policies that learnt are made again of what they are, last how they play
    return kind(*arguments[:-1], greedy)


def _report(lesson: "Lesson", run: RunFolder, steps: int, rows: Rows) -> list[str]:
    """Lines that say what was measured and how, and what to do next."""
    config, folder = lesson.config, shlex.quote(str(run.path))
    headers, lines = evaluation_table(rows)
    others = f", against {config.against}" if len(lesson.game.agents) > 1 else ""
    others = ", with those who learned beside it" if (run.path / TOGETHER).exists() else others
    share, agent = team_share(settings(config)), lesson.game.agents[config.seat]
    earner = "the team earns" if share == 1 else f"{agent} earns"
    earner += f", {1 - share:g} of it its own and {share:g} the team's return," if 0 < share < 1 else ""
    commands = ["show", "play"]
    if lesson.oracle.all_seats and not solves(config, lesson.oracle, lesson.game):
        commands.append("exploitability")
    return [
        f"{config.oracle} on {config.game}{others}, seed {config.seed}, {steps:,} steps",
        *(
            f"NashConv, {row['play']}: {row['value']:.4g} ({row['kind']}; {row['unit']})"
            for row in rows
            if row["metric"] == "evaluation/nash_conv"
        ),
        f"what {earner} in {config.eval_episodes:,} fresh episodes (± standard error, [95 % bootstrap interval]):",
        *(
            f"  {play}: " + ", ".join(f"{name} {cell}" for name, cell in zip(headers[1:4], cells, strict=False) if cell)
            for play, *cells in lines
        ),
        f"in {run.path}:",
        f"  policy, {'figures/learning_curve.png, ' if steps else ''}metrics.jsonl, evaluation, run.json, summary.json",
        "next:",
        *(f"  {invocation()} {command} {folder}" for command in commands),
        *([f"  {interpreter()} -m tensorboard.main --logdir {folder}"] if find_spec("tensorboard") else []),
    ]
