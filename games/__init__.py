"""Games as pure functions on batches of lanes, and their PettingZoo faces."""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from inspect import signature
from pkgutil import iter_modules
from typing import Any

from pettingzoo import AECEnv, ParallelEnv, register

from games.bandit import Bandit
from games.bucket_brigade import BucketBrigade
from games.control import CartPole, MountainCarContinuous, Pendulum
from games.envs import AECFace, ParallelFace
from games.game import Game, Playable
from games.lqr import lqr as lqr_game  # `games.lqr` stays the module
from games.naming import parsed
from games.normal_form import NormalForm, battle_of_the_sexes, blotto, matching_pennies, rock_paper_scissors
from games.openspiel import openspiel as openspiel_game  # `games.openspiel` stays the module
from games.openspiel_stepped import Stepped
from games.pong import Pong
from games.signaling import Signaling
from games.spelling import unknown
from games.t_maze import TMaze
from games.wrappers import WRAPPERS

GAMES: dict[str, Callable[..., Game]] = {
    "bandit": Bandit,
    "battle_of_the_sexes": battle_of_the_sexes,
    "blotto": blotto,
    "bucket_brigade": BucketBrigade,
    "cart_pole": CartPole,
    "lqr": lqr_game,
    "matching_pennies": matching_pennies,
    "mountain_car_continuous": MountainCarContinuous,
    "normal_form": NormalForm,
    "openspiel": openspiel_game,
    "pendulum": Pendulum,
    "pong": Pong,
    "rock_paper_scissors": rock_paper_scissors,
    "signaling": Signaling,
    "t_maze": TMaze,
}
"""Every game by name; a factory's parameters are the game's."""


def factories() -> dict[str, Callable[..., Game | Playable]]:
    """Games, and what is only played in lanes, by name."""
    return {**GAMES, "openspiel_stepped": Stepped}


def make(name: str, **params: Any) -> Game | Playable:
    """The game called `name`, whose parameters may also be written in brackets: "bucket_brigade(scenario=rest_trap)".

    "openspiel:leduc_poker(players=3)" is that game of OpenSpiel, compiled; "openspiel_stepped:chess" one that may be
    too large for that, which is played in lanes on NumPy (`games.lanes.lanes_of`), and slower. Other people's
    PettingZoo environments are played in lanes too (`games.external.external`): "mpe2.simple_tag_v3",
    "classic/connect_four_v3" or just "connect_four", where no game of ours has the name; the prefix "pettingzoo:" says
    that it must be one. So are Gymnasium's, by an agent alone (`games.external.gymnasium.single_agent`):
    "gymnasium:CartPole-v1". Wrappers of games (`games.wrappers.WRAPPERS`) take one first:
    "stacked(flickering(t_maze,p=0.5),frames=4)", which is in quotes where its name has a colon.

    Raises ValueError for unknown names and parameters, and what cannot be made with them.
    """
    try:
        return _made(name, params)
    except (TypeError, OverflowError, MemoryError) as error:
        raise ValueError(f"{name} cannot be made with {params}: {error}") from error


def _made(name: str, params: dict[str, Any]) -> Game | Playable:
    prefix, colon, rest = name.partition(":")
    if colon and prefix in PREFIXES:
        return PREFIXES[prefix](rest, params)
    name, params = _with_written(name, params)
    if name in WRAPPERS:
        params = {"game": None} | params
        inner = params.pop("game")
        _check_known(name, WRAPPERS[name], params)
        if inner is None:
            raise ValueError(f"{name} wraps a game: name it first, as in {name}(t_maze)")
        return WRAPPERS[name](make_game(inner) if isinstance(inner, str) else inner, **params)
    return _ours(name, params) if name in factories() else _theirs(name, params)


def _with_written(name: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The bare name, and parameters together with those in its brackets."""
    name, written = parsed(name)
    twice = sorted(written.keys() & params.keys())
    if twice:
        raise ValueError(f"parameters of {name} must be given once, got {', '.join(twice)} twice")
    return name, written | params


def _check_known(name: str, factory: Callable, params: dict[str, Any]) -> None:
    known = signature(factory).parameters
    for parameter in params:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)


def _ours(name: str, params: dict[str, Any]) -> Game | Playable:
    _check_known(name, factories()[name], params)
    return factories()[name](**params)


def _theirs(name: str, params: dict[str, Any]) -> Game | Playable:
    # Nobody else has to wait for these imports.
    from games.external import external
    from games.external.loading import is_name, short_ids

    prefix, colon, _ = name.partition(":")
    if colon and not prefix:
        raise ValueError(f"a name has something before its colon, as in openspiel:leduc_poker; got {name!r}")
    if colon and "." not in prefix and get_close_matches(prefix, PREFIXES) and find_spec(prefix) is None:
        raise unknown("prefix of names", prefix, PREFIXES)
    if is_name(name):
        return _somebodys_game(name, params) or external(name, **params)
    elsewhere = list(_elsewhere(name))
    if elsewhere:
        raise ValueError(f"unknown game {name!r}; did you mean {' or '.join(map(repr, elsewhere))}?")
    raise unknown("game", name, [*factories(), *WRAPPERS], short_ids())


def _somebodys_game(name: str, params: dict[str, Any]) -> Game | Playable | None:
    """What module:function makes, where that is a game, or something that is played in lanes already."""
    from games.external import external
    from games.external.loading import load

    if ":" not in name or name.startswith("pettingzoo:"):
        return None
    own = signature(external).parameters  # which are not the function's
    made = load(name)({parameter: value for parameter, value in params.items() if parameter not in own})
    if isinstance(made, Game | Playable):
        return made
    getattr(made, "close", lambda: None)()
    return None


def _elsewhere(name: str) -> Iterator[str]:
    """Longer names of what others call just so."""
    from gymnasium import registry

    if name in registry or name in {id_.rpartition("-v")[0] for id_ in registry}:
        yield f"gymnasium:{name}"
    if find_spec("pyspiel"):
        from pyspiel import registered_names

        if name in registered_names():
            yield f"openspiel:{name}"
    package = find_spec(name) if name.isidentifier() else None
    for found in iter_modules(package.submodule_search_locations or () if package else ()):
        if re.search(r"_v\d+$", found.name):  # as PettingZoo names modules of environments
            yield f"{name}.{found.name}"


def _of_openspiel(kind: str, game: str, params: dict[str, Any]) -> Game | Playable:
    if "game" in params or not game:
        raise ValueError(f"name one game of OpenSpiel, as in '{kind}:leduc_poker'; got {game!r} and {params}")
    return _ours(kind, params | {"game": game})


def _of_gymnasium(name: str, params: dict[str, Any]) -> Playable:
    from games.external.gymnasium import single_agent

    name, params = _with_written(name, params)
    return single_agent(name, **params)


def _of_pettingzoo(name: str, params: dict[str, Any]) -> Playable:
    from games.external import external

    name, params = _with_written(name, params)
    return external(f"pettingzoo:{name}", **params)


PREFIXES: dict[str, Callable[[str, dict[str, Any]], Game | Playable]] = {
    "gymnasium": _of_gymnasium,
    "openspiel": partial(_of_openspiel, "openspiel"),
    "openspiel_stepped": partial(_of_openspiel, "openspiel_stepped"),
    "pettingzoo": _of_pettingzoo,
}
"""What names may begin with, before a colon -> what makes the rest of the name, with parameters."""


def make_game(name: str, **params: Any) -> Game:
    """A game of pure functions. Raises ValueError for somebody's environment; else as `make`."""
    game = make(name, **params)
    if not isinstance(game, Game):
        raise ValueError(f"{name} is no game of pure functions, but an environment: make({name!r}) has it in lanes")
    return game


def _faced(name: str | Game | Stepped, params: dict[str, Any]) -> tuple[Game | Stepped, str]:
    """What has no face yet, and the face's name."""
    game = make(name, **params) if isinstance(name, str) else name
    called = name if isinstance(name, str) else type(game).__name__
    if not isinstance(game, Game | Stepped):
        raise ValueError(
            f"{called} is somebody's environment, with an interface of its own: faces are for games, "
            "and make(name) has it in lanes"
        )
    if params and not isinstance(name, str):
        raise ValueError(f"a game that is made takes no parameters, got {', '.join(params)}")
    return game, f"{called}_v0"


def parallel_env(
    name: str | Game | Stepped,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    mask_in_observation: bool = False,
    **params: Any,
) -> ParallelEnv:
    """The game, by its name or itself, as a PettingZoo Parallel environment; raises as `make`.

    Legal actions are `info["action_mask"]`, which the action space's `sample` takes. Where turns alternate, those whose
    turn it is not must wait, by choice 0, which alone their masks allow and which then does nothing; continuous actions
    have no masks, and are ignored then. With `mask_in_observation` observations are dictionaries, of `observation` and
    `action_mask`, as many trainers expect.
    """
    return ParallelFace(*_faced(name, params), render_mode, max_cycles, mask_in_observation)


def env(
    name: str | Game | Stepped,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    mask_in_observation: bool = False,
    **params: Any,
) -> AECEnv:
    """The game, by its name or itself, as a PettingZoo AEC environment; raises as `make`.

    Legal actions are `info["action_mask"]`, and with `mask_in_observation` in observations too, as in `parallel_env`.
    """
    return AECFace(*_faced(name, params), render_mode, max_cycles, mask_in_observation)


def env_id(name: str) -> str:
    """The game's id in PettingZoo's own registry, such as `counterplay/bucket-brigade-v0`."""
    return f"counterplay/{name.replace('_', '-')}-v0"


for _name in GAMES:
    register("parallel", env_id(_name), "games:parallel_env", kwargs={"name": _name})
    register("aec", env_id(_name), "games:env", kwargs={"name": _name})
