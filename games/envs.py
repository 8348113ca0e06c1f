"""PettingZoo faces, written once over any Game: Parallel, and AEC for simultaneous and alternating moves alike."""

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete, Space, Tuple
from pettingzoo import AECEnv, ParallelEnv

from games.game import Game, Pictured, Talking, factors
from games.one_episode import OneEpisode
from games.stepping import Source
from games.window import Window

RENDER_FPS = 2
"""Steps a second in a window, where a game does not say (`render_fps`)."""


def metadata(game: Game, name: str) -> dict[str, Any]:
    """What PettingZoo wants to know of a face, and `channels` where agents talk (`games.channel.Placement`)."""
    modes = ["human", "ansi", *(["rgb_array"] if isinstance(game, Pictured) else [])]
    told = {
        "name": name,
        "render_modes": modes,
        "render_fps": getattr(game, "render_fps", RENDER_FPS),
        "is_parallelizable": True,
    }
    if isinstance(game, Talking):
        told["channels"] = [placement.described(game.agents) for placement in game.channels]
    return told


class Face:
    """One episode at a time of `game` in a single lane, with names and numbers as PettingZoo wants them.

    Seeds start a generator of their own: the same seed gives the same episodes, and restarting without a seed goes on
    with the generator, so episodes differ. `max_cycles` truncates after that many steps. In render mode `human` every
    state is shown in a window, or printed where the game has no pictures. With `mask_in_observation` observations are
    dictionaries of `observation` and `action_mask`, but for agents whose actions are continuous: those have no masks.
    """

    def __init__(
        self,
        game: Game | Source,
        name: str,
        render_mode: str | None,
        max_cycles: int | None,
        mask_in_observation: bool = False,
    ):
        game = game if isinstance(game, Game) else OneEpisode(game)
        self.metadata = metadata(game, name)
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            raise ValueError(f"render_mode of {name} must be None or one of {', '.join(modes)}, got {render_mode!r}")
        if max_cycles is not None and max_cycles < 1:
            raise ValueError(f"max_cycles must be at least 1, got {max_cycles}")
        self.game, self.name, self.render_mode, self.max_cycles = game, name, render_mode, max_cycles
        self.mask_in_observation = mask_in_observation
        self.agents = list(game.agents)
        self.params = game.params()
        self.action_spaces = dict(zip(self.agents, game.action_spaces, strict=True))
        self.observation_spaces: dict[str, Space] = dict(zip(self.agents, game.observation_spaces, strict=True))
        if mask_in_observation:
            self.observation_spaces = {
                agent: _with_mask(space, self.action_spaces[agent]) for agent, space in self.observation_spaces.items()
            }
        low, high = (
            np.concatenate([getattr(s, end).ravel() for s in game.observation_spaces]) for end in ("low", "high")
        )
        self.state_space = Box(low, high, dtype=np.float32)
        self.state: Any = None
        self.over = True
        self.window = Window(name) if render_mode == "human" and isinstance(game, Pictured) else None
        self._rng: np.random.Generator | None = None

    def begin(self, seed: int | None) -> None:
        if self._rng is None or seed is not None:
            self._rng = np.random.default_rng(seed)
        self.cycles, self.over = 0, False
        self.state = self.game.init(self.params, self._noise(self.game.noise_sizes[0]))
        self._look()

    def play(self, actions: dict[str, Any]) -> None:
        """Plays one step; `actions` of everyone who is acting."""
        rows = tuple(
            np.asarray(actions.get(agent, np.zeros(space.shape or ())), space.dtype)[None]
            for agent, space in self.action_spaces.items()
        )
        self.state = self.game.step(self.params, self.state, rows, self._noise(self.game.noise_sizes[1]))
        self.cycles += 1
        self._look()

    def _look(self) -> None:
        game, params, state = self.game, self.params, self.state
        rewards = game.rewards(params, state)[0].tolist()
        self.rewards = dict(zip(self.agents, rewards, strict=True))
        self.terminated = bool(game.terminated(params, state)[0])
        capped = self.max_cycles is not None and self.cycles >= self.max_cycles
        self.truncated = bool(game.truncated(params, state)[0]) or (capped and not self.terminated)
        self.over = self.terminated or self.truncated
        self._acting = game.acting(params, state)[0]
        self._seen = [game.observe(params, state, seat)[0] for seat in range(len(self.agents))]
        if self.render_mode == "human":
            self._show()

    def _show(self) -> None:
        if self.window is None:
            print(self.text())
        elif not self.window.dismissed:
            self.window.show(self.picture(), self.metadata["render_fps"])

    def acting(self) -> list[str]:
        """Who moves next, in seat order."""
        return [agent for agent, acts in zip(self.agents, self._acting, strict=True) if acts]

    def observations(self, wait: bool = False) -> dict[str, Any]:
        """Copies: writing into one changes nothing that is shown later. `wait` as in `infos`."""
        return {agent: self.observation(agent, wait) for agent in self.agents}

    def observation(self, agent: str, wait: bool = False) -> Any:
        """An agent's part of `observations`."""
        seat, space = self.agents.index(agent), self.action_spaces[agent]
        seen = self._seen[seat].copy()
        if not self.mask_in_observation or isinstance(space, Box):
            return seen
        everything = tuple(np.ones(n, np.int8) for n in factors(space))
        return {"observation": seen, "action_mask": _mask_for(space, self._legal(seat, wait) or everything)}

    def infos(self, wait: bool = False) -> dict[str, dict]:
        """The `action_mask` that the action space's `sample` takes, where some actions are illegal.

        Whoever does not act has no legal action, or with `wait` the first one alone.
        """
        masks = ((agent, self._legal(seat, wait)) for seat, agent in enumerate(self.agents))
        return {
            agent: {"action_mask": _mask_for(self.action_spaces[agent], mask)} if mask else {} for agent, mask in masks
        }

    def _legal(self, seat: int, wait: bool) -> tuple[np.ndarray, ...] | None:
        """A mask for each factor of a seat's actions; None where everything is legal."""
        space = self.game.action_spaces[seat]
        if self._acting[seat]:
            legal = self.game.legal(self.params, self.state, seat)
            return legal and tuple(np.asarray(mask[0], np.int8) for mask in legal)
        if isinstance(space, Box):
            return None
        return tuple((np.arange(n) < wait).astype(np.int8) for n in factors(space))

    def check(self, agent: str, action: Any) -> None:
        """Raises ValueError for an action outside the agent's space, or masked out; who does not act waits by 0.

        Continuous actions of who does not act are ignored.
        """
        space = self.action_spaces[agent]
        if not space.contains(_cast(space, action)):
            raise ValueError(f"{agent} must act within {space}, got {action!r}")
        seat = self.agents.index(agent)
        if not self._acting[seat]:
            if np.any(action) and not isinstance(space, Box):
                raise ValueError(f"{agent} must wait for its turn, by choice 0; got {action!r}")
            return
        masks = self.game.legal(self.params, self.state, seat)
        for mask, choice in zip(masks or (), np.atleast_1d(action), strict=masks is not None):
            if not mask[0][choice]:
                raise ValueError(f"{agent} must choose one of {np.flatnonzero(mask[0]).tolist()} now, got {action!r}")

    def check_started(self) -> None:
        """Raises ResetNeeded before the first reset."""
        if self.state is None:
            raise ResetNeeded(f"call reset() before anything else is asked of {self.name}")

    def text(self) -> str:
        return self.game.describe(self.params, self.state)

    def picture(self) -> np.ndarray:
        assert isinstance(self.game, Pictured)
        return self.game.frame(self.params, self.state)

    def global_state(self) -> np.ndarray:
        self.check_started()
        return np.concatenate([seen.ravel() for seen in self._seen])

    def render(self) -> str | np.ndarray | None:
        self.check_started()
        if self.render_mode == "rgb_array":
            return self.picture()
        return self.text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        if self.window is not None:
            self.window.close()

    def _noise(self, columns: int) -> np.ndarray:
        assert self._rng is not None
        return self._rng.random((1, columns), np.float32)


def _cast(space: Space, action: Any) -> Any:
    """Continuous actions in the space's dtype, for arithmetic on observations easily ends in float64."""
    if not isinstance(space, Box):
        return action
    try:
        return np.asarray(action, space.dtype)
    except (TypeError, ValueError):
        return action


def _mask_for(space: Space, masks: tuple[np.ndarray, ...]) -> Any:
    """As the space's `sample` takes it."""
    return masks[0] if isinstance(space, Discrete) else masks


def _with_mask(observed: Space, space: Space) -> Space:
    """The space of observations together with masks of actions in `space`; unchanged where there are none."""
    if isinstance(space, Box):
        return observed
    masks = tuple(Box(0, 1, (n,), np.int8) for n in factors(space))
    return Dict({"observation": observed, "action_mask": masks[0] if isinstance(space, Discrete) else Tuple(masks)})


class ParallelFace(ParallelEnv):
    """A Game as a PettingZoo Parallel environment.

    Agents whose turn it is not are asked all the same: their action masks leave them choice 0 alone, which is to wait
    and changes nothing. Continuous actions have no masks: theirs are ignored.
    """

    def __init__(
        self,
        game: Game | Source,
        name: str,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        mask_in_observation: bool = False,
    ):
        self.episode = Face(game, name, render_mode, max_cycles, mask_in_observation)
        self.metadata = self.episode.metadata
        self.render_mode, self.state_space = render_mode, self.episode.state_space
        self.possible_agents = list(self.episode.agents)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Space:
        return self.episode.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.episode.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.episode.begin(seed)
        self.agents = list(self.possible_agents)
        return self.episode.observations(wait=True), self.episode.infos(wait=True)

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        episode = self.episode
        episode.check_started()
        if episode.over:
            if not actions:  # nobody is left to act, which some wrappers find out by a step
                return {}, {}, {}, {}, {}
            raise ResetNeeded(f"the episode of {episode.name} is over: call reset() to play another")
        if actions.keys() != episode.action_spaces.keys():
            raise ValueError(f"actions must be given for {', '.join(self.agents)}, got {', '.join(map(str, actions))}")
        for agent, action in actions.items():
            episode.check(agent, action)
        episode.play(actions)
        terminations, truncations = (dict.fromkeys(self.agents, end) for end in (episode.terminated, episode.truncated))
        if episode.over:
            self.agents = []
        seen, infos = episode.observations(wait=True), episode.infos(wait=True)
        return seen, dict(episode.rewards), terminations, truncations, infos

    def state(self) -> np.ndarray:
        """All agents' observations, one after the other."""
        return self.episode.global_state()

    def render(self) -> str | np.ndarray | None:
        """Text for `ansi`, a picture [height, width, 3] for `rgb_array`; `human` shows every step by itself."""
        return self.episode.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.episode.close()


class AECFace(AECEnv):
    """A Game as a PettingZoo AEC environment.

    Whoever is acting is asked in seat order, seeing the same state; the step is played when the last one has answered,
    and pays everyone then. Action masks of the others leave no choice.
    """

    def __init__(
        self,
        game: Game | Source,
        name: str,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        mask_in_observation: bool = False,
    ):
        super().__init__()
        self.episode = Face(game, name, render_mode, max_cycles, mask_in_observation)
        self.metadata = self.episode.metadata
        self.render_mode, self.state_space = render_mode, self.episode.state_space
        self.possible_agents = list(self.episode.agents)
        self.agents: list[str] = []
        self.agent_selection = self.possible_agents[0]

    def observation_space(self, agent: str) -> Space:
        return self.episode.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.episode.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        self.episode.begin(seed)
        self.agents = list(self.possible_agents)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._skip_agent_selection = None
        self._next_step()

    def step(self, action: Any) -> None:
        self.episode.check_started()
        if not self.agents:
            raise ResetNeeded(f"the episode of {self.episode.name} is over: call reset() to play another")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self.episode.check(agent, action)
        self._actions[agent] = action
        self._cumulative_rewards[agent] = 0.0
        if self._waiting:
            self._clear_rewards()
            self.agent_selection = self._waiting.pop(0)
            return
        self.episode.play(self._actions)
        self._next_step()
        self._accumulate_rewards()

    def _next_step(self) -> None:
        """Take over what the episode shows, and ask the first who is acting, or the first of all once it is over."""
        episode = self.episode
        self.rewards, self.infos = dict(episode.rewards), episode.infos()
        self.terminations = dict.fromkeys(self.agents, episode.terminated)
        self.truncations = dict.fromkeys(self.agents, episode.truncated)
        self._actions: dict[str, Any] = {}
        self._waiting = list(self.agents) if episode.over else episode.acting()
        self.agent_selection = self._waiting.pop(0)

    def observe(self, agent: str) -> Any:
        self.episode.check_started()
        return self.episode.observation(agent)

    def state(self) -> np.ndarray:
        """All agents' observations, one after the other."""
        return self.episode.global_state()

    def render(self) -> str | np.ndarray | None:
        """Text for `ansi`, a picture [height, width, 3] for `rgb_array`; `human` shows every step by itself."""
        return self.episode.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.episode.close()
