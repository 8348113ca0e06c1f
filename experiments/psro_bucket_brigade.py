"""PSRO with an alpha-rank meta-solver on Bucket Brigade; best responses by PPO, or another oracle.

python experiments/psro_bucket_brigade.py --help
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

from experiments.checks import check_profiles, checked_device, checked_solver, wants_zero_sum
from experiments.command import Plan, parsed, run
from experiments.options import Placed, SideBySide, Simulated, Varied
from experiments.oracles import check_trainable, chosen, part
from marl.oracles import PPO

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from games.bucket_brigade import BucketBrigade


@dataclass(frozen=True)
class Rules:
    """What is played."""

    scenario: str = "rest_trap"
    """Scenario of Bucket Brigade: default, easy, hard, trivial_cooperation, early_containment, greedy_neighbor,
    sparse_heroics, rest_trap, chain_reaction, deceptive_calm, overcrowding, mixed_motivation, minimal_specialization,
    positional_default, v2_minimal, default_continuous, asym_b05_k09_c05 or asym_b09_k09_c05."""
    rules: str = "quiet"
    """Published dialect: quiet (episodes end when nothing burns) or engine (when all is safe, or ruined)."""
    max_nights: int = 1000
    """Nights after which an episode is cut; the rules themselves have no limit. Learners look beyond the cut."""


@dataclass(frozen=True)
class Config(Placed, SideBySide, Varied, Simulated, Rules):
    """Policy-space response oracles (PSRO) on Bucket Brigade.

    Every iteration trains one best response per player against the meta-strategy so far, plays all new profiles of
    policies, and solves the empirical game again. Results go to a run folder; Ctrl-C loses at most the best response
    in training, and --resume goes on to exactly the result of an uninterrupted run.
    """

    command: ClassVar[str] = "psro"
    plays: ClassVar[str] = "Bucket Brigade"
    extendable: ClassVar[tuple[str, ...]] = ("iterations", "stop_at", "patience", "device")
    """A longer run begins like a shorter one, and devices come and go."""
    further: ClassVar[tuple[str, ...]] = ("responses",)
    """Commands to look at a finished run with, beside those for any run."""

    def played_as(self) -> str:
        return self.scenario + self.and_oracle("-")

    @property
    def files(self) -> dict[str, str]:
        return {}

    def make_game(self) -> "BucketBrigade":
        """The game that is played. Raises ValueError for a scenario or rules that are not published."""
        from games.bucket_brigade import BucketBrigade

        return BucketBrigade(self.scenario, self.rules, self.max_nights)

    def headline(self, iteration: int, responses: str | None) -> list[str]:
        """What was measured in the end, and how; `responses` tells how those were trained that the gap is from."""
        return [
            f"PSRO with {self.meta_solver}{self.and_oracle(' and ')} on {self.scenario} ({self.rules} rules)"
            f"{self.variety}, "
            f"seed {self.seed}, iteration {iteration}",
            self.measured_by(responses),
        ]


SMOKE = Config(
    iterations=1,
    episodes=32,
    ppo=PPO(steps=4_096, num_lanes=128, epochs=2, minibatches=4),
    gap_episodes=128,
    workers=1,
    smoke=True,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    return run(arguments, parse, planned)


def parse(given: list[str]) -> Config:
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began."""
    return parsed(given, Config(), SMOKE, ("scenario",))


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from experiments.answers import at
    from experiments.values import Played
    from games.bucket_brigade.scripted import policy
    from marl.psro import from_payoffs
    from marl.targets import targets

    game = config.make_game()
    players = len(game.agents)
    initial = [policy(config.initial, game)] * players
    wants_zero_sum(config.meta_solver, config.targets, players)
    solver = checked_solver(config.meta_solver, players, alpha=config.alpha, population_size=config.population_size)
    check_profiles(config.iterations, players)
    check_trainable(game, config.scenario, chosen(config), initial)
    return Plan(
        config,
        game,
        initial,
        from_payoffs(solver),
        checked_device(config.device),
        part(chosen(config), config.pipeline, config.targets),
        Played(game, config.episodes, config.gap_episodes, config.seed, config.meta_solver, moment="night"),
        config.workers,
        at(targets(config.targets).find),
        config.gap_oracle,
    )


if __name__ == "__main__":
    sys.exit(main())
