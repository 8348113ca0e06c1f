"""Games as pure functions on batches of lanes, and their PettingZoo faces."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from pettingzoo import AECEnv, ParallelEnv, register

from games.bucket_brigade import BucketBrigade
from games.envs import AECFace, ParallelFace
from games.game import Game, Playable
from games.naming import parsed
from games.normal_form import NormalForm, battle_of_the_sexes, blotto, matching_pennies, rock_paper_scissors
from games.openspiel import PREFIX
from games.openspiel import openspiel as openspiel_game  # `games.openspiel` stays the module
from games.pong import Pong
from games.signaling import Signaling
from games.spelling import unknown

GAMES: dict[str, Callable[..., Game]] = {
    "battle_of_the_sexes": battle_of_the_sexes,
    "blotto": blotto,
    "bucket_brigade": BucketBrigade,
    "matching_pennies": matching_pennies,
    "normal_form": NormalForm,
    "openspiel": openspiel_game,
    "pong": Pong,
    "rock_paper_scissors": rock_paper_scissors,
    "signaling": Signaling,
}
"""Every game by name; a factory's parameters are the game's."""


def make(name: str, **params: Any) -> Game | Playable:
    """The game called `name`, whose parameters may also be written in brackets: "bucket_brigade(scenario=rest_trap)".

    "openspiel:leduc_poker(players=3)" is that game of OpenSpiel. Other people's PettingZoo environments are played in
    lanes (`games.external.external`): "mpe2.simple_tag_v3", "classic/connect_four_v3" or just "connect_four", where no
    game of ours has the name; the prefix "pettingzoo:" says that it must be one.

    Raises ValueError for unknown names and parameters.
    """
    if name.startswith(PREFIX):
        if "game" in params or name == PREFIX:
            raise ValueError(f"name one game of OpenSpiel, as in 'openspiel:leduc_poker'; got {name!r} and {params}")
        name, params = "openspiel", params | {"game": name.removeprefix(PREFIX)}
    name, written = parsed(name)
    twice = sorted(written.keys() & params.keys())
    if twice:
        raise ValueError(f"parameters of {name} must be given once, got {', '.join(twice)} twice")
    params = written | params
    if name not in GAMES:
        from games.external import external  # which nobody else has to wait for
        from games.external.loading import is_name, short_ids

        if is_name(name):
            return external(name, **params)
        raise unknown("game", name, GAMES, short_ids())
    known = signature(GAMES[name]).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return GAMES[name](**params)


def make_game(name: str, **params: Any) -> Game:
    """A game of pure functions. Raises ValueError for somebody's environment; else as `make`."""
    game = make(name, **params)
    if not isinstance(game, Game):
        raise ValueError(f"{name} is no game of pure functions, but an environment: make({name!r}) has it in lanes")
    return game


def parallel_env(
    name: str, render_mode: str | None = None, max_cycles: int | None = None, **params: Any
) -> ParallelEnv:
    """The game as a PettingZoo Parallel environment; raises as `make`.

    Legal actions are `info["action_mask"]`, which the action space's `sample` takes. Where turns alternate, those whose
    turn it is not must wait, by choice 0, which alone their masks allow and which then does nothing.
    """
    return ParallelFace(make_game(name, **params), f"{name}_v0", render_mode, max_cycles)


def env(name: str, render_mode: str | None = None, max_cycles: int | None = None, **params: Any) -> AECEnv:
    """The game as a PettingZoo AEC environment; raises as `make`. Legal actions are `info["action_mask"]`."""
    return AECFace(make_game(name, **params), f"{name}_v0", render_mode, max_cycles)


def env_id(name: str) -> str:
    """The game's id in PettingZoo's own registry, such as `counterplay/bucket-brigade-v0`."""
    return f"counterplay/{name.replace('_', '-')}-v0"


for _name in GAMES:
    register("parallel", env_id(_name), "games:parallel_env", kwargs={"name": _name})
    register("aec", env_id(_name), "games:env", kwargs={"name": _name})
