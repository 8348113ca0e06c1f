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


def make(name: str, **params: Any) -> Game:
    """The game called `name`; "openspiel:leduc_poker(players=3)" is that game of OpenSpiel.

    Raises ValueError for unknown names and parameters.
    """
    if name.startswith(PREFIX):
        if "game" in params or name == PREFIX:
            raise ValueError(f"name one game of OpenSpiel, as in 'openspiel:leduc_poker'; got {name!r} and {params}")
        name, params = "openspiel", params | {"game": name.removeprefix(PREFIX)}
    if name not in GAMES:
        raise unknown("game", name, GAMES)
    known = signature(GAMES[name]).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return GAMES[name](**params)


def parallel_env(
    name: str,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    mask_in_observation: bool = False,
    **params: Any,
) -> ParallelEnv:
    """The game as a PettingZoo Parallel environment; raises as `make`.

    Legal actions are `info["action_mask"]`, which the action space's `sample` takes. Where turns alternate, those whose
    turn it is not must wait, by choice 0, which alone their masks allow and which then does nothing. With
    `mask_in_observation` observations are dictionaries, of `observation` and `action_mask`, as many trainers expect.
    """
    return ParallelFace(make(name, **params), f"{name}_v0", render_mode, max_cycles, mask_in_observation)


def env(
    name: str,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    mask_in_observation: bool = False,
    **params: Any,
) -> AECEnv:
    """The game as a PettingZoo AEC environment; raises as `make`.

    Legal actions are `info["action_mask"]`, and with `mask_in_observation` in observations too, as in `parallel_env`.
    """
    return AECFace(make(name, **params), f"{name}_v0", render_mode, max_cycles, mask_in_observation)


def env_id(name: str) -> str:
    """The game's id in PettingZoo's own registry, such as `counterplay/bucket-brigade-v0`."""
    return f"counterplay/{name.replace('_', '-')}-v0"


for _name in GAMES:
    register("parallel", env_id(_name), "games:parallel_env", kwargs={"name": _name})
    register("aec", env_id(_name), "games:env", kwargs={"name": _name})
