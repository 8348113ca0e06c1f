"""Check an environment, or a game, from the command line: `python -m games.conformance module:function`."""

import sys
from collections.abc import Callable
from typing import Annotated

import tyro

from games.conformance.rules import ConformanceError, Report
from games.conformance.runs import load
from games.conformance.suite import GAME_RULES, RULES, check, check_game
from games.game import Game


def main(
    made_by: Annotated[str, tyro.conf.Positional],
    episodes: int = 5,
    seed: int = 0,
    max_steps: int = 500,
    skip: tuple[str, ...] = (),
    render_modes: tuple[str, ...] = (),
) -> int:
    """Ask every rule and print a table; the exit code is 1 where one is broken, 2 for arguments that cannot be.

    Args:
        made_by: Import path module:function of what makes a fresh environment (AEC or Parallel), or a game of ours.
        episodes: Episodes to play; a game's kernel plays a few steps of a few lanes instead.
        seed: Seed of the first episode.
        max_steps: Steps after which an episode is left unfinished.
        skip: Rules not to ask.
        render_modes: Render modes to try; the function is then called with render_mode.
    """
    try:
        make = load(made_by)
        game = make()
        if isinstance(game, Game):
            rules, ask = GAME_RULES, lambda skip: check_game(game, seed=seed, skip=skip)
        else:
            rules, ask = RULES, lambda skip: check(make, episodes, seed, max_steps, skip, render_modes)
        report, broken = survey(ask, skip)
    except (ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_table(rules, report, broken)
    return int(bool(broken))


def survey(
    ask: Callable[[tuple[str, ...]], Report], skip: tuple[str, ...]
) -> tuple[Report | None, dict[str, ConformanceError]]:
    """Ask again without the rules that were broken, until the rest holds: the last report, and what was broken.

    There is no report where nothing can be played.
    """
    broken: dict[str, ConformanceError] = {}
    while True:
        try:
            return ask((*skip, *broken)), broken
        except ConformanceError as error:
            broken[error.rule] = error
            if error.rule == "plays":
                return None, broken


def print_table(rules: dict[str, str], report: Report | None, broken: dict[str, ConformanceError]) -> None:
    """One line a rule, then what broke."""
    unchecked = report.unchecked if report else {}
    for name, says in rules.items():
        state = "BROKEN" if name in broken else "passed" if report and name in report.rules else "-"
        why = f" [{unchecked[name]}]" if name in unchecked and name not in broken else ""
        print(f"{name:18} {state:7} {says}{why}")
    for error in broken.values():
        print(f"\n{error}")
    played = f" in {report.episodes} episodes of {report.steps} steps in all" if report else ""
    passed = len(report.rules) if report else 0
    print(f"\n{passed} rules passed, {len(broken)} broken{played}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main, prog="python -m games.conformance"))
