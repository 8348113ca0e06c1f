"""The checks: `check` of a PettingZoo environment, `check_faces` of two faces of one game, `check_game` of a kernel."""

from collections.abc import Collection, Sequence

import numpy as np

from games.conformance.kernels import KERNEL_RULES, Batch, Put
from games.conformance.lanes import LANES_RULES
from games.conformance.moments import AEC_RULES, MOMENT_RULES
from games.conformance.record import Driver, Frozen, Moment, can_act, difference, freeze_moment, global_random
from games.conformance.refusals import REFUSAL_RULES
from games.conformance.rules import Broken, ConformanceError, Report, checked_names, first_lines
from games.conformance.runs import NEED_SEEDS, RUN_RULES, Case, EnvFn
from games.game import Game

RULES: dict[str, str] = {
    "plays": "Resets, and steps with legal actions, raise nothing.",
    **first_lines({**MOMENT_RULES, **RUN_RULES, **REFUSAL_RULES}),
}
"""Every rule `check` asks, and what it says, in the order of asking."""

GAME_RULES: dict[str, str] = first_lines({**KERNEL_RULES, **LANES_RULES})
"""Every rule `check_game` asks, and what it says, in the order of asking."""


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
    reset); ValueError for arguments that cannot be.

    >>> from functools import partial
    >>> from games import parallel_env
    >>> check(partial(parallel_env, "rock_paper_scissors", rounds=3), skip=["processes"]).steps
    15
    """
    skipped = checked_names(skip, RULES)
    if episodes < 1 or max_steps < 1 or seed < 0:
        raise ValueError(f"check needs episodes and max_steps >= 1 and seed >= 0, got {episodes}, {max_steps}, {seed}")
    case = Case(env_fn, episodes, seed, max_steps, render_modes)
    _ = case.env_fn  # an import path that leads nowhere should fail before anything is played
    with global_random(0):  # whatever is drawn from there, the caller's state is put back
        aec = _main_run(case, skipped)
        unchecked = {name: "skipped" for name in skipped}
        if not aec:
            unchecked |= dict.fromkeys(AEC_RULES, "of AEC environments only") | unchecked
        if "seeds" in skipped:
            unchecked |= dict.fromkeys(NEED_SEEDS, "needs seeds, which is skipped") | unchecked
        _ask_runs(case, unchecked)
    steps = sum(len(moments) - 1 for moments in case.main)
    return Report(tuple(name for name in RULES if name not in unchecked), unchecked, episodes, steps)


def _ask_runs(case: Case, unchecked: dict[str, str]) -> None:
    """Ask the rules of runs, and note in `unchecked` why one could not be asked."""
    for name, rule in {**RUN_RULES, **REFUSAL_RULES}.items():
        if name in unchecked:
            continue
        try:
            why_not = rule(case)
        except Broken as broken:
            raise _error(name, broken) from broken.__cause__
        except Exception as error:
            raise ConformanceError(name, f"the environment raised {error!r}") from error
        if why_not:
            unchecked[name] = why_not


def _error(rule: str, broken: Broken) -> ConformanceError:
    return ConformanceError(rule, broken.message, broken.agent, broken.episode, broken.step)


def _main_run(case: Case, skipped: frozenset[str]) -> bool:
    """Record the case's main run under the rules of moments; whether it is an AEC environment."""
    asked: list[str] = ["plays"]

    def watch(driver: Driver, before: Moment | None, now: Moment) -> None:
        for name, rule in MOMENT_RULES.items():
            if name not in skipped:
                asked[0] = name
                rule(driver, before, now)
        asked[0] = "plays"

    try:
        driver = Driver(case.env_fn())
        case.main = case.play(driver, watch=watch)
    except Broken as broken:
        if asked[0] == "plays" and "plays" in skipped:
            raise broken.__cause__ or broken from None
        raise _error(asked[0], broken) from broken.__cause__
    return driver.aec


def check_faces(aec_fn: EnvFn, parallel_fn: EnvFn, episodes: int = 5, seed: int = 0, max_steps: int = 500) -> None:
    """Both faces of one game play the same episodes, moment by moment; an AEC face asks only who has a legal action.

    Raises ConformanceError of the rule `faces`, with agent, episode and step (of the Parallel face).
    """
    with global_random(0):
        parallel, aec = Driver(parallel_fn()), Driver(aec_fn())
        for episode in range(episodes):
            parallel.seed(episode)
            one, other = (face.reset(None if episode else seed) for face in (parallel, aec))
            step = 0
            try:
                _same_faces(one, other)
                while one.agents and step < max_steps:
                    step += 1
                    actions = parallel.choose(one)
                    other = _round(aec, other, [agent for agent in one.agents if _acts(parallel, one, agent)], actions)
                    one = parallel.step(actions)
                    _same_faces(one, other)
                while not one.agents and other.agents:
                    other = aec.step(aec.choose(other))
            except Broken as broken:
                broken.episode, broken.step = episode, step
                raise _error("faces", broken) from None


def _acts(driver: Driver, now: Moment, agent: str) -> bool:
    mask = now.mask(agent)
    return mask is None or can_act(driver.spaces[agent][1], mask)


def _round(aec: Driver, now: Moment, acting: list, actions: dict) -> Moment:
    """What the AEC face shows once everyone who acts has."""
    for agent in acting:
        if now.asked != [agent]:
            raise Broken(f"the AEC face must ask {agent}, which acts in the Parallel one; it asks {now.asked}", agent)
        now = aec.step({agent: actions[agent]})
    return now


def _same_faces(parallel: Moment, aec: Moment) -> None:
    """Raises Broken where the two show something else, of what a Parallel environment shows at all."""
    one, other = ([[_of_agents(freeze_moment(now))]] for now in (parallel, aec))
    other[0][0] = {key: value for key, value in other[0][0].items() if key in one[0][0]}
    for states in (False, True):
        found = difference(one, other, states)
        if found:
            shows = f"the Parallel face shows {found.one}, the AEC face {found.other}"
            raise Broken(f"{found.what} must be the same: {shows}", found.agent)


def _of_agents(shown: Frozen) -> Frozen:
    """Without the lists of agents, which the faces empty at different times."""
    return {key: value for key, value in shown.items() if key[0] not in ("agents", "agent_selection")}


def check_game(
    game: Game, lanes: int = 4, steps: int = 18, seed: int = 0, put: Put = np.asarray, skip: Collection[str] = ()
) -> Report:
    """Ask all `GAME_RULES` of a game's kernel and of its lanes, in `steps` steps of uniform legal play.

    `put` makes the other kind of arrays that must play as NumPy's do, e.g. `torch.from_numpy`.

    Raises ConformanceError for the first broken rule, with the rule, the agent and the step; ValueError for arguments
    that cannot be.
    """
    skipped = checked_names(skip, GAME_RULES)
    if lanes < 2 or steps < 2 or seed < 0:
        raise ValueError(f"check_game needs lanes and steps >= 2 and seed >= 0, got {lanes}, {steps}, {seed}")
    if not isinstance(game, Game):
        raise ValueError(f"check_game wants a games.game.Game, with all its members; got {type(game).__name__}")
    batch = Batch(game, lanes, steps, seed, put)
    rules = {**KERNEL_RULES, **LANES_RULES}
    for name, rule in rules.items():
        if name in skipped:
            continue
        try:
            rule(batch)
        except Broken as broken:
            raise _error(name, broken) from broken.__cause__
        except Exception as error:
            raise ConformanceError(name, f"the game raised {error!r}") from error
    episodes = sum(int(now.fresh.sum()) for now in batch.main)
    return Report(
        tuple(name for name in rules if name not in skipped), dict.fromkeys(skipped, "skipped"), episodes, steps * lanes
    )
