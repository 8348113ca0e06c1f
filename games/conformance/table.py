"""Conformance of many games at once: a row a game, a column a suite."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import DependencyNotInstalled

from games import GAMES, env, make, make_game, parallel_env
from games.conformance.kernels import Batch, Put
from games.conformance.lanes import LanesCase
from games.conformance.rules import Broken, ConformanceError, Verdict
from games.conformance.runs import Case, EnvFn
from games.conformance.suite import check_faces, game_verdicts, lanes_verdicts, verdicts
from games.conformance.theirs import AEC_TESTS, PARALLEL_TESTS, RENDER_TESTS, Test
from games.faults import FAULTS
from games.game import Game, Playable


class Entry(NamedTuple):
    """What is checked: a game of ours with its faces, or somebody's environments."""

    name: str
    game: Game | None = None
    playable: Callable[[], Game | Playable] | None = None
    """What is played in lanes, made when it is asked."""
    aec: EnvFn | str | None = None
    parallel: EnvFn | str | None = None
    masked: tuple[EnvFn, EnvFn] | None = None
    """AEC and Parallel, with masks in observations, which PettingZoo's tests ask for."""
    episodes: int = 3
    seed: int = 0
    max_steps: int = 700
    render_modes: tuple[str, ...] = ()
    faults: Mapping[str, str] = {}
    """Rule -> why an environment of others breaks it."""


BRIEF: dict[str, dict[str, Any]] = {"mountain_car_continuous": {"max_steps": 60}, "pendulum": {"max_steps": 40}}
"""Parameters of games whose episodes of uniform play would be long."""

Suite = Callable[[Entry], Iterable[Verdict]]
"""Verdicts of an entry; none where it does not apply."""


def ours(name: str) -> Entry:
    """A game of the registry, or of OpenSpiel by its name there. Raises ValueError as `games.make`."""
    brief = BRIEF.get(name, {})
    game, masked = make_game(name, **brief), {"mask_in_observation": True, **brief}
    modes = tuple(mode for mode in parallel_env(name).metadata["render_modes"] if mode != "human")
    return Entry(
        name,
        game,
        lambda: game,
        partial(env, name, **brief),
        partial(parallel_env, name, **brief),
        (partial(quick, env, name, **masked), partial(quick, parallel_env, name, **masked)),
        render_modes=modes,
    )


def quick(face: Callable[..., Any], name: str, **options: Any) -> Any:
    """A face whose windows hold nobody up."""
    made = face(name, **options)
    made.metadata["render_fps"] = 1000
    return made


def by_name(name: str, **others: Any) -> Entry:
    """Somebody's environment that `games.make` has by name, to be played in lanes."""
    return Entry(name, playable=partial(make, name), **others)


LANE_STEPS = 200
"""Of the lanes that are asked: the longest episodes of uniform play end within them."""

VARIANTS = ("openspiel:goofspiel(num_cards=3)", "openspiel:leduc_poker", "openspiel:tiny_hanabi")
"""Of another kind than what is registered: moves at once with chance between them, chance in the middle, a team."""

RPS_STATE = "it keeps a dictionary called `state`, which hides the method of the API [pettingzoo/classic/rps/rps.py]"
KAZ_SPAWN = "its interval between zombies is made once and goes on over resets [knights_archers_zombies.py, `reinit`]"
THIRD_PARTY: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        by_name("pettingzoo.classic.connect_four_v3", aec="pettingzoo.classic.connect_four_v3:env"),
        by_name("pettingzoo.classic.tictactoe_v3", aec="pettingzoo.classic.tictactoe_v3:env"),
        by_name(
            "pettingzoo.classic.rps_v2",
            aec="pettingzoo.classic.rps_v2:env",
            parallel="pettingzoo.classic.rps_v2:parallel_env",
            faults={"state_space": RPS_STATE},
        ),
        *(
            by_name(name, aec=f"{name}:env", parallel=f"{name}:parallel_env")
            for name in ("mpe2.simple_reference_v3", "mpe2.simple_speaker_listener_v4", "mpe2.simple_tag_v3")
        ),
        by_name(
            "pettingzoo.butterfly.knights_archers_zombies_v11",
            aec="pettingzoo.butterfly.knights_archers_zombies_v11:env",
            parallel="pettingzoo.butterfly.knights_archers_zombies_v11:parallel_env",
            episodes=1,
            seed=4,  # some die long before the end
            faults={"restarts": KAZ_SPAWN},
        ),
        by_name("openspiel_stepped:leduc_poker"),
        by_name("gymnasium:CartPole-v1"),
    )
}
"""Other people's environments, as they are: with masks, communication, unlike agents, agents that die, one alone."""


def kernel(entry: Entry, put: Put = np.asarray) -> Iterable[Verdict]:
    return game_verdicts(Batch(entry.game, put=put)) if entry.game else ()


def lanes(entry: Entry) -> Iterable[Verdict]:
    return lanes_verdicts(LanesCase(entry.playable(), 2, LANE_STEPS, entry.seed)) if entry.playable else ()


def aec_rules(entry: Entry) -> Iterable[Verdict]:
    return _rules(entry, entry.aec)


def parallel_rules(entry: Entry) -> Iterable[Verdict]:
    return _rules(entry, entry.parallel)


def _rules(entry: Entry, face: EnvFn | str | None) -> Iterable[Verdict]:
    if face is None:
        return ()
    return verdicts(Case(face, entry.episodes, entry.seed, entry.max_steps, entry.render_modes))


def same_faces(entry: Entry) -> Iterator[Verdict]:
    if entry.game is not None and entry.aec is not None and entry.parallel is not None:
        try:
            check_faces(entry.aec, entry.parallel, entry.episodes, entry.seed, entry.max_steps)  # type: ignore[arg-type]
        except ConformanceError as broken:
            yield Verdict("faces", broken)
        else:
            yield Verdict("faces")


def pettingzoo_tests(tests: Mapping[str, Test], entry: Entry) -> Iterator[Verdict]:
    """PettingZoo's own; what they warn of is not looked at here."""
    for name, test in tests.items() if entry.masked else ():
        try:
            with warnings.catch_warnings(), redirect_stdout(StringIO()):
                warnings.simplefilter("ignore")
                test(*entry.masked)  # type: ignore[misc]
        except DependencyNotInstalled as missing:
            yield Verdict(name, unchecked=str(missing))
        except FAULTS as error:
            yield Verdict(name, ConformanceError(name, f"it raised {error!r}"))
        else:
            yield Verdict(name)


SUITES: dict[str, Suite] = {
    "kernel": kernel,
    "lanes": lanes,
    "AEC": aec_rules,
    "Parallel": parallel_rules,
    "faces agree": same_faces,
    "PettingZoo AEC": partial(pettingzoo_tests, AEC_TESTS),
    "PettingZoo Parallel": partial(pettingzoo_tests, PARALLEL_TESTS),
    "PettingZoo render": partial(pettingzoo_tests, RENDER_TESTS),
}
"""Columns of the table."""


class Cell(NamedTuple):
    """What came of a suite."""

    passed: int
    broken: dict[str, str]
    """Rule -> what happened."""
    theirs: dict[str, str]
    """Of those, rule -> why it is an environment's own fault."""
    unplayable: str = ""
    """Why nothing could be asked, if so."""

    @property
    def sound(self) -> bool:
        """Whether nothing is broken but by others."""
        return not self.unplayable and set(self.broken) <= set(self.theirs)

    def __str__(self) -> str:
        if self.unplayable:
            return "cannot be played"
        if not self.broken:
            return str(self.passed) if self.passed else ""
        whose = "own fault" if self.sound else "BROKEN"
        return f"{self.passed}, {whose}: {', '.join(self.broken)}"


def cell(entry: Entry, suite: Suite) -> Cell:
    """Ask a suite of an entry."""
    passed, broken = 0, {}
    try:
        for verdict in suite(entry):
            if verdict.broken:
                broken[verdict.rule] = str(verdict.broken)
            passed += not verdict.broken and not verdict.unchecked
    except (*FAULTS, Broken) as error:
        return Cell(0, {}, {}, repr(error))
    return Cell(passed, broken, {rule: why for rule, why in entry.faults.items() if rule in broken})


def table(
    entries: Iterable[Entry] | None = None, suites: Mapping[str, Suite] = SUITES, put: Put = np.asarray
) -> Iterator[tuple[str, dict[str, Cell]]]:
    """(name, suite -> cell) of every entry, as soon as it is known; by default of all that is known by name.

    `put` makes the arrays that kernels must play on as on NumPy's, e.g. `torch.from_numpy`.
    """
    suites = {name: partial(kernel, put=put) if suite is kernel else suite for name, suite in suites.items()}
    for entry in entries if entries is not None else (*map(ours, (*GAMES, *VARIANTS)), *THIRD_PARTY.values()):
        yield entry.name, {name: cell(entry, suite) for name, suite in suites.items()}


LEGEND = """\
Numbers are rules kept, or PettingZoo's tests passed; rules that do not apply, and suites that do not, are left out.

- kernel: the pure functions on batches of lanes, and their lanes (`games.conformance.check_game`).
- lanes: what learners play, many episodes side by side (`games.conformance.check_lanes`); others' environments as
  `games.make` has them by name.
- AEC, Parallel: the environment (`games.conformance.check`), by whole episodes and rule by rule.
- faces agree: both faces play the same episodes (`games.conformance.check_faces`).
- PettingZoo: its own `api_test`, `seed_test` and `state_test`; `parallel_api_test` and `parallel_seed_test`;
  `render_test`. Some take action masks from observations alone, so the faces are made with `mask_in_observation=True`;
  `state_test` and `parallel_seed_test` look at no masks at all, so there the first legal choice takes the place of an
  illegal one. Nothing else stands between."""


def page(rows: Iterable[tuple[str, dict[str, Cell]]], command: str) -> str:
    """The table in Markdown, with what is broken, and whose fault that is, below it."""
    rows = list(rows)
    columns = list(rows[0][1]) if rows else list(SUITES)
    packages = ("pettingzoo", "gymnasium", "mpe2", "open_spiel", "numpy", "torch")
    versions = ", ".join(
        f"{name} {version(name)}" for name in packages if find_spec(name.replace("open_spiel", "pyspiel"))
    )
    lines = ["# Conformance", "", f"Written by `{command}`, with {versions}.", ""]
    lines += [f"| game | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(str(cells[column]) for column in columns)} |" for name, cells in rows]
    lines += ["", LEGEND, ""]
    lines += [f"- {told}" for told in complaints(rows)]
    return "\n".join(lines).rstrip() + "\n"


def complaints(rows: Iterable[tuple[str, dict[str, Cell]]]) -> Iterator[str]:
    """A sentence for every rule that is broken, or entry that cannot be played."""
    for name, cells in rows:
        told: dict[str, str] = {}
        for column, found in cells.items():
            if found.unplayable:
                told[found.unplayable] = f"{name} could not be played: {found.unplayable}"
            for rule, happened in found.broken.items():
                why = f"its own fault, for {found.theirs[rule]}" if rule in found.theirs else happened
                told.setdefault(f"{rule} {why}", f"{name} breaks `{rule}` ({column}): {why}")
        yield from told.values()
