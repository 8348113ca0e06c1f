"""Means and deviations of what a game shows."""

from typing import NamedTuple

import numpy as np

from games.game import Game
from games.lanes import GameLanes, to_numpy
from games.noise import Purpose
from games.play import MAX_STEPS
from games.policies import Uniform

Numbers = tuple[float, ...]


class Moments(NamedTuple):
    """Of each seat's features, those of pictures in C order."""

    means: tuple[Numbers, ...]
    deviations: tuple[Numbers, ...]


def moments(game: Game, episodes: int = 100, seed: int = 0) -> Moments:
    """Means and standard deviations of what each seat sees when it acts, under uniform play.

    Raises ValueError for no episodes, for one that is still going after `MAX_STEPS` steps, and for a seat that never
    acts.
    """
    lanes = GameLanes(game, episodes)
    lanes.reset(seed, "moments")
    players = [Uniform.of(space) for space in lanes.action_spaces]
    # Of every feature: how often it was seen, the sum, the sum of squares; there is no room for all that is seen.
    sums = [np.zeros((3, int(np.prod(space.shape or ())))) for space in lanes.observation_spaces]
    running = np.ones(episodes, bool)
    for _ in range(MAX_STEPS):
        acting, actions = to_numpy(lanes.acting) & running[:, None], []
        for seat, player in enumerate(players):
            observation, noise = lanes.observe(seat), lanes.noise(Purpose.SEAT + seat, player.noise_size)
            seen = to_numpy(observation)[acting[:, seat]].reshape(-1, sums[seat].shape[1]).astype(np.float64)
            sums[seat] += np.stack([np.ones_like(seen), seen, seen**2]).sum(axis=1)
            actions.append(player.act(observation, lanes.legal(seat), None, noise)[0])
        running &= ~to_numpy(lanes.step(tuple(actions)).done)
        if not running.any():
            return _moments(lanes.agents, sums)
    raise ValueError(f"{running.sum()} episodes did not end within {MAX_STEPS} steps: set a `time_limit`")


def _moments(agents: tuple[str, ...], sums: list[np.ndarray]) -> Moments:
    means, deviations = [], []
    for agent, (count, total, squares) in zip(agents, sums, strict=True):
        if not count.all():
            raise ValueError(f"{agent} never acted, so there is nothing to measure")
        mean = total / count
        variance = squares / count - mean**2
        # What never varies leaves no more than its rounding.
        variance = np.where(variance > 1e-12 * (squares / count), variance, 0.0)
        means.append(tuple(mean.tolist()))
        deviations.append(tuple(np.sqrt(variance).tolist()))
    return Moments(tuple(means), tuple(deviations))
