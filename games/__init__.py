"""Games as pure functions on batches of lanes, and their PettingZoo faces."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from games.bucket_brigade import BucketBrigade
from games.game import Game
from games.normal_form import NormalForm, matching_pennies, rock_paper_scissors
from games.spelling import unknown

GAMES: dict[str, Callable[..., Game]] = {
    "bucket_brigade": BucketBrigade,
    "matching_pennies": matching_pennies,
    "normal_form": NormalForm,
    "rock_paper_scissors": rock_paper_scissors,
}
"""Every game by name; a factory's parameters are the game's."""


def make(name: str, **params: Any) -> Game:
    """The game called `name`. Raises ValueError for unknown names and parameters."""
    if name not in GAMES:
        raise unknown("game", name, GAMES)
    known = signature(GAMES[name]).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return GAMES[name](**params)
