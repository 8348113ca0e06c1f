"""Rules about a single moment of an episode, and the one before it."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from games.conformance.record import Driver, Moment, can_act, difference, freeze, freeze_moment, mask_problem
from games.conformance.rules import Broken

Rule = Callable[[Driver, Moment | None, Moment], None]


def agents(driver: Driver, before: Moment | None, now: Moment) -> None:
    """possible_agents are different names that never change; a reset puts all of them into agents, in order."""
    possible = list(driver.env.possible_agents)
    if len(set(possible)) < len(possible):
        raise Broken(f"possible_agents must be different names, got {possible}")
    if possible != driver.possible_agents:
        raise Broken(f"possible_agents must stay {driver.possible_agents}, got {possible}")
    if before is None and now.agents != possible:
        raise Broken(f"after a reset agents must be possible_agents, {possible}; got {now.agents}")


def spaces(driver: Driver, before: Moment | None, now: Moment) -> None:
    """observation_space(agent) and action_space(agent) return the same object every time, also after a reset."""
    for agent, known in driver.spaces.items():
        names = ("observation_space", "action_space")
        for name, space in zip(names, known, strict=True):
            if getattr(driver.env, name)(agent) is not space:
                raise Broken(f"{name} must return the same object every time: make it once, in __init__", agent)


def keys(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Each returned dictionary has the live agents as its keys, and infos are dictionaries themselves.

    Live are those that were in `agents` before the step (Parallel), or are in it now (AEC).
    """
    live = now.agents if before is None or driver.aec else before.agents
    names = ["observations", "infos"] if before is None and not driver.aec else list(DICTIONARIES)
    for name in names:
        shown = getattr(now, name)
        if not isinstance(shown, dict) or set(shown) != set(live):
            given = list(shown) if isinstance(shown, dict) else shown
            raise Broken(f"{name} must be a dictionary with the live agents, {live}, as its keys; got {given}")
    for agent, info in now.infos.items():
        if not isinstance(info, dict):
            raise Broken(f"an info must be a dictionary, got {info!r}", agent)


DICTIONARIES = ("observations", "rewards", "terminations", "truncations", "infos")


def flags(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Terminations and truncations are bools; nobody is over after a reset. Both at once are allowed.

    (A time limit may fall on the very step that ends an episode.)
    """
    for name in ("terminations", "truncations"):
        for agent, flag in getattr(now, name).items():
            if not isinstance(flag, bool | np.bool_):
                raise Broken(f"{name} must be bools, got {flag!r}", agent)
            if before is None and flag:
                raise Broken(f"{name} must be False after a reset: an episode has a step at least", agent)


def lives(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Agents leave once they are terminated or truncated, and only then; nobody joins or returns before a reset.

    A Parallel environment takes them out of `agents` in the same step, an AEC one when they step with None.
    """
    if before is None:
        return
    if driver.aec:
        stay = [agent for agent in before.agents if not (before.over(agent) and agent in now.played)]
        for agent in now.agents:
            if before.over(agent) and not now.over(agent):
                raise Broken("once terminated or truncated an agent stays so until it steps with None", agent)
    else:
        stay = [agent for agent in before.agents if not now.over(agent)]
    for agent in now.agents:
        if agent not in stay:
            why = "is terminated or truncated and must leave agents" if agent in before.agents else "must not return"
            raise Broken(f"agents must be {stay}, got {now.agents}: this one {why}", agent)
    for agent in stay:
        if agent not in now.agents:
            raise Broken(f"agents must be {stay}, got {now.agents}: set a flag before an agent leaves", agent)


def rewards(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Rewards are finite numbers, and the dead earn nothing more."""
    for agent, reward in now.rewards.items():
        if isinstance(reward, bool | np.bool_) or not isinstance(reward, int | float | np.number):
            raise Broken(f"a reward must be a number, got {reward!r} of type {type(reward).__name__}", agent)
        if not np.isfinite(reward):
            raise Broken(f"a reward must be finite, got {reward!r}", agent)
        if before is not None and before.over(agent) and reward != 0:
            raise Broken(f"who was over already must earn 0, got {reward!r}", agent)


def observations(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Observations lie in their space, with its exact shape and dtype and without NaN."""
    for agent, observation in now.observations.items():
        problem = _outside(driver.spaces[agent][0], observation)
        if problem:
            raise Broken(f"an observation {problem}", agent)


def _outside(space: Any, value: Any) -> str | None:
    if isinstance(space, Box):
        if not isinstance(value, np.ndarray):
            return f"must be an array of {space}, got {type(value).__name__}"
        if value.dtype != space.dtype or value.shape != space.shape:
            wanted = f"{space.dtype} of shape {space.shape}"
            return f"must be {wanted}, got {value.dtype} of shape {value.shape}"
        if np.issubdtype(value.dtype, np.floating) and np.isnan(value).any():
            return f"must not hold NaN, got {np.isnan(value).sum()} of them"
        low, high = value < space.low, value > space.high
        if low.any() or high.any():
            where = tuple(int(index) for index in np.argwhere(low | high)[0])
            return f"must lie in {space}, got {value[where]} at index {where}"
    return None if space.contains(value) else f"must lie in {space}, got {value!r}"


def masks(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Action masks, where given, fit the action space, and leave a choice to who acts.

    In a Parallel environment a mask without any choice says that its agent does not act (others leave it one, to wait);
    one agent must.
    """
    choices = {}
    for agent in now.agents:
        space, mask = driver.spaces[agent][1], now.mask(agent)
        if mask is None:
            choices[agent] = True
            continue
        problem = mask_problem(space, mask)
        if problem:
            raise Broken(f"an action mask must fit {space}: {problem}", agent)
        choices[agent] = can_act(space, mask)
    asked = [agent for agent in now.asked if not now.over(agent)]
    if asked and not any(choices.get(agent, True) for agent in asked):
        raise Broken("an action mask must leave a choice to who acts, got none", asked[0])


def state_space(driver: Driver, before: Moment | None, now: Moment) -> None:
    """state(), where implemented, lies in state_space with its dtype and shape."""
    method = getattr(driver.env.unwrapped, "state", None)
    if method is not None and not callable(method):
        raise Broken(f"state is a method of the API, got a {type(method).__name__}: call what you keep another name")
    space = getattr(driver.env, "state_space", None)
    if now.state is None or space is None:
        return
    problem = _outside(space, now.state)
    if problem:
        raise Broken(f"state() {problem}")


def asking(driver: Driver, before: Moment | None, now: Moment) -> None:
    """Asked twice without a step between, observe(agent), last() and state() say the same."""
    twice = driver.look_again(now)
    one, other = ([[freeze_moment(moment)]] for moment in (now, twice))
    changed = difference(one, other) or difference(one, other, states=True)
    if changed:
        raise Broken(
            f"{changed.what} must not change by asking, got {changed.one}, then {changed.other}", changed.agent
        )


def selection(driver: Driver, before: Moment | None, now: Moment) -> None:
    """AEC: agent_selection is one of agents, and agent_iter() yields it until nobody is left."""
    if not driver.aec:
        return
    if now.agents and now.asked[0] not in now.agents:
        raise Broken(f"agent_selection must be one of {now.agents}, got {now.asked[0]!r}")
    yielded = list(islice(driver.env.agent_iter(), 1))
    if yielded != now.asked:
        raise Broken(f"agent_iter() must yield {now.asked or 'nobody any more'}, got {yielded}")


def last(driver: Driver, before: Moment | None, now: Moment) -> None:
    """AEC: last() agrees with observe, terminations, truncations and infos of the selected agent."""
    if not driver.aec or now.last is None:
        return
    agent = now.asked[0]
    parts = ("observations", "", "terminations", "truncations", "infos")
    for name, told in zip(parts, now.last, strict=True):
        if name and freeze(told) != freeze(getattr(now, name)[agent]):
            raise Broken(f"last() must tell what {name} do, {getattr(now, name)[agent]!r}, got {told!r}", agent)


def cumulative(driver: Driver, before: Moment | None, now: Moment) -> None:
    """AEC: the reward that last() tells is the sum of the agent's rewards since it began its last step."""
    if not driver.aec or now.last is None or now.earned is None:
        return
    agent = now.asked[0]
    told, earned = now.last[1], now.earned[agent]
    if not np.isclose(told, earned, rtol=1e-6, atol=1e-6):  # environments may add up in float32
        raise Broken(f"last() must tell {earned}, the sum of rewards since its last step; got {told}", agent)


MOMENT_RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        agents,
        spaces,
        keys,
        flags,
        lives,
        rewards,
        observations,
        masks,
        state_space,
        asking,
        selection,
        last,
        cumulative,
    )
}
AEC_RULES = ("selection", "last", "cumulative", "dead_steps")
