"""What the commands that run PSRO have in common: options on the command line, where runs are, and how they go on."""

import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import tyro

from experiments.stop import Stop, guarded
from marl.oracles.ppo import PPO

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    import numpy as np

    from experiments import psro_bucket_brigade, psro_openspiel
    from experiments.run import RunFolder
    from experiments.values import Values
    from games.game import Game, Policy
    from marl.oracles import Oracle
    from metasolvers import MetaSolver

    Config = psro_bucket_brigade.Config | psro_openspiel.Config
    Configured = TypeVar("Configured", psro_bucket_brigade.Config, psro_openspiel.Config)
else:
    Config = Configured = Any

PLACEMENT = (
    "name",
    "run_dir",
    "workers",
    "resume",
    "smoke",
)  # where and how, not what: no part of a run's configuration
MOST_PROFILES = 2**17


class Plan(NamedTuple):
    """A run's parts, checked."""

    config: "Config"
    game: "Game"
    initial: "Sequence[Policy]"
    """A player."""
    solver: "MetaSolver"
    device: str
    oracle: "Oracle"
    values: "Values"
    workers: int | None
    last_oracle: "Oracle | None" = None
    """Trains best responses to the last meta-strategy, to measure its gap in the whole game; None where none are."""


def run(
    given: Sequence[str] | None, parse: "Callable[[list[str]], Configured]", planned: "Callable[[Configured], Plan]"
) -> int:
    """A command, from its arguments to its exit code (see `experiments.stop.guarded`)."""
    arguments = list(sys.argv[1:] if given is None else given)

    def work(stop: Stop) -> None:
        stop.advice = "nothing is lost; run the same command again"
        config = parse(arguments)
        plan = planned(config)
        with opened(config) as run:
            stop.advice = f"go on with {config.resume_command(config.iterations)}"
            from experiments.psro import solve  # torch

            solve(plan, run, stop)

    return guarded(work)


def parsed(command: str, given: list[str], default: "Configured", smoke: "Configured", early: type) -> "Configured":
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began.

    `early` are the options that decide what the defaults of all others are.
    """
    default = smoke if "--smoke" in given else default
    if "--resume" in given and not {"-h", "--help"} & set(given):
        first: Any
        first, _ = tyro.cli(early, args=given, add_help=False, return_unknown_args=True)
        default = began_as(replace(default, **vars(first)).folder, default)
    return tyro.cli(type(default), prog=f"counterplay {command}", args=given, default=default)


def began_as(folder: Path, placed: "Configured") -> "Configured":
    """The configuration that the run in `folder` was started with. Raises ValueError for a folder that is no run."""
    from experiments.run import read_settings
    from marl.checkpoint import finished_iterations

    values = read_settings(folder)
    try:
        # A run may have been extended since.
        values["iterations"] = max(values["iterations"], finished_iterations(folder / "snapshots") - 1)
        ppo = PPO(**values["ppo"] | {"hidden": tuple(values["ppo"]["hidden"])})
        return replace(placed, **values | {"ppo": ppo})
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{folder} was written by another command, or another version of this one ({error}): use that"
        ) from None


def opened(config: "Config") -> "RunFolder":
    """The run folder, made or resumed. Raises ValueError or OSError where that cannot be."""
    from experiments.run import create, resume

    if config.resume:
        return resume(config.folder, config.settings(), config.extendable)
    return create(config.folder, config.settings(), config.resume_command())


def resume_command(command: str, folder: Path, iterations: int | None) -> str:
    """What goes on with the run, as far as it was to go or to another number of iterations."""
    from experiments.run import invocation

    longer = "" if iterations is None else f" --iterations {iterations}"
    return f"{invocation()} {command} --run-dir {shlex.quote(str(folder))} --resume{longer}"


def settings(config: "Config") -> dict[str, Any]:
    """What the results depend on, as plain JSON values."""
    values = {name: value for name, value in asdict(config).items() if name not in PLACEMENT}
    return values | {"ppo": values["ppo"] | {"hidden": list(config.ppo.hidden)}}


def check_ranges(config: "Config", least: Mapping[str, float], most: Mapping[str, float]) -> None:
    """Raises ValueError for numbers out of their range, or a name that is no folder's."""
    for name, lowest in least.items():
        value = getattr(config, name)
        if value is not None and not lowest <= value <= most.get(name, math.inf):
            highest = f" and at most {most[name]:,}" if name in most else ""
            raise ValueError(f"{name} must be at least {lowest}{highest}, got {value}")
    if config.name is not None and config.name != Path(config.name).name:
        raise ValueError(f"name must be one folder's name, got {config.name!r}: use --run-dir for a path")


def checked_solver(config: "Config", players: int) -> "MetaSolver":
    """The meta-solver with its options. Raises ValueError where it cannot solve games of so many players."""
    from metasolvers import meta_solver

    solver, options = meta_solver(config.meta_solver), ("alpha", "population_size")
    known = {name: getattr(config, name) for name in options if name in signature(solver).parameters}
    solver = partial(solver, **known)
    solver(_transfer(players))  # meta-solvers say themselves what they cannot solve
    return solver


def _transfer(players: int) -> "np.ndarray":
    """A small zero-sum payoff tensor: the first player may take 1 from the second."""
    import numpy as np

    payoffs = np.zeros((players, *(2,) * players))
    payoffs[0, 1], payoffs[1, 1] = 1, -1
    return payoffs


def check_profiles(iterations: int, players: int) -> None:
    """Raises ValueError for more profiles of policies than can be evaluated and kept."""
    profiles = (iterations + 1) ** players
    if profiles > MOST_PROFILES:
        raise ValueError(
            f"{iterations} iterations for {players} players are {profiles:,} profiles of policies to play, "
            f"more than {MOST_PROFILES:,}: lower iterations"
        )


def checked_device(name: str) -> str:
    """cpu, cuda or cuda:1, with auto resolved. Raises ValueError for other names, and devices that are not there."""
    from games.spelling import unknown

    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise unknown("device", name, ("auto", "cpu", "cuda"))
    if kind == "cpu":
        return name
    import torch

    found = torch.cuda.device_count()
    if kind == "auto":
        return "cuda" if found else "cpu"
    if int(number or 0) >= found:
        raise ValueError(f"device {name!r} was asked for, but torch sees {found} CUDA devices here: use --device cpu")
    return name
