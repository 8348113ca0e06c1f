"""PSRO with an alpha-rank meta-solver and PPO best responses on Bucket Brigade.

python experiments/psro_bucket_brigade.py --help
"""

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if __name__ == "__main__":  # run as a file, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.stop import end_at_once

    end_at_once()

import tyro

from experiments.stop import Stop, guarded
from marl.oracles.ppo import PPO

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    import numpy as np

    from experiments.run import RunFolder
    from games.bucket_brigade import BucketBrigade
    from games.game import Game, Policy
    from metasolvers import MetaSolver

PLACEMENT = (
    "name",
    "run_dir",
    "workers",
    "resume",
    "smoke",
)  # where and how, not what: no part of a run's configuration
EXTENDABLE = ("iterations", "device")  # a longer run begins like a shorter one, and devices come and go
MOST_PROFILES = 2**17
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
    """From payoffs to the meta-strategy: alpha_rank or uniform (zero_sum_nash is for two players)."""
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

    def __post_init__(self) -> None:
        for name, least in (
            ("iterations", 0),
            ("seed", 0),
            ("max_nights", 1),
            ("episodes", 2),
            ("gap_episodes", 2),
            ("threads", 1),
            ("workers", 1),
        ):
            if getattr(self, name) is not None and not least <= getattr(self, name) <= MOST.get(name, math.inf):
                most = f" and at most {MOST[name]:,}" if name in MOST else ""
                raise ValueError(f"{name} must be at least {least}{most}, got {getattr(self, name)}")
        if self.name is not None and self.name != Path(self.name).name:
            raise ValueError(f"name must be one folder's name, got {self.name!r}: use --run-dir for a path")
        if 0 != self.gap_budget < self.ppo.batch:
            raise ValueError(f"gap_steps must be 0 or at least one rollout ({self.ppo.batch}), got {self.gap_steps}")

    @property
    def folder(self) -> Path:
        default = f"{self.scenario}-{self.seed}" + ("-smoke" if self.smoke else "")
        return self.run_dir or Path("runs") / (self.name or default)

    def game(self) -> "BucketBrigade":
        """The game that is played. Raises ValueError for a scenario or rules that are not published."""
        from games.bucket_brigade import BucketBrigade

        return BucketBrigade(self.scenario, self.rules, self.max_nights)

    @property
    def gap_budget(self) -> int:
        return self.ppo.steps if self.gap_steps is None else self.gap_steps

    def resume_command(self, iterations: int | None = None) -> str:
        """The command that goes on with the run, as far as it was to go or to another number of iterations."""
        from experiments.run import invocation

        longer = "" if iterations is None else f" --iterations {iterations}"
        return f"{invocation()} psro --run-dir {shlex.quote(str(self.folder))} --resume{longer}"

    def settings(self) -> dict[str, Any]:
        """What the results depend on, as plain JSON values."""
        values = {name: value for name, value in asdict(self).items() if name not in PLACEMENT}
        return values | {"ppo": values["ppo"] | {"hidden": list(self.ppo.hidden)}}


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


class Plan(NamedTuple):
    """A run's parts, checked."""

    config: Config
    game: "Game"
    initial: "Policy"
    solver: "MetaSolver"
    device: str


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)

    def work(stop: Stop) -> None:
        stop.advice = "nothing is lost; run the same command again"
        config = parse(given)
        plan = planned(config)
        with opened(config) as run:
            stop.advice = f"go on with {config.resume_command(config.iterations)}"
            from experiments.psro import solve  # torch

            solve(plan, run, stop)

    return guarded(work)


def parse(given: list[str]) -> Config:
    """The configuration on the command line; what it leaves open is the default, tiny, or as a resumed run began."""
    default = SMOKE if "--smoke" in given else Config()
    if "--resume" in given and not {"-h", "--help"} & set(given):
        early, _ = tyro.cli(Early, args=given, add_help=False, return_unknown_args=True)
        default = began_as(replace(default, **vars(early)).folder, default)
    return tyro.cli(Config, prog="counterplay psro", args=given, default=default)


def began_as(folder: Path, placed: Config) -> Config:
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
        raise ValueError(f"{folder} was written by another version of this command ({error}): use that one") from None


def planned(config: Config) -> Plan:
    """The parts of the run. Raises ValueError for whatever could not work, before anything is trained or written."""
    from games.bucket_brigade.scripted import policy
    from metasolvers import meta_solver

    game = config.game()
    initial = policy(config.initial, game)
    solver, options = meta_solver(config.meta_solver), ("alpha", "population_size")
    known = {name: getattr(config, name) for name in options if name in signature(solver).parameters}
    solver = partial(solver, **known)
    players = len(game.agents)
    solver(_transfer(players))  # meta-solvers say themselves what they cannot solve
    profiles = (config.iterations + 1) ** players
    if profiles > MOST_PROFILES:
        raise ValueError(
            f"{config.iterations} iterations for {players} players are {profiles:,} profiles of policies to play, "
            f"more than {MOST_PROFILES:,}: lower iterations"
        )
    return Plan(config, game, initial, solver, checked_device(config.device))


def _transfer(players: int) -> "np.ndarray":
    """A small zero-sum payoff tensor: the first player may take 1 from the second."""
    import numpy as np

    payoffs = np.zeros((players, *(2,) * players))
    payoffs[0, 1], payoffs[1, 1] = 1, -1
    return payoffs


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


def opened(config: Config) -> "RunFolder":
    """The run folder, made or resumed. Raises ValueError or OSError where that cannot be."""
    from experiments.run import create, resume

    if config.resume:
        return resume(config.folder, config.settings(), EXTENDABLE)
    return create(config.folder, config.settings(), config.resume_command())


if __name__ == "__main__":
    sys.exit(main())
