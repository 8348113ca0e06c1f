"""The games there are: `counterplay games`, and one of them: `counterplay games openspiel:leduc_poker`."""

import argparse
import inspect
import re
from collections.abc import Iterator, Sequence
from textwrap import shorten

from rich.console import RenderableType

from counterplay.screen import Screen, bare_table
from experiments.run import invocation
from games import GAMES, env_id, make_game
from games.game import Game
from games.play import states
from games.policies import Uniform


def main(arguments: Sequence[str] | None = None) -> int:
    """List the games, or show one. Raises ValueError for a game that is not registered."""
    parser = argparse.ArgumentParser(prog="counterplay games", description="Registered games, or one of them.")
    parser.add_argument("name", nargs="?", help="a game, to see its parameters and a start state")
    parser.add_argument("--seed", type=int, default=0, help="of the start state (default: 0)")
    options = parser.parse_args(arguments)
    screen = Screen()
    if options.name is None:
        rows = [_row(name) for name in GAMES]
        screen.print(bare_table(("game", "players", "actions", "observations", "what it is"), rows))
        screen.print(f"{invocation()} games NAME shows a game's parameters, spaces and a start state")
        return 0
    game = make_game(options.name)
    for part in _described(options.name, game, options.seed):
        screen.print(part)
    return 0


def _row(name: str) -> tuple[str, ...]:
    try:
        game = make_game(name)
    except ValueError as error:  # what it needs is not installed
        return (name, "", "", "", str(error))
    observed = " ".join(dict.fromkeys(str(space.shape[0]) for space in game.observation_spaces))
    return (name, str(len(game.agents)), _spaces(game), f"{observed} features", _documented(name)[0])


def _spaces(game: Game) -> str:
    """Every seat's action space, once where they are alike."""
    return ", ".join(dict.fromkeys(str(space) for space in game.action_spaces))


def _documented(name: str) -> list[str]:
    """The documentation of a registered game, without its examples, which come last, and what leads up to them."""
    return re.split(r"[^.]*:\n\n>>>|\n\n>>>", inspect.getdoc(GAMES[name]) or "")[0].splitlines()


def _described(name: str, game: Game, seed: int) -> Iterator[RenderableType]:
    registered, _, variant = name.partition(":")
    yield "\n".join(_documented(registered))
    yield ""
    parameters = inspect.signature(GAMES[registered]).parameters.values()
    rows = [
        (entry.name, shorten(repr(entry.default), 60), inspect.formatannotation(entry.annotation))
        for entry in parameters
    ]
    yield bare_table(("parameter", "default", "type"), rows)
    yield ""
    spaces = zip(game.agents, game.action_spaces, game.observation_spaces, strict=True)
    yield bare_table(("agent", "actions", "observes"), [(agent, str(acts), str(sees)) for agent, acts, sees in spaces])
    yield ""
    yield f"a start (seed {seed}):"
    yield start(game, seed)
    yield ""
    chosen = f', game="{variant}"' if variant else ""
    yield f'games.make("{name}"), or pettingzoo.make("parallel", "{env_id(registered)}"{chosen})'


def start(game: Game, seed: int) -> str:
    """The text of a starting state."""
    players = [Uniform.of(space) for space in game.action_spaces]
    return game.describe(*next(states(game, players, seed, "start")))
