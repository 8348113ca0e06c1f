"""PSRO with an alpha-rank meta-solver and PPO best responses on Bucket Brigade.

python experiments/psro_bucket_brigade.py --help
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

from experiments.checks import check_profiles, check_ranges, checked_device, checked_solver
from experiments.command import Plan, parsed, run
from marl.oracles.ppo import PPO

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from games.bucket_brigade import BucketBrigade

LEAST = {"iterations": 0, "seed": 0, "max_nights": 1, "episodes": 2, "gap_episodes": 2, "threads": 1, "workers": 1}
MOST = {"episodes": 2**20, "gap_episodes": 2**24, "threads": 1024, "workers": 1024}


@dataclass(frozen=True)
class Config:
    """Policy-space response oracles (PSRO) on Bucket Brigade.

    Every iteration trains one best response per player against the meta-strategy so far, plays all new profiles of
    policies, and solves the empirical game again. Results go to a run folder; Ctrl-C loses at most the best response
    in training, and --resume goes on to exactly the result of an uninterrupted run.
    """

    scenario: str = "rest_trap"
    """Scenario of Bucket Brigade: default, easy, hard, trivial_cooperation, early_containment, greedy_neighbor,
    sparse_heroics, rest_trap, chain_reaction, deceptive_calm, overcrowding, mixed_motivation, minimal_specialization,
    positional_default, v2_minimal, default_continuous, asym_b05_k09_c05 or asym_b09_k09_c05."""
    rules: str = "quiet"
    """Published dialect: quiet (episodes end when nothing burns) or engine (when all is safe, or ruined)."""
    max_nights: int = 1000
    """Nights after which an episode is cut; the rules themselves have no limit. Learners look beyond the cut."""
    iterations: int = 4
    """Best responses per player. A finished run can be resumed with more."""
    initial: str = "uniform"
    """Scripted policy that every player starts with: uniform, specialist, always_rest, ..."""
    meta_solver: str = "alpha_rank"
    """From payoffs to the meta-strategy: alpha_rank, max_welfare_cce, uniform, ...; `counterplay solve` lists them."""
    alpha: float = 10.0
    """Intensity of selection of alpha_rank, per largest gain a player can make by changing policy alone."""
    population_size: int = 50
    """Individuals per population of alpha_rank."""
    episodes: int = 256
    """Episodes per joint profile of policies."""
    reward: Literal["own", "team"] = "own"
    """What best responses maximise: the player's own return, or the sum over all players."""
    warm_start: bool = True
    """Let best responses go on from the player's latest policy, where PPO trained that, rather than from scratch."""
    ppo: PPO = field(default_factory=PPO)
    """How best responses are trained."""
    gap_steps: int | None = None
    """Steps of the final gap's best responses, from scratch; ppo.steps by default, 0 does without that gap."""
    gap_episodes: int = 8192
    """Fresh episodes of each strategy that a gap compares, and of the meta-strategy's play in every iteration."""
    seed: int = 0
    """Equal seeds give equal runs, bit for bit on one kind of CPU."""
    device: str = "cpu"
    """Where networks train: cpu, cuda, cuda:1, ..., or auto (cuda where there is one)."""
    threads: int = 1
    """CPU threads of a matrix product. For networks this small one is fastest; another number may change last bits."""
    workers: int | None = None
    """Processes that train and play side by side, with equal results; by default one a core, up to one a player."""
    name: str | None = None
    """Name of the run, whose folder is runs/NAME; SCENARIO-SEED by default, with -smoke where that is given."""
    run_dir: Path | None = None
    """Folder of the run, instead of runs/NAME."""
    resume: bool = False
    """Go on with the run in that folder. Options not given are those it was started with."""
    smoke: bool = False
    """Tiny budgets where none are given: shows within a minute that everything works, and solves nothing."""

    command: ClassVar[str] = "psro"
    plays: ClassVar[str] = "Bucket Brigade"
    extendable: ClassVar[tuple[str, ...]] = ("iterations", "device")
    """A longer run begins like a shorter one, and devices come and go."""
    further: ClassVar[tuple[str, ...]] = ("responses",)
    """Commands to look at a finished run with, beside those for any run."""

    def __post_init__(self) -> None:
        check_ranges(vars(self), LEAST, MOST)
        if 0 != self.gap_budget < self.ppo.batch:
            raise ValueError(f"gap_steps must be 0 or at least one rollout ({self.ppo.batch}), got {self.gap_steps}")

    @property
    def folder(self) -> Path:
        default = f"{self.scenario}-{self.seed}" + ("-smoke" if self.smoke else "")
        return self.run_dir or Path("runs") / (self.name or default)

    @property
    def files(self) -> dict[str, str]:
        return {}

    def game(self) -> "BucketBrigade":
        """The game that is played. Raises ValueError for a scenario or rules that are not published."""
        from games.bucket_brigade import BucketBrigade

        return BucketBrigade(self.scenario, self.rules, self.max_nights)

    @property
    def gap_budget(self) -> int:
        return self.ppo.steps if self.gap_steps is None else self.gap_steps

    def headline(self, iteration: int, responses: str | None) -> list[str]:
        """What was measured in the end, and how; `responses` tells how those were trained that the gap is from."""
        trained = f"; {responses} best responses of {self.gap_budget:,} steps" if responses else ""
        return [
            f"PSRO with {self.meta_solver} on {self.scenario} ({self.rules} rules), seed {self.seed}, "
            f"iteration {iteration}",
            f"(± standard error; {self.gap_episodes:,} episodes a strategy{trained}):",
        ]


SMOKE = Config(
    iterations=1,
    episodes=32,
    ppo=PPO(steps=4_096, num_lanes=128, epochs=2, minibatches=4),
    gap_steps=4_096,
    gap_episodes=128,
    workers=1,
    smoke=True,
)


@dataclass(frozen=True)
class Early:
    """The options that decide what the defaults of all others are."""

    scenario: str = Config.scenario
    seed: int = Config.seed
    name: str | None = None
    run_dir: Path | None = None
    resume: bool = False
    smoke: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    return run(arguments, parse, planned)


def parse(given: list[str]) -> Config:
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began."""
    return parsed(given, Config(), SMOKE, Early)


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from experiments.values import Played
    from games.bucket_brigade.scripted import policy

    game = config.game()
    players = len(game.agents)
    initial = [policy(config.initial, game)] * players
    solver = checked_solver(config.meta_solver, players, alpha=config.alpha, population_size=config.population_size)
    check_profiles(config.iterations, players)
    return Plan(
        config,
        game,
        initial,
        solver,
        checked_device(config.device),
        config.ppo,
        Played(game, config.episodes, config.gap_episodes, config.seed),
        config.workers,
        replace(config.ppo, steps=config.gap_budget) if config.gap_budget else None,
    )


if __name__ == "__main__":
    sys.exit(main())
