"""Files that a run becomes, written again: `counterplay report`, `counterplay figures` and `counterplay notebook`.

They raise ValueError for a folder that is no run or has nothing to show yet, and OSError where it cannot be written to.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

# What imports matplotlib or Jupyter is imported where it is used: --help answers at once.


def report(arguments: Sequence[str] | None = None) -> int:
    """Write a run's report.html again."""
    run = _run("report", report.__doc__, arguments)
    from analysis.report import write

    print(write(run))
    return 0


def figures(arguments: Sequence[str] | None = None) -> int:
    """Draw the figures of a run again."""
    run = _run("figures", figures.__doc__, arguments)
    from analysis.figures import draw

    print(*draw(run), sep="\n")
    return 0


def notebook(arguments: Sequence[str] | None = None) -> int:
    """Write a run's notebook, executed, or that of the comparison with OpenSpiel, whose file of results is given."""
    run = _run("notebook", notebook.__doc__, arguments)
    from analysis.notebook import write

    print(write(run))
    return 0


def _run(name: str, about: str | None, arguments: Sequence[str] | None) -> Path:
    """The run folder named on the command line."""
    parser = argparse.ArgumentParser(prog=f"counterplay {name}", description=about)
    parser.add_argument("run", type=Path, help="run folder, e.g. runs/rest_trap-0")
    return parser.parse_args(arguments).run
