"""Scripted policies of signalling games, and what is said in play."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from games.channel import Channel
from games.game import Array, Legal, Policy
from games.lanes import GameLanes, put_like, to_numpy
from games.noise import Purpose
from games.policies import draw
from games.signaling.exact import babble, signalling_system
from games.signaling.rules import Signaling


@dataclass(frozen=True)
class Speaker:
    """Plays a speaker's strategy [states, messages] of the referent alone."""

    strategy: tuple[tuple[float, ...], ...]
    channel: Channel
    noise_size = 1

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        number = draw(self.joint(observation, legal), noise[:, 0])
        return (number if self.channel.length == 1 else put_like(self.channel.messages, number)[number]), None

    def joint(self, observation: Array, legal: Legal) -> Array:
        """[B, messages] float64."""
        xp, table = array_namespace(observation), put_like(np.array(self.strategy), observation)
        return table[xp.argmax(observation[:, : len(self.strategy)], axis=1)]


@dataclass(frozen=True)
class Listener:
    """Plays a listener's strategy [hearings, actions] of what it heard last."""

    strategy: tuple[tuple[float, ...], ...]
    channel: Channel
    noise_size = 1

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        return draw(self.joint(observation, legal), noise[:, 0]), None

    def joint(self, observation: Array, legal: Legal) -> Array:
        """[B, actions] float64."""
        xp, sounds = array_namespace(observation), self.channel.sounds
        number = xp.zeros_like(observation[:, 0], dtype=xp.int64)
        for place in range(self.channel.length):
            symbol = observation[:, place * sounds : (place + 1) * sounds]
            code = xp.where(xp.any(symbol > 0, axis=1), xp.argmax(symbol, axis=1) + 1, xp.zeros_like(number))
            number = number * (sounds + 1) + code
        return put_like(np.array(self.strategy), observation)[number]


def policies(game: Signaling, speaker: ArrayLike, listener: ArrayLike) -> list[Policy]:
    """A policy for every seat, of a speaker's strategy and one for all listeners (`games.signaling.exact`)."""
    says, guesses = (tuple(map(tuple, np.asarray(table, np.float64).tolist())) for table in (speaker, listener))
    return [Speaker(says, game.medium), *(Listener(guesses, game.medium) for _ in range(game.listeners))]


PROFILES: dict[str, Callable[[Signaling], Sequence[Policy]]] = {
    "babbling": lambda game: policies(game, *babble(game)),
    "signalling_system": lambda game: policies(game, *signalling_system(game)),
}
"""One policy a seat, by name; see `games.scripted.profile`."""


def said(game: Signaling, speaker: Policy, episodes: int, seed: int) -> np.ndarray:
    """[states, messages] counts of what a speaker says of which referent, in the first rounds of so many episodes."""
    lanes = GameLanes(game, episodes)
    lanes.reset(seed, "said")
    noise = lanes.noise(Purpose.SEAT, speaker.noise_size)
    message, _ = speaker.act(lanes.observe(0), None, speaker.start(episodes), noise)
    symbols = to_numpy(message).reshape(episodes, game.length).T
    counts = np.zeros((game.states, len(game.medium.messages)), np.int64)
    np.add.at(counts, (lanes.ended.referent, np.ravel_multi_index(tuple(symbols), game.medium.factors)), 1)
    return counts
