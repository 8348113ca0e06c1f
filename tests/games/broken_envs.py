"""Two environments that keep every rule of conformance, and for every rule one that breaks it and no other."""

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv, ParallelEnv

AGENTS = ["ann", "bob"]
SIZE = 3


class Common:
    """What both kinds share: agents, spaces, a generator, and what an agent sees and may do."""

    metadata = {"name": "sound_v0", "render_modes": ["ansi", "rgb_array"]}  # noqa: RUF012 - as PettingZoo has it
    possible_agents = AGENTS
    observation_box = Box(0, 1, (SIZE,), np.float32)
    actions = Discrete(3)
    state_space = observation_box

    def __init__(self, render_mode=None):
        self.render_mode, self.rng, self.agents = render_mode, None, []

    def observation_space(self, agent):
        return self.observation_box

    def action_space(self, agent):
        return self.actions

    def begin(self, seed):
        if seed is not None or self.rng is None:
            self.rng = np.random.default_rng(seed)
        self.agents, self.time, self.chance = list(AGENTS), 0, self.draw()
        self.over = False

    def draw(self) -> float:
        return float(self.rng.random())

    def seen(self, agent):
        return np.array([self.time / 10, self.chance, AGENTS.index(agent)], np.float32)

    def info(self, agent):
        return {"action_mask": np.array([1, 1, self.time > 0], np.int8)}

    def checked(self, agent, action):
        if not self.actions.contains(action) or not self.info(agent)["action_mask"][action]:
            raise ValueError(f"{action} is illegal")

    def state(self):
        return self.seen("ann")

    def render(self):
        return "text" if self.render_mode == "ansi" else np.zeros((4, 5, 3), np.uint8)


class Sound(Common, ParallelEnv):
    """Ann plays four steps, Bob six."""

    lengths = {"ann": 4, "bob": 6}  # noqa: RUF012

    def reset(self, seed=None, options=None):
        self.begin(seed)
        return {a: self.seen(a) for a in self.agents}, {a: self.info(a) for a in self.agents}

    def step(self, actions):
        if not self.agents:
            raise ValueError("the episode is over")
        for agent in self.agents:
            self.checked(agent, actions[agent])
        live, self.time, self.chance = list(self.agents), self.time + 1, self.draw()
        shown = [
            {a: part(a) for a in live} for part in (self.seen, self.reward, self.terminated, self.truncated, self.info)
        ]
        self.agents = [a for a in live if self.time < self.lengths[a]]
        return tuple(shown)

    def reward(self, agent):
        return self.chance

    def terminated(self, agent):
        return self.time >= self.lengths[agent]

    def truncated(self, agent):
        return False


class SoundAEC(Common, AECEnv):
    """Ann and Bob take turns, three each."""

    def reset(self, seed=None, options=None):
        self.begin(seed)
        self.rewards, self._cumulative_rewards = ({a: 0.0 for a in AGENTS} for _ in range(2))
        self.terminations, self.truncations = ({a: False for a in AGENTS} for _ in range(2))
        self.infos = {a: self.info(a) for a in AGENTS}
        self.agent_selection = AGENTS[0]

    def observe(self, agent):
        return self.seen(agent)

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self.checked(agent, action)
        self.time, self.chance = self.time + 1, self.draw()
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {a: self.chance * (a == agent) for a in AGENTS}
        self._accumulate_rewards()
        self.infos = {a: self.info(a) for a in AGENTS}
        self.terminations = {a: self.time >= 6 for a in AGENTS}
        self.agent_selection = AGENTS[self.time % 2]


class Raises(Sound):
    def reward(self, agent):
        return 1 / (3 - self.time)


class StartsInAnotherOrder(Sound):
    def begin(self, seed):
        super().begin(seed)
        self.agents.reverse()


class MakesSpacesAnew(Sound):
    def observation_space(self, agent):
        return Box(0, 1, (SIZE,), np.float32)


class ForgetsAnInfo(Sound):
    def step(self, actions):
        *shown, infos = super().step(actions)
        return *shown, {a: info for a, info in infos.items() if a != "bob"}

    def info(self, agent):
        return {}

    def checked(self, agent, action):
        if not self.actions.contains(action):
            raise ValueError(f"{action} is outside")


class FlagsAreNumbers(Sound):
    def truncated(self, agent):
        return 0


class LeavesWithoutAFlag(Sound):
    def terminated(self, agent):
        return False


class PaysNaN(Sound):
    def reward(self, agent):
        return float("nan") if self.time == 2 else 0.0


class SeesDoubles(Sound):
    def seen(self, agent):
        return super().seen(agent).astype(np.float64)

    def state(self):
        return self.seen("ann").astype(np.float32)


class MasksTooShort(Sound):
    def info(self, agent):
        return {"action_mask": np.ones(2, np.int8)}

    def checked(self, agent, action):
        if not self.actions.contains(action):
            raise ValueError(f"{action} is outside")


class StateOutsideItsSpace(Sound):
    def state(self):
        return self.seen("ann") + 1


class StateChangesByAsking(Sound):
    asked = 0

    def state(self):
        self.asked = (self.asked + 1) % 1000
        return np.full(SIZE, self.asked / 1000, np.float32)


class IteratesOverTheFirstAlone(SoundAEC):
    def agent_iter(self, max_iter=2**63):
        return iter(AGENTS[:1] if self.agents else [])


class LastIsBlind(SoundAEC):
    def last(self, observe=True):
        return np.zeros(SIZE, np.float32), *super().last(observe)[1:]


class NeverStartsToSumAnew(SoundAEC):
    def step(self, action):
        kept = dict(self._cumulative_rewards)
        super().step(action)
        for agent in self._cumulative_rewards:
            self._cumulative_rewards[agent] = kept[agent] + self.rewards[agent]


class DrawsFromTheGlobalGenerator(Sound):
    def draw(self):
        return float(np.random.random())  # noqa: NPY002


class IgnoresItsSeed(Sound):
    def begin(self, seed):
        super().begin(None)


class NumbersItsInstances(Sound):
    made = 0

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        self.number = NumbersItsInstances.made = NumbersItsInstances.made + 1

    def state(self):
        return np.full(SIZE, 1 / self.number, np.float32)


class RemembersAnUnfinishedEpisode(Sound):
    carried = 0

    def begin(self, seed):
        self.carried = len(self.agents)
        super().begin(seed)

    def reward(self, agent):
        return self.carried


class StartsItsGeneratorAtEveryReset(Sound):
    seed = None

    def begin(self, seed):
        self.seed = self.seed if seed is None else seed
        super().begin(self.seed)


class HandsOutOneBuffer(Sound):
    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        self.buffers = {agent: np.zeros(SIZE, np.float32) for agent in AGENTS}

    def seen(self, agent):
        self.buffers[agent][:] = super().seen(agent)
        return self.buffers[agent]

    def state(self):
        return super().seen("ann")


class ReadsWhatItHandedOut(Sound):
    def begin(self, seed):
        self.kept = {}
        super().begin(seed)

    def seen(self, agent):
        shown = super().seen(agent)
        shown[2] = self.kept[agent][2] if agent in self.kept else 0
        self.kept[agent] = shown
        return shown

    def state(self):
        return super().seen("ann")


class Hashes(Sound):
    def reward(self, agent):
        return hash(agent)


class TakesAnyNumber(Sound):
    def checked(self, agent, action):
        int(action)


class GoesOnAfterTheEnd(Sound):
    def step(self, actions):
        self.agents = self.agents or ["bob"]
        return super().step(actions)


class LetsTheDeadPlay(SoundAEC):
    def step(self, action):
        super().step(None if self.terminations.get(self.agent_selection) else action)


class PaintsFloats(Sound):
    def render(self):
        return "text" if self.render_mode == "ansi" else np.zeros((4, 5, 3))


BROKEN = {
    "plays": Raises,
    "agents": StartsInAnotherOrder,
    "spaces": MakesSpacesAnew,
    "keys": ForgetsAnInfo,
    "flags": FlagsAreNumbers,
    "lives": LeavesWithoutAFlag,
    "rewards": PaysNaN,
    "observations": SeesDoubles,
    "masks": MasksTooShort,
    "state_space": StateOutsideItsSpace,
    "asking": StateChangesByAsking,
    "selection": IteratesOverTheFirstAlone,
    "last": LastIsBlind,
    "cumulative": NeverStartsToSumAnew,
    "global_generators": DrawsFromTheGlobalGenerator,
    "seeds": IgnoresItsSeed,
    "states": NumbersItsInstances,
    "restarts": RemembersAnUnfinishedEpisode,
    "continues": StartsItsGeneratorAtEveryReset,
    "keeps": HandsOutOneBuffer,
    "ignores_writes": ReadsWhatItHandedOut,
    "processes": Hashes,
    "rejects_actions": TakesAnyNumber,
    "over": GoesOnAfterTheEnd,
    "dead_steps": LetsTheDeadPlay,
    "render": PaintsFloats,
}
"""Rule -> an environment that breaks it, and nothing else."""
