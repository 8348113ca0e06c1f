"""Playing a PettingZoo environment of either kind with sampled legal actions, and writing down all that it shows."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from pettingzoo import AECEnv, ParallelEnv

from games.conformance.rules import Broken
from games.faults import FAULTS

Frozen = dict[tuple[str, Any], Any]
"""A moment as (what, agent) -> frozen value; the agent is None where the value is everyone's."""
Run = list[list[Frozen]]
"""Episodes of moments; the first one is its reset."""


class Moment(NamedTuple):
    """What an environment shows after a reset or a step. Dictionaries are by agent."""

    agents: list
    asked: list
    """Who acts next: everyone in a Parallel environment, the selected agent in an AEC one."""
    played: list
    """Whose actions led here."""
    observations: dict
    rewards: dict
    terminations: dict
    truncations: dict
    infos: dict
    state: Any
    """None where `state()` is not implemented."""
    last: tuple | None = None
    """`last()` of an AEC environment."""
    earned: dict | None = None
    """AEC: sums of rewards since each agent began its last step, which `last()` should tell."""

    def over(self, agent: Any) -> bool:
        """Whether the agent is terminated or truncated."""
        return bool(self.terminations.get(agent, False) or self.truncations.get(agent, False))

    def mask(self, agent: Any) -> Any:
        """The agent's action mask, from its info or its observation, or None."""
        for shown in (self.infos.get(agent), self.observations.get(agent)):
            if isinstance(shown, dict) and shown.get("action_mask") is not None:
                return shown["action_mask"]
        return None


class Driver:
    """Plays legal actions sampled from copies of the environment's action spaces, which it leaves alone."""

    def __init__(self, env: AECEnv | ParallelEnv):
        if not isinstance(env, AECEnv | ParallelEnv):
            raise ValueError(f"env_fn must make a PettingZoo AECEnv or ParallelEnv, got {type(env).__name__}")
        if not getattr(env, "possible_agents", None):
            raise Broken("possible_agents must list everyone who may ever play; got none. Set it in __init__.")
        self.env, self.aec = env, isinstance(env, AECEnv)
        self.possible_agents = list(env.possible_agents)
        self.spaces = {
            agent: (_space(env, "observation_space", agent), _space(env, "action_space", agent))
            for agent in self.possible_agents
        }
        self._choices = {agent: deepcopy(action_space) for agent, (_, action_space) in self.spaces.items()}

    def seed(self, seed: int) -> None:
        """Start the choice of actions afresh."""
        for seat, space in enumerate(self._choices.values()):
            space.seed(1000 * seed + seat)

    def reset(self, seed: int | None = None) -> Moment:
        shown = self.env.reset() if seed is None else self.env.reset(seed=seed)
        if self.aec:
            self._earned = dict.fromkeys(self.env.agents, 0.0)
            return self._look([])
        return self._shown([], shown[0], {}, {}, {}, shown[1])

    def choose(self, now: Moment) -> dict:
        """A legal action for everyone who is asked; None for the dead."""
        return {agent: None if now.over(agent) else self.sample(agent, now.mask(agent)) for agent in now.asked}

    def sample(self, agent: Any, mask: Any = None) -> Any:
        space = self._choices[agent]
        return space.sample() if mask_problem(space, mask) else space.sample(mask_of(space, mask))

    def step(self, actions: dict) -> Moment:
        if not self.aec:
            return self._shown(list(actions), *self.env.step(actions))
        ((agent, action),) = actions.items()
        self._earned[agent] = 0.0
        self.env.step(action)
        for who, reward in self.env.rewards.items():
            if action is not None:  # the dead are only taken away
                self._earned[who] = self._earned.get(who, 0.0) + reward
        return self._look([agent])

    def look_again(self, now: Moment) -> Moment:
        """The same moment, asked once more."""
        return self._look(now.played) if self.aec else now._replace(state=self._state())

    def _look(self, played: list) -> Moment:
        env = self.env
        agents = list(env.agents)
        return Moment(
            agents,
            [env.agent_selection] if agents else [],
            played,
            {agent: env.observe(agent) for agent in agents},
            dict(env.rewards),
            dict(env.terminations),
            dict(env.truncations),
            dict(env.infos),
            self._state(),
            env.last() if agents else None,
            dict(self._earned),
        )

    def _shown(
        self, played: list, observations: dict, rewards: dict, terminations: dict, truncations: dict, infos: dict
    ) -> Moment:
        agents = list(self.env.agents)
        return Moment(
            agents, list(agents), played, observations, rewards, terminations, truncations, infos, self._state()
        )

    def _state(self) -> Any:
        if not callable(getattr(self.env.unwrapped, "state", None)):
            return None
        try:
            return self.env.state()
        except NotImplementedError:
            return None


def made(env_fn: Callable[[], AECEnv | ParallelEnv]) -> Driver:
    """A driver of a fresh environment. Raises Broken where that cannot be made or has no spaces."""
    try:
        env = env_fn()
    except FAULTS as error:
        raise Broken(f"env_fn() raised {error!r}") from error
    return Driver(env)


def _space(env: AECEnv | ParallelEnv, which: str, agent: Any) -> Space:
    try:
        space = getattr(env, which)(agent)
    except FAULTS as error:
        raise Broken(f"{which}({agent!r}) raised {error!r}", agent) from error
    if not isinstance(space, Space):
        raise Broken(f"{which}({agent!r}) must be a Gymnasium space, got {space!r}", agent)
    return space


def mask_of(space: Space, mask: Any) -> Any:
    """The mask as the space's `sample` wants it: int8, one array a factor."""
    if isinstance(space, MultiDiscrete):
        return tuple(np.asarray(part, np.int8) for part in mask)
    return np.asarray(mask, np.int8)


def mask_problem(space: Space, mask: Any) -> str | None:
    """Why the mask does not fit the space, if so."""
    if mask is None:
        return "there is no mask"
    if not isinstance(space, Discrete) and not (isinstance(space, MultiDiscrete) and space.nvec.ndim == 1):
        return f"masks are for Discrete and flat MultiDiscrete actions, not {space}"
    sizes = space.nvec.tolist() if isinstance(space, MultiDiscrete) else [int(space.n)]
    try:
        parts = list(mask) if isinstance(space, MultiDiscrete) else [mask]
        arrays = [np.asarray(part, np.float64) for part in parts]
    except (TypeError, ValueError):
        return f"it must be arrays of 0 and 1, got {mask!r}"
    if [array.shape for array in arrays] != [(size,) for size in sizes]:
        return f"it must have the shapes {[(size,) for size in sizes]}, got {[array.shape for array in arrays]}"
    if not all(np.isin(array, (0, 1)).all() for array in arrays):
        return f"it must hold 0 and 1 alone, got {mask!r}"
    return None


def can_act(space: Space, mask: Any) -> bool:
    """Whether the mask leaves a choice in every factor."""
    parts = mask if isinstance(space, MultiDiscrete) else [mask]
    return all(np.any(part) for part in parts)


def freeze(value: Any) -> Any:
    """The value as nested tuples that are equal where type, dtype, shape and every bit are; NaN equals NaN."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        content = value.tobytes()
        # Pictures are remembered by what they hash to.
        return "array", value.dtype.str, value.shape, content if len(content) <= 4096 else sha256(content).hexdigest()
    if isinstance(value, dict):
        return "dict", tuple(sorted((repr(key), freeze(part)) for key, part in value.items()))
    if isinstance(value, list | tuple | np.ndarray):
        return type(value).__name__, tuple(freeze(part) for part in value)
    if value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        return type(value).__name__, repr(value)
    return (type(value).__name__,)  # other objects may print their addresses


def thaw(frozen: Any) -> str:
    """A frozen value as text for messages."""
    kind, *parts = frozen
    if kind == "array":
        dtype, shape, content = parts
        known = isinstance(content, bytes)
        return repr(np.frombuffer(content, dtype).reshape(shape)) if known else f"an array {dtype} {shape} of {content}"
    if kind == "dict":
        return "{" + ", ".join(f"{key}: {thaw(part)}" for key, part in parts[0]) + "}"
    if parts and isinstance(parts[0], tuple):
        return f"{kind}({', '.join(thaw(part) for part in parts[0])})"
    return parts[0] if parts else kind


def freeze_moment(now: Moment) -> Frozen:
    """All that the moment shows, frozen."""
    shown: Frozen = {("agents", None): freeze(now.agents), ("agent_selection", None): freeze(now.asked)}
    shown |= {("state", None): freeze(now.state)}
    for what in ("observations", "rewards", "terminations", "truncations", "infos"):
        shown |= {(what, agent): freeze(value) for agent, value in getattr(now, what).items()}
    return shown


Watch = Callable[[Driver, Moment | None, Moment], None]


def record(
    driver: Driver,
    seeds: Sequence[int | None],
    choices: Sequence[int],
    max_steps: int,
    watch: Watch = lambda driver, before, now: None,
    done: Watch = lambda driver, before, now: None,
) -> Run:
    """One episode per entry of `seeds` (None: go on) with actions keyed by `choices`, of at most `max_steps` steps.

    `watch` sees every moment with the one before it in its episode; `done` sees it after it was written down.
    Raises Broken, with episode and step, where the environment raises or a watcher does.
    """
    run: Run = []
    for episode, (seed, choice) in enumerate(zip(seeds, choices, strict=True)):
        driver.seed(choice)
        moments: list[Frozen] = []
        before: Moment | None = None
        while before is None or (before.agents and len(moments) <= max_steps):
            actions = {} if before is None else driver.choose(before)
            try:
                now = driver.reset(seed) if before is None else driver.step(actions)
            except FAULTS as error:
                did = f"reset(seed={seed})" if before is None else f"a step with the legal {_short(actions)}"
                agent = next(iter(actions)) if len(actions) == 1 else None
                raise Broken(f"{did} raised {error!r}", agent, episode, len(moments)) from error
            try:
                watch(driver, before, now)
            except Broken as broken:
                broken.episode, broken.step = episode, len(moments)
                raise
            except FAULTS as error:
                raise Broken(f"the environment raised {error!r}", None, episode, len(moments)) from error
            moments.append(freeze_moment(now))
            done(driver, before, now)
            before = now
        run.append(moments)
    return run


def _short(actions: dict) -> str:
    text = f"actions {actions!r}"
    return text if len(text) <= 300 else f"{text[:300]} ..."


class Difference(NamedTuple):
    episode: int
    step: int
    what: str
    agent: Any
    one: str
    other: str


def difference(one: Run, other: Run, states: bool = False) -> Difference | None:
    """Where two runs first differ: in their states alone, or in all but their states."""
    for episode, (moments, others) in enumerate(zip(one, other, strict=True)):
        for step, (a, b) in enumerate(zip(moments, others, strict=False)):
            for key in a | b:
                if a.get(key) != b.get(key) and (key[0] == "state") == states:
                    return Difference(episode, step, *key, *(_text(shown.get(key)) for shown in (a, b)))
    return None


def _text(frozen: Any) -> str:
    text = "nothing" if frozen is None else thaw(frozen)
    return text if len(text) <= 400 else f"{text[:400]} ..."


def digest(run: Run) -> str:
    """SHA-256 of all that a run shows to agents, hence without `state()`."""
    content = [
        [sorted((repr(key), value) for key, value in shown.items() if key[0] != "state") for shown in moments]
        for moments in run
    ]
    return sha256(repr(content).encode()).hexdigest()


@contextmanager
def global_random(seed: int) -> Iterator[None]:
    """Python's and NumPy's global generators seeded meanwhile, and put back."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - this is about the global generator
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def global_state() -> tuple[Any, Any]:
    """Python's and NumPy's global generators, frozen."""
    return freeze(random.getstate()), freeze(np.random.get_state())  # noqa: NPY002
