"""PSRO on any game: ours, OpenSpiel's, PettingZoo's or anybody's.

python experiments/psro.py --help
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

from experiments.checks import (
    check_cancels,
    check_processes,
    check_profiles,
    checked_device,
    checked_solver,
    wants_zero_sum,
)
from experiments.command import Groups, Plan, parsed, run
from experiments.known_settings import settings_of
from experiments.options import AnyGame, Placed, SideBySide, Simulated, Varied, as_name, early
from experiments.oracles import check_trainable, chosen, part, small, with_oracle
from marl.oracles import ORACLES

CHECKED = 300
"""Episodes, at least, that show whether players are exchangeable."""


@dataclass(frozen=True)
class Asked(AnyGame):
    """Who plays."""

    shared: tuple[str, ...] = ()
    """Players that are exchangeable, such as 0,1,2: they share one population, and one of them learns for all."""


@dataclass(frozen=True)
class Measured:
    """Further measures."""

    tolerance: float | None = None
    """Gap that meta-solvers which learn (regret_matching, hedge, ...) may leave; their own by default."""
    score_against: tuple[str, ...] = ("uniform",)
    """Scripted policies of the game that every meta-strategy is played against, each player alone or in its team."""
    teams: tuple[str, ...] = ()
    """Players that are on one side then, such as 0,1,2 3; by default everyone is alone."""
    duel_episodes: int = 2000
    """Episodes of each such team against each of these policies."""


@dataclass(frozen=True)
class Config(Placed, SideBySide, Measured, Varied, Simulated, Asked):
    """Policy-space response oracles (PSRO) on any game.

    Every iteration trains one best response per player, by PPO or another oracle, against the meta-strategy so far,
    plays all new profiles of policies, and solves the empirical game again. Defaults depend on the game and the oracle:
    --game NAME --oracle NAME --help shows them.
    Results go to a run folder; Ctrl-C loses at most the best response in training, and --resume goes on to exactly the
    result of an uninterrupted run. Bucket Brigade and exact OpenSpiel have commands of their own: `counterplay psro`,
    `counterplay psro-openspiel`.
    """

    command: ClassVar[str] = "psro-game"
    plays: ClassVar[str] = "any game"
    extendable: ClassVar[tuple[str, ...]] = ("iterations", "stop_at", "patience", "device")
    """A longer run begins like a shorter one, and devices come and go."""
    further: ClassVar[tuple[str, ...]] = ("play",)
    """Commands to look at a finished run with, beside those for any run."""

    def played_as(self) -> str:
        return as_name(self.game) + self.and_oracle("-")

    def headline(self, iteration: int, responses: str | None) -> list[str]:
        """What was measured in the end, and how; `responses` tells how those were trained that the gap is from."""
        return [
            f"PSRO with {self.meta_solver}{self.and_oracle(' and ')} on {self.game}{self.variety}, "
            f"seed {self.seed}, iteration {iteration}",
            self.measured_by(responses),
        ]


def defaults(game: str, oracle: str = "ppo") -> Config:
    """Options for a game by its name and parameters."""
    known = settings_of(game)
    learning = {name: known.pop(name) for name in ORACLES if name in known and name != "ppo"}
    return with_oracle(Config(game=game, **known), oracle, learning.get(oracle))


def tiny(config: Config) -> Config:
    """Budgets that take seconds."""
    learning: dict[str, Any] = {
        name: small(name, getattr(config, name)) for name in {"ppo", config.oracle} if hasattr(config, name)
    }
    return replace(
        config,
        **learning,
        iterations=1,
        episodes=8,
        gap_steps=None,
        gap_episodes=32,
        duel_episodes=32,
        workers=1,
        smoke=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    return run(arguments, parse, planned)


def parse(given: list[str]) -> Config:
    """The configuration on the command line; what it leaves open is the default of the game, tiny, or as a resumed run
    began.
    """
    known = early(given, Config, ("game", "oracle"))
    default = defaults(known["game"], known["oracle"])
    return parsed(given, default, tiny(default), ("game",))


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from experiments.answers import at
    from experiments.measures import Duels
    from experiments.values import Played
    from games.scripted import profile
    from marl.policy_files import check_savable
    from marl.psro import from_payoffs
    from marl.shared import check_exchangeable
    from marl.targets import targets

    game = config.make_game()
    check_processes(game, config.workers)
    players = len(game.agents)
    groups = sharing(config.shared, players)
    initial = profile(config.initial, game)
    for policy in initial:
        check_savable(policy)
    check_trainable(game, config.game, chosen(config), initial)
    asked = wants_zero_sum(config.meta_solver, config.targets, players)
    rivals = {name: profile(name, game) for name in config.score_against}
    solver = checked_solver(
        config.meta_solver,
        players,
        alpha=config.alpha,
        population_size=config.population_size,
        tolerance=config.tolerance,
    )
    check_profiles(config.iterations, players)
    oracle = part(chosen(config), config.pipeline, config.targets)
    if asked:
        check_cancels(game, asked, config.seed)
    if groups:
        check_exchangeable(game, groups, [[policy] for policy in initial], enough(config.episodes, groups), config.seed)
    return Plan(
        config,
        game,
        initial,
        from_payoffs(solver),
        checked_device(config.device),
        oracle,
        Played(
            game,
            config.episodes,
            config.gap_episodes,
            config.seed,
            config.meta_solver,
            groups=groups,
            duels=Duels(rivals, sides(config.teams, players), config.duel_episodes),
        ),
        config.workers,
        at(targets(config.targets).find),
        config.gap_oracle,
        groups,
    )


def sides(teams: Sequence[str], players: int) -> Groups:
    """Who plays together against everybody else, by default everyone alone; left out is who has nobody to play against.

    Raises ValueError as `divided` does.
    """
    found = divided("teams", teams, players) or tuple((player,) for player in range(players))
    return tuple(team for team in found if len(team) < players)


def sharing(shared: Sequence[str], players: int) -> Groups:
    """Groups of players with one population, those left over alone; none where everyone is. Errors as `divided`."""
    found = divided("shared", shared, players)
    alone = set(range(players)) - {player for group in found for player in group}
    return (*found, *((player,) for player in sorted(alone))) if found else ()


def divided(option: str, groups: Sequence[str], players: int) -> Groups:
    """Raises ValueError for what is no list of players, or names one twice."""
    split = [group.split(",") for group in groups]
    named = [player for group in split for player in group]
    if not set(named) <= {str(player) for player in range(players)} or len(set(named)) < len(named):
        raise ValueError(
            f"{option} must be players, each at most once, as in --{option} 0,2 1: of 0..{players - 1}, "
            f"got {' '.join(groups)}"
        )
    return tuple(tuple(sorted(map(int, group))) for group in split)


def enough(episodes: int, groups: Groups) -> int:
    """Episodes that show whether players are exchangeable, of as many turns as they take through their seats.

    Raises ValueError where those of a profile cannot be divided into so many.
    """
    from marl.exchangeable import seat_turns

    turns = len(seat_turns(groups))
    if episodes % turns or episodes < 2 * turns:
        whole = max(2, -(-episodes // turns)) * turns
        raise ValueError(f"players who share a population take {turns} turns: use --episodes {whole}, got {episodes}")
    return -(-CHECKED // turns) * turns


if __name__ == "__main__":
    sys.exit(main())
