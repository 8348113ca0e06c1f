"""One best response, by any oracle, on any game: `counterplay train ppo --game cart_pole`.

python -m experiments.train ppo --help
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, NoReturn

import tyro

from experiments.checks import checked_device
from experiments.known_settings import settings_of
from experiments.options import AnyGame, Placed, as_name, early
from experiments.oracles import REGISTRY, check_oracle, chosen, small, untrained
from experiments.stop import Stop, guarded
from marl.oracles import NFSP, ORACLES, BehaviouralCloning, JointTraining, Oracle

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from experiments.opponents import Opponents
    from games.game import Game, Playable, Policy


@dataclass(frozen=True)
class Task(AnyGame):
    """What is learned, and against whom."""

    game: str = "cart_pole"  # of some oracles another: `GAMES`
    seat: int = 0
    """Player that learns, counted from 0."""
    against: str = "uniform"
    """Who plays all other seats: a scripted policy of the game, by name; a run's folder, for the last meta-strategy of
    PSRO or the policy of a training; or a policy's files, without suffix. Of joint training, in which all players learn
    and `seat` is the one that is looked at: the seats that do not learn, and who self-play is measured against. Of
    fictitious play nobody: there all players learn."""
    reward: Literal["own", "team"] = "own"
    """What is maximised: the player's own return, or the sum over all players."""
    start: str | None = None
    """Policy to go on from, rather than from scratch: a training's folder, or a policy's files without suffix."""
    checkpoint_every: int | None = None
    """Steps between checkpoints, from which a training that died goes on; by default a tenth of it, 0 for none."""
    eval_episodes: int = 100
    """Fresh episodes that the policy plays in the end, as many greedily as by its probabilities."""


@dataclass(frozen=True)
class Config(Placed, Task):
    """Train a best response, and measure it.

    Results go to a run folder; Ctrl-C saves the training, and --resume goes on to exactly the result of an
    uninterrupted one. Defaults depend on the game: --game NAME --help shows them.
    """

    oracle: Annotated[str, tyro.conf.Suppress] = "ppo"

    command: ClassVar[str] = "train"
    plays: ClassVar[str] = "any game"
    extendable: ClassVar[tuple[str, ...]] = ("device", "checkpoint_every")
    """Devices come and go, and checkpoints decide nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_oracle(self.oracle)

    def played_as(self) -> str:
        seat = f"-seat_{self.seat}" if self.seat else ""
        return f"{as_name(self.game)}{seat}-{self.oracle}"

    @property
    def every(self) -> int:
        """Steps between checkpoints; 0 for none."""
        tenth = max(1, chosen(self).total_steps // 10)
        return tenth if self.checkpoint_every is None else self.checkpoint_every


GAMES = {"nfsp": "matching_pennies"}
"""By default, of oracles to which one player is nothing to learn from."""


class Lesson(NamedTuple):
    """A training's parts, checked."""

    config: Config
    game: "Game | Playable"
    oracle: Oracle
    device: str
    others: "Opponents | None"
    """None where they are in the run's folder."""
    start: "Policy | None"
    expert: "Policy | None" = None
    """Who is imitated; None where nobody is, and where it is in the run's folder."""


def configuration(oracle: str, **values: Any) -> Config:
    """One that has the oracle's settings as a field of its name, whose options have no prefix."""
    check_oracle(oracle)
    kind: type[Config] = Config
    settings = ORACLES[oracle]
    if fields(settings):
        unprefixed: Any = Annotated[settings, tyro.conf.arg(name="")]
        entries = [(oracle, unprefixed, field(default_factory=settings))]
        kind = make_dataclass("Config", entries, bases=(Config,), namespace={"__doc__": Config.__doc__}, frozen=True)
    return kind(**{"oracle": oracle} | values)


def defaults(oracle: str, game: str, smoke: bool) -> Config:
    """Options for an oracle and a game, by its name and parameters."""
    config = configuration(oracle, game=game)
    if not hasattr(config, oracle):
        return config
    settings = settings_of(game).get(oracle, chosen(config))
    values: dict[str, Any] = {oracle: settings}
    if smoke:
        values = {oracle: small(oracle, settings), "eval_episodes": 8, "smoke": True}
    return replace(config, **values)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (see `experiments.stop.guarded`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)

    def work(stop: Stop) -> None:
        stop.advice = "nothing is lost; run the same command again"
        config = parse(given)
        lesson = planned(config)
        from experiments.placement import opened, resume_command

        with opened(config, lesson.game) as run:
            stop.advice = f"go on with {resume_command(config)}"
            from experiments.training import learn  # torch

            learn(lesson, run, stop)

    return guarded(work)


def parse(given: list[str]) -> Config:
    """The configuration on the command line, which begins with an oracle; that of a resumed run it may leave out.

    What it leaves open is the default of oracle and game, tiny, or as a resumed run began.
    """
    named = [word.replace("-", "_") for word in given[:1] if not word.startswith("-")]
    rest = given[len(named) :]
    for name in named:
        check_oracle(name)
    known = early(rest, Config, ("game", "seat"))
    if known["resume"] and not {"-h", "--help"} & set(given):
        if not named and not any(word.partition("=")[0] in ("--name", "--run-dir") for word in rest):
            raise ValueError(
                "--resume goes on with a training: name it by --name or --run-dir, or by its oracle and game"
            )
        folder = replace(configuration(*(named or ["ppo"])), **known).folder
        default = began_as(folder)
        if named not in ([], [default.oracle]):
            raise ValueError(f"{folder} was trained by {default.oracle}, not by {named[0]}")
    elif named:
        told = any(word.partition("=")[0] == "--game" for word in rest)
        game = known["game"] if told else GAMES.get(named[0], known["game"])
        default = defaults(named[0], game, known["smoke"])
    else:
        _tell_oracles(given)
    prog = f"counterplay train {default.oracle}"
    return tyro.cli(type(default), prog=prog, args=rest, default=default, registry=REGISTRY)


def _tell_oracles(given: list[str]) -> NoReturn:
    """End with the help or the error for a command line without an oracle."""
    parser = argparse.ArgumentParser(prog="counterplay train", description="Train a best response, and measure it.")
    choices = parser.add_subparsers(metavar="ORACLE", required=True)
    for name, kind in ORACLES.items():
        choices.add_parser(name, help=(kind.__doc__ or "").partition("\n")[0])
    if {"-h", "--help"} & set(given):
        parser.print_help()
        parser.exit()
    parser.error(f"name an oracle first ({', '.join(ORACLES)}), as in: counterplay train ppo --game cart_pole")


def began_as(folder: Path) -> Config:
    """The configuration that the training in `folder` was started with.

    Raises ValueError for a folder that is none, or of another version.
    """
    from experiments.placement import options, settings_of_command

    values = settings_of_command(folder, Config())
    try:
        return configuration(**options(values))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder} was written by another version of this program ({error}): use that") from None


def planned(config: Config) -> Lesson:
    """The parts of the training. Raises ValueError for what could not work, before anything is trained or written."""
    game, oracle, device = config.make_game(), chosen(config), checked_device(config.device)
    if config.seat >= len(game.agents):
        raise ValueError(
            f"seat must be one of 0..{len(game.agents) - 1}, the players of {config.game}; got {config.seat}"
        )
    if config.reward == "team" and isinstance(oracle, JointTraining) and oracle.team_share:
        raise ValueError("--reward team and --team-share would count the team's reward twice: leave one of them out")
    if isinstance(oracle, NFSP) and config.against != Task.against:
        raise ValueError(f"nfsp lets all players learn, and {config.against} would play no seat: leave out --against")
    if config.resume and (config.folder / "opponents").exists():
        return Lesson(config, game, oracle, device, None, None)
    from experiments.opponents import opponents, policy_at

    others = opponents(config.against, game, config.seat)
    start = None if config.start is None else policy_at(Path(config.start))
    untrained(game, config.game, oracle, *others, config.seat, start, alone=False)
    expert = None
    if isinstance(oracle, BehaviouralCloning):
        from marl.oracles.behavioural_cloning_learner import expert_of

        expert = expert_of(oracle)
    return Lesson(config, game, oracle, device, others, start, expert)


if __name__ == "__main__":
    sys.exit(main())
