"""Whose exploitability is looked for, by which oracle, and what it finds: `counterplay exploitability`."""

import errno
import hashlib
import os
import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from analysis.load import command_of, read_settings
from analysis.runs import glance
from analysis.trainings import team_share
from experiments.checks import check_processes
from experiments.known_settings import settings_of
from experiments.measures import concept
from experiments.metrics import EPISODE
from experiments.opponents import TOGETHER, TRAINED
from experiments.oracles import check_responder, check_trainable, chosen, with_steps
from experiments.placement import settings
from experiments.play import cast_of
from experiments.run import RunFolder, invocation
from experiments.shortfalls import known_shortfall
from experiments.terminal import Display, View, display
from games import make
from games.game import Game, Playable
from games.numbers import whole
from games.openspiel import PREFIX
from games.scripted import profile
from games.tree_game import TreeGame
from games.versus import Populations
from marl.atomic import BrokenCheckpoint
from marl.checkpoint import PolicyStore
from marl.exact import evaluate_exact, exact_gap
from marl.oracles import ORACLES, Oracle
from marl.population import Estimate, FullGap
from marl.verification import Verification, at_least, deviation, earning, verify
from marl.workers import Progress, workers_of
from metasolvers import is_product

FOLDER = "exploitability"
VIEW = View(("response", "steps", "return"), "return: of each lane's last whole episode, while a response learns")
LINES = 5
"""Of every training that are shown."""
COMPUTED = VIEW._replace(caption="return: the response's, computed in the game's tree; exact")


class Subject(NamedTuple):
    """Whose exploitability is asked for."""

    who: str
    game: Game | Playable
    named: str
    """The game, as `games.make` takes it."""
    populations: Populations
    sigma: np.ndarray  # [k_1, ..., k_N]
    folder: Path
    """What is found goes into a folder in there."""
    label: str
    """What files in there are named after."""
    seals: tuple[str, ...]
    """SHA-256 of the populations' policies, where the folder may come to hold others."""
    files: dict[str, str]
    """SHA-256 of the files that the game is made of, by path."""
    reward: Literal["own", "team"]
    """What its own best responses were trained for."""
    loop_steps: int
    """That its own best responses have behind them, at most, those of earlier iterations they went on from included,
    but not those of a training's --start; 0 where nobody trained them."""
    behind: str
    """The same in words, which say whose steps these are."""
    claimed: str
    """What its own gap is of: `experiments.measures.concept`."""
    recorded: dict[str, Oracle]
    """Settings of oracles that its folder has, by name."""
    progress: dict[str, Any] | None = None
    """Of a run, how far it is: its state, what of it is finished, and what was asked for."""


def subject_of(what: str, game: str | None) -> Subject:
    """Of a run's folder, its last meta-strategy; of a training's, its policy among those it is measured with; or a
    scripted policy of a game, in every seat.

    Raises ValueError for what is nothing of that, a game that is missing, or is told twice, and a run that is damaged,
    is being written to, or has nothing to be verified yet.
    """
    folder = Path(what)
    if (folder / "run.json").is_file():
        if game is not None:
            raise ValueError(f"{what} is a run, which knows its game: leave out --game {game}")
        return _of_run(folder)
    if "/" in what or folder.exists():
        raise ValueError(
            f"there is no run at {what}: name a run's folder, which `counterplay runs` lists, or a scripted policy"
        )
    if game is None:
        raise ValueError(f"{what} is no run's folder; if it is a scripted policy, say of which game: --game NAME")
    return _scripted(what, game)


def _of_run(folder: Path) -> Subject:
    progress = _progress(folder)
    cast = cast_of(folder)
    config: Any = cast.config
    stored = settings(config)
    recorded = {name: getattr(config, name) for name in stored if name in ORACLES}
    if config.command == "train":
        label = "policy"
        company = (
            "who learned with it"
            if (folder / TOGETHER).exists()
            else f"those it was trained against ({config.against})"
        )
        who = f"the policy that {config.oracle} trained in {folder}, and {company}"
    else:
        label = f"{cast.iteration:04d}"
        who = f"{cast.which} of {folder}"
    steps = chosen(config).total_steps * (max(1, cast.iteration or 0) if getattr(config, "warm_start", False) else 1)
    return Subject(
        who=who,
        game=config.make_game(),
        named=_named(config),
        populations=cast.populations,
        sigma=cast.sigma,
        folder=folder,
        label=label,
        seals=cast.seals,
        files=config.files,
        reward="team" if team_share(stored) == 1 else "own",
        loop_steps=steps,
        behind=_behind(config, steps),
        claimed=concept(getattr(config, "meta_solver", ""), cast.sigma),
        recorded=recorded | {config.oracle: chosen(config)},
        progress=progress,
    )


def _progress(folder: Path) -> dict[str, Any]:
    """How far a run is. Raises ValueError where it cannot be verified as it is."""
    listed = glance(folder)
    if listed.state == "damaged":
        raise ValueError(f"{listed.problem}; restore it from a copy of the run, or start a new run")
    if listed.state == "running":
        raise ValueError(f"another process is writing to {folder}: wait for it, or stop it first")
    training = listed.unit == "steps"
    if listed.iterations is None or (training and not (folder / TRAINED).exists()):
        lacking, command = "policy" if training else "iteration", command_of(read_settings(folder)["config"])
        resume = f"{invocation()} {command} --run-dir {shlex.quote(str(folder))} --resume"
        raise ValueError(f"{folder} has finished no {lacking} yet: go on with it first, by {resume}")
    return {"state": listed.state, listed.unit: listed.iterations, "asked": listed.asked}


def _behind(config: Any, steps: int) -> str:
    """What so many steps are, that the search for deviations is to have as well.

    In NFSP every episode teaches one seat: its own steps are fewer than those of the training, in a share that is by
    chance. A search with all of them is no weaker.
    """
    if not steps:
        return ""
    if config.command != "train":
        return f"the run's own best responses have at most {steps:,} steps behind them"
    whose = ", those of all seats together, one of which learned at a time" if config.oracle == "nfsp" else ""
    before = f", after those that {config.start} had" if config.start else ""
    return f"the training had {steps:,} steps{whose}{before}"


def _named(config: Any) -> str:
    if config.command == "psro":
        return f"bucket_brigade(scenario={config.scenario},rules={config.rules},max_nights={config.max_nights})"
    return PREFIX + config.game if config.command == "psro-openspiel" else config.game


def _scripted(name: str, game: str) -> Subject:
    from experiments.options import AnyGame, as_name

    asked, rules = AnyGame(game), make(game)
    populations = [[policy] for policy in profile(name, rules)]
    alone = np.ones((1,) * len(populations))
    folder = Path("runs", f"{as_name(game)}-{name}")
    return Subject(
        who=f"{name} play",
        game=rules,
        named=game,
        populations=populations,
        sigma=alone,
        folder=folder,
        label=name,
        seals=(),
        files=asked.files,
        reward="own",
        loop_steps=0,
        behind="",
        claimed=concept("", alone),
        recorded={},
    )


def verification_oracle(name: str, steps: int | None, subject: Subject) -> Oracle:
    """The oracle with the settings that the run had for it, or that are known for the game, or its own.

    Its budget is at least what the run's own best responses have behind them. Raises ValueError for names that
    no oracle of best responses has, a budget that it cannot have, and one that is smaller.
    """
    check_responder(name)
    known = subject.recorded.get(name) or settings_of(subject.named).get(name) or ORACLES[name]()
    if steps is not None:
        whole("--steps", steps, 0)
    least = subject.loop_steps
    batch = getattr(known, "batch", 1)
    enough = -(-least // batch) * batch
    if known.total_steps and steps is not None and steps < enough:
        raise ValueError(
            f"--steps {steps} makes {steps // batch * batch:,} in whole updates, but {subject.behind}: what so weak a "
            f"search does not find may well be there; use --steps {enough} or more, or leave it out"
        )
    if steps is None and not 0 < known.total_steps < least:
        return known
    return with_steps(known, enough if steps is None else steps, "--steps")


def budget(subject: Subject, how: Verification) -> str:
    """How long is looked for deviations, in words."""
    if not how.oracle.total_steps:
        return "computed best responses"
    told = f" ({subject.behind})" if subject.behind else ""
    restarts = f"{how.trainings} restart{'s' if how.trainings > 1 else ''}"
    return f"{restarts} of {how.oracle.total_steps:,} steps a player{told}"


def exploit(subject: Subject, name: str, how: Verification, number: int | None = None) -> tuple[dict[str, Any], Path]:
    """What the verification oracle `name` finds, beside what it is known to fall short; and the file that holds it.

    Trainings that are finished are kept beside that file, and not done again. Raises ValueError for a game or reward
    that the oracle cannot train for, before anything is written, and BrokenCheckpoint where what is kept was damaged.
    """
    check_processes(subject.game, number)
    if not how.oracle.total_steps and how.reward == "team":
        raise ValueError(
            f"{name} computes what players gain for themselves: use --reward own, or an oracle that learns"
        )
    initial = [population[0] for population in subject.populations]
    check_trainable(earning(subject.game, how.reward), subject.named, how.oracle, initial)
    torch.set_num_threads(1)
    key = f"{subject.label}-{name}-{_digest(subject, how)}"
    _make(subject.folder)
    print(f"by {name}: {budget(subject, how)}, seed {how.seed}", flush=True)
    units = how.trainings * len(subject.populations)
    with (
        RunFolder(subject.folder) as run,
        display(VIEW if how.oracle.total_steps else COMPUTED) as show,
        workers_of(number, units, partial(torch.set_num_threads, 1)) as workers,
    ):
        store = PolicyStore(run.path / FOLDER / key)
        told = _telling(show, how)
        try:
            gap = verify(how, subject.game, subject.populations, subject.sigma, store, workers, told)
        except BrokenCheckpoint as error:
            kept = shlex.quote(str(store.folder))
            raise BrokenCheckpoint(f"{error}; once {kept} is removed, its trainings are done again") from error
        result = _result(subject, name, how, gap)
        file = f"{FOLDER}/{key}-{how.trainings}x{how.episodes}.json"
        run.write_json(file, result)
    return result, subject.folder / file


def _make(folder: Path) -> None:
    """Raises ValueError where there can be no such folder, or nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".lock").touch()
        for place in (folder, folder / FOLDER):
            if place.exists() and not os.access(place, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    except OSError as error:
        raise ValueError(
            f"what is found is kept in {folder}, which cannot be written to ({error.strerror}): "
            "run this where it can, on a copy of a run if need be"
        ) from error


def _digest(subject: Subject, how: Verification) -> str:
    """Of all that trainings depend on: whom they meet, which another iteration of a run may change, and how they go."""
    met = (subject.seals, subject.sigma.shape, subject.sigma.tobytes())
    about = (subject.named, sorted(subject.files.items()), met, repr(how.oracle), how.seed, how.reward)
    return hashlib.sha256(repr(about).encode()).hexdigest()[:8]


def _telling(show: Display, how: Verification) -> Progress:
    total, shown = how.oracle.total_steps, dict[str, int]()

    def tell(unit: str, report: dict[str, float]) -> None:
        _, restart, player = unit.split("/")
        response, steps = f"restart {restart} of player {player}", int(report["steps"])
        if not total:
            show.row({"response": f"exact best response of player {player}", "return": f"{report['return']:.4g}"})
            return
        show.working(f"training {response}, {steps / total:.0%}")
        if steps * LINES // total > shown.get(unit, 0):
            shown[unit] = steps * LINES // total
            earned = f"{report['return']:.4g}" if "return" in report else ""
            show.row({"response": response, "steps": f"{steps:,} of {total:,}", "return": earned})

    return tell


def _result(subject: Subject, name: str, how: Verification, gap: FullGap[int | None]) -> dict[str, Any]:
    """All that was found, in plain values: equal for equal questions."""
    exact, reason = exact_beside(subject, how.reward)
    players = [
        {"agent": agent, **_told(gain), "deviation": deviation(chosen, held, not how.oracle.total_steps)}
        for agent, gain, chosen, held in zip(
            subject.game.agents, gap.gains, gap.chosen, subject.populations, strict=True
        )
    ]
    return {
        "subject": subject.label,
        "run": subject.progress,
        "game": subject.named,
        "concept": "NashConv" if is_product(subject.sigma) else "CCE gap",
        "own_concept": subject.claimed,
        "reward": how.reward,
        "unit": EPISODE,
        "oracle": name,
        "settings": asdict(how.oracle),  # type: ignore[call-overload]
        "steps": how.oracle.total_steps,
        "loop_steps": subject.loop_steps or None,
        "loop_steps_are": subject.behind or None,
        "restarts": how.trainings,
        "episodes": how.episodes,
        "seed": how.seed,
        "gap": _told(gap.total),
        "players": players,
        "exact": None if exact is None else {"gap": exact.total.value, "gains": [gain.value for gain in exact.gains]},
        "why_not_exact": reason,
        "known_shortfall": known_shortfall(name, repr(how.oracle)),
    }


def _told(gain: Estimate) -> dict[str, Any]:
    return {"value": gain.value, "standard_error": gain.standard_error, "at_least": at_least(gain)}


def exact_beside(subject: Subject, reward: str) -> tuple[FullGap[int | None] | None, str]:
    """The exact gap, or why there is none."""
    game = subject.game
    if not isinstance(game, TreeGame):
        return None, "the game has no tree"
    if reward == "team":
        return None, "exact gains are of players' own returns"
    try:
        return exact_gap(game, subject.populations, evaluate_exact(game, subject.populations), subject.sigma), ""
    except ValueError as error:  # policies with a memory, say
        return None, str(error)
