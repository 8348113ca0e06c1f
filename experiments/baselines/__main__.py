"""One row in a process of its own, as a line of JSON: `python -m experiments.baselines kuhn ours_cfr_plus 0 10`.

Game, row, seed, CPU seconds; and, if it is to end with it, the process that started it.
"""

import contextlib
import json
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from time import process_time
from typing import Any

from experiments.baselines.games import GAMES
from experiments.baselines.measured import Tally, watch
from experiments.baselines.rows import ROWS
from games.spawning import end_with

PACKAGES = ("numpy", "open_spiel", "torch", "jax")


def measured(game: str, row: str, seed: int, seconds: float) -> dict[str, Any]:
    """What became of a row, or why it cannot run."""
    entry, played, tally = ROWS[row], GAMES[game], Tally()
    start = process_time()
    try:
        for module in entry.modules:
            import_module(module)
        imports = process_time() - start
        _one_thread()
        course = watch(entry.make(played, seed, tally, **entry.settings), tally, seconds)
    except Exception as error:  # of whichever library: it is told, and others go on
        return told(error)
    return {
        "points": course.points,
        "ended": course.ended,
        "steps": tally.steps,
        "cpu_seconds": round(course.seconds, 6),
        "measuring_seconds": round(course.measuring, 3),
        "import_seconds": round(imports, 3),
        **tally.found,
        "settings": {name: plain(value) for name, value in (entry.settings | tally.settings).items()},
        "versions": dict(_versions()),
    }


def told(error: Exception) -> dict[str, str]:
    """Why a row cannot run, and what may help."""
    why = {"error": f"{type(error).__name__}: {error}"}
    if isinstance(error, ModuleNotFoundError) and find_spec(str(error.name).partition(".")[0]) is None:
        why["needs"] = "pip install 'counterplay[baselines]'"
    return why


def _one_thread() -> None:
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)


def plain(value: Any) -> Any:
    """A setting as a line of results has it."""
    return value if isinstance(value, (str, int, float, bool, list)) else repr(value)


def _versions() -> Any:
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            yield package, version(package)


if __name__ == "__main__":
    game, row, seed, seconds, *parent = sys.argv[1:]
    for number in parent:
        end_with(int(number))
    with contextlib.redirect_stdout(sys.stderr):  # OpenSpiel prints as it goes
        line = measured(game, row, int(seed), float(seconds))
    print(json.dumps(line))
