"""The `counterplay` command: a table of names, each a module that does the work."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from counterplay import __version__
from experiments import RUNNERS
from experiments.stop import guarded


class Command(NamedTuple):
    """What comes after `counterplay`."""

    module: str
    about: str
    function: str = "main"
    typed: bool = False
    """The function has typed parameters, of which tyro makes options, and not a list of arguments."""

    def run(self, name: str, given: list[str]) -> int:
        """Exit code of the command. Nothing is imported before: torch takes a second.

        What cannot work is raised; `main` tells it. (A run guards itself too: it knows how to go on.)
        """
        main = getattr(import_module(self.module), self.function)
        if self.typed:
            import tyro

            return tyro.cli(main, args=given, prog=f"counterplay {name}")
        return main(given)


COMMANDS = {
    "psro": Command(RUNNERS["psro"], "PSRO with alpha-rank on Bucket Brigade"),
    "psro-game": Command(RUNNERS["psro-game"], "PSRO on any game: ours, PettingZoo's, OpenSpiel's, ..."),
    "psro-openspiel": Command(RUNNERS["psro-openspiel"], "PSRO and the double oracle on games of OpenSpiel, exactly"),
    "train": Command(RUNNERS["train"], "one best response, by any oracle, on any game"),
    "solve": Command(
        "counterplay.solve", "a table of payoffs by any meta-solver, or the meta-solvers there are", typed=True
    ),
    "runs": Command("counterplay.runs", "the runs in a folder, and how far they are"),
    "show": Command("counterplay.show", "a run on the terminal: what it found, and what to do next"),
    "report": Command("counterplay.files", "a run as one HTML page, to mail or print", "report"),
    "figures": Command("counterplay.files", "draw the figures of a run again", "figures"),
    "notebook": Command("counterplay.files", "a run as a Jupyter notebook, executed", "notebook"),
    "play": Command("experiments.play", "an episode of a run's policies, to look at"),
    "responses": Command("experiments.responses", "a run's best responses beside scripted replies", typed=True),
    "exploitability": Command("counterplay.exploitability", "what players could gain by deviating, at least"),
    "games": Command("counterplay.games", "the games there are, with their parameters and spaces"),
    "conform": Command(
        "counterplay.conform", "whether an environment or a game keeps the rules, or all of them", typed=True
    ),
    "parity": Command("games.bucket_brigade.parity", "Bucket Brigade beside published and measured values", typed=True),
    "optimum": Command("games.bucket_brigade.optimum", "the most that teams can earn in Bucket Brigade", typed=True),
    "rings": Command("games.bucket_brigade.small_rings", "exact gains of scripted teams on small rings", typed=True),
    "exact": Command("counterplay.exact", "exact values of OpenSpiel's games beside its own", typed=True),
    "bench": Command("counterplay.bench.__main__", "speeds beside named peers, on one core"),
    "doctor": Command("counterplay.doctor", "whether this machine has what is needed, and what is missing"),
}

USAGE = "\n".join(
    [
        "usage: counterplay COMMAND [OPTIONS]",
        "",
        *(f"  {name:<15}{command.about}" for name, command in COMMANDS.items()),
        "",
        "counterplay COMMAND --help tells a command's options, counterplay --version the version.",
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Hand the arguments to the command that comes first; its exit code, or 2 after a message for wrong input."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if os.getcwd() not in sys.path:  # where the user's own modules are, as `python -m` has it
        sys.path.append(os.getcwd())
    return guarded(lambda stop: _run(given))


def _run(given: list[str]) -> int:
    if given[:1] == ["--version"]:
        print(f"counterplay {__version__}")
        return 0
    if given[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if not given:
        print(USAGE, file=sys.stderr)
        return 2
    name, *rest = given
    if name not in COMMANDS:
        from games.spelling import unknown

        raise unknown("command", name, COMMANDS)
    return COMMANDS[name].run(name, rest)


if __name__ == "__main__":
    sys.exit(main())
