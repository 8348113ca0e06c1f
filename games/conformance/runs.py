"""Rules about whole runs: the same episodes played again in other ways, and things an environment must refuse."""

import logging
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from pettingzoo import AECEnv, ParallelEnv

from games.conformance.record import (
    Difference,
    Moment,
    Player,
    Run,
    difference,
    digest,
    freeze,
    global_random,
    global_state,
    mask_of,
    mask_problem,
    record,
)
from games.conformance.rules import Broken
from games.spelling import unknown

EnvFn = Callable[..., AECEnv | ParallelEnv]

PROBES, PROBE_STEPS = 8, 100
"""Short episodes with equal actions that tell whether there is chance."""


@dataclass
class Case:
    """An environment under test, and the run that all others are compared with."""

    env_fn: EnvFn
    episodes: int
    seed: int
    max_steps: int
    render_modes: Sequence[str] = ()
    main: Run = field(default_factory=list)

    def play(self, player: Player | None = None, global_seed: int = 0, **watchers: Any) -> Run:
        """The case's episodes: the first seeded, the others going on from there."""
        with global_random(global_seed):
            player = player or Player(self.env_fn())
            return record(
                player, [self.seed, *[None] * (self.episodes - 1)], range(self.episodes), self.max_steps, **watchers
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

    def first_episode(self) -> Iterator[tuple[Player, Moment]]:
        """A fresh environment at every moment of the first episode, the end included."""
        player = Player(self.env_fn())
        player.seed(0)
        now = player.reset(self.seed)
        for _ in range(self.max_steps):
            yield player, now
            if not now.agents:
                return
            now = player.step(player.choose(now))


def global_generators(case: Case) -> str | None:
    """Python's and NumPy's global generators are neither read nor written."""
    with global_random(1):
        kept = global_state()
        player = Player(case.env_fn())
        record(player, [case.seed, None], [0, 1], case.max_steps)
        for name, before, after in zip(("random", "np.random"), kept, global_state(), strict=True):
            if before != after:
                raise Broken(f"{name}'s global generator must be left alone: draw from a generator of your own")
    case.same(
        case.play(global_seed=1), "episodes must not depend on random.seed or np.random.seed: draw from your own"
    )
    return None


def seeds(case: Case) -> str | None:
    """Two fresh environments play the same whole episodes after reset(seed) and any number of resets without one."""
    case.same(case.again, "the same seed and actions must give the same episodes")
    return None


def states(case: Case) -> str | None:
    """state(), where implemented, is equal after equal histories."""
    if all(shown["state", None] == freeze(None) for frames in case.main for shown in frames):
        return "state() is not implemented"
    case.same(case.again, "the same history must give the same state()", states=True)
    return None


def restarts(case: Case) -> str | None:
    """reset(seed) in the middle of an episode starts the same episodes as in a fresh environment."""
    middle = max(1, (len(case.main[0]) - 1) // 2)
    player = Player(case.env_fn())
    record(player, [case.seed + 1, None], [1, 2], middle)
    case.same(case.play(player), "an environment in use must start over as a fresh one does: let reset clear it all")
    return None


def continues(case: Case) -> str | None:
    """reset() without a seed goes on with the generator: where there is chance, the next episode is another one."""
    steps = min(case.max_steps, PROBE_STEPS)
    runs = [[case.seed + i for i in range(PROBES)], [case.seed, *[None] * (PROBES - 1)]]
    seeded, going_on = (record(Player(case.env_fn()), run, [0] * PROBES, steps) for run in runs)
    if len({digest([episode]) for episode in seeded}) == 1:
        return f"{PROBES} seeds made no difference: there seems to be no chance"
    if len({digest([episode]) for episode in going_on}) == 1:
        raise Broken(f"{PROBES} episodes were the same: make the generator where a seed is given, not at every reset")
    return None


def keeps(case: Case) -> str | None:
    """An observation that was handed out does not change later."""
    kept: list[tuple[Any, Any, Any]] = []

    def watch(player: Player, before: Moment | None, now: Moment) -> None:
        for agent, observation, frozen in kept:
            if freeze(observation) != frozen:
                raise Broken("an observation handed out a step ago has changed: return a copy", agent)
        kept[:] = [(agent, shown, freeze(shown)) for agent, shown in now.observations.items()]

    case.play(watch=watch)
    return None


def ignores_writes(case: Case) -> str | None:
    """Writing into an observation changes nothing that comes later."""

    def scribble(player: Player, before: Moment | None, now: Moment) -> None:
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
        payload = pickle.dumps((case.env_fn, case.episodes, case.seed, case.max_steps))
    except Exception as error:
        return f"env_fn cannot be sent to another process ({error}): use a function at the top of a module"
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
    for episode, (frames, other_digest) in enumerate(zip(case.main, told, strict=True)):
        if digest([frames]) != other_digest:
            raise Broken("another process played another episode: do not iterate over sets, nor use hash()", None, episode)
    return None


def child() -> None:
    """Plays the case pickled on standard input by the parent process, and prints its digests."""
    case = Case(*pickle.load(sys.stdin.buffer))
    print("\n" + " ".join(digest([frames]) for frames in case.play()))


def rejects_actions(case: Case) -> str | None:
    """Actions outside the space, or masked out, are refused: by an error or a warning, or (masked out) by the end."""
    tried = False
    for agent in Player(case.env_fn()).possible_agents:
        for wrong in wrong_actions(Player(case.env_fn()).spaces[agent][1]):
            for player, now in case.first_episode():
                if agent in now.asked and not now.over(agent):
                    tried = True
                    _refused(player, now, agent, wrong, f"outside {player.spaces[agent][1]}", may_end=False)
                    break
    for player, now in case.first_episode():
        for agent in now.asked:
            masked = None if now.over(agent) else masked_out(player.spaces[agent][1], now.mask(agent))
            if masked is not None:
                _refused(player, now, agent, masked, "masked out", may_end=True)
                return None
    return None if tried else "nobody was asked"


def wrong_actions(space: Any) -> list:
    """Actions just outside the space."""
    if isinstance(space, Discrete):
        return [int(space.start + space.n), int(space.start) - 1, None]
    if isinstance(space, MultiDiscrete):
        return [np.asarray(space.nvec + space.start, space.dtype), np.zeros((*space.shape, 2), space.dtype), None]
    if isinstance(space, MultiBinary):
        return [np.full(space.shape, 2, space.dtype), None]
    if isinstance(space, Box):
        shape = np.zeros((*space.shape, 2), space.dtype)
        above = [np.asarray(space.high + 1, space.dtype)] if space.is_bounded("above") else []
        return [*(action for action in above if not space.contains(action)), shape, None]
    return [None]


def masked_out(space: Any, mask: Any) -> Any:
    """An action of the space that the mask forbids in every factor where it can, or None."""
    if mask_problem(space, mask):
        return None
    fitting = mask_of(space, mask)
    parts = fitting if isinstance(space, MultiDiscrete) else (fitting,)
    if not all(part.any() for part in parts) or all(part.all() for part in parts):
        return None  # who does not act may do anything, and so may who has every choice
    chosen = [int(np.argmin(part)) for part in parts]
    if isinstance(space, MultiDiscrete):
        return np.asarray(chosen + space.start, space.dtype)
    return space.dtype.type(space.start + chosen[0])


def _refused(player: Player, now: Moment, agent: Any, wrong: Any, why: str, may_end: bool) -> None:
    after: list[Moment] = []
    actions = player.choose(now) | {agent: wrong}
    if protests(lambda: after.append(player.step(actions))):
        return
    ended = agent not in after[0].agents or after[0].over(agent)
    if not (may_end and ended):
        raise Broken(f"{wrong!r} is {why} and must be refused: raise an error; it was played", agent)


def protests(act: Callable[[], Any]) -> bool:
    """Whether the act raises, warns, or logs a warning."""
    logged: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = logged.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            act()
    except Exception:
        return True
    finally:
        logging.getLogger().removeHandler(handler)
    return bool(warned or logged)


def over(case: Case) -> str | None:
    """A step after the end is refused by an error or a warning, or returns empty dictionaries; a reset works then."""
    for player, now in case.first_episode():
        if now.agents:
            continue
        after: list[Moment] = []
        actions = {player.env.agent_selection: None} if player.aec else {a: player.sample(a) for a in player.spaces}
        if player.aec and not protests(lambda player=player: player.env.step(player.sample(player.possible_agents[0]))):
            raise Broken("a step after the end must be refused: raise an error; it was played")
        if not player.aec and not protests(lambda player=player, actions=actions: after.append(player.step(actions))):
            if any(getattr(after[0], part) for part in ("observations", "rewards", "terminations", "truncations")):
                raise Broken("a step after the end must be refused: raise an error; it was played")
        if player.reset(case.seed).agents != player.possible_agents:
            raise Broken("a reset after the end must start an episode")
        return None
    return f"no episode ended within {case.max_steps} steps"


def dead_steps(case: Case) -> str | None:
    """AEC: an agent that is terminated or truncated steps with None and nothing else."""
    for player, now in case.first_episode():
        if player.aec and now.asked and now.over(now.asked[0]):
            agent = now.asked[0]
            action = player.sample(agent)
            if protests(lambda player=player, action=action: player.env.step(action)):
                return None
            raise Broken(f"the dead must step with None; {action!r} was played: call _was_dead_step first", agent)
    return "nobody was over while others, or it, had still to step"


def render(case: Case) -> str | None:
    """Each render mode asked for works: "ansi" gives text, "rgb_array" uint8 [height, width, 3], "human" nothing."""
    if not case.render_modes:
        return "no render_modes were given"
    for mode in case.render_modes:
        player = Player(case.env_fn(render_mode=mode))
        modes = player.env.metadata.get("render_modes", [])
        if mode not in modes:
            raise unknown("render mode", mode, modes)
        player.seed(0)
        now = player.reset(case.seed)
        for step in range(2):
            problem = _picture_problem(mode, player.env.render())
            if problem:
                raise Broken(f"render() in mode {mode!r} must return {problem}", None, 0, step)
            if now.agents:
                now = player.step(player.choose(now))
        player.env.close()
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
        global_generators,
        seeds,
        states,
        restarts,
        continues,
        keeps,
        ignores_writes,
        processes,
        rejects_actions,
        over,
        dead_steps,
        render,
    )
}
NEED_SEEDS = ("global_generators", "restarts", "continues", "ignores_writes", "processes")


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
