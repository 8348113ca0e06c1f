"""The games there are: `counterplay games`, and one of them: `counterplay games openspiel:leduc_poker`."""

import argparse
import inspect
import re
from collections.abc import Iterator, Sequence
from textwrap import shorten

from rich.console import RenderableType

from counterplay.screen import Screen, bare_table
from experiments.run import invocation
from games import GAMES, PREFIXES, env_id, factories, make
from games.game import Game, Playable
from games.play import states
from games.policies import Uniform
from games.wrappers import WRAPPERS

OTHERS = (
    f"Names may also begin with {', '.join(f'{prefix}:' for prefix in PREFIXES)} for games of others, by what "
    "these call them: openspiel:leduc_poker, gymnasium:CartPole-v1.",
    "PettingZoo's environments are known by their ids, connect_four_v3, and modules, mpe2.simple_tag_v3.",
    f"Wrappers take a game: {', '.join(WRAPPERS)}, as in stacked(t_maze,frames=4).",
)
"""What there is beside the registered games."""


def main(arguments: Sequence[str] | None = None) -> int:
    """List the games, or show one. Raises ValueError for a name that `games.make` does not know."""
    parser = argparse.ArgumentParser(prog="counterplay games", description="Registered games, or one of them.")
    parser.add_argument("name", nargs="?", help="whatever games.make makes, to see its parameters and spaces")
    parser.add_argument("--seed", type=int, default=0, help="of the start state (default: 0)")
    options = parser.parse_args(arguments)
    screen = Screen()
    if options.name is None:
        rows = [_row(name) for name in GAMES]
        screen.print(bare_table(("game", "players", "actions", "observations", "what it is"), rows))
        for told in OTHERS:
            screen.print(told)
        screen.print(f"{invocation()} games NAME shows a game's parameters, spaces and a start state")
        return 0
    game = make(options.name)
    for part in _described(options.name, game, options.seed):
        screen.print(part)
    return 0


def _row(name: str) -> tuple[str, ...]:
    try:
        game = make(name)
    except ValueError as error:  # what it needs is not installed
        return (name, "", "", "", str(error))
    observed = " ".join(dict.fromkeys(_shape(space.shape) for space in game.observation_spaces))
    return (name, str(len(game.agents)), _spaces(game), observed, _documented(name)[0])


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]} features"


def _spaces(game: Game | Playable) -> str:
    """Every seat's action space, once where they are alike."""
    return ", ".join(dict.fromkeys(str(space) for space in game.action_spaces))


def _documented(name: str) -> list[str]:
    """The documentation of a registered game, without its examples, which come last, and what leads up to them."""
    return re.split(r"[^.]*:\n\n>>>|\n\n>>>", inspect.getdoc(factories()[name]) or "")[0].splitlines()


def _described(name: str, game: Game | Playable, seed: int) -> Iterator[RenderableType]:
    registered, _, variant = name.partition("(")[0].partition(":")
    if registered in factories():
        yield "\n".join(_documented(registered))
        yield ""
        parameters = inspect.signature(factories()[registered]).parameters.values()
        rows = [
            (entry.name, shorten(repr(entry.default), 60), inspect.formatannotation(entry.annotation))
            for entry in parameters
        ]
        yield bare_table(("parameter", "default", "type"), rows)
        yield ""
    spaces = zip(game.agents, game.action_spaces, game.observation_spaces, strict=True)
    yield bare_table(("agent", "actions", "observes"), [(agent, str(acts), str(sees)) for agent, acts, sees in spaces])
    yield ""
    if isinstance(game, Game):
        yield f"a start (seed {seed}):"
        yield start(game, seed)
        yield ""
    made = f'games.make("{name}")'
    if registered in GAMES and "(" not in name:
        chosen = f', game="{variant}"' if variant else ""
        made += f', or pettingzoo.make("parallel", "{env_id(registered)}"{chosen})'
    yield made


def start(game: Game, seed: int) -> str:
    """The text of a starting state."""
    players = [Uniform.of(space) for space in game.action_spaces]
    return game.describe(*next(states(game, players, seed, "start")))
