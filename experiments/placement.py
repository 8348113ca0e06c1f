"""Where a run is placed, what it was started with, and how to go on with it."""

import shlex
from dataclasses import asdict, is_dataclass, replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.load import command_of
from experiments.config import Configured, Recorded
from experiments.oracles import chosen, with_oracle
from experiments.run import RunFolder, create, invocation, read_settings, resume
from marl.atomic import digest
from marl.oracles import ORACLES, BehaviouralCloning

if TYPE_CHECKING:
    from games.game import Game, Playable

PLACEMENT = ("name", "run_dir", "workers", "resume", "smoke", "max_minutes")
"""Where and how, not what: no part of a run's configuration."""


def opened(config: Recorded, game: "Game | Playable") -> RunFolder:
    """The run folder of what is played, made or resumed. Raises ValueError or OSError where that cannot be."""
    files = config.files | expert_files(config)
    if config.resume:
        return resume(config.folder, settings(config), config.extendable, files)
    return create(config.folder, settings(config), resume_command(config), files, packages_of(game))


def expert_files(config: Recorded) -> dict[str, str]:
    """SHA-256 of the files of the expert that a run of PSRO imitates, by path; a training has copies of its own."""
    oracle = chosen(config)
    if not isinstance(oracle, BehaviouralCloning) or config.command == "train":
        return {}
    files = [Path(oracle.expert + suffix) for suffix in (".json", ".safetensors")]
    return {str(file): digest(file) for file in files if file.exists()}


def packages_of(game: "Game | Playable") -> list[str]:
    """Packages that somebody else's environment comes from; none of a game of ours."""
    if not hasattr(game, "make"):
        return []
    env = game.make()
    module = type(getattr(env, "env", env).unwrapped).__module__.partition(".")[0]
    env.close()
    found = packages_distributions()
    return sorted({name for top in (module, "gymnasium", "pettingzoo") for name in found.get(top, [])})


def began_as(folder: Path, placed: Configured) -> Configured:
    """The configuration that the run in `folder` was started with.

    Raises ValueError for a folder that is no run, or one of another command.
    """
    from marl.checkpoint import finished_iterations

    values = settings_of_command(folder, placed)
    try:
        # A run may have been extended since.
        values["iterations"] = max(values["iterations"], finished_iterations(folder / "snapshots") - 1)
        return replace(with_oracle(placed, values["oracle"]), **options(values))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder} was written by another version of this program ({error}): use that") from None


def settings_of_command(folder: Path, placed: Recorded) -> dict[str, Any]:
    """The settings that the run in `folder` was started with. Raises ValueError for one of another command."""
    values = read_settings(folder)
    made_by, wanted = command_of(values), placed.command
    if made_by != wanted:
        raise ValueError(f"{folder} is a run of {made_by}: this takes runs of {wanted} only, on {placed.plays}")
    return values


def settings(config: Recorded) -> dict[str, Any]:
    """What the results depend on, as plain JSON values; where another oracle has settings, those for PPO are idle."""
    values = {name: value for name, value in asdict(config).items() if name not in PLACEMENT}
    if values["oracle"] in values and values["oracle"] != "ppo":
        values.pop("ppo", None)
    return _lists(values)


def options(settings: dict[str, Any]) -> dict[str, Any]:
    """Options by name, of settings in JSON."""
    learning = {name: _made(ORACLES[name], settings[name]) for name in ORACLES if name in settings}
    return _tuples(settings) | learning


def _made(kind: type, settings: dict[str, Any]) -> Any:
    """The settings of an oracle, of theirs in JSON."""
    nested = {name: default for name, default in vars(kind()).items() if is_dataclass(default) and name in settings}
    return kind(**_tuples(settings) | {name: _made(type(default), settings[name]) for name, default in nested.items()})


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    """With lists for tuples, as JSON has it."""
    return {
        name: _lists(v) if isinstance(v, dict) else list(v) if isinstance(v, tuple) else v for name, v in values.items()
    }


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """With tuples for lists, as options have it."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def resume_command(config: Recorded, iterations: int | None = None) -> str:
    """What goes on with the run, as far as it was to go or to another number of iterations."""
    longer = "" if iterations is None else f" --iterations {iterations}"
    return f"{invocation()} {config.command} --run-dir {shlex.quote(str(config.folder))} --resume{longer}"
