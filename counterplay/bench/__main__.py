"""Speed of this machine, as ratios against named peers in the same run."""

import os

# One core each; before NumPy, torch and rlox load their libraries.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import json
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from counterplay.bench.row import Row
from counterplay.doctor import installed
from experiments.stop import guarded
from games.spelling import unknown

PARTS = (
    "games",
    "openspiel",
    "stepped",
    "metasolvers",
    "exact",
    "ppo",
    "joint",
    "nfsp",
    "oracles",
    "buffers",
    "workers",
    "processes",
    "runs",
)
PEERS = {
    "games": ("pygame", "PettingZoo's pygame environments"),
    "openspiel": ("pgx", "PGX"),
    "oracles": ("rlox", "rlox"),
    "buffers": ("rlox", "rlox"),
    "stepped": ("shimmy", "Shimmy"),
}
"""What parts are measured beside: the module it takes, and its name."""


@dataclass(frozen=True)
class Bench:
    """Print speeds beside those of named peers, measured in this run; CPU time but for workers, processes and runs."""

    only: tuple[str, ...] = PARTS
    """Parts to run: games, openspiel, stepped, metasolvers, exact, ppo, joint, nfsp, oracles, buffers, workers,
    processes, runs."""
    json: Path | None = None
    """Also write the table, with the machine and its load, to this file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Raises ValueError for parts or files that cannot be."""
    config = tyro.cli(Bench, prog="counterplay bench", args=arguments, description=Bench.__doc__)
    for part in config.only:
        if part not in PARTS:
            raise unknown("part of the benchmark", part, PARTS)
    if not config.only or (config.json and not config.json.absolute().parent.is_dir()):
        raise ValueError(f"--only needs a part, and --json a file in a folder that exists; got {config}")
    if find_spec("pyspiel") is None:
        raise ValueError("the benchmark measures beside OpenSpiel, which is not here: pip install open_spiel")
    for part, (module, peer) in PEERS.items():
        if part in config.only and find_spec(module) is None:
            raise ValueError(f"{part} is measured beside {peer}, which is not here: pip install 'counterplay[bench]'")
    load = os.getloadavg()
    rows = []
    for part in config.only:
        for row in import_module(f"counterplay.bench.{part}").rows():
            print(f"{row.name}: {_number(row.ours)} {row.unit}", flush=True)
            rows.append(row)
    console = Console(width=None if Console().is_terminal else 140)
    console.print(_table(rows))
    machine = dict(_machine(), load_before=load, load_after=os.getloadavg())
    console.print(" ".join(f"{name}={value}" for name, value in machine.items()), soft_wrap=True, highlight=False)
    if config.json:
        config.json.write_text(json.dumps({"machine": machine, "rows": [row._asdict() for row in rows]}, indent=1))
    return 0


def _table(rows: list[Row]) -> Table:
    table = Table(title="Speed")
    for column in ("what", "ours", "peer", "ratio", "aim", "note"):
        table.add_column(column, justify="right" if column in ("ours", "ratio") else "left")
    for row in rows:
        peer = f"{row.peer}: {_number(row.peer_value)} {row.unit}" if row.peer_value is not None else row.peer
        ratio = "" if row.ratio is None else _number(row.ratio)
        table.add_row(row.name, f"{_number(row.ours)} {row.unit}", peer, ratio, row.aim, row.note)
    return table


def _machine() -> Iterator[tuple[str, object]]:
    yield "cpus", os.cpu_count()
    yield "machine", platform.machine()
    yield "python", platform.python_version()
    for package in ("numpy", "torch", "open_spiel", "shimmy", "pgx", "jax", "stable-baselines3", "rlox"):
        yield package, installed(package)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(guarded(lambda stop: main()))
