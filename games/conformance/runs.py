"""Rules about whole runs: the same episodes, played again in other ways."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from pettingzoo import AECEnv, ParallelEnv

from games.conformance.record import (
    Difference,
    Driver,
    Moment,
    Run,
    difference,
    digest,
    freeze,
    global_random,
    global_state,
    record,
)
from games.conformance.rules import Broken
from games.spelling import unknown

EnvFn = Callable[..., AECEnv | ParallelEnv]

PROBES, PROBE_STEPS = 8, 20
"""Short episodes with equal actions that tell whether there is chance."""


@dataclass
class Case:
    """An environment under test, and the run that all others are compared with."""

    source: EnvFn | str
    episodes: int
    seed: int
    max_steps: int
    render_modes: Sequence[str] = ()
    main: Run = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.max_steps < 1 or self.seed < 0:
            given = f"{self.episodes}, {self.max_steps}, {self.seed}"
            raise ValueError(f"check needs episodes and max_steps >= 1 and seed >= 0, got {given}")
        _ = self.env_fn  # an import path that leads nowhere should fail before anything is played

    @property
    def steps(self) -> int:
        """Of the main run."""
        return sum(len(moments) - 1 for moments in self.main)

    @cached_property
    def env_fn(self) -> EnvFn:
        return load(self.source) if isinstance(self.source, str) else self.source

    def play(self, driver: Driver | None = None, global_seed: int = 0, **watchers: Any) -> Run:
        """The case's episodes: the first seeded, the others going on from there."""
        with global_random(global_seed):
            driver = driver or Driver(self.env_fn())
            return record(
                driver, [self.seed, *[None] * (self.episodes - 1)], range(self.episodes), self.max_steps, **watchers
            )

    @cached_property
    def again(self) -> Run:
        return self.play()

    def same(self, run: Run, message: str, states: bool = False) -> None:
        """Raises Broken where the run differs from the main one."""
        found: Difference | None = difference(self.main, run, states)
        if found:
            what = f"{found.what}: wanted {found.one}, got {found.other}"
            raise Broken(f"{message}; {what}", found.agent, found.episode, found.step)

    def first_episode(self) -> Iterator[tuple[Driver, Moment]]:
        """A fresh environment at every moment of the first episode, the end included."""
        driver = Driver(self.env_fn())
        driver.seed(0)
        now = driver.reset(self.seed)
        for _ in range(self.max_steps):
            yield driver, now
            if not now.agents:
                return
            now = driver.step(driver.choose(now))


def seeds(case: Case) -> str | None:
    """Two fresh environments play the same whole episodes after reset(seed) and any number of resets without one."""
    case.same(case.again, "the same seed and actions must give the same episodes")
    return None


def global_generators(case: Case) -> str | None:
    """Python's and NumPy's global generators are neither read nor written."""
    with global_random(1):
        kept = global_state()
        driver = Driver(case.env_fn())
        record(driver, [case.seed, None], [0, 1], case.max_steps)
        for name, before, after in zip(("random", "np.random"), kept, global_state(), strict=True):
            if before != after:
                raise Broken(f"{name}'s global generator must be left alone: draw from a generator of your own")
    case.same(case.play(global_seed=1), "episodes must not depend on random.seed or np.random.seed: draw from your own")
    return None


def states(case: Case) -> str | None:
    """state(), where implemented, is equal after equal histories."""
    if all(shown["state", None] == freeze(None) for moments in case.main for shown in moments):
        return "state() is not implemented"
    case.same(case.again, "the same history must give the same state()", states=True)
    return None


def restarts(case: Case) -> str | None:
    """reset(seed) in the middle of an episode starts the same episodes as in a fresh environment."""
    middle = max(1, (len(case.main[0]) - 1) // 2)
    driver = Driver(case.env_fn())
    record(driver, [case.seed + 1, None], [1, 2], middle)
    case.same(case.play(driver), "an environment in use must start over as a fresh one does: let reset clear it all")
    return None


def continues(case: Case) -> str | None:
    """reset() without a seed goes on with the generator: where there is chance, the next episode is another one."""
    steps = min(case.max_steps, PROBE_STEPS)
    runs: list[list[int | None]] = [[case.seed + i for i in range(PROBES)], [case.seed, *[None] * (PROBES - 1)]]
    seeded, going_on = (record(Driver(case.env_fn()), run, [0] * PROBES, steps) for run in runs)
    if len({digest([episode]) for episode in seeded}) == 1:
        return f"{PROBES} seeds made no difference: there seems to be no chance"
    if len({digest([episode]) for episode in going_on}) == 1:
        raise Broken(f"{PROBES} episodes were the same: make the generator where a seed is given, not at every reset")
    return None


def keeps(case: Case) -> str | None:
    """An observation that was handed out does not change later."""
    kept: list[tuple[Any, Any, Any]] = []

    def watch(driver: Driver, before: Moment | None, now: Moment) -> None:
        for agent, observation, frozen in kept:
            if freeze(observation) != frozen:
                raise Broken("an observation handed out a step ago has changed: return a copy", agent)
        kept[:] = [(agent, shown, freeze(shown)) for agent, shown in now.observations.items()]

    case.play(watch=watch)
    return None


def ignores_writes(case: Case) -> str | None:
    """Writing into an observation changes nothing that comes later."""

    def scribble(driver: Driver, before: Moment | None, now: Moment) -> None:
        for shown in now.observations.values():
            _scribble(shown)

    case.same(case.play(done=scribble), "writing into observations must change nothing: return copies of what you keep")
    return None


def _scribble(value: Any) -> None:
    if isinstance(value, dict | tuple | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            if name != "action_mask":  # which is read again to choose the next action
                _scribble(part)
    elif isinstance(value, np.ndarray) and value.flags.writeable and value.dtype != object:
        value[...] = ~value if value.dtype == bool else value + 1


def processes(case: Case) -> str | None:
    """A fresh process with another PYTHONHASHSEED plays the same episodes."""
    try:
        payload = pickle.dumps((case.source, case.episodes, case.seed, case.max_steps))
    except Exception as error:
        return f"env_fn cannot be sent to another process ({error}): use a module's function, or its import path"
    if b"__main__" in payload:
        return "env_fn lives in the script that is running: import it from a module"
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    surroundings = os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from games.conformance.runs import child; child()"]
    played = subprocess.run(command, input=payload, capture_output=True, env=surroundings, check=False)
    if played.returncode:
        raise Broken(f"another process could not play: {played.stderr.decode().strip()[-400:]}")
    # Environments may print; ours is the last line.
    told = played.stdout.decode().split()[-len(case.main) :]
    for episode, (moments, other_digest) in enumerate(zip(case.main, told, strict=True)):
        if digest([moments]) != other_digest:
            raise Broken(
                "another process played another episode: do not iterate over sets, nor use hash()", None, episode
            )
    return None


def child() -> None:
    """Plays the case pickled on standard input by the parent process, and prints its digests."""
    case = Case(*pickle.load(sys.stdin.buffer))
    print("\n" + " ".join(digest([moments]) for moments in case.play()))


def render(case: Case) -> str | None:
    """Each render mode asked for works: "ansi" gives text, "rgb_array" uint8 [height, width, 3], "human" nothing."""
    if not case.render_modes:
        return "no render_modes were given"
    for mode in case.render_modes:
        driver = Driver(case.env_fn(render_mode=mode))
        modes = driver.env.metadata.get("render_modes", [])
        if mode not in modes:
            raise Broken(
                f"metadata['render_modes'] must list what may be asked for: {unknown('render mode', mode, modes)}"
            )
        driver.seed(0)
        now = driver.reset(case.seed)
        for step in range(2):
            problem = _picture_problem(mode, driver.env.render())
            if problem:
                raise Broken(f"render() in mode {mode!r} must return {problem}", None, 0, step)
            if now.agents:
                now = driver.step(driver.choose(now))
        driver.env.close()
    return None


def _picture_problem(mode: str, shown: Any) -> str | None:
    if mode == "ansi":
        return None if isinstance(shown, str) and shown else f"text, got {shown!r}"
    if mode == "rgb_array":
        fits = isinstance(shown, np.ndarray) and shown.dtype == np.uint8 and shown.ndim == 3 and shown.shape[2] == 3
        got = f"{shown.dtype} {shown.shape}" if isinstance(shown, np.ndarray) else repr(shown)
        return None if fits else f"a uint8 array [height, width, 3], got {got}"
    return None if mode != "human" or shown is None else f"nothing, got {shown!r}"


RUN_RULES: dict[str, Callable[[Case], str | None]] = {
    rule.__name__: rule
    for rule in (
        seeds,
        global_generators,
        states,
        restarts,
        continues,
        keeps,
        ignores_writes,
        processes,
        render,
    )
}
NEED_SEEDS = ("global_generators", "states", "restarts", "continues", "ignores_writes", "processes")


def load(path: str) -> Any:
    """What an import path `module:name` names. Raises ValueError where there is no such thing."""
    module_name, _, name = path.partition(":")
    if not name:
        raise ValueError(f"an import path is module:function, such as games:parallel_env; got {path!r}")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"cannot import {module_name!r} of {path!r}: {error}") from error
    if not hasattr(module, name):
        raise unknown(f"name in {module_name}", name, [known for known in vars(module) if not known.startswith("_")])
    return getattr(module, name)
