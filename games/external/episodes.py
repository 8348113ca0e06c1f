"""Episodes of somebody else's PettingZoo environment, Parallel or AEC: read, checked, and written into a lane."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Space
from pettingzoo import AECEnv, ParallelEnv

from games.board import Board
from games.external.contract import BrokenContract, Fault
from games.external.spaces import Moves, Sight
from games.faults import FAULTS

MOST = float(np.finfo(np.float32).max)


class Facts(NamedTuple):
    """What is known of an environment once one was made."""

    name: str
    parallel: bool
    ids: tuple[Any, ...]
    """Its own names of the seats: `possible_agents`."""
    observation_spaces: tuple[Space, ...]
    action_spaces: tuple[Space, ...]
    masked: tuple[bool, ...]


def facts_of(env: AECEnv | ParallelEnv, masks: bool | None) -> Facts:
    """Raises BrokenContract where the environment does not start, or has not the agents and spaces it should."""
    name = type(env).__name__
    try:
        name = _call("str(env)", str, env)
        ids = _ids(env)
        spaces = [_spaces(env, agent) for agent in ids]
        shown = _call("reset(seed=0)", env.reset, seed=0)
        infos = _pair(shown)[1] if isinstance(env, ParallelEnv) else env.infos
    except Fault as fault:
        raise BrokenContract(name, fault.rule, fault.message, fault.agent, 0, 0) from fault.__cause__
    observed, acted = zip(*spaces, strict=True)
    masked = []
    for agent, seen, played in zip(ids, observed, acted, strict=True):
        told = (
            "action_mask" in getattr(seen, "spaces", ())
            or _mask(infos.get(agent) if isinstance(infos, Mapping) else None) is not None
        )
        if told and isinstance(played, Box):
            raise ValueError(f"{name}, agent {agent}: action masks are for discrete actions, got {played}")
        masked.append(not isinstance(played, Box) and (told if masks is None else masks))
    return Facts(name, isinstance(env, ParallelEnv), ids, observed, acted, tuple(masked))


def _ids(env: AECEnv | ParallelEnv) -> tuple[Any, ...]:
    wanted = "possible_agents must list everyone who may ever play, by different names"
    try:
        ids = tuple(getattr(env, "possible_agents", None) or ())
        different = len({str(agent) for agent in ids})
    except FAULTS as error:
        raise Fault("agents", f"{wanted}; to read it raised {error!r}") from error
    if not ids or different < len(ids):
        raise Fault("agents", f"{wanted}; got {ids}")
    return ids


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

    def __init__(
        self,
        env: Any,
        facts: Facts,
        sights: tuple[Sight, ...],
        moves: tuple[Moves, ...],
        max_steps: int | None,
        release: Callable[[], Any],
    ):
        self.env, self.facts, self.sights, self.moves = env, facts, sights, moves
        self.max_steps, self.close = max_steps, release
        self.seats = {agent: seat for seat, agent in enumerate(facts.ids)}
        self.seed = self.steps = 0
        self.live: list[int] = []  # seats of env.agents, in their order
        self.there: list | None = None  # env.agents, if it is known who came and left
        self.left: set[int] = set()  # seats that were taken away
        self._known: list[tuple[Space, Space]] = []
        self._told(self._check_spaces)

    def begin(self, seed: int, row: Board) -> None:
        self.seed, self.steps, self.live, self.there, self.left = seed, 0, [], None, set()
        for part in (row.alive, row.acting):
            part[:] = False
        self._told(self._begin, row)
        self._told(self._check_spaces)

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        self.steps += 1
        self._told(self._play, actions, row)
        if self.live and self.max_steps is not None and self.steps >= self.max_steps:
            row.truncated[self.live] = True
            self.live = []
        row.done[0] = not self.live
        if not self.live:
            row.alive[:] = row.acting[:] = False

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
        except FAULTS as fault:  # an attribute that is missing, or of another type
            message = f"reading what it shows raised {fault!r}"
            raise BrokenContract(self.facts.name, "plays", message, None, self.steps, self.seed) from fault

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
        if agents == self.there:
            return self.live
        try:
            seats = [self.seats[agent] for agent in agents]
        except KeyError:
            raise Fault("agents", f"agents must be of possible_agents {self.facts.ids}, got {agents}") from None
        for seat in seats:
            if seat in self.left:
                raise Fault("lives", "an agent that is terminated or truncated must not go on", self.facts.ids[seat])
        if len(set(seats)) < len(seats):
            raise Fault("agents", f"agents must have everyone once, got {agents}")
        row.alive[seats] = True
        self.there = list(agents)
        return seats

    def _pay(self, rewards: Mapping, row: Board) -> None:
        """Credit the rewards of one step."""
        for agent, reward in rewards.items():
            seat = self.seats.get(agent)
            try:
                amount = float(reward)
            except (TypeError, ValueError, OverflowError):
                raise Fault("rewards", f"a reward must be a number, got {reward!r:.200}", agent) from None
            if not abs(amount) <= MOST:
                raise Fault("rewards", f"a reward must be finite (in float32), got {reward!r}", agent)
            if amount:  # some tell 0 of everyone, also of who is not there
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
        self.there = None


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
            if paid in self.credited:
                self.credited[paid] += reward
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
