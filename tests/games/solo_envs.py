"""Small Gymnasium environments for tests, and vector environments of theirs in all manners of starting over."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Drift(gymnasium.Env):
    """Drifts and pays at random; ends with probability 0.2 a step. `broken` names what goes wrong in the third step."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float32)
    action_space = Discrete(3, start=-1)

    def __init__(self, broken: str = ""):
        self.broken = broken

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.steps, self.place = 0, self.np_random.normal(size=3).astype(np.float32)
        return self.place, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        assert Drift.action_space.contains(action)
        self.steps += 1
        self.place = self.place + np.float32(action) + self.np_random.normal(size=3).astype(np.float32)
        seen, reward = self.place, 1 + self.np_random.random()
        match self.broken if self.steps == 3 else "":
            case "observation":
                seen = np.full(3, np.nan, np.float32)
            case "shape":
                seen = np.zeros(4, np.float32)
            case "reward":
                reward = float("nan")
            case "raise":
                raise ZeroDivisionError("drifted away")
        return seen, reward, not self.broken and self.np_random.random() < 0.2, False, {}


class Mixed(Drift):
    """Its observations and actions have parts."""

    observation_space = Dict({"place": Drift.observation_space, "step": Discrete(9)})
    action_space = Dict({"move": Drift.action_space, "bits": MultiBinary(2)})

    def reset(self, **given: Any) -> tuple[Any, dict]:
        return {"place": super().reset(**given)[0], "step": 0}, {}

    def step(self, action: dict) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        seen, *rest = super().step(int(action["move"]))
        return {"place": seen, "step": min(self.steps, 8)}, *rest


def not_an_env() -> dict:
    return {}


def choosing(num_envs: int, autoreset_mode: Any = "NextStep", kind: type = Drift, **params: Any) -> SyncVectorEnv:
    """A vector environment that lets one choose when it starts episodes."""
    limit = params.pop("max_episode_steps")
    return SyncVectorEnv(
        [lambda: gymnasium.wrappers.TimeLimit(kind(**params), limit)] * num_envs, autoreset_mode=autoreset_mode
    )


def next_step(num_envs: int, **params: Any) -> SyncVectorEnv:
    return choosing(num_envs, AutoresetMode.NEXT_STEP, **params)


def disabled(num_envs: int, **params: Any) -> SyncVectorEnv:
    return choosing(num_envs, AutoresetMode.DISABLED, **params)


def silent(num_envs: int, **params: Any) -> SyncVectorEnv:
    """Does not say when it starts episodes."""
    env = choosing(num_envs, **params)
    env.metadata = {}
    return env


def lying(num_envs: int, truth: AutoresetMode, told: AutoresetMode, **params: Any) -> SyncVectorEnv:
    env = choosing(num_envs, truth, **params)
    env.metadata = {"autoreset_mode": told}
    return env


class Forgetful(SyncVectorEnv):
    """Resets everything, whatever it is asked for."""

    def reset(self, *, seed: Any = None, options: dict | None = None) -> tuple[Any, dict]:
        return super().reset(seed=seed)


def forgetful(num_envs: int, max_episode_steps: int) -> SyncVectorEnv:
    made = [lambda: gymnasium.wrappers.TimeLimit(Drift(), max_episode_steps)] * num_envs
    return Forgetful(made, autoreset_mode=AutoresetMode.DISABLED)


def mixed(num_envs: int, autoreset_mode: Any, **params: Any) -> SyncVectorEnv:
    return choosing(num_envs, autoreset_mode, kind=Mixed, **params)


for _name in ("choosing", "next_step", "disabled", "silent", "lying", "forgetful", "mixed"):
    gymnasium.register(
        f"tests/{_name}-v0",
        entry_point="tests.games.solo_envs:" + ("Mixed" if _name == "mixed" else "Drift"),
        vector_entry_point=f"tests.games.solo_envs:{_name}",
        max_episode_steps=6,
    )
