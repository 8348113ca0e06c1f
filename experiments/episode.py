"""One episode of any game, to be looked at: as lines of text, and as pictures where there are any."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.style import Style
from rich.text import Text

from experiments import nights
from games.board import Board
from games.bucket_brigade import BucketBrigade
from games.external import External
from games.game import Game, Pictured, Playable, Policy
from games.lanes import GameLanes, closing, to_numpy
from games.play import Step, watch
from games.stepping import Episode as Stepped
from games.stepping import SteppedLanes

Picture = Callable[[], np.ndarray]


class Episode(NamedTuple):
    """From the start to the end: T steps, T + 1 moments."""

    lines: list[Text]
    rewards: np.ndarray  # [T, N]
    pictures: list[Picture]  # one a moment, or none at all


def check_pictured(game: Game | Playable, name: str) -> None:
    """Raises ValueError for a game of which there are no pictures."""
    if isinstance(game, External):
        env = game.make()
        modes = env.metadata.get("render_modes", [])
        env.close()
        if "rgb_array" not in modes:
            raise ValueError(f"{name} has no pictures (its render modes are {', '.join(modes)}): use --render ansi")
    elif not isinstance(game, Pictured):
        raise ValueError(f"{name} has no pictures: use --render ansi")


def episode(game: Game | Playable, profile: Sequence[Policy], seed: int, unit: str, pictured: bool) -> Episode:
    """Play the one that `games.play.play` plays first of this seed and unit."""
    return (
        _of_game(game, profile, seed, unit)
        if isinstance(game, Game)
        else _of_lanes(game, profile, seed, unit, pictured)
    )


def _of_game(game: Game, profile: Sequence[Policy], seed: int, unit: str) -> Episode:
    lanes = GameLanes(game, 1)
    states, rewards = [], []
    for step in watch(lanes, profile, seed, unit):
        states.append(lanes.ended)
        rewards += [] if step is None else [to_numpy(step.outcome.rewards)[0]]
    if isinstance(game, BucketBrigade):
        lines = list(nights.table(game, states))
    else:
        lines = list(_described(game, lanes.params, states, rewards))
    pictures: list[Picture] = []
    if isinstance(game, Pictured):
        pictures = [partial(game.frame, lanes.params, state) for state in states]
    return Episode(lines, np.array(rewards), pictures)


def _described(game: Game, params: Any, states: list[Any], rewards: list[np.ndarray]) -> Iterator[Text]:
    for number, state in enumerate(states):
        paid = _paid(game.agents, rewards[number - 1]) if number else ""
        told = game.describe(params, state)
        several = "\n" in told
        yield _headline(number, paid if several else f"{told}   {paid}")
        if several:
            yield Text(told)


def _of_lanes(game: Playable, profile: Sequence[Policy], seed: int, unit: str, pictured: bool) -> Episode:
    watched = _Watched(_showing(game) if pictured else game, pictured) if isinstance(game, External) else None
    lines, rewards = [_headline(0, "")], []
    with closing(SteppedLanes(watched, 1) if watched else game.lanes(1)) as lanes:
        for number, step in enumerate(watch(lanes, profile, seed, unit)):
            if step is not None:
                rewards.append(step.outcome.rewards[0])
                lines.append(_headline(number, f"{_done(game.agents, step)}   {_paid(game.agents, rewards[-1])}"))
    pictures = watched.pictures[: len(lines)] if watched else []  # the next episode has begun
    return Episode(lines, np.array(rewards), [partial(np.copy, picture) for picture in pictures])


def _showing(game: External) -> External:
    if not isinstance(game.source, str) and not callable(game.source):
        return game  # an environment that is made shows what it was made to show
    return replace(game, params={**game.params, "render_mode": "rgb_array"})


def _headline(number: int, what: str) -> Text:
    return Text(f"{number:>5}  {what}".rstrip(), Style(bold=True))


def _done(agents: Sequence[str], step: Step) -> str:
    """What those did who acted."""
    did = (
        f"{agent} {' '.join(f'{a:g}' for a in np.atleast_1d(to_numpy(action)[0]))}"
        for agent, action, acts in zip(agents, step.actions, to_numpy(step.acting)[0], strict=True)
        if acts
    )
    return ", ".join(did)


def _paid(agents: Sequence[str], rewards: np.ndarray) -> str:
    """What they earned who earned something."""
    return ", ".join(f"{agent} {r:+.4g}" for agent, r in zip(agents, rewards, strict=True) if r)


class _Watched:
    """A source of episodes that takes pictures of the last one it made. Implements `games.stepping.Source`."""

    def __init__(self, source: External, pictured: bool):
        self.source, self.pictured = source, pictured
        self.pictures: list[np.ndarray] = []
        self.agents, self.masked = source.agents, source.masked
        self.observation_spaces, self.action_spaces = source.observation_spaces, source.action_spaces

    def episode(self) -> Stepped:
        return _Pictured(self.source.episode(), self.pictures) if self.pictured else self.source.episode()


class _Pictured:
    """An episode whose every moment is kept as a picture. Implements `games.stepping.Episode`."""

    def __init__(self, inner: Any, pictures: list[np.ndarray]):
        self.inner, self.pictures = inner, pictures

    def begin(self, seed: int, row: Board) -> None:
        self.inner.begin(seed, row)
        self._keep()

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        self.inner.play(actions, row)
        self._keep()

    def close(self) -> None:
        self.inner.close()

    def _keep(self) -> None:
        picture = self.inner.env.render()
        if picture is None:
            raise ValueError(f"{self.inner.env} gave no picture: use --render ansi")
        self.pictures.append(np.asarray(picture))
