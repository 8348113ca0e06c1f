"""A command that runs PSRO, from its arguments to its exit code."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import tyro

from experiments.config import Config, Configured
from experiments.options import early
from experiments.oracles import REGISTRY, check_responder, small, with_oracle
from experiments.stop import Stop, guarded
from marl.oracles import ORACLES

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from experiments.answers import Aim
    from experiments.values import Values
    from games.game import Game, Playable, Policy
    from marl.oracles import Oracle
    from marl.psro import Solve

Groups = tuple[tuple[int, ...], ...]


class Plan(NamedTuple):
    """A run's parts, checked."""

    config: Config
    game: "Game | Playable"
    initial: "Sequence[Policy]"
    """A player."""
    solve: "Solve"
    device: str
    oracle: "Oracle"
    values: "Values"
    workers: int | None
    aim: "Aim"
    last_oracle: "Oracle | None" = None
    """Trains best responses to the last meta-strategy, to measure its gap in the whole game; None where none are."""
    groups: Groups = ()
    """Players that share a population, and those alone; none where everyone is."""


def run(
    given: Sequence[str] | None, parse: Callable[[list[str]], Configured], planned: Callable[[Configured], Plan]
) -> int:
    """A command, from its arguments to its exit code (see `experiments.stop.guarded`)."""
    arguments = list(sys.argv[1:] if given is None else given)

    def work(stop: Stop) -> None:
        stop.advice = "nothing is lost; run the same command again"
        config = parse(arguments)
        plan = planned(config)
        from experiments.placement import opened, resume_command

        with opened(config, plan.game) as run:
            stop.advice = f"go on with {resume_command(config, config.iterations)}"
            from experiments.session import solve  # torch

            solve(plan, run, stop)

    return guarded(work)


def parsed(
    given: list[str],
    default: Configured,
    smoke: Configured,
    names: tuple[str, ...],
    known_settings: Mapping[str, "Oracle"] = MappingProxyType({}),
) -> Configured:
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began.

    `names` are the options that, beside the usual ones, a run's default folder is named after. Oracles that are not in
    `known_settings` have their own defaults.
    """
    tiny = "--smoke" in given
    default = smoke if tiny else default
    known = early(given, type(default), (*names, "oracle", "pipeline"))
    levels = known.pop("pipeline")
    if known["oracle"] != default.oracle:
        check_responder(known["oracle"])
        settings = known_settings.get(known["oracle"]) or ORACLES[known["oracle"]]()
        default = with_oracle(default, known["oracle"], small(known["oracle"], settings) if tiny else settings)
    if tiny and levels > 1:
        default = _for_each(default, levels)
    if "--resume" in given and not {"-h", "--help"} & set(given):
        from experiments.placement import began_as

        default = began_as(replace(default, **known).folder, default)
    prog = f"counterplay {default.command}"
    return tyro.cli(type(default), prog=prog, args=given, default=default, registry=REGISTRY)


def _for_each(config: Configured, levels: int) -> Configured:
    """With tiny budgets for every level of a pipeline, which shares out the oracle's."""
    oracle = getattr(config, config.oracle, None)
    if oracle is None or not hasattr(oracle, "steps"):
        return config
    return replace(config, **{config.oracle: replace(oracle, steps=oracle.steps * levels)})
