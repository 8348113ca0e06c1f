"""Rules about what an environment must not do: actions outside the space, steps after the end, steps of the dead."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from games.conformance.record import Driver, Moment, mask_of, mask_problem
from games.conformance.rules import Broken
from games.conformance.runs import Case


def rejects_actions(case: Case) -> str | None:
    """Actions outside the space, or masked out, are refused: by an error or a warning, or (masked out) by the end."""
    tried = False
    for agent in Driver(case.env_fn()).possible_agents:
        for wrong in wrong_actions(Driver(case.env_fn()).spaces[agent][1]):
            for driver, now in case.first_episode():
                if agent in now.asked and not now.over(agent):
                    tried = True
                    _refused(driver, now, agent, wrong, f"outside {driver.spaces[agent][1]}", may_end=False)
                    break
    for driver, now in case.first_episode():
        for agent in now.asked:
            masked = None if now.over(agent) else masked_out(driver.spaces[agent][1], now.mask(agent))
            if masked is not None:
                _refused(driver, now, agent, masked, "masked out", may_end=True)
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
        nan = [np.full(space.shape, np.nan, space.dtype)] if np.issubdtype(space.dtype, np.floating) else []
        return [*(action for action in above if not space.contains(action)), *nan, shape, None]
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


def _refused(driver: Driver, now: Moment, agent: Any, wrong: Any, why: str, may_end: bool) -> None:
    after = attempt(driver, driver.choose(now) | {agent: wrong})
    ended = after is None or agent not in after.agents or after.over(agent)
    if after is not None and not (may_end and ended):
        raise Broken(f"{wrong!r} is {why} and must be refused: raise an error; it was played", agent)


def attempt(driver: Driver, actions: dict) -> Moment | None:
    """What the step led to; None where it was refused: it raised, warned, or logged a warning."""
    logged: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = logged.append  # type: ignore[assignment, method-assign]
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            after = driver.step(actions)
    except Exception:
        return None
    finally:
        logging.getLogger().removeHandler(handler)
    return None if warned or logged else after


def over(case: Case) -> str | None:
    """A step after the end is refused by an error or a warning, or returns empty dictionaries; a reset works then."""
    for driver, now in case.first_episode():
        if now.agents:
            continue
        asked = driver.possible_agents[:1] if driver.aec else driver.possible_agents
        after = attempt(driver, {agent: driver.sample(agent) for agent in asked})
        # Many Parallel environments return five empty dictionaries, which says that nobody is left.
        shown = after and (driver.aec or after.observations or after.rewards or after.terminations or after.truncations)
        if shown:
            raise Broken("a step after the end must be refused: raise an error; it was played")
        if not driver.reset(case.seed).agents:
            raise Broken("a reset after the end must start an episode")
        return None
    return f"no episode ended within {case.max_steps} steps"


def dead_steps(case: Case) -> str | None:
    """AEC: an agent that is terminated or truncated steps with None and nothing else."""
    for driver, now in case.first_episode():
        if driver.aec and now.asked and now.over(now.asked[0]):
            agent = now.asked[0]
            action = driver.sample(agent)
            if attempt(driver, {agent: action}) is not None:
                raise Broken(f"the dead must step with None; {action!r} was played: call _was_dead_step first", agent)
            return None
    return f"nobody was over within {case.max_steps} steps"


REFUSAL_RULES: dict[str, Callable[[Case], str | None]] = {
    rule.__name__: rule for rule in (rejects_actions, over, dead_steps)
}
