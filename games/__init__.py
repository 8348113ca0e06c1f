"""Games as pure functions on batches of lanes, and their PettingZoo faces."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from pettingzoo import AECEnv, ParallelEnv, register

from games.bucket_brigade import BucketBrigade
from games.envs import AECFace, ParallelFace
from games.game import Game
from games.normal_form import NormalForm, battle_of_the_sexes, blotto, matching_pennies, rock_paper_scissors
from games.openspiel import PREFIX
from games.openspiel import openspiel as openspiel_game  # `games.openspiel` stays the module
from games.openspiel_stepped import PREFIX as STEPPED_PREFIX
from games.openspiel_stepped import Stepped
from games.spelling import unknown

GAMES: dict[str, Callable[..., Game]] = {
    "battle_of_the_sexes": battle_of_the_sexes,
    "blotto": blotto,
    "bucket_brigade": BucketBrigade,
    "matching_pennies": matching_pennies,
    "normal_form": NormalForm,
    "openspiel": openspiel_game,
    "rock_paper_scissors": rock_paper_scissors,
}
"""Every game by name; a factory's parameters are the game's."""


def make(name: str, **params: Any) -> Any:
    """The `Game` called `name`; "openspiel:leduc_poker(players=3)" is that game of OpenSpiel, compiled.

    "openspiel_stepped:chess" is a game of OpenSpiel that is too large for that: it is played in lanes all the same
    (`games.lanes.lanes_of`), on NumPy and slower: a `Playable`.

    Raises ValueError for unknown names and parameters.
    """
    if name.startswith((PREFIX, STEPPED_PREFIX)):
        name, _, game = name.partition(":")
        if "game" in params or not game:
            raise ValueError(f"name one game of OpenSpiel, as in '{name}:leduc_poker'; got {game!r} and {params}")
        params |= {"game": game}
    if name not in GAMES and name != "openspiel_stepped":
        raise unknown("game", name, GAMES)
    factory: Callable[..., Any] = GAMES.get(name, Stepped)
    known = signature(factory).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return factory(**params)


def parallel_env(
    name: str, render_mode: str | None = None, max_cycles: int | None = None, **params: Any
) -> ParallelEnv:
    """The game as a PettingZoo Parallel environment; raises as `make`.

    Legal actions are `info["action_mask"]`, which the action space's `sample` takes. Where turns alternate, those whose
    turn it is not must wait, by choice 0, which alone their masks allow and which then does nothing.
    """
    return ParallelFace(make(name, **params), f"{name}_v0", render_mode, max_cycles)


def env(name: str, render_mode: str | None = None, max_cycles: int | None = None, **params: Any) -> AECEnv:
    """The game as a PettingZoo AEC environment; raises as `make`. Legal actions are `info["action_mask"]`."""
    return AECFace(make(name, **params), f"{name}_v0", render_mode, max_cycles)


def env_id(name: str) -> str:
    """The game's id in PettingZoo's own registry, such as `counterplay/bucket-brigade-v0`."""
    return f"counterplay/{name.replace('_', '-')}-v0"


for _name in GAMES:
    register("parallel", env_id(_name), "games:parallel_env", kwargs={"name": _name})
    register("aec", env_id(_name), "games:env", kwargs={"name": _name})
