"""PSRO with an alpha-rank meta-solver and PPO best responses on Bucket Brigade.

    python experiments/psro_bucket_brigade.py --help
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tyro

from experiments.stop import Stop, guarded
from marl.oracles.ppo import PPO

# Whatever imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from experiments.run import RunFolder
    from games.game import Game
    from metasolvers import MetaSolver

COMMAND = "python experiments/psro_bucket_brigade.py"
PLACEMENT = ("name", "run_dir", "resume", "smoke")  # where and how, not what: no part of a run's configuration
EXTENDABLE = ("iterations",)  # a longer run begins like a shorter one
MOST_PROFILES = 2**17


@dataclass(frozen=True)
class Config:
    """Policy-space response oracles (PSRO) on Bucket Brigade.

    Every iteration trains one best response per player against the meta-strategy so far, plays all new profiles of
    policies, and solves the empirical game again. Results go to a run folder; Ctrl-C loses at most the best response
    in training, and --resume goes on to exactly the result of an uninterrupted run.
    """

    scenario: str = "rest_trap"
    """Scenario of Bucket Brigade; a name that is not known lists those near it."""
    rules: str = "quiet"
    """When episodes end: "quiet" as in the Python environment (no fire left), "engine" as in the Rust engine."""
    max_nights: int = 1000
    """Nights after which an episode is cut; the rules themselves have no limit."""
    iterations: int = 4
    """Best responses per player. A finished run can be resumed with more."""
    initial: str = "uniform"
    """Policy that every player starts with."""
    meta_solver: str = "alpha_rank"
    """From payoffs to the meta-strategy: alpha_rank, uniform, ..."""
    alpha: float = 10.0
    """Intensity of selection of alpha_rank, per largest gain a player can make by changing policy alone."""
    population_size: int = 50
    """Individuals per population of alpha_rank."""
    episodes: int = 512
    """Episodes per joint profile of policies; even, since gaps select on one half and score on the other."""
    reward: Literal["own", "team"] = "own"
    """What best responses maximise: the player's own return, or the sum over all players."""
    ppo: PPO = field(default_factory=PPO)
    """How best responses are trained."""
    gap_steps: int = 4_000_000
    """Training steps of one last best response per player, which bound the final gap from below; 0 does without."""
    gap_episodes: int = 4096
    """Episodes of each strategy that is compared for that gap, and of the meta-strategy's play in every iteration."""
    seed: int = 0
    """Equal seeds give equal runs, bit for bit on one kind of CPU."""
    device: str = "cpu"
    """Where networks train: cpu, cuda, cuda:1, ..., or auto (cuda where there is one)."""
    name: str | None = None
    """Name of the run, whose folder is runs/NAME; SCENARIO-SEED by default, with -smoke where that is given."""
    run_dir: Path | None = None
    """Folder of the run, instead of runs/NAME."""
    resume: bool = False
    """Go on with the run in that folder. Options not given are those it was started with."""
    smoke: bool = False
    """Tiny budgets where none are given: shows in half a minute that everything works, and solves nothing."""

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.seed < 0 or self.max_nights < 1:
            raise ValueError(
                "iterations and seed must not be negative and max_nights at least 1, "
                f"got {self.iterations}, {self.seed} and {self.max_nights}"
            )
        if self.episodes < 4 or self.episodes % 2:
            raise ValueError(f"episodes must be even and at least 4, got {self.episodes}")
        if self.gap_episodes < 4:
            raise ValueError(f"gap_episodes must be at least 4, got {self.gap_episodes}")
        if 0 < self.gap_steps < self.ppo.batch or self.gap_steps < 0:
            raise ValueError(f"gap_steps must be 0 or at least one rollout ({self.ppo.batch}), got {self.gap_steps}")

    @property
    def folder(self) -> Path:
        return self.run_dir or Path("runs") / (self.name or default_name(self.scenario, self.seed, self.smoke))

    def settings(self) -> dict[str, Any]:
        """What the results depend on, as plain JSON values."""
        values = {name: value for name, value in asdict(self).items() if name not in PLACEMENT}
        return values | {"ppo": values["ppo"] | {"hidden": list(self.ppo.hidden)}}


SMOKE = Config(
    iterations=2,
    episodes=64,
    ppo=PPO(steps=16_384, num_lanes=256, horizon=16, epochs=2, minibatches=4),
    gap_steps=16_384,
    gap_episodes=256,
    smoke=True,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    folder = Path()
    
    def work(stop: Stop) -> None:
        nonlocal folder
        config = parse(given)
        game, solver, device = check(config)
        from experiments.psro import solve
        ...

    return guarded(work, lambda: ...)
