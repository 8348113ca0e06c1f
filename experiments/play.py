"""One episode of a run's policies, to look at: as text, in a window, or as a film.

python -m experiments.play runs/rest_trap-0 --save episode.gif
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import tyro

from analysis.load import command_of
from experiments import RUNNERS
from experiments.stop import guarded

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    import numpy as np

    from experiments.config import Recorded
    from experiments.episode import Episode
    from games.versus import Populations
    from games.window import Window

LONGEST = 20.0
"""Seconds that a film may take without being hurried."""


class Cast(NamedTuple):
    """Who may play, and what is said of it."""

    config: "Recorded"
    populations: "Populations"
    sigma: "np.ndarray"  # [k_1, ..., k_N]
    which: str
    """What the distribution is called."""
    origin: Callable[[int, int], str]
    """What a player's policy of a number is."""
    iteration: int | None = None
    """Of PSRO: which one's they are."""
    seals: tuple[str, ...] = ()
    """SHA-256 of the policies as they are stored: of PSRO in player order, of a training its own and the others'."""


@dataclass(frozen=True)
class Options:
    """Play one episode of a run's policies, and look at it.

    Without --profile, one joint profile is drawn from the meta-strategy. Of a training, the policy that was trained
    plays with those it was trained against.
    """

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    iteration: int | None = None
    """Iteration whose populations and meta-strategy are taken; the last by default."""
    profile: tuple[int, ...] | None = None
    """A policy per player, by its number: 0 is the initial one, then best responses as they came. (Of a training, the
    one that was trained is 0, and the others' are numbered as they came.)"""
    seed: int = 0
    """Draws the profile, and what happens in the episode."""
    render: Literal["ansi", "human", "none"] = "ansi"
    """Text, which for Bucket Brigade is a line a night (ansi), a window (human; takes pygame-ce), or nothing to see."""
    save: Path | None = None
    """Film to write, an episode.gif or an episode.mp4 (which takes imageio-ffmpeg)."""
    fps: float | None = None
    """Steps a second, in the window and the film; by default 2, or more where a film would take above 20 s."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        from games.film import check_fps

        check_fps(2.0 if self.fps is None else self.fps)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Raises as `show` does, and ValueError where a package is missing that was asked for."""
    options = tyro.cli(Options, prog="counterplay play", args=None if arguments is None else list(arguments))
    from gymnasium.error import DependencyNotInstalled

    try:
        show(options)
    except DependencyNotInstalled as error:
        raise ValueError(error) from None
    return 0


def show(options: Options) -> None:
    """Play, show and save the episode. Raises ValueError for what the run does not hold, OSError for bad files."""
    from rich.console import Console

    from experiments.episode import check_pictured, episode
    from games import film
    from games.window import Window

    if options.save is not None:
        film.writer_for(options.save)  # fails now rather than after the episode
    cast = cast_of(options.run, options.iteration)
    config, numbers = cast.config, _numbers(cast, options.profile, options.seed)
    game, title = config.make_game(), config.played_as()
    pictured = options.render == "human" or options.save is not None
    if pictured:
        check_pictured(game, title)
    window = Window(title) if options.render == "human" else None
    profile = [population[i] for population, i in zip(cast.populations, numbers, strict=True)]
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for player, (agent, number) in enumerate(zip(game.agents, numbers, strict=True)):
        console.print(f"{agent} plays policy {number}, {cast.origin(player, number)}")
    if cast.sigma.size > 1 or cast.which:
        console.print(f"a profile of probability {cast.sigma[numbers]:.3g} in {cast.which}")
    played = episode(game, profile, options.seed, "play/" + "-".join(map(str, numbers)), pictured)
    for line in played.lines if options.render == "ansi" else ():
        console.print(line)
    steps = len(played.rewards)
    fps = options.fps or min(30.0, max(2.0, steps / LONGEST))
    if window is not None:
        _screen(window, played, fps)
    returns = played.rewards.astype(float).sum(axis=0)
    earned = ", ".join(f"{agent} {value:.1f}" for agent, value in zip(game.agents, returns, strict=True))
    moment = "night" if config.command == "psro" else "step"
    console.print(f"returns after {steps} {moment}s: {earned}; team {returns.sum():.1f}")
    if options.save is not None:
        film.save((picture() for picture in played.pictures), options.save, fps)
        console.print(f"saved {options.save}")


def _screen(window: "Window", played: "Episode", fps: float) -> None:
    """Show the episode until its end, or until the user closes the window."""
    from games import film

    for picture in played.pictures:
        if not window.dismissed:
            window.show(picture(), fps)
    window.show(played.pictures[-1](), 1 / film.HOLD)
    window.close()


def cast_of(run: Path, iteration: int | None = None) -> Cast:
    """Of whichever command's run. Raises ValueError for what it does not hold."""
    from experiments.run import read_settings

    command = command_of(read_settings(run))
    if command != "train":
        return _of_iteration(run, command, iteration)
    if iteration is not None:
        raise ValueError(f"{run} is a training, and has no iterations: leave out --iteration")
    return _of_training(run)


def _of_training(run: Path) -> Cast:
    from experiments.opponents import TOGETHER, TRAINED, met, policy_at
    from experiments.train import began_as
    from marl.atomic import MANIFEST, digest

    config, policy = began_as(run), policy_at(run)
    populations, sigma = met(run, config.make_game(), config.seat).joined_by(config.seat, policy)
    joint = (run / TOGETHER).exists()

    def origin(player: int, number: int) -> str:
        return f"trained by {config.oracle}" if joint or player == config.seat else f"one of {config.against}"

    which = f"{config.against}" if sigma.size > 1 else ""
    seals = tuple(digest(run / part / MANIFEST) for part in (TRAINED, TOGETHER if joint else "opponents"))
    return Cast(config, populations, sigma, which, origin, seals=seals)


def _of_iteration(run: Path, command: str, iteration: int | None) -> Cast:
    from experiments.placement import began_as
    from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot, snapshot_units

    config = began_as(run, import_module(RUNNERS[command]).Config())
    folder = run / "snapshots"
    last = finished_iterations(folder) - 1
    if last < 0:
        raise ValueError(f"{run} has finished no iteration yet: resume it first")
    if iteration is not None and not 0 <= iteration <= last:
        raise ValueError(f"iteration must lie in 0..{last}, those that {run} has finished; got {iteration}")
    store = PolicyStore(run / "policies")
    snapshot = load_snapshot(folder, last if iteration is None else iteration, store)
    initial = getattr(config, "initial", "uniform")

    units = snapshot_units(folder, snapshot.iteration)
    seals = tuple(store.seal(unit) for names in units for unit in names)

    def origin(player: int, number: int) -> str:
        if not number:
            return f"the initial {initial} policy"
        _, iteration, _, *further = units[player][number].split("/")
        return f"the best response of iteration {iteration}" + "".join(f", number {k}" for k in further)

    which = f"the meta-strategy of iteration {snapshot.iteration}"
    return Cast(config, snapshot.populations, snapshot.sigma, which, origin, snapshot.iteration, seals)


def _numbers(cast: Cast, asked: tuple[int, ...] | None, seed: int) -> tuple[int, ...]:
    """The profile asked for, or one drawn from the meta-strategy."""
    import numpy as np

    sizes, sigma = cast.sigma.shape, cast.sigma
    if asked is None:
        drawn = np.random.default_rng(seed).choice(sigma.size, p=sigma.ravel() / sigma.sum())
        return tuple(int(i) for i in np.unravel_index(drawn, sizes))
    if len(asked) != len(sizes) or not all(0 <= i < k for i, k in zip(asked, sizes, strict=True)):
        raise ValueError(
            f"profile must be one policy for each of {len(sizes)} players, in 0..{sizes[0] - 1} of {cast.which}; "
            f"got {' '.join(map(str, asked))}"
        )
    return asked


if __name__ == "__main__":
    sys.exit(guarded(lambda stop: main()))
