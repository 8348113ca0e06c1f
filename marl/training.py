"""A learner's training, kept in a folder as it goes: whatever ends it, it goes on from there to the same bits."""

import importlib.metadata
import json
import logging
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from games.game import Policy
from games.numbers import real, whole
from marl.atomic import BrokenCheckpoint, read_json, remove, sweep, to_json
from marl.oracles import Learner, Progress
from marl.state_files import load_state, save_state

log = logging.getLogger(__name__)

ABOUT = "training.json"
UNLOADABLE = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, StopIteration, ArithmeticError)
"""What learners raise of states that are not theirs."""


class Training:
    """The updates of a learner that are left, from the last good checkpoint in `folder` on, if there is one.

    A checkpoint, `folder`/NUMBER-OF-UPDATES, is the learner's whole state: N updates, a new process and N more give
    what 2N straight give, bit for bit on one kind of CPU. There are two, of which the older serves where the newer was
    damaged. `about` tells, in plain JSON values, all that the learner was made of (its oracle's settings, the game, the
    seed): a training that was of anything else, or of another version of counterplay, is not gone on with.

    Some learners cannot tell their state (their lanes hold environments that own theirs): they train without
    checkpoints, and `resumable` is False, which is logged as a warning.

    `curve` holds what the learner has reported, but for what is not finite: the last report, and of the others the
    first in every `log_every` steps.

    Raises ValueError that lists what differs, BrokenCheckpoint where no checkpoint is whole, and OSError where the
    folder cannot be written to.

    >>> from tempfile import TemporaryDirectory
    >>> from games import make
    >>> from games.lanes import GameLanes
    >>> from marl.oracles import PPO
    >>> game, ppo = make("bandit"), PPO(steps=4096, num_lanes=64)
    >>> def begin(folder):
    ...     learner = ppo.learner(GameLanes(game, ppo.num_lanes), [0], seed=0)
    ...     return Training(learner, folder, {"game": "bandit", "oracle": repr(ppo), "seed": 0}, every=1024)
    >>> with TemporaryDirectory() as folder:
    ...     policies = begin(Path(folder)).run()
    ...     sorted(path.name for path in Path(folder).iterdir()), begin(Path(folder)).curve[-1]["update"]
    (['00000006', '00000008'], 8)
    """

    def __init__(self, learner: Learner, folder: Path | None, about: Mapping[str, Any], every: int, log_every: int = 1):
        if every < 1 or log_every < 1:
            raise ValueError(f"every and log_every are steps, at least 1, got {every} and {log_every}")
        self.learner, self.folder, self.every, self.log_every = learner, folder, every, log_every
        self.about, self.version = json.loads(to_json(dict(about))), _version()
        self.update, self.steps, self.curve = 0, 0, list[dict[str, float]]()
        self.saved: Path | None = None
        """The last checkpoint."""
        if folder is not None:
            sweep(folder)
            self._restore(folder)
        if self.resumable and self.saved is None:
            self.save()  # what cannot be saved, or where, is better known before hours of training

    @property
    def resumable(self) -> bool:
        return self.folder is not None

    def run(self, progress: Progress | None = None) -> dict[int, Policy]:
        """Update until the budget is spent, save every so many steps and in the end, and return the policies.

        `progress` is told of every update; whatever it raises (a stop, perhaps), the state is saved first. Errors of
        the learner, such as the FloatingPointError of a loss that exploded, note where its last good state is.
        """
        while not self.learner.finished:
            try:
                report = self.learner.update()
            except Exception as error:
                if self.saved is not None:
                    error.add_note(f"the last good state, after update {int(self.saved.name)}, is kept in {self.saved}")
                raise
            due = int(report["steps"]) // self.every > self.steps // self.every
            self._record(report)
            try:
                if progress is not None:
                    progress(report)
            except BaseException:
                self.save()
                raise
            if due or self.learner.finished:
                self.save()
        return self.learner.policies

    def save(self) -> None:
        """Write the checkpoint of this update, if there is none; the last one stays, and what is older goes."""
        if self.folder is None or (self.saved is not None and int(self.saved.name) == self.update):
            return
        for path in self._checkpoints(self.folder)[1:]:
            remove(path)
        path = self.folder / f"{self.update:08d}"
        about = {"about": self.about, "counterplay": self.version}
        about |= {"update": self.update, "steps": self.steps, "curve": self.curve}
        try:
            state = self.learner.state_dict()
        except NotImplementedError as error:
            why = str(error).partition(":")[0]
            log.warning("note: no checkpoints are kept, for %s; if it is interrupted, this training begins again", why)
            self.folder = None
            return
        save_state(path, state, {ABOUT: to_json(about)})
        self.saved = path

    def _record(self, report: Mapping[str, float]) -> None:
        before, self.update, self.steps = self.steps, int(report["update"]), int(report["steps"])
        finite = {name: value for name, value in report.items() if math.isfinite(value)}
        if self.learner.finished or not self.curve or self.steps // self.log_every > before // self.log_every:
            self.curve.append(finite)

    def _restore(self, folder: Path) -> None:
        """Go on from the newest checkpoint that is whole; those that are not have to be made again."""
        broken: dict[Path, BrokenCheckpoint] = {}
        for path in self._checkpoints(folder):
            try:
                self._load(path)
            except BrokenCheckpoint as error:
                broken[path] = error
                continue
            self.saved = path
            for damaged, problem in broken.items():
                log.warning("note: %s; going on from %s, which was saved before", problem, path)
                remove(damaged)
            return
        for problem in broken.values():
            raise BrokenCheckpoint(
                f"{problem}; no checkpoint in {folder} is whole: restore that folder from a copy, or remove it to "
                "begin the training again"
            ) from problem

    def _load(self, path: Path) -> None:
        about = read_json(path / ABOUT)
        try:
            differing = _differences(
                {**about["about"], "version of counterplay": about["counterplay"]},
                {**self.about, "version of counterplay": self.version},
            )
            update, steps = (whole(name, about[name], 0, sys.maxsize) for name in ("update", "steps"))
            curve = _checked_curve(about["curve"])
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenCheckpoint(f"{path / ABOUT} is not as a training writes it ({error})") from error
        if differing:
            raise ValueError(f"{path} is of another training: {'; '.join(differing)}; begin yours in another folder")
        state = load_state(path)
        try:
            self.learner.load_state_dict(state)
            self.learner.finished  # noqa: B018 - raises where what it counts is no number
        except UNLOADABLE as error:
            raise BrokenCheckpoint(f"{path} is no state of this learner ({error})") from error
        self.update, self.steps, self.curve = update, steps, curve

    def _checkpoints(self, folder: Path) -> list[Path]:
        """Newest first."""
        return sorted((path for path in folder.glob("[0-9]*") if path.is_dir()), reverse=True)


def _checked_curve(curve: Any) -> list[dict[str, float]]:
    """Reports as they were saved. Raises ValueError for what are none."""
    if not isinstance(curve, list):
        raise ValueError(f"curve should be a list of reports, got {curve!r}")
    for report in curve:
        if not isinstance(report, dict) or not {"update", "steps"} <= report.keys():
            raise ValueError(f"a report should hold update and steps, got {report!r}")
        for name, value in report.items():
            real(f"{name} of a report", value)
    return curve


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _version() -> str | None:
    """Of this package: learners may keep another state in another version."""
    try:
        return importlib.metadata.version("counterplay")
    except importlib.metadata.PackageNotFoundError:
        return None
