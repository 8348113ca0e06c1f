"""Anybody's PettingZoo environments, Parallel or AEC, as lanes."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from pettingzoo import AECEnv, ParallelEnv

from games.external.contract import FAULTS, BrokenContract, Fault
from games.external.loading import Entry, load
from games.external.spaces import IMAGES, Moves, Sight, moves, sight
from games.spelling import unknown
from games.stepping import Board, SteppedLanes

APIS = ("auto", "aec", "parallel")

Source = str | Callable[..., AECEnv | ParallelEnv] | AECEnv | ParallelEnv


class Facts(NamedTuple):
    """What is known of an environment once one was made."""

    name: str
    parallel: bool
    ids: tuple[Any, ...]
    """Its own names of the seats: `possible_agents`."""
    observation_spaces: tuple[Space, ...]
    action_spaces: tuple[Space, ...]
    masked: tuple[bool, ...]


@dataclass(frozen=True)
class External:
    """Somebody else's PettingZoo environment; see `external`. Implements `games.game.Playable`."""

    source: Source
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    api: str = "auto"
    images: str = "flat"
    bins: int | None = None
    max_steps: int | None = None
    masks: bool | None = None
    strict: bool = False
    workers: int = field(default=0, compare=False)  # plays the same

    def __post_init__(self) -> None:
        for name, value, known in (("api", self.api, APIS), ("images", self.images, IMAGES)):
            if value not in known:
                raise unknown(name, value, known)
        for name, least in (("bins", 2), ("max_steps", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be None or a whole number, at least {least}, got {value!r}")
        if not isinstance(self.workers, int) or self.workers < 0:
            raise ValueError(f"workers must be a whole number, 0 for this process alone, got {self.workers!r}")
        if not isinstance(self.source, str | AECEnv | ParallelEnv) and not callable(self.source):
            raise ValueError(
                "an environment is given by name, by a factory, or as a PettingZoo AECEnv or ParallelEnv; got "
                f"{type(self.source).__name__}"
            )
        if isinstance(self.source, AECEnv | ParallelEnv) and self.params:
            raise ValueError(f"an environment that is made takes no parameters, got {', '.join(self.params)}")

    def make(self, **more: Any) -> AECEnv | ParallelEnv:
        """A fresh environment, not reset; `more` parameters, such as render_mode, go to it too.

        An environment that was given as an object is copied where it can be; else it serves one lane at a time.
        Raises ValueError for parameters it does not take, or what is no PettingZoo environment.
        """
        if isinstance(self.source, AECEnv | ParallelEnv):
            if more:
                raise ValueError(f"an environment that is made takes no parameters, got {', '.join(more)}")
            return deepcopy(self.source)
        env = self._entry({**self.params, **more})
        kinds = {"auto": (ParallelEnv, AECEnv), "parallel": (ParallelEnv,), "aec": (AECEnv,)}[self.api]
        if not isinstance(env, kinds):
            raise ValueError(
                f"the environment must be a PettingZoo {' or '.join(kind.__name__ for kind in kinds)}, got "
                f"{type(env).__name__}; pettingzoo.utils has parallel_to_aec and aec_to_parallel"
            )
        return env

    @cached_property
    def _entry(self) -> Entry:
        return load(self.source, self.api) if isinstance(self.source, str) else Entry(self.source)  # type: ignore

    @cached_property
    def facts(self) -> Facts:
        """Learned from an environment that is made, reset once and closed."""
        env = self.make()
        try:
            return _facts(env, self.masks)
        finally:
            env.close()

    @cached_property
    def sights(self) -> tuple[Sight, ...]:
        """How each seat sees. Raises ValueError, naming the seat, for spaces that cannot be seen."""
        return tuple(
            self._of(agent, sight, space, self.images, self.strict)
            for agent, space in zip(self.agents, self.facts.observation_spaces, strict=True)
        )

    @cached_property
    def moves(self) -> tuple[Moves, ...]:
        """How each seat acts. Raises ValueError, naming the seat, for spaces that cannot be played."""
        return tuple(
            self._of(agent, moves, space, self.bins)
            for agent, space in zip(self.agents, self.facts.action_spaces, strict=True)
        )

    def _of(self, agent: str, read: Callable, *given: Any) -> Any:
        try:
            return read(*given)
        except ValueError as error:
            raise ValueError(f"{self.facts.name}, agent {agent}: {error}") from None

    @cached_property
    def agents(self) -> tuple[str, ...]:
        return tuple(str(agent) for agent in self.facts.ids)

    @cached_property
    def observation_spaces(self) -> tuple[Box, ...]:
        return tuple(sight.space for sight in self.sights)

    @cached_property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        return tuple(moves.space for moves in self.moves)

    @property
    def masked(self) -> tuple[bool, ...]:
        """Whether a seat's actions may be illegal."""
        return self.facts.masked

    def episode(self) -> "ParallelEpisode | AECEpisode":
        """A fresh environment that plays in one lane. Implements `games.stepping.Source`."""
        env = self.make()
        try:
            return ParallelEpisode(self, env) if isinstance(env, ParallelEnv) else AECEpisode(self, env)
        except BaseException:
            env.close()
            raise

    def lanes(self, num_lanes: int) -> SteppedLanes:
        return SteppedLanes(self, num_lanes)

    def __getstate__(self) -> dict[str, Any]:
        """The fields, and what was learned from an environment, but none of the functions made from it."""
        kept = {each.name for each in fields(self)} | {"facts"}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def __repr__(self) -> str:
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("source", "params")}
        changed = {name: value for name, value in told.items() if value != External.__dataclass_fields__[name].default}
        parts = [repr(self.source), *(f"{name}={value!r}" for name, value in {**changed, **self.params}.items())]
        return f"external({', '.join(parts)})"


def external(
    source: Source,
    api: str = "auto",
    workers: int = 0,
    images: str = "flat",
    bins: int | None = None,
    max_steps: int | None = None,
    masks: bool | None = None,
    strict: bool = False,
    **params: Any,
) -> External:
    """Any PettingZoo environment, played in lanes by whatever plays games of ours.

    `source` is an id of PettingZoo's registry ("classic/connect_four_v3", or just "connect_four"), a module with
    `parallel_env` or `env` ("mpe2.simple_tag_v3"), a function in a module ("package.module:function"), a factory, or an
    environment; `params` go to it. `api="auto"` takes the Parallel environment where there are both: all agents act in
    one step of the lanes. In an AEC environment one agent does; whatever it pays is counted in the step that paid it.

    Agents are the environment's `possible_agents`; they may come and go during an episode. Observations are flattened
    to float32 features, and action masks taken from them or from infos; see `games.external.spaces.sight` (also for
    `images`) and `games.external.spaces.moves` (for `bins`). `max_steps` truncates episodes after that many steps of
    the lanes. `masks` says whether infos may have an action mask; by default they may where the first reset shows one.
    `strict` refuses observations outside their space, which many environments give. With `workers`, that many processes
    step the lanes.

    Raises ValueError for names that are unknown, with near matches, packages that are not installed, parameters that
    the environment does not take, and spaces that cannot be played; BrokenContract for an environment that breaks the
    rules of PettingZoo's interface, here or later.

    >>> external("classic/rps_v2", num_actions=3, max_cycles=2).action_spaces
    (Discrete(3), Discrete(3))
    """
    made = External(source, params, api, images, bins, max_steps, masks, strict, workers)
    _ = made.observation_spaces, made.action_spaces  # what cannot be played should fail before anything is played
    return made


def _facts(env: AECEnv | ParallelEnv, masks: bool | None) -> Facts:
    """Raises BrokenContract where the environment does not start, or has not the agents and spaces it should."""
    name = str(env)
    try:
        ids = tuple(getattr(env, "possible_agents", None) or ())
        if not ids or len({str(agent) for agent in ids}) < len(ids):
            raise Fault(
                "agents", f"possible_agents must list everyone who may ever play, by different names; got {ids}"
            )
        spaces = [_spaces(env, agent) for agent in ids]
        shown = _call("reset(seed=0)", env.reset, seed=0)
        infos = _pair(shown)[1] if isinstance(env, ParallelEnv) else env.infos
    except Fault as fault:
        raise BrokenContract(name, fault.rule, fault.message, fault.agent, 0, 0) from fault.__cause__
    observed, acted = zip(*spaces, strict=True)
    masked = []
    for agent, seen, played in zip(ids, observed, acted, strict=True):
        told = "action_mask" in getattr(seen, "spaces", ()) or _mask(infos.get(agent)) is not None
        if told and isinstance(played, Box):
            raise ValueError(f"{name}, agent {agent}: action masks are for discrete actions, got {played}")
        masked.append(not isinstance(played, Box) and (told if masks is None else masks))
    return Facts(name, isinstance(env, ParallelEnv), ids, observed, acted, tuple(masked))


def _spaces(env: AECEnv | ParallelEnv, agent: Any) -> tuple[Space, Space]:
    found = []
    for which in ("observation_space", "action_space"):
        space = _call(f"{which}({agent!r})", getattr(env, which), agent)
        if not isinstance(space, Space):
            raise Fault("spaces", f"{which}({agent!r}) must be a Gymnasium space, got {space!r}", agent)
        found.append(space)
    return found[0], found[1]


def _call(what: str, function: Callable, *given: Any, **named: Any) -> Any:
    """What the environment answers. Raises Fault from whatever it raises."""
    try:
        return function(*given, **named)
    except FAULTS as error:
        raise Fault("plays", f"{what} raised {error!r}") from error


def _pair(shown: Any) -> tuple[dict, dict]:
    if not isinstance(shown, tuple) or len(shown) != 2:
        raise Fault("plays", f"reset must give observations and infos, got {type(shown).__name__}")
    return shown


def _mask(info: Any) -> Any:
    return info.get("action_mask") if isinstance(info, Mapping) else None


class _Episodes:
    """What episodes of both kinds share: seats, spaces, and where a fault happened."""

    def __init__(self, source: External, env: Any):
        self.source, self.env, self.facts = source, env, source.facts
        self.seats = {agent: seat for seat, agent in enumerate(self.facts.ids)}
        self.sights, self.moves = source.sights, source.moves
        self.seed = self.steps = 0
        self.live: list[int] = []  # seats of env.agents, in their order
        self.left: set[int] = set()  # seats that were taken away
        self._known: list[tuple[Space, Space]] = []
        self._told(self._check_spaces)

    def begin(self, seed: int, row: Board) -> None:
        self.seed, self.steps, self.live, self.left = seed, 0, [], set()
        for part in (row.alive, row.acting):
            part[:] = False
        self._told(self._begin, row)
        self._told(self._check_spaces)

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        self.steps += 1
        self._told(self._play, actions, row)
        if self.live and self.source.max_steps is not None and self.steps >= self.source.max_steps:
            row.truncated[self.live] = True
            self.live = []
        row.done[0] = not self.live
        if not self.live:
            row.alive[:] = row.acting[:] = False

    def close(self) -> None:
        self.env.close()

    def _begin(self, row: Board) -> None:
        raise NotImplementedError

    def _play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        raise NotImplementedError

    def _told(self, what: Callable, *given: Any) -> None:
        try:
            what(*given)
        except Fault as fault:
            agent = None if fault.agent is None else str(fault.agent)
            error = BrokenContract(self.facts.name, fault.rule, fault.message, agent, self.steps, self.seed)
            raise error from fault.__cause__

    def _check_spaces(self) -> None:
        """Raises Fault where spaces are not those of the first environment, or not what they were."""
        found = [_spaces(self.env, agent) for agent in self.facts.ids]
        known = self._known or list(zip(self.facts.observation_spaces, self.facts.action_spaces, strict=True))
        for agent, now, before in zip(self.facts.ids, found, known, strict=True):
            for space, wanted in zip(now, before, strict=True):
                if space is not wanted and space != wanted:
                    raise Fault("spaces", f"spaces must not change, from {wanted} to {space}", agent)
        self._known = found

    def _seats_of(self, agents: Any, row: Board) -> list[int]:
        """Seats of who is there now; those who have just come are alive from here on."""
        try:
            seats = [self.seats[agent] for agent in agents]
        except KeyError:
            raise Fault("agents", f"agents must be of possible_agents {self.facts.ids}, got {agents}") from None
        for seat in seats:
            if seat in self.left:
                raise Fault("lives", "an agent that is terminated or truncated must not go on", self.facts.ids[seat])
        row.alive[seats] = True
        return seats

    def _pay(self, rewards: Mapping, row: Board) -> None:
        """Credit the rewards of one step."""
        for agent, reward in rewards.items():
            seat = self.seats.get(agent)
            try:
                amount = float(reward)
            except (TypeError, ValueError):
                raise Fault("rewards", f"a reward must be a number, got {reward!r}", agent) from None
            if not math.isfinite(amount):
                raise Fault("rewards", f"a reward must be finite, got {reward!r}", agent)
            if amount:
                if seat is None or not row.alive[seat]:
                    raise Fault("rewards", f"rewards must be for those who are there, got {reward!r}", agent)
                row.rewards[seat] += amount

    def _see(self, seat: int, observation: Any, row: Board) -> Any:
        """Write an observation, and give the mask that came with it."""
        try:
            return self.sights[seat].write(observation, row.observations[seat])
        except Fault as fault:
            fault.agent = self.facts.ids[seat]
            raise

    def _allow(self, seat: int, mask: Any, row: Board) -> None:
        """Write an action mask; None allows everything."""
        legal = row.legal[seat]
        agent = self.facts.ids[seat]
        if legal is None:
            if mask is not None:
                raise Fault("masks", "a mask came that no reset had shown: say external(..., masks=True)", agent)
        elif mask is None:
            for factor in legal:
                factor[:] = True
        else:
            try:
                self.moves[seat].write_mask(mask, legal)
            except Fault as fault:
                fault.agent = agent
                raise

    def _end(self, seat: int, terminated: Any, truncated: Any, row: Board) -> None:
        row.terminated[seat], row.truncated[seat] = bool(terminated), bool(truncated)
        row.alive[seat] = row.acting[seat] = False
        self.left.add(seat)


class ParallelEpisode(_Episodes):
    """Episodes of a Parallel environment: whoever is alive acts. Implements `games.stepping.Episode`."""

    def _begin(self, row: Board) -> None:
        observations, infos = _pair(_call(f"reset(seed={self.seed})", self.env.reset, seed=self.seed))
        self.live = self._seats_of(self.env.agents, row)
        if not self.live:
            raise Fault("agents", "agents must not be empty after reset")
        for seat in self.live:
            self._look(seat, observations, infos, row)
        row.acting[self.live] = True

    def _play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        ids, live = self.facts.ids, self.live
        chosen = {ids[seat]: self.moves[seat].decode(actions[seat]) for seat in live}
        shown = _call(f"step({chosen})", self.env.step, chosen)
        if not isinstance(shown, tuple) or len(shown) != 5:
            raise Fault("plays", "step must give observations, rewards, terminations, truncations and infos")
        observations, rewards, terminations, truncations, infos = shown
        self.live = now = self._seats_of(self.env.agents, row)
        self._pay(rewards, row)
        for seat in live:
            agent = ids[seat]
            _of(agent, rewards, "rewards")
            over = _of(agent, terminations, "terminations"), _of(agent, truncations, "truncations")
            if any(over):
                self._see(seat, _of(agent, observations, "observations"), row)
                self._end(seat, *over, row)
                if seat in now:
                    raise Fault("lives", "an agent that is terminated or truncated must leave env.agents", agent)
            elif seat not in now:
                raise Fault("lives", "an agent must not leave env.agents without being terminated or truncated", agent)
        for seat in now:
            self._look(seat, observations, infos, row)
            row.acting[seat] = True

    def _look(self, seat: int, observations: Mapping, infos: Mapping, row: Board) -> None:
        agent = self.facts.ids[seat]
        mask = self._see(seat, _of(agent, observations, "observations"), row)
        info = _of(agent, infos, "infos")
        self._allow(seat, _mask(info) if mask is None else mask, row)


def _of(agent: Any, shown: Mapping, what: str) -> Any:
    try:
        return shown[agent]
    except (KeyError, TypeError):
        raise Fault("keys", f"{what} must have an entry of every agent, got {shown!r:.200}", agent) from None


class AECEpisode(_Episodes):
    """Episodes of an AEC environment: the selected agent acts. Implements `games.stepping.Episode`.

    Agents end where the environment takes them away, which is where it asks them for the action None: until then they
    may be paid. Their part is played here.
    """

    def _begin(self, row: Board) -> None:
        _call(f"reset(seed={self.seed})", self.env.reset, seed=self.seed)
        self.live = self._seats_of(self.env.agents, row)
        self.credited = dict.fromkeys(self.facts.ids, 0.0)  # since each agent's last step
        if not self.live:
            raise Fault("agents", "agents must not be empty after reset")
        self._next(row)
        if not self.live:
            raise Fault("lives", "an episode must not be over after reset")

    def _play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        agent = self.facts.ids[self.turn]
        action = self.moves[self.turn].decode(actions[self.turn])
        self.credited[agent] = 0.0
        _call(f"step({action!r}) of {agent}", self.env.step, action)
        row.acting[self.turn] = False
        before = self.live
        self.live = self._seats_of(self.env.agents, row)
        rewards = self.env.rewards
        self._pay(rewards, row)
        for paid, reward in rewards.items():
            self.credited[paid] += float(reward)
        self._next(row)
        for seat in before:
            if seat not in self.live and seat not in self.left:
                self._vanished(seat, row)

    def _next(self, row: Board) -> None:
        """Take away whoever is over and asked, then let whoever is asked act."""
        env = self.env
        while self.live:
            agent = env.agent_selection
            seat = self.seats.get(agent)
            if seat not in self.live:
                raise Fault("selection", f"agent_selection must be one of {env.agents}, got {agent!r}")
            _, owed, terminated, truncated, info = _call("last()", env.last, observe=False)
            if not math.isclose(owed, self.credited[agent], rel_tol=1e-6, abs_tol=1e-6):
                message = (
                    f"last() must give the rewards since the agent's last step, {self.credited[agent]}, got {owed}"
                )
                raise Fault("cumulative", message, agent)
            if not (terminated or truncated):
                break
            self._see(seat, _call(f"observe({agent!r})", env.observe, agent), row)
            _call(f"step(None) of {agent}, who is over,", env.step, None)
            self._end(seat, terminated, truncated, row)
            self.live = self._seats_of(env.agents, row)
        else:
            return
        self.turn = seat
        row.acting[seat] = True
        for other in self.live:
            who = self.facts.ids[other]
            mask = self._see(other, _call(f"observe({who!r})", env.observe, who), row)
            if other == seat:
                self._allow(seat, _mask(info) if mask is None else mask, row)

    def _vanished(self, seat: int, row: Board) -> None:
        agent = self.facts.ids[seat]
        over = self.env.terminations.get(agent), self.env.truncations.get(agent)
        if not any(over):
            raise Fault("lives", "an agent must not leave env.agents without being terminated or truncated", agent)
        self._end(seat, *over, row)
