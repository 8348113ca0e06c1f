"""Anybody's PettingZoo environments, Parallel or AEC, as lanes."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, TypeAlias
from weakref import WeakSet

from gymnasium.spaces import Box, Discrete, MultiDiscrete
from pettingzoo import AECEnv, ParallelEnv

from games.external.contract import closed
from games.external.episodes import AECEpisode, Facts, ParallelEpisode, facts_of
from games.external.loading import Entry, load
from games.external.spaces import IMAGES, Moves, Sight, check_bins, moves, sight
from games.faults import closed_after_errors
from games.processes import hosting
from games.spelling import unknown
from games.stepping import SteppedLanes

APIS = ("auto", "aec", "parallel")

Env: TypeAlias = AECEnv | ParallelEnv


@dataclass(frozen=True)
class External:
    """Somebody else's PettingZoo environment; see `external`. Implements `games.game.Playable`."""

    source: str | Env | Callable[..., Env]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    api: str = "auto"
    images: str = "flat"
    bins: int | None = None
    max_steps: int | None = None
    masks: bool | None = None
    strict: bool = False
    workers: int = field(default=0, compare=False)  # plays the same
    timeout: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, value, known in (("api", self.api, APIS), ("images", self.images, IMAGES)):
            if value not in known:
                raise unknown(name, value, known)
        check_bins(self.bins)
        if self.max_steps is not None and (not isinstance(self.max_steps, int) or self.max_steps < 1):
            raise ValueError(f"max_steps must be None or a whole number, at least 1, got {self.max_steps!r}")
        if not isinstance(self.workers, int) or self.workers < 0:
            raise ValueError(f"workers must be a whole number, 0 for this process alone, got {self.workers!r}")
        if self.timeout is not None and (not isinstance(self.timeout, int | float) or not self.timeout > 0):
            raise ValueError(f"timeout must be None or seconds, more than 0, got {self.timeout!r}")
        if self.timeout is not None and not self.workers:
            raise ValueError(f"a timeout is for worker processes: give workers as well, got timeout={self.timeout!r}")
        if not isinstance(self.source, str | AECEnv | ParallelEnv) and not callable(self.source):
            raise ValueError(
                "an environment is given by name, by a factory, or as a PettingZoo AECEnv or ParallelEnv; got "
                f"{type(self.source).__name__}"
            )
        if isinstance(self.source, AECEnv | ParallelEnv) and self.params:
            raise ValueError(f"an environment that is made takes no parameters, got {', '.join(self.params)}")

    def make(self, **more: Any) -> Env:
        """A fresh environment, not reset; `more` parameters, such as render_mode, go to it too.

        Where an environment was given it is a copy, or that itself, if it cannot be copied. Raises ValueError for
        parameters it does not take, and for what is no PettingZoo environment.
        """
        if isinstance(self.source, AECEnv | ParallelEnv):
            if more:
                raise ValueError(f"an environment that is made takes no parameters, got {', '.join(more)}")
            return deepcopy(self.source) if self._copied else self.source
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
        if isinstance(self.source, str):
            return load(self.source, self.api)
        assert not isinstance(self.source, AECEnv | ParallelEnv)
        return Entry(self.source, getattr(self.source, "__qualname__", None) or repr(self.source))

    @cached_property
    def _copied(self) -> bool:
        """Whether the environment that was given can be copied."""
        try:
            deepcopy(self.source)
        except Exception:  # whatever its parts raise
            return False
        return True

    @cached_property
    def _taken(self) -> WeakSet:
        """Episodes of an environment that cannot be copied: one at a time."""
        return WeakSet()

    @cached_property
    def facts(self) -> Facts:
        """Learned from an environment that is made, reset once and closed."""
        env = self.make()
        if env is self.source:
            return facts_of(env, self.masks)
        with closed_after_errors(env.close):
            facts = facts_of(env, self.masks)
        closed(env, facts.name)
        return facts

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
        kind = ParallelEpisode if isinstance(env, ParallelEnv) else AECEpisode
        if env is self.source and self._taken:
            raise ValueError(f"{env} cannot be copied and is in use by a lane: give a factory, which makes one a lane")
        # What was given is its owner's to close.
        release = self._taken.clear if env is self.source else partial(closed, env, self.facts.name)
        with closed_after_errors(release):
            episode = kind(env, self.facts, self.sights, self.moves, self.max_steps, release)
        if env is self.source:
            self._taken.add(episode)
        return episode

    def lanes(self, num_lanes: int) -> SteppedLanes:
        """Raises, with workers, ValueError for a source that cannot be sent to them; see `games.processes`."""
        return SteppedLanes(self, num_lanes, hosting(self.workers, self.timeout))

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
    source: str | Env | Callable[..., Env],
    api: str = "auto",
    workers: int = 0,
    images: str = "flat",
    bins: int | None = None,
    max_steps: int | None = None,
    masks: bool | None = None,
    strict: bool = False,
    timeout: float | None = None,
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
    step the lanes, each all of its own within `timeout` seconds, if that is given, or makes them.

    Raises ValueError for names that are unknown, with near matches, packages that are not installed, parameters that
    the environment does not take, and spaces that cannot be played; BrokenContract for an environment that breaks the
    rules of PettingZoo's interface, here or later.

    >>> external("classic/rps_v2", num_actions=3, max_cycles=2).action_spaces
    (Discrete(3), Discrete(3))
    """
    made = External(source, params, api, images, bins, max_steps, masks, strict, workers, timeout)
    _ = made.observation_spaces, made.action_spaces  # what cannot be played should fail before anything is played
    return made
