"""Flickering observations: half of them are blank, and what was there must be remembered [Hausknecht & Stone 2015]."""

from typing import Any

import gymnasium
import numpy as np


class Flickering(gymnasium.Wrapper):
    """A Gymnasium environment whose observations are all zeros with probability `blank`, the first one too.

    Blanks are drawn from a generator of their own: `reset(seed=...)` seeds it and leaves the environment as it was.
    """

    def __init__(self, env: gymnasium.Env, blank: float = 0.5) -> None:
        super().__init__(env)
        self.blank = blank
        self.draws = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.draws = np.random.default_rng((seed, 1))
        observation, info = self.env.reset(seed=seed, options=options)
        return self._flicker(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._flicker(observation), reward, terminated, truncated, info

    def _flicker(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros_like(observation) if self.draws.random() < self.blank else observation
