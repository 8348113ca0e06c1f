"""Environments that own their state, as the PettingZoo faces see games."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.board import Board
from games.game import Legal
from games.stepping import Keeping, Source


class OneEpisode:
    """A source's environment, with the functions of a `games.game.Game`, for a single lane.

    Its state is the environment itself: `step` changes it, so there is one episode at a time. Uniforms give the seeds
    of episodes. Raises ValueError for an environment whose seats end at different times.

    >>> from games.envs import ParallelFace
    >>> from games.openspiel_stepped import Stepped
    >>> env = ParallelFace(Stepped("kuhn_poker"), "kuhn_v0", render_mode="ansi")
    >>> observations, infos = env.reset(seed=0)
    >>> infos["player_0"]["action_mask"], infos["player_1"]["action_mask"]
    (array([1, 1], dtype=int8), array([1, 0], dtype=int8))
    >>> print(env.render())
    1 0
    rewards: player_0 +0, player_1 +0
    """

    noise_sizes = (2, 0)

    def __init__(self, source: Source):
        self.source, self.agents = source, source.agents
        self.episode, self.board = source.episode(), Board.of(source, 1)

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return self.source.observation_spaces

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        return self.source.action_spaces

    def params(self, **overrides: Any) -> None:
        return None

    def init(self, params: None, noise: np.ndarray) -> Board:
        for part in (self.board.rewards, self.board.terminated, self.board.truncated, self.board.done):
            part[:] = 0
        high, low = (noise[0].astype(np.float64) * 2**15).astype(int).tolist()
        self.episode.begin(high * 2**15 + low, self.board.row(0))
        return self.board

    def step(self, params: None, state: Board, actions: tuple[np.ndarray, ...], noise: np.ndarray) -> Board:
        state.rewards[:] = 0
        chosen = [int(action[0]) if action.ndim == 1 else action[0] for action in actions]
        self.episode.play(chosen, state.row(0))
        for ends in (state.terminated[0], state.truncated[0]):
            if ends.any() != ends.all():
                some = ", ".join(agent for agent, end in zip(self.agents, ends, strict=True) if end)
                raise ValueError(f"all agents must end at once here, and alike, but of {self.source} {some} did alone")
        return state

    def observe(self, params: None, state: Board, seat: int) -> np.ndarray:
        return state.observations[seat].copy()

    def legal(self, params: None, state: Board, seat: int) -> Legal:
        masks = state.legal[seat]
        return None if masks is None else tuple(mask & state.acting[:, seat, None] for mask in masks)

    def acting(self, params: None, state: Board) -> np.ndarray:
        return state.acting & ~state.done[:, None]

    def rewards(self, params: None, state: Board) -> np.ndarray:
        return state.rewards.copy()

    def terminated(self, params: None, state: Board) -> np.ndarray:
        return state.done & state.terminated[:, 0]

    def truncated(self, params: None, state: Board) -> np.ndarray:
        return state.done & state.truncated[:, 0]

    def describe(self, params: None, state: Board, lane: int = 0) -> str:
        rewards = ", ".join(f"{agent} {pay:+g}" for agent, pay in zip(self.agents, state.rewards[0], strict=True))
        shown = str(self.episode.state()) if isinstance(self.episode, Keeping) else repr(self.source)
        return f"{shown}\nrewards: {rewards}"
