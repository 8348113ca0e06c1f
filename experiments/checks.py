"""What options of a command cannot work, told before anything is trained or written."""

import math
import sys
from collections.abc import Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.ending import counted

# What takes its time to import is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    import numpy as np

    from games.game import Game, Playable
    from metasolvers import MetaSolver

MOST_PROFILES = 2**17
ANYTIME = "anytime"
"""The meta-solver that asks for more than payoffs: see `marl.exact.anytime`."""
PROBED, CANCELS = 64, 1e-5
"""Episodes that show whether a game is zero-sum, and differences of their sums that are rounding."""


def check_ranges(options: Mapping[str, Any], least: Mapping[str, float], most: Mapping[str, float]) -> None:
    """Raises ValueError for options, by name, that are out of their range, or a run's name that is no folder's."""
    for name, lowest in least.items():
        value = options.get(name)
        if value is not None and not lowest <= value <= most.get(name, math.inf):
            finite = most.get(name) == sys.float_info.max  # all that leaves out is infinity, and nan
            highest = f" and at most {most[name]:,}" if name in most and not finite else ""
            number = "a finite number of " if finite else ""
            raise ValueError(f"{name} must be {number}at least {lowest}{highest}, got {value}")
    folder = options["name"]
    if folder is not None and folder != Path(folder).name:
        raise ValueError(f"name must be one folder's name, got {folder!r}: use --run-dir for a path")


def checked_solver(name: str, players: int, **options: float | None) -> "MetaSolver":
    """The meta-solver with those of the options that it has, and that are not None.

    Raises ValueError for an unknown name, and where it cannot solve games of so many players.
    """
    from metasolvers import meta_solver

    if name == ANYTIME:
        raise ValueError(
            "anytime looks into the whole tree of a two-player zero-sum game: use `counterplay psro-openspiel`"
        )
    solver = meta_solver(name)
    known = {
        option: value
        for option, value in options.items()
        if value is not None and option in signature(solver).parameters
    }
    solver = partial(solver, **known)
    solver(_transfer(players))  # meta-solvers say themselves what they cannot solve
    return solver


def wants_zero_sum(meta_solver: str, targets: str, players: int) -> str:
    """What of these, if anything, takes two-player zero-sum games alone.

    Raises ValueError for other numbers of players, with all that is to be chosen anew, and targets that are unknown.
    """
    from marl.targets import targets as registered
    from metasolvers import META_SOLVERS

    asked = [f"targets {targets}"] if registered(targets).takes == "zero_sum" else []
    if meta_solver == ANYTIME or (meta_solver in META_SOLVERS and META_SOLVERS[meta_solver].takes == "zero_sum"):
        asked.append(meta_solver)
    if asked and players != 2:
        told = " and ".join(asked)
        need = "needs" if len(asked) == 1 else "need"
        raise ValueError(f"{told} {need} two players; got {players}: {for_any_game(told)}")
    return " and ".join(asked)


def for_any_game(asked: str) -> str:
    """What to use instead of what `wants_zero_sum` found: what takes any number of players, and any payoffs."""
    targets, solver = asked.startswith("targets"), asked.split()[-1] != "rectified"
    if not targets:
        return "use --meta-solver alpha_rank, max_gini_cce or logit_nash, which take any game"
    mixture = "--targets mixture" + (" with --meta-solver alpha_rank, max_gini_cce or logit_nash" if solver else "")
    return f"use {mixture}, or --targets recommendations with --meta-solver max_gini_ce (JPSRO), which take any game"


def check_cancels(game: "Game | Playable", asked: str, seed: int) -> None:
    """Raises ValueError where random play does not always pay the players the same together, as `asked` needs."""
    import numpy as np

    from games.play import play
    from games.scripted import profile

    total = play(game, [profile("uniform", game)], PROBED, seed, ["zero-sum"]).returns.sum(axis=-1)
    if np.ptp(total) > CANCELS:
        raise ValueError(
            f"{asked} takes zero-sum games; here random play pays the players between {total.min():g} and "
            f"{total.max():g} together: {for_any_game(asked)}"
        )


def _transfer(players: int) -> "np.ndarray":
    """A small zero-sum payoff tensor: the first player may take 1 from the second, or gain it where there is none."""
    import numpy as np

    payoffs = np.zeros((players, *(2,) * players))
    payoffs[0, 1] = 1
    payoffs[1:2, 1] = -1
    return payoffs


def check_processes(game: "Game | Playable", workers: int | None) -> None:
    """Raises ValueError where both units of work and the game's lanes would have worker processes."""
    from marl.workers import number_of

    number = number_of(workers, len(game.agents))
    if getattr(game, "workers", 0) and number > 1:
        raise ValueError(
            f"a worker process cannot have worker processes, but {number} train and play side by side, and the game "
            "wants some of its own: leave out workers= of the game, or use --workers 1"
        )


def check_profiles(iterations: int, players: int) -> None:
    """Raises ValueError for more profiles of policies than can be evaluated and kept."""
    profiles = (iterations + 1) ** players
    if profiles > MOST_PROFILES:
        raise ValueError(
            f"{counted(iterations)} for {players} players are {profiles:,} profiles of policies to play, "
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
