"""PettingZoo environments that each break one rule which lanes rely on, and some that are just unusual."""

import sys

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv
from pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies import parallel_env
from pettingzoo.utils import BaseParallelWrapper

from tests.games.broken_envs import (
    AGENTS,
    SIZE,
    ForgetsAnInfo,
    LeavesWithoutAFlag,
    MasksTooShort,
    NeverStartsToSumAnew,
    PaysNaN,
    Raises,
    Sound,
    SoundAEC,
)


class Exits(Sound):
    def reward(self, agent):
        sys.exit(0)


class StartsWithNobody(Sound):
    def begin(self, seed):
        super().begin(seed)
        self.agents = []


class InvitesAStranger(Sound):
    def reset(self, seed=None, options=None):
        shown = super().reset(seed)
        self.agents = [*AGENTS, "eve"]
        return shown


class KeepsTheDead(Sound):
    def step(self, actions):
        shown = super().step(actions)
        self.agents = list(AGENTS)
        return shown


class WakesTheDead(Sound):
    def step(self, actions):
        shown = super().step(actions)
        if self.time == 5:
            self.agents = list(AGENTS)
        return shown


class PaysTooMuch(Sound):
    def reward(self, agent):
        return 1e300


class InvitesAnnTwice(Sound):
    def reset(self, seed=None, options=None):
        shown = super().reset(seed)
        self.agents = ["ann", *AGENTS]
        return shown


class SeesRagged(Sound):
    def seen(self, agent):
        return [[1.0], [1.0, 2.0], 3.0]


class PaysInWords(Sound):
    def reward(self, agent):
        return "much"


class PaysAnnAlone(Sound):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, {"ann": rewards.get("ann", 0)}, *rest


class PaysTheDead(Sound):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, rewards | {"ann": 1.0}, *rest


class SeesNaN(Sound):
    def seen(self, agent):
        return super().seen(agent) * (np.nan if self.time == 2 else 1)


class SeesMore(Sound):
    def seen(self, agent):
        return np.zeros(SIZE + 1, np.float32)


class SeesWords(Sound):
    def seen(self, agent):
        return "night"


class ForgetsAnObservation(Sound):
    def step(self, actions):
        observations, *rest = super().step(actions)
        return {a: seen for a, seen in observations.items() if a == "bob"}, *rest


class ForbidsEverything(Sound):
    def info(self, agent):
        return {"action_mask": np.zeros(3, np.int8)}


class MasksInFloats(Sound):
    def info(self, agent):
        return {"action_mask": np.ones(3)}


class MasksLate(Sound):
    def info(self, agent):
        return super().info(agent) if self.time else {}

    def checked(self, agent, action):
        if not self.actions.contains(action):
            raise ValueError(f"{action} is outside")


class GrowsItsSpace(Sound):
    def action_space(self, agent):
        return Discrete(3 + len(self.agents))


class DiffersFromItsCopies(Sound):
    made = 0

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        DiffersFromItsCopies.made += 1
        self.actions = Discrete(2 + DiffersFromItsCopies.made)


class HasNoSpace(Sound):
    def action_space(self, agent):
        return None


class NamesNobody(Sound):
    possible_agents = ()


class ShowsFour(Sound):
    def step(self, actions):
        return super().step(actions)[:4]


class ResetsToObservationsAlone(Sound):
    def reset(self, seed=None, options=None):
        return super().reset(seed)[0]


class ShowsNoInfos(Sound):
    def reset(self, seed=None, options=None):
        return super().reset(seed)[0], None


class PaysInAList(Sound):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, list(rewards.values()), *rest


class SelectsAStranger(SoundAEC):
    def step(self, action):
        super().step(action)
        if self.time == 3:
            self.agent_selection = "eve"


class KeepsWhoIsTakenAway(SoundAEC):
    def step(self, action):
        if not self.terminations[self.agent_selection]:
            super().step(action)


class LetsBobVanish(SoundAEC):
    def step(self, action):
        super().step(action)
        if self.time == 3:
            self.agents, self.agent_selection = ["ann"], "ann"


class OverAtOnce(SoundAEC):
    def reset(self, seed=None, options=None):
        super().reset(seed)
        self.terminations = dict.fromkeys(AGENTS, True)


FAULTS = [
    (Raises, "plays", None, "raised ZeroDivisionError"),
    (Exits, "plays", None, r"raised SystemExit\(0\)"),
    (ShowsFour, "plays", None, "step must give"),
    (ResetsToObservationsAlone, "plays", None, "reset must give"),
    (NamesNobody, "agents", None, "possible_agents must list everyone"),
    (StartsWithNobody, "agents", None, "must not be empty after reset"),
    (InvitesAStranger, "agents", None, r"must be of possible_agents \('ann', 'bob'\), got \['ann', 'bob', 'eve'\]"),
    (KeepsTheDead, "lives", "ann", "must leave env.agents"),
    (WakesTheDead, "lives", "ann", "must not go on"),
    (LeavesWithoutAFlag, "lives", "ann", "without being terminated"),
    (PaysNaN, "rewards", "ann", r"must be finite \(in float32\), got nan"),
    (PaysTooMuch, "rewards", "ann", r"must be finite \(in float32\), got 1e\+300"),
    (InvitesAnnTwice, "agents", None, "must have everyone once"),
    (SeesRagged, "observations", "ann", "numbers of shape"),
    (PaysInWords, "rewards", "ann", "must be a number, got 'much'"),
    (PaysTheDead, "rewards", "ann", "must be for those who are there"),
    (PaysAnnAlone, "keys", "bob", "rewards must have an entry"),
    (SeesNaN, "observations", "ann", "must be finite"),
    (SeesMore, "observations", "ann", r"numbers of shape \(3,\), got float32 \(4,\)"),
    (SeesWords, "observations", "ann", r"numbers of shape \(3,\), got <U5 \(\)"),
    (ForgetsAnObservation, "keys", "ann", "observations must have an entry"),
    (ForgetsAnInfo, "keys", "bob", "infos must have an entry"),
    (ShowsNoInfos, "keys", "ann", "infos must have an entry of every agent, got None"),
    (PaysInAList, "plays", None, "reading what it shows raised AttributeError"),
    (MasksTooShort, "masks", "ann", r"must have \[3\] entries, got \[\(2,\)\]"),
    (ForbidsEverything, "masks", "ann", "must have a legal action"),
    (MasksInFloats, "masks", "ann", "integers or booleans, got float64"),
    (MasksLate, "masks", "ann", r"say external\(\.\.\., masks=True\)"),
    (HasNoSpace, "spaces", "ann", "must be a Gymnasium space, got None"),
    (GrowsItsSpace, "spaces", "ann", r"must not change, from Discrete\(3\) to Discrete\(5\)"),
    (DiffersFromItsCopies, "spaces", "ann", "must not change"),
    (NeverStartsToSumAnew, "cumulative", "ann", "since the agent's last step"),
    (SelectsAStranger, "selection", None, r"one of \['ann', 'bob'\], got 'eve'"),
    (KeepsWhoIsTakenAway, "lives", "ann", "must not go on"),
    (LetsBobVanish, "lives", "bob", "without being terminated"),
    (OverAtOnce, "lives", None, "must not be over after reset"),
]
"""Environment, the rule it breaks, the agent, and what is said."""


class ComesAndGoes(ParallelEnv):
    """Bob comes at step 2, Ann is cut short at step 3, Bob ends at 5, and Carl never comes; everyone earns 1 a step."""

    metadata = {"name": "guests_v0"}  # noqa: RUF012 - as PettingZoo has it
    possible_agents = ("ann", "bob", "carl")
    spaces = Box(0, 9, (1,)), Discrete(2)

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def reset(self, seed=None, options=None):
        self.time, self.agents = 0, ["ann"]
        return self._all(self._seen()), {"ann": {}}

    def _seen(self):
        return np.full(1, self.time + 1, np.float32)

    def _all(self, value):
        return dict.fromkeys(self.agents, value)

    def step(self, actions):
        assert list(actions) == self.agents
        self.time += 1
        if self.time == 2:
            self.agents = ["ann", "bob"]
        shown = [self._all(part) for part in (self._seen(), 1.0, False, False, {})]
        ended = {3: "ann", 5: "bob"}.get(self.time)
        if ended:
            shown[2 if ended == "bob" else 3][ended] = True
            self.agents.remove(ended)
        return tuple(shown)


class Retreat(BaseParallelWrapper):
    """Agents of Knights Archers Zombies that run to the lower border, at which they die, or wait."""

    choices = Discrete(2)

    def action_space(self, agent):
        return self.choices

    def step(self, actions):
        return super().step({agent: (1, 5)[action] for agent, action in actions.items()})


def retreat(max_cycles=6):
    return Retreat(parallel_env(line_death=True, max_zombies=1, max_cycles=max_cycles, num_archers=1, num_knights=2))


class PaysWhoIsOver(SoundAEC):
    """Pays everyone who is there at every step. Ann is over at step 3, in her turn, and taken away after Bob's next."""

    ends = {"ann": 3, "bob": 8}  # noqa: RUF012

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            self.agent_selection = "bob"
            return
        self.time, self.chance = self.time + 1, self.draw()
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {a: self.time + self.chance * (a == agent) for a in self.agents}
        self._accumulate_rewards()
        self.terminations = {a: self.time >= self.ends[a] for a in self.agents}
        self.agent_selection = next((a for a in self.agents if a != agent), agent)

    def info(self, agent):
        return {}
