"""Options that commands which run PSRO share; dataclasses that their configurations are made of."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import tyro

from experiments.checks import check_ranges
from experiments.config import R
from experiments.oracles import check_responder, chosen, with_steps
from marl.oracles import PPO, Oracle

if TYPE_CHECKING:
    from games.game import Game, Playable

LEAST = {
    "iterations": 0,
    "seed": 0,
    "max_nights": 1,
    "episodes": 2,
    "gap_episodes": 2,
    "duel_episodes": 2,
    "eval_episodes": 2,
    "checkpoint_every": 0,
    "seat": 0,
    "stop_at": 0,
    "threads": 1,
}
LEAST |= {"workers": 1, "pipeline": 1, "patience": 1, "max_minutes": 0}
MOST = {
    "episodes": 2**20,
    "gap_episodes": 2**24,
    "duel_episodes": 2**24,
    "eval_episodes": 2**20,
    "stop_at": sys.float_info.max,
    "max_minutes": sys.float_info.max,
    "pipeline": 64,
    "threads": 1024,
    "workers": 1024,
}


@dataclass(frozen=True)
class AnyGame:
    """What is played."""

    game: str = "pong"
    """A game of `counterplay games`, with parameters as in "pong(points=1)", or wrapped, "stacked(t_maze,frames=4)"; a
    PettingZoo environment such as connect_four_v3 or "mpe2.simple_tag_v3(max_cycles=25)"; openspiel:NAME, or
    openspiel_stepped:NAME where that is too large; gymnasium:NAME for one player."""

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of the files that options name and results depend on, by path."""
        from games.openspiel import PREFIX, files

        return files(self.game.removeprefix(PREFIX)) if self.game.startswith(PREFIX) else {}

    def make_game(self) -> "Game | Playable":
        """The game that is played. Raises ValueError for one that is unknown, or cannot be made."""
        from games import make

        return make(self.game)


@dataclass(frozen=True)
class Simulated:
    """Best responses that are trained, and payoffs and gaps that are estimated by play."""

    iterations: int = 4
    """Best responses per player. A finished run can be resumed with more."""
    initial: str = "uniform"
    """Scripted policy of the game that every player starts with: uniform, or one that it has, as Pong has follow."""
    meta_solver: str = "alpha_rank"
    """From payoffs to the meta-strategy: alpha_rank, max_welfare_cce, uniform, ...; `counterplay solve` lists them."""
    alpha: float = 10.0
    """Intensity of selection of alpha_rank, per largest gain a player can make by changing policy alone."""
    population_size: int = 50
    """Individuals per population of alpha_rank."""
    episodes: int = 256
    """Episodes per joint profile of policies."""
    stop_at: float | None = None
    """End once the gap in the whole game, as best responses found it, is no larger, two standard errors included."""
    reward: Literal["own", "team"] = "own"
    """What best responses maximise: the player's own return, or the sum over all players."""
    warm_start: bool = True
    """Let best responses go on from the player's latest policy, where that was trained, rather than from scratch."""
    oracle: str = "ppo"
    """Who trains best responses: ppo, recurrent_ppo, dqn, sac, ..., or exact. Settings of another oracle than PPO are
    options of its name, as in --oracle sac --sac.steps 50_000; --oracle sac --help shows them."""
    ppo: PPO = field(default_factory=PPO)
    """How PPO trains best responses."""
    gap_steps: int | None = None
    """Steps of the final gap's best responses, from scratch; the oracle's by default, 0 does without that gap."""
    gap_episodes: int = 8192
    """Fresh episodes of each strategy that a gap compares, and of the meta-strategy's play in every iteration."""

    def __post_init__(self) -> None:
        check_responder(self.oracle)
        self.gap_oracle  # noqa: B018 - raises where there can be none

    @property
    def gap_oracle(self) -> Oracle | None:
        """Trains the final gap's best responses; None where there is no such gap."""
        if self.gap_steps == 0:
            return None
        return chosen(self) if self.gap_steps is None else with_steps(chosen(self), self.gap_steps, "gap_steps")

    @property
    def gap_budget(self) -> int:
        """Steps that it was given for each."""
        return getattr(self.gap_oracle, "steps", self.gap_oracle.total_steps) if self.gap_oracle else 0

    def and_oracle(self, joined: str) -> str:
        """The oracle, after `joined`, as it stands in headlines and in the names of runs; nothing of PPO."""
        return "" if self.oracle == "ppo" else f"{joined}{self.oracle}"

    def measured_by(self, responses: str | None) -> str:
        """How what was measured in the end was measured; `responses` tells how those to the last gap were trained."""
        trained = f"; {responses} best responses of {self.gap_budget:,} steps" if responses else ""
        return f"(± standard error; {self.gap_episodes:,} episodes a strategy{trained}):"


@dataclass(frozen=True)
class Varied:
    """Which algorithm of the family it is, and when it ends."""

    targets: str = "mixture"
    """Whom best responses are trained against: the meta-strategy (mixture); what the others play after every
    recommendation, a response each (recommendations: JPSRO with max_gini_ce, ...); or, for every policy of a Nash
    equilibrium, those that it does not lose to (rectified)."""
    pipeline: int = 1
    """Policies per player that are in training at once, each for a part of the oracle's steps an iteration, against
    the meta-strategy of all below it (Pipeline PSRO)."""
    patience: int | None = None
    """End after so many iterations without a best response that gains, or without the gap in the whole game falling by
    more than its standard error."""
    max_minutes: float | None = None
    """End after the iteration under way (and the last gap) once so much time is over; --resume goes on."""

    @property
    def variety(self) -> str:
        """What it differs in from PSRO with one response to the meta-strategy, for headlines."""
        told = [] if self.targets == "mixture" else [f"responses to {self.targets}"]
        told += [] if self.pipeline == 1 else [f"a pipeline of {self.pipeline} levels"]
        return "".join(f", {words}" for words in told)


@dataclass(frozen=True)
class SideBySide:
    """Where work runs."""

    workers: int | None = None
    """Processes that train and play side by side, with equal results; by default one a core, up to one a player."""


@dataclass(frozen=True)
class Placed:
    """Where and how a run goes. To be mixed in first, which puts these options last."""

    seed: int = 0
    """Equal seeds give equal runs, bit for bit on one kind of CPU."""
    device: str = "cpu"
    """Where networks train: cpu, cuda, cuda:1, ..., or auto (cuda where there is one)."""
    threads: int = 1
    """CPU threads of a matrix product. For networks this small one is fastest; another number may change last bits."""
    name: str | None = None
    """Name of the run, whose folder is runs/NAME; by default what is played and the seed, with -smoke where given."""
    run_dir: Path | None = None
    """Folder of the run, instead of runs/NAME."""
    resume: bool = False
    """Go on with the run in that folder. Options not given are those it was started with."""
    smoke: bool = False
    """Tiny budgets where none are given: shows within a minute that everything works, and solves nothing."""

    played_as: ClassVar[Callable[[Any], str]]
    """What is played, as it stands in the run's default name."""

    def __post_init__(self) -> None:
        check_ranges(vars(self), LEAST, MOST)
        further = getattr(super(), "__post_init__", None)  # of the classes this is mixed into
        if further is not None:
            further()

    @property
    def folder(self) -> Path:
        default = f"{self.played_as()}-{self.seed}" + ("-smoke" if self.smoke else "")
        return self.run_dir or Path("runs") / (self.name or default)


PLACING = ("seed", "name", "run_dir", "resume", "smoke")
"""Options that say which run is meant, beside what is played."""


def early(given: list[str], config: type[R], names: tuple[str, ...]) -> dict[str, Any]:
    """What the command line says of the options that decide the defaults of all others: `names` and PLACING."""
    wanted = [option for option in fields(config) if option.name in (*names, *PLACING)]
    first = make_dataclass("Early", [(option.name, option.type, option.default) for option in wanted], frozen=True)
    known: Any
    known, _ = tyro.cli(first, args=given, add_help=False, return_unknown_args=True)
    return vars(known)


def as_name(game: str) -> str:
    """A game string as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", game).strip("-")
