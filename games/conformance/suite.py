"""The checks: `check` of PettingZoo environments, `check_faces` of a game's, `check_game` of kernels, `check_lanes`."""

from collections.abc import Collection, Iterator, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from gymnasium.spaces import Box, MultiDiscrete

from games.conformance.kernels import KERNEL_RULES, Batch, Put
from games.conformance.lanes import LANES_RULES, OWN_RULES, PLAYABLE_RULES, LanesCase
from games.conformance.moments import AEC_RULES, MOMENT_RULES
from games.conformance.record import Driver, Frozen, Moment, difference, freeze_moment, global_random, made
from games.conformance.refusals import REFUSAL_RULES
from games.conformance.rules import (
    Broken,
    ConformanceError,
    Report,
    Verdict,
    checked_names,
    first_lines,
    reported,
    unbroken,
)
from games.conformance.runs import NEED_SEEDS, RUN_RULES, Case, EnvFn
from games.faults import FAULTS
from games.game import Game, Playable

RULES: dict[str, str] = {
    "plays": "Resets, and steps with legal actions, raise nothing.",
    **first_lines({**MOMENT_RULES, **RUN_RULES, **REFUSAL_RULES}),
}
"""Every rule `check` asks, and what it says, in the order of asking."""

GAME_RULES: dict[str, str] = first_lines({**KERNEL_RULES, **LANES_RULES})
"""Every rule `check_game` asks, and what it says, in the order of asking."""

LANES: dict[str, str] = first_lines(PLAYABLE_RULES)
"""Every rule `check_lanes` asks, and what it says, in the order of asking."""


def check(
    env_fn: EnvFn | str,
    episodes: int = 5,
    seed: int = 0,
    max_steps: int = 500,
    skip: Collection[str] = (),
    render_modes: Sequence[str] = (),
) -> Report:
    """Ask all `RULES` of a PettingZoo environment, AEC or Parallel, wrapped or not.

    `env_fn()`, or the import path `module:function` of such a function, makes a fresh environment; with `render_modes`
    it is also called as `env_fn(render_mode=...)`. The environment plays `episodes` episodes, of at most `max_steps`
    steps each, of legal actions sampled from copies of its action spaces, several times over: all must repeat, step
    by step, what the first time showed. Rules in `skip` are not asked.

    Raises ConformanceError for the first broken rule, with the rule, the agent, the episode and the step (0 is the
    reset); ValueError for invalid arguments.

    >>> from functools import partial
    >>> from games import parallel_env
    >>> check(partial(parallel_env, "rock_paper_scissors", rounds=3), skip=["processes"]).steps
    15
    """
    case = Case(env_fn, episodes, seed, max_steps, render_modes)
    return reported(unbroken(verdicts(case, skip)), episodes, case.steps)


def verdicts(case: Case, skip: Collection[str] = ()) -> Iterator[Verdict]:
    """One verdict for each of `RULES`, as soon as it is known; of moments the broken ones first, in order of time.

    Where the environment cannot be played there are none after that of `plays`. Raises ValueError for unknown names in
    `skip`.
    """
    skipped = checked_names(skip, RULES)
    yield from (Verdict(name, unchecked="skipped") for name in RULES if name in skipped)
    # Whatever is drawn from the global generators, the caller's state is put back.
    with global_random(0):
        aec, broken = _main_run(case, skipped)
    yield from (Verdict(name, error) for name, error in broken.items())
    if "plays" in broken:
        return
    why_not: dict[str, str] = {} if aec else dict.fromkeys(AEC_RULES, "of AEC environments only")
    if "seeds" in skipped:
        why_not = dict.fromkeys(NEED_SEEDS, "needs seeds, which is skipped") | why_not
    for name in RULES:
        if name in skipped or name in broken:
            continue
        if name in RUN_RULES | REFUSAL_RULES and name not in why_not:
            with global_random(0):
                verdict = _asked(name, case)
            if name == "seeds" and verdict.broken:
                why_not = dict.fromkeys(NEED_SEEDS, "needs seeds, which is broken") | why_not
            yield verdict
        else:
            yield Verdict(name, unchecked=why_not.get(name))


def _asked(name: str, case: Case) -> Verdict:
    """The verdict of a rule of runs."""
    try:
        return Verdict(name, unchecked=(RUN_RULES | REFUSAL_RULES)[name](case))
    except Broken as broken:
        return Verdict(name, _error(name, broken, broken.__cause__))
    except FAULTS as error:
        return Verdict(name, _error(name, Broken(f"the environment raised {error!r}"), error))


def _error(rule: str, broken: Broken, cause: BaseException | None = None) -> ConformanceError:
    error = ConformanceError(rule, broken.message, broken.agent, broken.episode, broken.step)
    error.__cause__ = cause
    return error


def _main_run(case: Case, skipped: frozenset[str]) -> tuple[bool, dict[str, ConformanceError]]:
    """Record the case's main run: whether it is an AEC environment, and the broken rules of moments, or `plays`.

    A rule that breaks is not asked again.
    """
    broken: dict[str, ConformanceError] = {}
    place = [-1, 0]  # episode and step

    def watch(driver: Driver, before: Moment | None, now: Moment) -> None:
        place[:] = (place[0] + 1, 0) if before is None else (place[0], place[1] + 1)
        for name, rule in MOMENT_RULES.items():
            if name not in skipped and name not in broken:
                try:
                    rule(driver, before, now)
                except Broken as found:
                    found.episode, found.step = place
                    broken[name] = _error(name, found, found.__cause__)
                except FAULTS as error:
                    broken[name] = _error(name, Broken(f"the environment raised {error!r}", None, *place), error)

    aec = False
    try:
        driver = made(case.env_fn)
        aec = driver.aec
        case.main = case.play(driver, watch=watch)
    except Broken as found:
        if "plays" in skipped:
            raise found.__cause__ or found from None
        broken["plays"] = _error("plays", found, found.__cause__)
    return aec, broken


def check_faces(aec_fn: EnvFn, parallel_fn: EnvFn, episodes: int = 5, seed: int = 0, max_steps: int = 500) -> None:
    """Both faces of one game play the same episodes, moment by moment; an AEC face asks only who has a legal action.

    Whoever has none there has none or a single one, to wait, in the Parallel face.

    Raises ConformanceError of the rule `faces`, with agent, episode and step (of the Parallel face).
    """
    with global_random(0):
        parallel, aec = Driver(parallel_fn()), Driver(aec_fn())
        for episode in range(episodes):
            parallel.seed(episode)
            one, other = (face.reset(None if episode else seed) for face in (parallel, aec))
            step = 0
            try:
                _same_faces(parallel, one, other)
                while one.agents and step < max_steps:
                    step += 1
                    actions = parallel.choose(one)
                    other = _round(aec, other, [agent for agent in one.agents if _choices(aec, other, agent)], actions)
                    one = parallel.step(actions)
                    _same_faces(parallel, one, other)
                while not one.agents and other.agents:
                    other = aec.step(aec.choose(other))
            except Broken as broken:
                broken.episode, broken.step = episode, step
                raise _error("faces", broken) from None


def _choices(driver: Driver, now: Moment, agent: str) -> float:
    """The number of the agent's legal actions; infinity where none is masked out."""
    space, mask = driver.spaces[agent][1], now.mask(agent)
    parts = mask if isinstance(space, MultiDiscrete) else [mask]
    return inf if mask is None else prod(int(np.sum(part)) for part in parts)


def _round(aec: Driver, now: Moment, acting: list, actions: dict) -> Moment:
    """What the AEC face shows once everyone who acts has.

    No mask tells whose turn it is not where actions are continuous: such agents need not be asked.
    """
    for agent in acting:
        if now.asked != [agent] and isinstance(aec.spaces[agent][1], Box):
            continue
        if now.asked != [agent]:
            raise Broken(f"the AEC face must ask {agent}, which has a legal action; it asks {now.asked}", agent)
        now = aec.step({agent: actions[agent]})
    return now


def _same_faces(driver: Driver, parallel: Moment, aec: Moment) -> None:
    """Raises Broken where the two show something else, of what a Parallel environment shows at all."""
    waiting = {a for a in aec.infos if _choices(driver, aec, a) == 0 and _choices(driver, parallel, a) <= 1}
    one, other = ([[_of_agents(freeze_moment(_without_masks(now, waiting)))]] for now in (parallel, aec))
    other[0][0] = {key: value for key, value in other[0][0].items() if key in one[0][0]}
    for states in (False, True):
        found = difference(one, other, states)
        if found:
            shows = f"the Parallel face shows {found.one}, the AEC face {found.other}"
            raise Broken(f"{found.what} must be the same: {shows}", found.agent)


def _without_masks(now: Moment, agents: set) -> Moment:
    """The moment without the action masks of these agents, in infos and in observations."""

    def masked(shown: dict) -> dict:
        return {
            agent: {name: part for name, part in value.items() if name != "action_mask"}
            if agent in agents and isinstance(value, dict)
            else value
            for agent, value in shown.items()
        }

    return now._replace(infos=masked(now.infos), observations=masked(now.observations))


def _of_agents(shown: Frozen) -> Frozen:
    """Without the lists of agents, which the faces empty at different times."""
    return {key: value for key, value in shown.items() if key[0] not in ("agents", "agent_selection")}


def check_game(
    game: Game, lanes: int = 4, steps: int = 18, seed: int = 0, put: Put = np.asarray, skip: Collection[str] = ()
) -> Report:
    """Ask all `GAME_RULES` of a game's kernel and of its lanes, in `steps` steps of uniform legal play.

    `put` makes the other kind of arrays that must play as NumPy's do, e.g. `torch.from_numpy`.

    Raises ConformanceError for the first broken rule, with the rule, the agent and the step; ValueError for invalid
    arguments.
    """
    batch = Batch(game, lanes, steps, seed, put)
    return reported(unbroken(game_verdicts(batch, skip)), batch.episodes, steps * lanes)


def game_verdicts(batch: Batch, skip: Collection[str] = ()) -> Iterator[Verdict]:
    """One verdict for each of `GAME_RULES`, in their order. Raises ValueError for unknown names in `skip`."""
    yield from _each({**KERNEL_RULES, **LANES_RULES}, batch, skip)


def _each(rules: dict, case: Any, skip: Collection[str]) -> Iterator[Verdict]:
    skipped = checked_names(skip, rules)
    for name, rule in rules.items():
        if name in skipped:
            yield Verdict(name, unchecked="skipped")
            continue
        try:
            yield Verdict(name, unchecked=rule(case))
        except Broken as broken:
            yield Verdict(name, _error(name, broken, broken.__cause__))
        except FAULTS as error:
            yield Verdict(name, _error(name, Broken(f"the game raised {error!r}"), error))


def check_lanes(
    playable: Game | Playable, lanes: int = 3, steps: int = 60, seed: int = 0, skip: Collection[str] = ()
) -> Report:
    """Ask all `LANES` rules of whatever is played in lanes, in `steps` steps of uniform legal play of `lanes` units.

    Where lanes do not repeat themselves and an environment is to blame, the error says so, with what that does when it
    is played by itself.

    Raises ConformanceError for the first broken rule, with the rule, the agent and the step; ValueError for invalid
    arguments.

    >>> from games import make
    >>> check_lanes(make("rock_paper_scissors", rounds=3)).episodes
    60
    """
    case = LanesCase(playable, lanes, steps, seed)
    return reported(unbroken(lanes_verdicts(case, skip)), case.episodes, steps * lanes)


def lanes_verdicts(case: LanesCase, skip: Collection[str] = ()) -> Iterator[Verdict]:
    """One verdict for each of `LANES`, in their order. Raises ValueError for unknown names in `skip`."""
    for verdict in _each(PLAYABLE_RULES, case, skip):
        rule, make = OWN_RULES.get(verdict.rule), getattr(case.playable, "make", None)
        if verdict.broken and rule and make:
            own = _asked(rule, _own_case(make, case))
            if own.broken:
                broken = Broken(f"{verdict.broken}; so it is in the environment by itself: {own.broken}")
                verdict = Verdict(verdict.rule, _error(verdict.rule, broken, own.broken))
        yield verdict


def _own_case(make: EnvFn, case: LanesCase) -> Case:
    """The environment by itself, and its main run."""
    own = Case(make, 3, case.seed, case.steps)
    with global_random(0):
        own.main = own.play()
    return own
