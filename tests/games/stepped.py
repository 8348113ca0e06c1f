"""A game of ours in environments that are stepped one by one, as other people's are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.board import Board
from games.game import Game
from games.stepping import SteppedLanes


@dataclass(frozen=True)
class Stepped:
    """Implements `games.game.Playable` and `games.stepping.Source`."""

    game: Game

    @property
    def agents(self) -> tuple[str, ...]:
        return self.game.agents

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return self.game.observation_spaces

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        return self.game.action_spaces

    @property
    def masked(self) -> tuple[bool, ...]:
        state = self.game.init(self.game.params(), np.zeros((1, self.game.noise_sizes[0]), np.float32))
        seats = range(len(self.agents))
        return tuple(self.game.legal(self.game.params(), state, seat) is not None for seat in seats)

    def lanes(self, num_lanes: int) -> SteppedLanes:
        return SteppedLanes(self, num_lanes)

    def episode(self) -> "Episode":
        return Episode(self.game)


class Episode:
    """Implements `games.stepping.Episode`; counts those that are open."""

    opened = 0

    def __init__(self, game: Game):
        self.game, self.params = game, game.params()
        Episode.opened += 1

    def begin(self, seed: int, row: Board) -> None:
        self.generator = np.random.default_rng(seed)
        self.state: Any = self.game.init(self.params, self.noise(self.game.noise_sizes[0]))
        self.look(row)
        row.alive[:] = True

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        game, params = self.game, self.params
        chosen = tuple(np.asarray(action)[None] for action in actions)
        self.state = game.step(params, self.state, chosen, self.noise(game.noise_sizes[1]))
        row.rewards[:] = game.rewards(params, self.state)[0]
        row.terminated[:], row.truncated[:] = game.terminated(params, self.state), game.truncated(params, self.state)
        row.done[:] = row.terminated[0] | row.truncated[0]
        self.look(row)

    def look(self, row: Board) -> None:
        row.acting[:] = self.game.acting(self.params, self.state)[0]
        for seat in range(len(self.game.agents)):
            row.observations[seat][:] = self.game.observe(self.params, self.state, seat)[0]
            for mask, legal in zip(
                row.legal[seat] or (), self.game.legal(self.params, self.state, seat) or (), strict=True
            ):
                mask[:] = legal[0]

    def noise(self, columns: int) -> np.ndarray:
        return self.generator.random((1, columns), np.float32)

    def close(self) -> None:
        Episode.opened -= 1
