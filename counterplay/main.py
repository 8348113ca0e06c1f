"""The `counterplay` command: `counterplay psro --help`."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from counterplay import __version__

COMMANDS = {
    "psro": ("experiments.psro_bucket_brigade", "PSRO with alpha-rank and PPO on Bucket Brigade"),
    "figures": ("analysis.figures", "draw the figures of a run again"),
}
"""Name -> module with `main(arguments) -> exit code`, and what it does."""

USAGE = "\n".join(
    [
        "usage: counterplay COMMAND [OPTIONS]",
        "",
        *(f"  {name:<10}{about}" for name, (_, about) in COMMANDS.items()),
        "",
        "counterplay COMMAND --help tells a command's options, counterplay --version the version.",
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Hand the arguments to the command that comes first; 2 where there is none of that name."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        print(f"counterplay {__version__}")
        return 0
    if given[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if not given or given[0] not in COMMANDS:
        wrong = f"no command {given[0]!r}\n" if given else ""
        print(f"{wrong}{USAGE}", file=sys.stderr)
        return 2
    command: Callable[[Sequence[str]], int] = import_module(COMMANDS[given[0]][0]).main
    return command(given[1:])


if __name__ == "__main__":
    sys.exit(main())
