"""Check an environment, or a game, from the command line: `python -m games.conformance module:function`."""

import sys
from functools import partial
from typing import Annotated

import tyro

import games
from games import PREFIXES
from games.conformance.kernels import Batch
from games.conformance.lanes import LanesCase
from games.conformance.rules import FAULTS, Broken, Verdict
from games.conformance.runs import Case, load
from games.conformance.suite import GAME_RULES, LANES, RULES, game_verdicts, lanes_verdicts, verdicts
from games.game import Game, Playable


def main(
    made_by: Annotated[str, tyro.conf.Positional],
    episodes: int = 5,
    seed: int = 0,
    max_steps: int = 500,
    skip: tuple[str, ...] = (),
    render_modes: tuple[str, ...] = (),
) -> int:
    """Ask every rule and print a table; the exit code is 1 where one is broken, 2 for invalid arguments.

    Args:
        made_by: A name that games.make knows, such as pong or connect_four, or an import path module:function of what
            makes a fresh environment (AEC or Parallel), a game of ours, or anything else that is played in lanes.
        episodes: Episodes to play; a game's kernel plays a few steps of a few lanes instead, lanes max_steps steps.
        seed: Seed of the first episode.
        max_steps: Steps after which an episode is left unfinished.
        skip: Rules not to ask.
        render_modes: Render modes to try; the function is then called with render_mode.
    """
    try:
        # A name has no colon, or one behind a known prefix; anything else is an import path.
        named = ":" not in made_by or made_by.partition(":")[0] in PREFIXES
        make = partial(games.make, made_by) if named else load(made_by)
        made = make()
        if isinstance(made, Game):
            found = list(game_verdicts(Batch(made, seed=seed), skip))
            rules, played = GAME_RULES, ""
        elif isinstance(made, Playable):
            lanes = LanesCase(made, steps=max_steps, seed=seed)
            found = list(lanes_verdicts(lanes, skip))
            rules, played = LANES, f" in {lanes.episodes} episodes of {lanes.lanes} lanes in {max_steps} steps"
        else:
            case = Case(make, episodes, seed, max_steps, render_modes)
            found = list(verdicts(case, skip))
            rules, played = RULES, f" in {episodes} episodes of {case.steps} steps in all"
    except FAULTS as error:
        told = str(error) if isinstance(error, ValueError | TypeError | Broken) else f"{made_by} raised {error!r}"
        print(f"error: {told}", file=sys.stderr)
        return 2
    print_table(rules, {verdict.rule: verdict for verdict in found}, played)
    return int(any(verdict.broken for verdict in found))


def print_table(rules: dict[str, str], found: dict[str, Verdict], played: str) -> None:
    """One line a rule, then what broke."""
    passed = 0
    for name, says in rules.items():
        verdict = found.get(name, Verdict(name, unchecked="cannot be played"))
        state = "BROKEN" if verdict.broken else "-" if verdict.unchecked else "passed"
        passed += state == "passed"
        print(f"{name:18} {state:7} {says}{f' [{verdict.unchecked}]' if verdict.unchecked else ''}")
    broken = [verdict.broken for verdict in found.values() if verdict.broken]
    for error in broken:
        print(f"\n{error}")
    print(f"\n{passed} rules passed, {len(broken)} broken{played}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main, prog="python -m games.conformance"))
