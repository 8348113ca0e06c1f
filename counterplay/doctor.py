"""Whether this machine has what is needed: `counterplay doctor`."""

import argparse
import importlib.metadata
import math
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from counterplay.screen import Screen, bare_table
from experiments.run import ROOM
from marl.workers import available_cores

PACKAGE = "counterplay"


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    found: str
    ok: bool = True
    advice: str = ""
    """What to do about it; where `ok`, an offer rather than a need."""


Check = Callable[[], Iterator[Finding]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; 1 where something needed is broken."""
    parser = argparse.ArgumentParser(
        prog="counterplay doctor", description="What this machine has, and what is missing."
    )
    parser.parse_args(arguments)
    findings = [finding for check in CHECKS for finding in found(check)]
    screen = Screen()
    rows = [("ok" if row.ok else "BROKEN", row.what, row.found, row.advice) for row in findings]
    screen.print(bare_table(("", "what", "found", "advice"), rows))
    broken = sum(not row.ok for row in findings)
    screen.print(f"{broken} broken" if broken else "everything needed is there")
    return int(broken > 0)


def found(check: Check) -> Iterator[Finding]:
    """What a check finds; an error in it is a finding too."""
    try:
        yield from check()
    except Exception as error:  # whatever it is, it is what the doctor is asked for
        what = check.__name__.removeprefix("check_").replace("_", " ")
        yield Finding(what, f"{type(error).__name__}: {error}", ok=False)


def check_python() -> Iterator[Finding]:
    needed = importlib.metadata.metadata(PACKAGE)["Requires-Python"]
    ok = Requirement(f"python{needed}").specifier.contains(platform.python_version(), prereleases=True)
    yield Finding("python", f"{platform.python_version()} (needs {needed}), {sys.executable}", ok)


def check_packages() -> Iterator[Finding]:
    """Every requirement; what extras want is an offer."""
    lacking: dict[str, list[str]] = {}
    for needed in map(Requirement, importlib.metadata.requires(PACKAGE) or []):
        version = installed(needed.name)
        fits = version is not None and needed.specifier.contains(version, prereleases=True)
        extra = str(needed.marker).partition("extra == ")[2].strip("\"'")
        if extra:
            lacking.setdefault(extra, []).extend([] if fits else [f"{needed.name}{needed.specifier}"])
        else:
            advice = "" if fits else f"pip install '{needed.name}{needed.specifier}'"
            yield Finding(needed.name, f"{version or 'missing'} (needs {needed.specifier})", fits, advice)
    for extra, packages in lacking.items():
        advice = shlex.join(["pip", "install", *packages]) if packages else ""
        yield Finding(f"extra {extra}", f"without {', '.join(packages)}" if packages else "is there", advice=advice)


def installed(package: str) -> str | None:
    """Its version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_processors() -> Iterator[Finding]:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    yield Finding("processors", f"{available_cores()} of {os.cpu_count()} usable; load {load} over 1, 5, 15 minutes")


def check_torch() -> Iterator[Finding]:
    import torch

    threads, setting = torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
    advice = (
        "" if setting or threads == 1 else "runs set their own --threads; elsewhere OMP_NUM_THREADS=1 is often fastest"
    )
    yield Finding("threads", f"torch {threads}, OMP_NUM_THREADS {setting or 'not set'}", advice=advice)
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    yield Finding("CUDA devices", ", ".join(devices) or "none: networks train on the CPU")


def check_disk() -> Iterator[Finding]:
    """Room, and leave to write, where runs go."""
    folder = Path("runs")
    while not folder.exists():
        folder = folder.absolute().parent
    free = shutil.disk_usage(folder).free
    advice = "free some, or pass --run-dir with a folder elsewhere"
    yield Finding("disk", f"{free / 2**30:,.1f} GiB free in {folder}", free >= ROOM, "" if free >= ROOM else advice)
    try:
        with tempfile.TemporaryFile(dir=folder):
            yield Finding("runs/", f"can be written in {folder.absolute()}")
    except OSError as error:
        yield Finding("runs/", f"{folder.absolute()}: {error.strerror}", False, "work elsewhere, or pass --run-dir")


def check_games() -> Iterator[Finding]:
    """One step of every game, by uniform players."""
    import games
    from games.play import states
    from games.policies import Uniform

    for name in games.GAMES:
        try:
            game = games.make_game(name)
        except ValueError as error:  # what it needs is an extra
            yield Finding(f"game {name}", "not here", advice=str(error))
            continue
        players = [Uniform.of(space) for space in game.action_spaces]
        _, after = islice(states(game, players, 0, "doctor"), 2)
        finite = bool((abs(game.rewards(*after)) < math.inf).all())
        yield Finding(f"game {name}", f"steps, {len(game.agents)} players", finite)


def check_meta_solver() -> Iterator[Finding]:
    from metasolvers import alpha_rank

    sigma = alpha_rank([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])  # the prisoner's dilemma: both defect
    yield Finding("meta-solver", f"alpha-rank plays defection with {sigma[1, 1]:.4f}", bool(sigma[1, 1] > 0.99))


CHECKS: tuple[Check, ...] = (
    check_python,
    check_packages,
    check_processors,
    check_torch,
    check_disk,
    check_games,
    check_meta_solver,
)
