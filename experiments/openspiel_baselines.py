"""Our algorithms beside OpenSpiel's on the same games: NashConv against CPU seconds and environment steps.

python experiments/openspiel_baselines.py --help
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tyro

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.baselines.games import GAMES
from experiments.baselines.rows import ROWS
from experiments.stop import Stop, guarded
from games.spelling import unknown

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path("docs/openspiel_comparison/results.jsonl")
KEY = ("game", "row", "seed")
ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
"""One core for every library."""
MOST = 1e6
"""Seconds of a budget."""
PATIENCE, START = 20, 300
"""A process may take so many times its CPU seconds by the clock on the wall, and so many seconds more."""


def compare(
    games: tuple[str, ...] = (),
    rows: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (),
    budget: float | None = None,
    results: Path = RESULTS,
    again: bool = False,
) -> None:
    """Run every row on its games, each in a process of one thread, and append a line of JSON for each seed.

    Then what the file holds is drawn, and written as a page (.md), beside it. A row that cannot run says why, and is
    tried again the next time.

    Args:
        games: Which games, by default all.
        rows: Which rows, by default all.
        seeds: Seeds of all rows, by default three of those that learn or sample, and one of others.
        budget: CPU seconds of every row, without imports and measuring; by default those of the game and row.
        results: File the lines are appended to; what it already has is not run once more ...
        again: ... unless this is asked for: then its lines are replaced.

    Raises ValueError, before anything is run, for what there is not, for another file than of lines of JSON, and where
    it would come to hold lines of a row with several budgets.
    """
    from analysis.lines import complete, read
    from analysis.openspiel_comparison import write

    if budget is not None and not 0 < budget <= MOST:
        raise ValueError(f"budget must be a number of seconds, greater than 0 and at most {MOST:,.0f}, got {budget}")
    if any(seed < 0 for seed in seeds):
        raise ValueError(f"seeds must be at least 0, got {min(seeds)}")
    if results.suffix != ".jsonl" or (results.exists() and not results.is_file()):
        raise ValueError(f"results must be a file that ends in .jsonl, for the page takes its name, got {results}")
    keys = wanted(_known("game", games, GAMES), _known("row", rows, ROWS), seeds)
    if not keys:
        raise ValueError(f"none of the rows {', '.join(rows)} is of {', '.join(games)}")

    def seconds_of(game: str, row: str) -> float:
        return budget or ROWS[row].seconds(game)

    kept = [line for line in read(results, (*KEY, "budget")) if not (again and _key(line) in keys)]
    _check_budgets(kept, {(game, row): seconds_of(game, row) for game, row, _ in keys}, results)
    there = sum(_key(line) in keys and "error" not in line for line in kept)
    if there:
        print(f"{there} of these {len(keys)} lines are in {results} already", flush=True)

    def run(game: str, row: str, seed: int) -> dict[str, Any]:
        seconds = seconds_of(game, row)
        known = about(game, row) | {"seed": seed, "budget": seconds, "day": f"{datetime.now(UTC):%Y-%m-%d}"}
        line = known | alone(game, row, seed, seconds)
        print(f"{game} {row} seed {seed}: {_outcome(line)}", flush=True)
        return line

    complete(results, KEY, keys, run, lambda line: again or "error" in line)
    print(*write(results), sep="\n")
    left = set(wanted(GAMES, ROWS, ())) - {_key(line) for line in read(results)}
    if left:
        same = "" if budget is None else f" --budget {budget:g}"
        print(f"{len(left)} more lines belong to the whole comparison: run with --results {results}{same}")


def wanted(games: Iterable[str], rows: Iterable[str], seeds: tuple[int, ...]) -> list[tuple[str, str, int]]:
    """Every (game, row, seed) there is of these; with no seeds, all."""
    chosen = tuple(rows)
    return [
        (game, row, seed)
        for game in games
        for row in chosen
        if game in ROWS[row].games
        for seed in seeds or ROWS[row].seeds
    ]


def _check_budgets(kept: Iterable[dict[str, Any]], asked: Mapping[tuple[str, str], float], results: Path) -> None:
    """Raises ValueError where a row has another budget on a game than is asked for: medians would mix them."""
    for line in kept:
        wanted_here = asked.get((line["game"], line["row"]), line["budget"])
        if line["budget"] != wanted_here and "error" not in line:
            raise ValueError(
                f"{results} has {line['row']} on {line['game']}, seed {line['seed']}, with a budget of "
                f"{line['budget']:g} CPU seconds, and {wanted_here:g} are asked for: name another file by --results, "
                "or replace all its seeds by --again"
            )


def _key(line: Mapping[str, Any]) -> tuple[str, str, int]:
    return line["game"], line["row"], line["seed"]


def about(game: str, row: str) -> dict[str, Any]:
    """What is known of a line before it is run."""
    return {
        "game": game,
        "title": GAMES[game].title,
        "string": GAMES[game].string,
        "row": row,
        "algorithm": ROWS[row].algorithm,
        "whose": ROWS[row].whose,
    }


def alone(game: str, row: str, seed: int, seconds: float) -> dict[str, Any]:
    """A row's course or its error, from a fresh process with an empty cache of compiled games."""
    command = [sys.executable, "-m", "experiments.baselines", game, row, str(seed), str(seconds), str(os.getpid())]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with TemporaryDirectory() as cache:
        surroundings = os.environ | ALONE | {"COUNTERPLAY_CACHE": cache, "PYTHONPATH": paths}
        try:
            done = subprocess.run(
                command, env=surroundings, capture_output=True, text=True, timeout=PATIENCE * seconds + START
            )
        except subprocess.TimeoutExpired as error:
            return {"error": f"{type(error).__name__}: did not end within {error.timeout:.0f} seconds"}
    if done.returncode:
        return {"error": f"exit code {done.returncode}: {' '.join(done.stderr.splitlines()[-1:])}"}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": f"printed {done.stdout[-80:]!r}, and not its line of results"}


def _known(kind: str, given: tuple[str, ...], known: Iterable[str]) -> tuple[str, ...]:
    """The given names, or all there are. Raises ValueError for one that there is not."""
    names = tuple(known)
    for name in given:
        if name not in names:
            raise unknown(kind, name, names)
    return given or names


def _outcome(line: dict[str, Any]) -> str:
    if "error" in line:
        return f"cannot run: {line['error']}" + (f"; {line['needs']}" if "needs" in line else "")
    seconds, _, value = line["points"][-1] if line["points"] else (line["cpu_seconds"], None, float("nan"))
    return f"NashConv {value:.4g} after {seconds:.1f} CPU seconds"


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""

    def work(stop: Stop) -> None:
        again = "--again" in (sys.argv[1:] if arguments is None else arguments)
        rest = "name the rest by --games, --rows and --seeds" if again else "run the same command again for the rest"
        stop.advice = f"what is finished stays; {rest}"
        tyro.cli(compare, prog="python experiments/openspiel_baselines.py", args=arguments)

    return guarded(work)


if __name__ == "__main__":
    sys.exit(main())
