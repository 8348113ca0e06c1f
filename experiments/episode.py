"""One episode of any game, to be looked at: as lines of text, and as pictures where there are any."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.style import Style
from rich.text import Text

from experiments import nights
from games.bucket_brigade import BucketBrigade
from games.external import External
from games.game import Game, Pictured, Playable, Policy
from games.lanes import GameLanes, closing, to_numpy
from games.openspiel_stepped import Stepped as OfOpenSpiel
from games.play import Step, watch
from games.stepping import Board, Keeping, SteppedLanes
from games.stepping import Episode as Stepped
from games.wrappers.wrapped import Wrapped

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
    inner, inside = game, states
    while isinstance(inner, Wrapped):
        inner, inside = inner.game, [state.inner for state in inside]
    if isinstance(inner, BucketBrigade):
        lines = list(nights.table(inner, inside))
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
    watched = None
    if isinstance(game, External | OfOpenSpiel):
        watched = _Watched(_showing(game), _picture) if pictured else _Watched(game, _text)
    heads, rewards = [_headline(0, "")], []
    with closing(SteppedLanes(watched, 1) if watched else game.lanes(1)) as lanes:
        for number, step in enumerate(watch(lanes, profile, seed, unit)):
            if step is not None:
                rewards.append(step.outcome.rewards[0])
                heads.append(_headline(number, f"{_done(game.agents, step)}   {_paid(game.agents, rewards[-1])}"))
    shown = watched.shown[: len(heads)] if watched else []  # the next episode has begun
    if pictured:
        return Episode(heads, np.array(rewards), [partial(np.copy, picture) for picture in shown])
    boards = [[Text(text)] if text else [] for text in shown] or [[] for _ in heads]
    lines = [line for head, board in zip(heads, boards, strict=True) for line in (head, *board)]
    return Episode(lines, np.array(rewards), [])


def _showing(game: Playable) -> External:
    assert isinstance(game, External), "`check_pictured` comes first"
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
    """A source of episodes that keeps how the last one it made looked. Implements `games.stepping.Source`."""

    def __init__(self, source: External | OfOpenSpiel, look: Callable[[Any], Any]):
        self.source, self.look = source, look
        self.shown: list[Any] = []
        self.agents, self.masked = source.agents, source.masked
        self.observation_spaces, self.action_spaces = source.observation_spaces, source.action_spaces

    def episode(self) -> Stepped:
        return _Shown(self.source.episode(), self.look, self.shown)


class _Shown:
    """An episode whose every moment is looked at. Implements `games.stepping.Episode`."""

    def __init__(self, inner: Any, look: Callable[[Any], Any], shown: list[Any]):
        self.inner, self.look, self.shown = inner, look, shown

    def begin(self, seed: int, row: Board) -> None:
        self.inner.begin(seed, row)
        self.shown.append(self.look(self.inner))

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        self.inner.play(actions, row)
        self.shown.append(self.look(self.inner))

    def close(self) -> None:
        self.inner.close()


def _text(episode: Any) -> str:
    """The state, where that can be looked at."""
    return str(episode.state()) if isinstance(episode, Keeping) else ""


def _picture(episode: Any) -> np.ndarray:
    picture = episode.env.render()
    if picture is None:
        raise ValueError(f"{episode.env} gave no picture: use --render ansi")
    return np.asarray(picture)
