"""PSRO on finite games of OpenSpiel, with exact payoffs and gaps: the double oracle, or trained best responses.

python experiments/psro_openspiel.py --help
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

from experiments.checks import check_profiles, checked_device, checked_solver
from experiments.command import Plan, parsed, run
from experiments.options import Placed, SideBySide, as_name
from experiments.oracles import check_responder, check_trainable, chosen
from marl.oracles import PPO

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from games.tree_game import TreeGame

LITTLE = PPO(steps=65_536, num_lanes=512, minibatches=4, learning_rate=1e-2, entropy_start=0.01, hidden=(32,))
"""For games of a few dozen information states."""


@dataclass(frozen=True)
class Solved:
    """What is played, and how it is solved."""

    game: str = "kuhn_poker"
    """Game string of OpenSpiel, such as leduc_poker or "kuhn_poker(players=3)"; its whole tree is walked once."""
    oracle: str = "exact"
    """Best responses: computed, which with zero_sum_nash is the double oracle (exact), or trained by ppo, dqn, ....
    Settings of another oracle than PPO are options of its name: --oracle dqn --help shows them."""
    meta_solver: str = "zero_sum_nash"
    """From payoffs to the meta-strategy: alpha_rank, zero_sum_nash, ...; `counterplay solve` lists them."""
    iterations: int = 100
    """Best responses per player, at most. A finished run can be resumed with more."""
    stop_at: float = 1e-6
    """End once the gap in the whole game (NashConv, where players choose independently) is no larger."""
    alpha: float = 10.0
    """Intensity of selection of alpha_rank, per largest gain a player can make by changing policy alone."""
    population_size: int = 50
    """Individuals per population of alpha_rank."""
    reward: Literal["own", "team"] = "own"
    """What best responses maximise: the player's own return, or the sum over all players."""
    warm_start: bool = False
    """Let training go on from the player's latest policy, where that was trained, rather than from scratch."""
    ppo: PPO = LITTLE
    """How PPO trains best responses."""

    def __post_init__(self) -> None:
        check_responder(self.oracle)


@dataclass(frozen=True)
class Config(Placed, SideBySide, Solved):
    """Policy-space response oracles (PSRO) on a finite game of OpenSpiel, measured exactly.

    Every iteration adds one best response per player to the meta-strategy so far, and solves the empirical game again;
    payoffs, and what the meta-strategy loses to best responses in the whole game, are computed in the game's tree.
    Results go to a run folder; Ctrl-C loses at most the best response in training, and --resume goes on to exactly the
    result of an uninterrupted run.
    """

    command: ClassVar[str] = "psro-openspiel"
    plays: ClassVar[str] = "games of OpenSpiel"
    extendable: ClassVar[tuple[str, ...]] = ("iterations", "stop_at", "device")
    """A longer run begins like a shorter one, and devices come and go."""
    further: ClassVar[tuple[str, ...]] = ()
    """Commands to look at a finished run with, beside those for any run."""

    def played_as(self) -> str:
        return f"{as_name(self.game)}-{self.oracle}"

    @property
    def files(self) -> dict[str, str]:
        from games.openspiel import files

        return files(self.game)

    def make_game(self) -> "TreeGame":
        """The game that is played. Raises ValueError for one that OpenSpiel lacks, or that is too large."""
        from games.openspiel import openspiel

        return openspiel(self.game)

    def headline(self, iteration: int, responses: str | None) -> list[str]:
        """What was measured in the end, and how."""
        steps = chosen(self).total_steps
        trained = f", best responses of {steps:,} steps" if steps else ""
        return [
            f"PSRO with {self.meta_solver} and the oracle {self.oracle} on {self.game}, seed {self.seed}, "
            f"iteration {iteration}",
            f"(exact values{trained}):",
        ]


SMOKE = Config(
    iterations=2,
    ppo=PPO(steps=1_024, num_lanes=64, epochs=2, minibatches=2, hidden=(16,)),
    workers=1,
    smoke=True,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    return run(arguments, parse, planned)


def parse(given: list[str]) -> Config:
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began."""
    return parsed(given, Config(), SMOKE, ("game", "oracle"))


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from experiments.values import Computed
    from games.policies import Uniform
    from marl.exact import policy_part
    from metasolvers import META_SOLVERS

    game = config.make_game()
    players = len(game.agents)
    solver = checked_solver(config.meta_solver, players, alpha=config.alpha, population_size=config.population_size)
    if META_SOLVERS[config.meta_solver].takes == "zero_sum":
        _check_cancels(game, config.meta_solver)
    check_profiles(config.iterations, players)
    oracle, initial = chosen(config), [Uniform.of(space) for space in game.action_spaces]
    for player, policy in check_trainable(game, config.game, oracle, initial).items():
        policy_part(game, policy, player)  # which payoffs are computed from
    return Plan(
        config,
        game,
        initial,
        solver,
        checked_device(config.device),
        oracle,
        Computed(game, config.stop_at),
        config.workers if oracle.total_steps else 1,  # to start another process takes longer than the answers
    )


def _check_cancels(game: "TreeGame", solver: str) -> None:
    from games.exact import check_zero_sum

    try:
        check_zero_sum(game.tree)
    except ValueError as error:
        raise ValueError(f"{solver} cannot solve {game.name}: {error}; use --meta-solver alpha_rank") from error


if __name__ == "__main__":
    sys.exit(main())
