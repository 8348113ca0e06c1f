"""Scripted policies by name: whom to begin with, and whom to measure others against."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import FAMILIES, POLICIES, policy
from games.game import Game, Playable, Policy
from games.policies import Uniform
from games.pong import Pong
from games.pong.scripted import Follow
from games.signaling import Signaling
from games.signaling.scripted import PROFILES
from games.spelling import unknown
from games.wrappers.wrapped import Wrapped

Profiles = Mapping[str, Callable[[Any], Sequence[Policy]]]
"""Name -> one policy a seat, for a game."""


def _team(name: str, game: BucketBrigade) -> list[Policy]:
    return [policy(name, game) for _ in game.agents]


SCRIPTED: dict[type, Profiles] = {
    BucketBrigade: {name: partial(_team, name) for name in POLICIES if name not in FAMILIES},
    Pong: {"follow": lambda game: [Follow.of(game) for _ in game.agents]},
    Signaling: PROFILES,
}
"""What was written for games of a kind; for any game there is "uniform"."""


def profile(name: str, game: Game | Playable) -> Sequence[Policy]:
    """The scripted policy of every seat; wrapped games have those of the game inside.

    Raises ValueError, with near matches, for a name that the game lacks.

    >>> from games import make
    >>> profile("uniform", make("matching_pennies"))
    [Uniform(choices=(2,), flat=True), Uniform(choices=(2,), flat=True)]
    """
    while isinstance(game, Wrapped):
        game = game.game
    known: Profiles = {"uniform": _uniform, **SCRIPTED.get(type(game), {})}
    if name not in known:
        raise unknown(f"scripted policy of {type(game).__name__}", name, known)
    return known[name](game)


def _uniform(game: Game | Playable) -> list[Policy]:
    return [Uniform.of(space) for space in game.action_spaces]
