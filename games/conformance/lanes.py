"""Rules of lanes: of those made from a Game, and of any others."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from games.conformance.kernels import Batch, to_array
from games.conformance.record import freeze
from games.conformance.rules import Broken
from games.game import Game, Lanes, Playable, factors
from games.lanes import GameLanes
from games.noise import Noise, Purpose
from games.policies import Uniform


class Step(NamedTuple):
    """What was seen before a step, its outcome, and what was seen at its end."""

    seen: list[np.ndarray]
    legal: list[tuple[np.ndarray, ...] | None]
    acting: np.ndarray
    alive: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    done: np.ndarray
    final: list[np.ndarray]

    def rows(self, rows: slice) -> "Step":
        """What some lanes showed."""
        legal = [None if masks is None else tuple(mask[rows] for mask in masks) for masks in self.legal]
        lists: dict[str, Any] = {name: [part[rows] for part in getattr(self, name)] for name in ("seen", "final")}
        others: dict[str, Any] = {
            name: getattr(self, name)[rows] for name in self._fields if name not in ("seen", "legal", "final")
        }
        return Step(legal=legal, **lists, **others)


@dataclass
class LanesCase:
    """Anything that is played in lanes, under test: `lanes` units of one lane each, for `steps` steps."""

    playable: Game | Playable
    lanes: int = 3
    steps: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        if self.lanes < 2 or self.steps < 2 or self.seed < 0:
            given = f"{self.lanes}, {self.steps}, {self.seed}"
            raise ValueError(f"check_lanes needs lanes and steps >= 2 and seed >= 0, got {given}")
        if not isinstance(self.playable, Game | Playable):
            name = type(self.playable).__name__
            raise ValueError(f"check_lanes wants a games.game.Game or Playable, got {name}")

    @property
    def units(self) -> list[str]:
        return [f"lane {lane}" for lane in range(self.lanes)]

    @cached_property
    def main(self) -> list[Step]:
        return self.play()

    @property
    def episodes(self) -> int:
        """Ended in `main`."""
        return sum(int(now.done.sum()) for now in self.main)

    def play(self, *units: str) -> list[Step]:
        """Uniform legal play of fresh lanes; all the units by default."""
        names = units or self.units
        with made(self, len(names)) as lanes:
            lanes.reset(self.seed, *names)
            return play_on(lanes, self.steps)


@contextmanager
def made(case: Batch | LanesCase, num_lanes: int | None = None) -> Iterator[Lanes]:
    """Lanes of what is under test, not reset; as many as the case has by default."""
    many = num_lanes or case.lanes
    if isinstance(case, Batch):
        yield GameLanes(case.game, many, put=case.put)
    elif isinstance(case.playable, Game):
        yield GameLanes(case.playable, many)
    else:
        lanes = case.playable.lanes(many)
        try:
            yield lanes
        finally:
            getattr(lanes, "close", lambda: None)()


def play_on(lanes: Lanes, steps: int) -> list[Step]:
    """Uniform legal play, as NumPy arrays."""
    seats = range(len(lanes.agents))
    policies = [Uniform.of(space) for space in lanes.action_spaces]
    shown = []
    for _ in range(steps):
        seen, legal = [lanes.observe(seat) for seat in seats], [lanes.legal(seat) for seat in seats]
        acting, alive = to_array(lanes.acting), to_array(lanes.alive)
        actions = tuple(
            policy.act(seen[seat], legal[seat], None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))[0]
            for seat, policy in enumerate(policies)
        )
        rewards, terminated, truncated, done = (to_array(part) for part in lanes.step(actions))
        final = [to_array(lanes.final_observations(seat)) for seat in seats]
        masks = [None if each is None else tuple(map(to_array, each)) for each in legal]
        observed = [to_array(part) for part in seen]
        shown.append(Step(observed, masks, acting, alive, rewards, terminated, truncated, done, final))
    return shown


def lane_shapes(case: Batch | LanesCase) -> None:
    """acting is a subset of alive, both [B, N]; an outcome is [B, N], and done says that everyone is over."""
    with made(case) as lanes:
        lanes.reset(case.seed)
        wanted = (case.lanes, len(lanes.agents))
        for step, now in enumerate(play_on(lanes, case.steps)):
            if now.acting.shape != wanted or now.alive.shape != wanted or (now.acting & ~now.alive).any():
                got = f"{now.acting.shape} and {now.alive.shape}"
                raise Broken(f"acting must be a subset of alive, both {wanted}; got {got}", None, None, step)
            shapes = [part.shape for part in (now.rewards, now.terminated, now.truncated, now.done)]
            if shapes != [wanted] * 3 + [wanted[:1]]:
                raise Broken(f"an outcome must be {wanted}, done {wanted[:1]}; got {shapes}", None, None, step)
            if (now.done != (now.terminated | now.truncated).all(axis=1)).any():
                raise Broken("done must say that everyone is terminated or truncated", None, None, step)


def auto_reset(batch: Batch) -> None:
    """Lanes restart in the step that ends their episode, with its init noise; final observations are of the end."""
    game, params, noise = batch.game, batch.game.params(), Noise(batch.seed, ["restarts"])
    with made(batch) as lanes:
        lanes.reset(batch.seed, "restarts")
        for step, (now, following) in enumerate(pairwise(play_on(lanes, batch.steps))):
            start = game.init(params, noise.draw(Purpose.INIT, step + 1, batch.lanes, game.noise_sizes[0]))
            for seat, agent in enumerate(lanes.agents):
                seen, fresh = following.seen[seat], game.observe(params, start, seat)
                if (now.final[seat][~now.done] != seen[~now.done]).any():
                    raise Broken("final observations must be the next ones where nothing ended", agent, None, step)
                if (seen[now.done] != fresh[now.done]).any():
                    raise Broken("a lane must start over in the step that ends its episode", agent, None, step)


def resumes(batch: Batch) -> None:
    """Lanes go on from a state_dict as they would have."""
    with made(batch) as lanes, made(batch) as other:
        lanes.reset(batch.seed)
        play_on(lanes, batch.steps // 2)
        other.load_state_dict(lanes.state_dict())
        played = play_on(lanes, batch.steps)
        same(played, play_on(other, batch.steps), "{} must go on from a state_dict as they would have")


def same(wanted: list[Step], got: list[Step], message: str) -> None:
    """Raises Broken, with the message about what it is, where two histories differ in a bit."""
    for step, (one, two) in enumerate(zip(wanted, got, strict=True)):
        for name, a, b in zip(Step._fields, one, two, strict=True):
            if freeze(a) != freeze(b):
                raise Broken(f"{message.format(name)}; wanted {a}, got {b}", None, None, step)


def playable_values(case: LanesCase) -> str | None:
    """What is played is a value: equal to its pickled copy, with an equal hash."""
    try:
        copy = pickle.loads(pickle.dumps(case.playable))
    except Exception as error:
        return f"cannot be pickled: {error}"
    if copy != case.playable or hash(copy) != hash(case.playable):
        raise Broken(f"it must equal its pickled copy, and hash alike: {case.playable!r}")
    return None


def seen(case: LanesCase) -> None:
    """Observations, final ones too, are finite float32 [B, *shape]; seats that are not alive see zeros."""
    for step, now in enumerate(case.main):
        for seat, (agent, space) in enumerate(_seats(case)):
            for shown in (now.seen[seat], now.final[seat]):
                if shown.dtype != np.float32 or shown.shape != (case.lanes, *space.shape):
                    wanted = f"float32 {(case.lanes, *space.shape)}"
                    raise Broken(f"observe must give {wanted}, got {shown.dtype} {shown.shape}", agent, None, step)
                if not np.isfinite(shown).all():
                    raise Broken(f"observations must be finite, got {shown}", agent, None, step)
            if now.seen[seat][~now.alive[:, seat]].any():
                raise Broken("who is not alive must see zeros", agent, None, step)


def _seats(case: LanesCase) -> list[tuple[str, Any]]:
    return list(zip(case.playable.agents, case.playable.observation_spaces, strict=True))


def earned(case: LanesCase) -> None:
    """Rewards are finite float32; seats that are not alive earn nothing."""
    for step, (now, following) in enumerate(pairwise(case.main)):
        if now.rewards.dtype != np.float32 or not np.isfinite(now.rewards).all():
            raise Broken(f"rewards must be finite float32, got {now.rewards.dtype} {now.rewards}", None, None, step)
        there = now.alive | (following.alive & ~now.done[:, None])  # who has just come may earn
        if now.rewards[~there].any():
            raise Broken(f"who is not alive must earn nothing, got {now.rewards}", None, None, step)


def turns_of_lanes(case: LanesCase) -> None:
    """Somebody acts in every lane; rows of legal allow something where a seat acts, and nothing where it does not."""
    for step, now in enumerate(case.main):
        if not now.acting.any(axis=1).all():
            raise Broken("somebody must act in every lane", None, None, step)
        for seat, (agent, masks) in enumerate(zip(case.playable.agents, now.legal, strict=True)):
            if masks is None:
                continue
            shapes = [(case.lanes, n) for n in factors(case.playable.action_spaces[seat])]
            if [mask.shape for mask in masks] != shapes or any(mask.dtype != bool for mask in masks):
                got = [(mask.dtype, mask.shape) for mask in masks]
                raise Broken(f"legal must be bool {shapes}, got {got}", agent, None, step)
            if any((mask.any(axis=1) != now.acting[:, seat]).any() for mask in masks):
                raise Broken("a row of legal must be all False where a seat does not act, only", agent, None, step)


def lives_of_lanes(case: LanesCase) -> None:
    """Whoever is terminated or truncated stays so, and not alive, until the episode is over; nobody just vanishes."""
    over = np.zeros_like(case.main[0].alive)
    for step, (now, following) in enumerate(pairwise(case.main)):
        flags, going = now.terminated | now.truncated, ~now.done[:, None]
        if (now.alive & over).any():
            raise Broken("who is terminated or truncated must not be alive", None, None, step)
        if (over & ~flags).any():
            raise Broken("terminated and truncated must stay until the episode is over", None, None, step)
        if (now.alive & ~following.alive & ~flags & going).any():
            raise Broken("nobody must cease to be alive without being terminated or truncated", None, None, step)
        over = flags & going


def finals(case: LanesCase) -> None:
    """Final observations are the next ones of every seat that goes on."""
    for step, (now, following) in enumerate(pairwise(case.main)):
        on = following.alive & ~now.done[:, None]
        for seat, agent in enumerate(case.playable.agents):
            if (now.final[seat][on[:, seat]] != following.seen[seat][on[:, seat]]).any():
                raise Broken("final observations must be the next ones where nothing ended", agent, None, step)


def ends(case: LanesCase) -> None:
    """Episodes end, and others start in the same step."""
    if not case.episodes:
        raise Broken(f"no episode ended within {case.steps} steps: give more steps, or a time limit")


def repeats(case: LanesCase) -> None:
    """Other lanes play the same from the same seed."""
    same(case.main, case.play(), "{} must be the same in other lanes with the same seed")


def restarts_of_lanes(case: LanesCase) -> None:
    """Lanes that have been played start over, by reset, as fresh ones do."""
    with made(case) as lanes:
        lanes.reset(case.seed + 1)
        play_on(lanes, case.steps // 2)
        lanes.reset(case.seed, *case.units)
        same(case.main, play_on(lanes, case.steps), "{} must be the same after a reset as in fresh lanes")


def alone(case: LanesCase) -> None:
    """A unit of work plays alone what it plays beside others."""
    for lane, unit in enumerate(case.units):
        rows = [now.rows(slice(lane, lane + 1)) for now in case.main]
        same(rows, case.play(unit), f"{{}} of {unit} must be the same alone")


def workers(case: LanesCase) -> str | None:
    """Two worker processes play the same as this one."""
    if not hasattr(case.playable, "workers"):
        return "it takes no workers"
    shared = LanesCase(replace(case.playable, workers=2), case.lanes, case.steps, case.seed)  # type: ignore[type-var]
    same(case.main, shared.main, "{} must be the same from worker processes")
    return None


LANES_RULES: dict[str, Callable[[Batch], str | None]] = {
    rule.__name__: rule for rule in (lane_shapes, auto_reset, resumes)
}

PLAYABLE_RULES: dict[str, Callable[[LanesCase], str | None]] = {
    "values": playable_values,
    "lane_shapes": lane_shapes,
    "seen": seen,
    "earned": earned,
    "turns": turns_of_lanes,
    "lives": lives_of_lanes,
    "finals": finals,
    "ends": ends,
    "repeats": repeats,
    "restarts": restarts_of_lanes,
    "alone": alone,
    "workers": workers,
}  # type: ignore[dict-item]

OWN_RULES = {"repeats": "seeds", "restarts": "restarts", "alone": "seeds"}
"""Rule of lanes -> the rule of environments that is to blame where an environment breaks that by itself."""
