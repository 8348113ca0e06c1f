"""PSRO on finite games of OpenSpiel, with exact payoffs and gaps: the double oracle, or trained best responses.

python experiments/psro_openspiel.py --help
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

from experiments.checks import ANYTIME, check_profiles, checked_device, checked_solver, for_any_game, wants_zero_sum
from experiments.command import Plan, parsed, run
from experiments.options import Placed, SideBySide, Varied, as_name
from experiments.oracles import check_responder, check_trainable, chosen, part
from games.spelling import unknown
from marl.oracles import DQN, PPO, Oracle

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from experiments.answers import Aim
    from games.tree_game import TreeGame
    from marl.psro import Solve

LITTLE = PPO(steps=65_536, num_lanes=512, minibatches=4, learning_rate=1e-2, entropy_start=0.01, hidden=(32,))
"""For games of a few dozen information states."""
SETTINGS: dict[str, Oracle] = {
    "dqn": DQN(
        steps=131_072,
        num_lanes=256,
        horizon=4,
        gradient_steps=32,
        minibatch=512,
        learning_rate=3e-3,
        gamma=1.0,
        learning_starts=1024,
        target_rate=0.01,
        hidden=(128,),
    ),
}
"""Of other oracles than PPO: episodes are a few moves long, so nothing is discounted, and lanes are looked up in
tables, so that many of them cost little."""


@dataclass(frozen=True)
class Solved:
    """What is played, and how it is solved."""

    game: str = "kuhn_poker"
    """Game string of OpenSpiel, such as leduc_poker or "kuhn_poker(players=3)"; its whole tree is walked once."""
    oracle: str = "exact"
    """Best responses: computed, which with zero_sum_nash is the double oracle (exact), or trained by ppo, dqn, ....
    Settings of another oracle than PPO are options of its name: --oracle dqn --help shows them."""
    response: Literal["best", "preference"] = "best"
    """What the exact oracle computes: best responses, or preference-based ones, which alpha_rank converges with
    (alpha-PSRO): what beats the player's own policy in most profiles of the meta-strategy."""
    meta_solver: str = "zero_sum_nash"
    """From payoffs to the meta-strategy: alpha_rank, zero_sum_nash, ...; `counterplay solve` lists them. Or anytime:
    of all mixtures of the policies found, that which loses least in the whole game, if it is zero-sum."""
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
        if self.response == "preference" and self.oracle != "exact":
            raise ValueError(f"preference-based responses are computed: use --oracle exact, got {self.oracle}")


@dataclass(frozen=True)
class Config(Placed, SideBySide, Varied, Solved):
    """Policy-space response oracles (PSRO) on a finite game of OpenSpiel, measured exactly.

    Every iteration adds one best response per player to the meta-strategy so far, and solves the empirical game again;
    payoffs, and what the meta-strategy loses to best responses in the whole game, are computed in the game's tree.
    Results go to a run folder; Ctrl-C loses at most the best response in training, and --resume goes on to exactly the
    result of an uninterrupted run.
    """

    command: ClassVar[str] = "psro-openspiel"
    plays: ClassVar[str] = "games of OpenSpiel"
    extendable: ClassVar[tuple[str, ...]] = ("iterations", "stop_at", "patience", "device")
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
            f"PSRO with {self.meta_solver} and the oracle {self.oracle} on {self.game}{self.variety}, "
            f"seed {self.seed}, iteration {iteration}",
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
    return parsed(given, Config(), SMOKE, ("game", "oracle"), SETTINGS)


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from experiments.values import Computed
    from games.policies import Uniform
    from marl.exact import policy_part
    from marl.oracles.exact import Preference

    game = config.make_game()
    players = len(game.agents)
    asked = wants_zero_sum(config.meta_solver, config.targets, players)
    solve, aim = _variant(config, game)
    if asked:
        _check_zero_sum(game, asked)
    check_profiles(config.iterations, players)
    oracle, initial = chosen(config), [Uniform.of(space) for space in game.action_spaces]
    if config.response == "preference":
        oracle = Preference()
    oracle = part(oracle, config.pipeline, config.targets)
    for player, policy in check_trainable(game, config.game, oracle, initial).items():
        policy_part(game, policy, player)  # which payoffs are computed from
    return Plan(
        config,
        game,
        initial,
        solve,
        checked_device(config.device),
        oracle,
        Computed(game, config.meta_solver),
        config.workers if oracle.total_steps else 1,  # to start another process takes longer than the answers
        aim,
    )


def _variant(config: Config, game: "TreeGame") -> tuple["Solve", "Aim"]:
    """What finds the meta-strategy, and whom responses are trained against.

    Raises ValueError for what is unknown, or cannot solve games of so many players, and for targets that anytime lacks.
    """
    from experiments.answers import at
    from marl.exact import anytime, anytime_targets
    from marl.psro import from_payoffs
    from marl.targets import targets
    from metasolvers import META_SOLVERS

    aim = at(targets(config.targets).find)
    if config.meta_solver == ANYTIME:
        if config.targets != "mixture" or config.pipeline > 1 or config.response != "best":
            raise ValueError("anytime has targets of its own: leave out --targets, --pipeline and --response")
        return partial(anytime, game), partial(anytime_targets, game)
    if config.meta_solver not in META_SOLVERS:
        raise unknown("meta-solver", config.meta_solver, (*META_SOLVERS, ANYTIME))
    alpha, size = config.alpha, config.population_size
    solver = checked_solver(config.meta_solver, len(game.agents), alpha=alpha, population_size=size)
    return from_payoffs(solver), aim


def _check_zero_sum(game: "TreeGame", asked: str) -> None:
    from games.exact import check_zero_sum

    try:
        check_zero_sum(game.tree)
    except ValueError as error:
        raise ValueError(f"{asked} cannot solve {game.name}: {error}; {for_any_game(asked)}") from error


if __name__ == "__main__":
    sys.exit(main())
