"""Anybody's Gymnasium environments, which have one agent, as lanes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Space
from pettingzoo import ParallelEnv

from games.external.loading import imported, load
from games.external.pettingzoo import External, external
from games.spelling import unknown

PREFIX = "gymnasium:"
"""What names may begin with, to say that they are Gymnasium's."""

AGENT = "player"

MODULES = {"ALE": "ale_py"}
"""Namespace of ids -> the module that registers them."""


class Solo(ParallelEnv):
    """A Gymnasium environment as a PettingZoo environment of one agent, "player".

    An episode that ends by the rules is not cut short as well, even if its time was up.
    """

    def __init__(self, env: gymnasium.Env):
        self.env, self.metadata, self.render_mode = env, env.metadata, env.render_mode
        self.possible_agents: list[str] = [AGENT]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Space:
        return self.env.observation_space

    def action_space(self, agent: str) -> Space:
        return self.env.action_space

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        seen, info = self.env.reset(seed=seed, options=options)
        self.agents = [AGENT]
        return {AGENT: seen}, {AGENT: info}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        seen, reward, terminated, truncated, info = self.env.step(actions[AGENT])
        if terminated or truncated:
            self.agents = []
        cut = truncated and not terminated
        return {AGENT: seen}, {AGENT: reward}, {AGENT: terminated}, {AGENT: cut}, {AGENT: info}

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    def __str__(self) -> str:
        return self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__


@dataclass(frozen=True)
class Factory:
    """Makes an environment of Gymnasium, given by name or by a factory of its own, as `Solo`."""

    source: str | Callable[..., gymnasium.Env]

    def __call__(self, **params: Any) -> Solo:
        """Raises ValueError where what is made is no Gymnasium environment; whatever the environment raises."""
        env = self._make(params)
        if not isinstance(env, gymnasium.Env):
            raise ValueError(f"the environment must be a gymnasium.Env, got {type(env).__name__}")
        return Solo(env)

    def _make(self, params: dict[str, Any]) -> gymnasium.Env:
        if not isinstance(self.source, str):
            return self.source(**params)
        if _is_function(self.source):
            return load(self.source)(params)
        # Episodes are checked where they are played.
        return gymnasium.make(registered(self.source), **{"disable_env_checker": True, **params})

    def __repr__(self) -> str:
        return repr(self.source)


def single_agent(source: str | gymnasium.Env | Callable[..., gymnasium.Env], **params: Any) -> External:
    """Any Gymnasium environment, played in lanes by whatever plays games of ours: a game of one seat, "player".

    `source` is an id of Gymnasium's registry ("CartPole-v1"), with the module that registers it where that is not
    imported by itself ("ale_py:ALE/Pong-v5"), a function or class in a module ("package.module:function"), a factory,
    or an environment, which is copied. `params` are those of `games.external.external`, such as workers, images, bins
    and max_steps; what else there is goes to the environment. Its wrappers are kept, so that a time limit truncates
    episodes. Action masks may be in the infos.

    Every episode starts by `reset(seed)` of its own: episodes do not depend on the number of lanes, or on what is
    played beside them. For all lanes at once in an environment's own vector environment see `games.external.vector`.

    Raises ValueError for names that are unknown, with near matches, packages that are not installed, parameters that
    the environment does not take, and spaces that cannot be played; BrokenContract for an environment that breaks the
    rules of Gymnasium's interface, here or later.

    >>> single_agent("CartPole-v1").action_spaces
    (Discrete(2),)
    """
    if isinstance(source, gymnasium.Env):
        return external(Solo(source), api="parallel", **params)
    if isinstance(source, str):
        source = source.removeprefix(PREFIX)
        if not _is_function(source):
            registered(source)
    elif not callable(source):
        raise ValueError(f"an environment is given by name, by a factory, or as a gymnasium.Env; got {source!r}")
    return external(Factory(source), api="parallel", **params)


def registered(name: str) -> EnvSpec:
    """What Gymnasium's registry has under an id, of its newest version where none is named.

    Raises ValueError, with near matches, for unknown ids, and with what to install for modules that are missing.
    """
    home, _, id_ = name.rpartition(":")
    namespace = id_.partition("/")[0]
    if home or (namespace in MODULES and id_ not in gymnasium.registry):
        imported(home or MODULES[namespace])
    if id_ in gymnasium.registry:
        return gymnasium.registry[id_]
    versions = [spec for spec in gymnasium.registry.values() if spec.id.rpartition("-v")[0] == id_]
    if versions:
        return max(versions, key=lambda spec: spec.version or 0)
    raise unknown("environment of Gymnasium's registry", id_, gymnasium.registry)


def _is_function(name: str) -> bool:
    """Whether a name is that of a function in a module, rather than of an id."""
    return ":" in name and name.rpartition(":")[2].isidentifier()
