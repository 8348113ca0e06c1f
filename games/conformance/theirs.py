"""PettingZoo's own tests [Terry et al. 2021], as they are, on two faces of one game."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

from games.conformance.runs import EnvFn

NUM_CYCLES = 100

Test = Callable[[EnvFn, EnvFn], None]
"""Of what makes an AEC and a Parallel environment; raises AssertionError, or whatever the environment does."""


def _tests() -> Any:
    import pettingzoo.test  # takes a second, and warns where pygame is

    return pettingzoo.test


def api_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().api_test(aec(), num_cycles=NUM_CYCLES)


def seed_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().seed_test(aec, num_cycles=NUM_CYCLES // 2)


def state_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().state_test(LegalAEC(aec()), parallel())


def render_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().render_test(aec)


def parallel_api_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().parallel_api_test(parallel(), num_cycles=NUM_CYCLES)


def parallel_seed_test(aec: EnvFn, parallel: EnvFn) -> None:
    _tests().parallel_seed_test(lambda: LegalParallel(parallel()), num_cycles=NUM_CYCLES // 2)


AEC_TESTS: dict[str, Test] = {test.__name__: test for test in (api_test, seed_test, state_test)}
PARALLEL_TESTS: dict[str, Test] = {test.__name__: test for test in (parallel_api_test, parallel_seed_test)}
RENDER_TESTS: dict[str, Test] = {render_test.__name__: render_test}
"""Names as in `pettingzoo.test`. `state_test` and `parallel_seed_test` sample actions without looking at masks, so
there the first legal choice takes the place of an illegal one; all others see what the environment shows."""


def legal(action: Any, mask: Any) -> Any:
    """The action, with the first legal choice of each factor where its own is masked out."""
    if mask is None or action is None:
        return action
    if isinstance(mask, tuple):
        return np.array([legal(choice, factor) for choice, factor in zip(action, mask, strict=True)])
    return action if mask[action] or not mask.any() else np.int64(mask.argmax())


class LegalParallel(BaseParallelWrapper):
    """Plays the first legal choice in place of an illegal one, which faces refuse."""

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        observations, self.infos = super().reset(seed, options)
        return observations, self.infos

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        masked = {agent: legal(action, self.infos[agent].get("action_mask")) for agent, action in actions.items()}
        observations, rewards, terminations, truncations, self.infos = super().step(masked)
        return observations, rewards, terminations, truncations, self.infos


class LegalAEC(BaseWrapper):
    """As `LegalParallel`."""

    def step(self, action: Any) -> None:
        super().step(legal(action, self.env.infos[self.agent_selection].get("action_mask")))
