"""Games as pure functions on batches of lanes, and their PettingZoo faces."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from pettingzoo import AECEnv, ParallelEnv, register

from games.bandit import Bandit
from games.bucket_brigade import BucketBrigade
from games.envs import AECFace, ParallelFace
from games.game import Game, Playable
from games.lqr import lqr as lqr_game  # `games.lqr` stays the module
from games.naming import parsed
from games.normal_form import NormalForm, battle_of_the_sexes, blotto, matching_pennies, rock_paper_scissors
from games.openspiel import PREFIX
from games.openspiel import openspiel as openspiel_game  # `games.openspiel` stays the module
from games.openspiel_stepped import PREFIX as STEPPED_PREFIX
from games.openspiel_stepped import Stepped
from games.pong import Pong
from games.signaling import Signaling
from games.spelling import unknown
from games.t_maze import TMaze

GAMES: dict[str, Callable[..., Game]] = {
    "bandit": Bandit,
    "battle_of_the_sexes": battle_of_the_sexes,
    "blotto": blotto,
    "bucket_brigade": BucketBrigade,
    "lqr": lqr_game,
    "matching_pennies": matching_pennies,
    "normal_form": NormalForm,
    "openspiel": openspiel_game,
    "pong": Pong,
    "rock_paper_scissors": rock_paper_scissors,
    "signaling": Signaling,
    "t_maze": TMaze,
}
"""Every game by name; a factory's parameters are the game's."""


FACTORIES: dict[str, Callable[..., Game | Playable]] = {**GAMES, "openspiel_stepped": Stepped}
"""Games, and what is only played in lanes."""


def make(name: str, **params: Any) -> Game | Playable:
    """The game called `name`, whose parameters may also be written in brackets: "bucket_brigade(scenario=rest_trap)".

    "openspiel:leduc_poker(players=3)" is that game of OpenSpiel, compiled; "openspiel_stepped:chess" one that may be
    too large for that, which is played in lanes on NumPy (`games.lanes.lanes_of`), and slower. Other people's
    PettingZoo environments are played in lanes too (`games.external.external`): "mpe2.simple_tag_v3",
    "classic/connect_four_v3" or just "connect_four", where no game of ours has the name; the prefix "pettingzoo:" says
    that it must be one. So are Gymnasium's, by an agent alone (`games.external.gymnasium.single_agent`):
    "gymnasium:CartPole-v1".

    Raises ValueError for unknown names and parameters.
    """
    if name.startswith((PREFIX, STEPPED_PREFIX)):
        name, _, game = name.partition(":")
        if "game" in params or not game:
            raise ValueError(f"name one game of OpenSpiel, as in '{name}:leduc_poker'; got {game!r} and {params}")
        params |= {"game": game}
    else:
        name, written = parsed(name)
        twice = sorted(written.keys() & params.keys())
        if twice:
            raise ValueError(f"parameters of {name} must be given once, got {', '.join(twice)} twice")
        params = written | params
    if name.startswith("gymnasium:"):
        from games.external.gymnasium import single_agent

        return single_agent(name, **params)
    if name not in FACTORIES:
        from games.external import external  # which nobody else has to wait for
        from games.external.loading import is_name, short_ids

        if is_name(name):
            return external(name, **params)
        raise unknown("game", name, GAMES, short_ids())
    known = signature(FACTORIES[name]).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return FACTORIES[name](**params)


def make_game(name: str, **params: Any) -> Game:
    """A game of pure functions. Raises ValueError for somebody's environment; else as `make`."""
    game = make(name, **params)
    if not isinstance(game, Game):
        raise ValueError(f"{name} is no game of pure functions, but an environment: make({name!r}) has it in lanes")
    return game


def _faced(name: str, **params: Any) -> Game | Stepped:
    """What has no face yet."""
    game = make(name, **params)
    if not isinstance(game, Game | Stepped):
        raise ValueError(f"{name} is a PettingZoo environment already, which make({name!r}) has in lanes")
    return game


def parallel_env(
    name: str,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    mask_in_observation: bool = False,
    **params: Any,
) -> ParallelEnv:
    """The game as a PettingZoo Parallel environment; raises as `make`.

    Legal actions are `info["action_mask"]`, which the action space's `sample` takes. Where turns alternate, those whose
    turn it is not must wait, by choice 0, which alone their masks allow and which then does nothing; continuous actions
    have no masks, and are ignored then. With `mask_in_observation` observations are dictionaries, of `observation` and
    `action_mask`, as many trainers expect.
    """
    return ParallelFace(_faced(name, **params), f"{name}_v0", render_mode, max_cycles, mask_in_observation)


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
    return AECFace(_faced(name, **params), f"{name}_v0", render_mode, max_cycles, mask_in_observation)


def env_id(name: str) -> str:
    """The game's id in PettingZoo's own registry, such as `counterplay/bucket-brigade-v0`."""
    return f"counterplay/{name.replace('_', '-')}-v0"


for _name in GAMES:
    register("parallel", env_id(_name), "games:parallel_env", kwargs={"name": _name})
    register("aec", env_id(_name), "games:env", kwargs={"name": _name})
