"""Rules of a Game's kernel: the pure functions on a batch of lanes."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from games.channel import Channel
from games.conformance.rules import Broken
from games.game import Array, Game, Pictured, State, Talking, factors
from games.lanes import put_lanes, to_numpy, tree_leaves, tree_map
from games.noise import Noise, Purpose
from games.policies import Uniform

Put = Callable[[np.ndarray], Array]
Spans = Mapping[int, Sequence[tuple[int, int]]]
"""Speaker -> (start, stop) of columns of a hearer's observation."""


class BatchStep(NamedTuple):
    """One step of a batch of lanes, as NumPy arrays."""

    state: list[np.ndarray]
    observations: list[np.ndarray]
    legal: list[list[np.ndarray] | None]
    acting: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    fresh: np.ndarray
    """[B] lanes at the start of an episode."""
    whole: State
    """The state as the game has it."""


@dataclass
class Batch:
    """A game under test, on `lanes` lanes for `steps` steps."""

    game: Game
    lanes: int = 4
    steps: int = 18
    seed: int = 0
    put: Put = np.asarray

    def __post_init__(self) -> None:
        if self.lanes < 2 or self.steps < 2 or self.seed < 0:
            given = f"{self.lanes}, {self.steps}, {self.seed}"
            raise ValueError(f"check_game needs lanes and steps >= 2 and seed >= 0, got {given}")
        if not isinstance(self.game, Game):
            name = type(self.game).__name__
            raise ValueError(f"check_game wants a games.game.Game, with all its members; got {name}")

    @property
    def episodes(self) -> int:
        """Begun in `main`."""
        return sum(int(now.fresh.sum()) for now in self.main)

    @cached_property
    def main(self) -> list[BatchStep]:
        return self.play()

    def play(
        self,
        put: Put = np.asarray,
        protect: Callable[[Any], Any] = lambda tree: tree,
        rows: slice = slice(None),
        repeat: int = 1,
        idle: int = 0,
    ) -> list[BatchStep]:
        """Uniform legal play of some `rows` of the batch; lanes restart where their episode ended.

        Parameters are given to `repeat` lanes each. Seats that do not act play their first choice (idle=0) or their
        last one (idle=1).
        """
        game = self.game
        noise = Noise(self.seed, ["conformance"])
        params = protect(tree_map(lambda leaf: put(np.repeat(leaf, repeat if len(leaf) == 1 else 1, 0)), game.params()))

        def drawn(purpose: int, step: int, columns: int) -> Array:
            return protect(put(noise.draw(purpose, step, self.lanes, columns)[rows]))

        state = game.init(params, drawn(Purpose.INIT, 0, game.noise_sizes[0]))
        fresh = np.ones(self.lanes, bool)[rows]
        shown = []
        for step in range(1, self.steps + 1):
            state = protect(state)
            now = _look(game, params, state, fresh)
            shown.append(now)
            chosen = (self._choose(now, seat, noise, step, rows, idle) for seat in range(len(game.agents)))
            actions = tuple(protect(put(action)) for action in chosen)
            ended = now.terminated | now.truncated
            following = game.step(params, state, actions, drawn(Purpose.STEP, step, game.noise_sizes[1]))
            start = game.init(params, drawn(Purpose.INIT, step, game.noise_sizes[0]))
            mask = put(ended)
            state = tree_map(lambda new, old, mask=mask: put_lanes(mask, new, old), start, following)
            fresh = ended
        return shown

    def _choose(self, now: BatchStep, seat: int, noise: Noise, step: int, rows: slice, idle: int) -> np.ndarray:
        """[B] or [B, factors] legal actions, drawn on NumPy whatever the kernel runs on."""
        space, masks = self.game.action_spaces[seat], now.legal[seat]
        uniform = Uniform.of(space)
        uniforms = noise.draw(Purpose.SEAT + seat, step, self.lanes, uniform.noise_size)[rows]
        actions, _ = uniform.act(now.observations[seat], None if masks is None else tuple(masks), None, uniforms)
        ends = (space.low, space.high) if isinstance(space, Box) else (0, np.array(factors(space)) - 1)
        still = np.broadcast_to(ends[idle], (len(actions), *np.shape(ends[1]))).reshape(actions.shape)
        acts = now.acting[:, seat].reshape(-1, *(1,) * (actions.ndim - 1))
        return np.where(acts, actions, still)


def _look(game: Game, params: Any, state: State, fresh: np.ndarray) -> BatchStep:
    seats = range(len(game.agents))
    legal = [game.legal(params, state, seat) for seat in seats]
    return BatchStep(
        [to_array(leaf) for leaf in tree_leaves(state)],
        [to_array(game.observe(params, state, seat)) for seat in seats],
        [None if masks is None else [to_array(mask) for mask in masks] for masks in legal],
        to_array(game.acting(params, state)),
        to_array(game.rewards(params, state)),
        to_array(game.terminated(params, state)),
        to_array(game.truncated(params, state)),
        fresh,
        state,
    )


def to_array(array: Array) -> np.ndarray:
    """A NumPy copy."""
    return np.array(to_numpy(array))


def _arrays(now: BatchStep) -> list[tuple[str, int | None, np.ndarray]]:
    """(what, seat, array) of everything a step shows."""
    shown: list[tuple[str, int | None, np.ndarray]] = [("a leaf of the state", None, leaf) for leaf in now.state]
    shown += [("observe", seat, array) for seat, array in enumerate(now.observations)]
    shown += [("legal", seat, mask) for seat, masks in enumerate(now.legal) for mask in masks or ()]
    names = ("acting", "rewards", "terminated", "truncated")
    return shown + [(name, None, getattr(now, name)) for name in names]


def same(game: Game, one: list[BatchStep], other: list[BatchStep], rows: slice, message: str) -> None:
    """Raises Broken where the `rows` of one history differ from the other in a dtype, a shape or a bit."""
    for step, (a, b) in enumerate(zip(one, other, strict=True)):
        for (what, seat, x), (_, _, y) in zip(_arrays(a), _arrays(b), strict=True):
            if x.dtype != y.dtype or x[rows].tobytes() != y.tobytes():
                agent = None if seat is None else game.agents[seat]
                raise Broken(f"{message}; {what}: wanted {x.dtype} {x[rows]}, got {y.dtype} {y}", agent, None, step)


def values(batch: Batch) -> None:
    """A game is a value: equal to its pickled copy, with an equal hash."""
    copy = pickle.loads(pickle.dumps(batch.game))
    if copy != batch.game or hash(copy) != hash(batch.game):
        raise Broken(f"a game must equal its pickled copy, and hash alike: {batch.game!r}")


def leaves(batch: Batch) -> None:
    """Every leaf of a state is [B, ...], and keeps its dtype and shape from the start on."""
    kinds = None
    for step, now in enumerate(batch.main):
        found = [(leaf.dtype, leaf.shape) for leaf in now.state]
        if any(shape[:1] != (batch.lanes,) for _, shape in found):
            raise Broken(f"leaves of states must be [{batch.lanes}, ...], got {found}", None, None, step)
        if kinds is not None and found != kinds:
            raise Broken(f"leaves must keep the dtypes and shapes of init, {kinds}; got {found}", None, None, step)
        kinds = found


def starts(batch: Batch) -> None:
    """An episode starts with rewards of 0, and is not over."""
    for step, now in enumerate(batch.main):
        if now.rewards[now.fresh].any() or (now.terminated | now.truncated)[now.fresh].any():
            raise Broken("at the start of an episode rewards must be 0 and nothing over", None, None, step)


def outcomes(batch: Batch) -> None:
    """rewards is [B, N] float32 and finite; terminated and truncated are [B] bool, never both."""
    wanted = (batch.lanes, len(batch.game.agents))
    for step, now in enumerate(batch.main):
        if now.rewards.dtype != np.float32 or now.rewards.shape != wanted or not np.isfinite(now.rewards).all():
            got = f"{now.rewards.dtype} {now.rewards.shape}: {now.rewards}"
            raise Broken(f"rewards must be finite float32 {wanted}, got {got}", None, None, step)
        for name in ("terminated", "truncated"):
            flag = getattr(now, name)
            if flag.dtype != bool or flag.shape != wanted[:1]:
                raise Broken(f"{name} must be bool {wanted[:1]}, got {flag.dtype} {flag.shape}", None, None, step)
        if (now.terminated & now.truncated).any():
            raise Broken("an episode must not be both terminated and truncated: rules come first", None, None, step)


def observed(batch: Batch) -> None:
    """observe is [B, D] float32 within the seat's space, also at the end of an episode."""
    for step, now in enumerate(batch.main):
        for agent, space, seen in zip(batch.game.agents, batch.game.observation_spaces, now.observations, strict=True):
            if seen.dtype != space.dtype or seen.shape != (batch.lanes, *space.shape):
                wanted = f"{space.dtype} {(batch.lanes, *space.shape)}"
                raise Broken(f"observe must give {wanted}, got {seen.dtype} {seen.shape}", agent, None, step)
            outside = ~((seen >= space.low) & (seen <= space.high))
            if outside.any():
                raise Broken(f"observe must stay in {space}, got {seen[outside][:5]}", agent, None, step)


def turns(batch: Batch) -> None:
    """acting is [B, N] bool; while an episode goes on somebody acts, and has a legal choice; the others have none."""
    game, wanted = batch.game, (batch.lanes, len(batch.game.agents))
    for step, now in enumerate(batch.main):
        if now.acting.dtype != bool or now.acting.shape != wanted:
            raise Broken(f"acting must be bool {wanted}, got {now.acting.dtype} {now.acting.shape}", None, None, step)
        going = ~(now.terminated | now.truncated)
        if not now.acting[going].any(axis=1).all():
            raise Broken("somebody must act while an episode goes on", None, None, step)
        for seat, (agent, masks) in enumerate(zip(game.agents, now.legal, strict=True)):
            if masks is None:
                continue
            shapes = [(batch.lanes, n) for n in factors(game.action_spaces[seat])]
            if [mask.shape for mask in masks] != shapes or any(mask.dtype != bool for mask in masks):
                got = [(mask.dtype, mask.shape) for mask in masks]
                raise Broken(f"legal must be bool {shapes}, got {got}", agent, None, step)
            for mask in masks:
                if (mask.any(axis=1) != now.acting[:, seat])[going].any():
                    raise Broken("a row of legal must be all False where a seat does not act, only", agent, None, step)


def idle(batch: Batch) -> None:
    """Actions of seats that do not act are ignored."""
    same(batch.game, batch.main, batch.play(idle=1), slice(None), "actions of who does not act must change nothing")


def lane_wise(batch: Batch) -> None:
    """A lane plays alone what it plays beside others."""
    for lane in range(batch.lanes):
        rows = slice(lane, lane + 1)
        same(batch.game, batch.main, batch.play(rows=rows), rows, f"lane {lane} must play alone what it plays here")


def lane_parameters(batch: Batch) -> None:
    """Parameters given lane by lane, leaves [B, ...] for [1, ...], play the same."""
    same(
        batch.game, batch.main, batch.play(repeat=batch.lanes), slice(None), "parameters [B, ...] must play as [1, ...]"
    )


def read_only(batch: Batch) -> None:
    """Nothing is written into parameters, states, actions or noise."""

    def protect(tree: Any) -> Any:
        return tree_map(_read_only, tree)

    try:
        played = batch.play(protect=protect)
    except ValueError as error:
        raise Broken(f"inputs must not be written: copy before you write; {error}") from error
    same(batch.game, batch.main, played, slice(None), "read-only inputs must play as others do")


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def arrays(batch: Batch) -> None:
    """The arrays that `put` makes play as NumPy's do, to the last bit."""
    same(batch.game, batch.main, batch.play(put=batch.put), slice(None), "all kinds of arrays must play the same")


def describes(batch: Batch) -> None:
    """describe gives text for every lane."""
    params = batch.game.params()
    state = batch.game.init(params, np.zeros((batch.lanes, batch.game.noise_sizes[0]), np.float32))
    for lane in range(batch.lanes):
        text = batch.game.describe(params, state, lane)
        if not isinstance(text, str) or not text:
            raise Broken(f"describe must give text, got {text!r} for lane {lane}")


def pictures(batch: Batch) -> str | None:
    """frame gives pictures [height, width, 3] uint8, of one size for all states, equal for equal states."""
    game, params = batch.game, batch.game.params()
    if not isinstance(game, Pictured):
        return "of games with pictures only"
    shape = None
    for step, now in list(enumerate(batch.main))[:: batch.steps // 2]:
        picture, again = (game.frame(params, tree_map(np.array, now.whole), 1) for _ in range(2))
        if not isinstance(picture, np.ndarray) or picture.dtype != np.uint8 or picture.shape[2:] != (3,):
            raise Broken(f"frame must give uint8 [height, width, 3], got {picture!r:.200}", None, None, step)
        if shape not in (None, picture.shape):
            raise Broken(f"pictures must be of one size, got {shape} and {picture.shape}", None, None, step)
        if (picture != again).any():
            raise Broken("equal states must give equal pictures", None, None, step)
        shape = picture.shape
    return None


def channels(batch: Batch) -> str | None:
    """Messages are where `channels` says: parts of what speakers choose, and columns of what hearers observe."""
    game = batch.game
    if not isinstance(game, Talking) or not game.channels:
        return "of games whose agents talk only"
    for placement in game.channels:
        channel, name = placement.channel, placement.name
        if set(placement.factors) != set(channel.speakers):
            raise Broken(f"{name} must be spoken by {channel.speakers}, got factors of {list(placement.factors)}")
        for speaker, parts in placement.factors.items():
            choices = factors(game.action_spaces[speaker])
            said = tuple(choices[part] if part < len(choices) else 0 for part in parts)
            if said != channel.factors:
                raise Broken(f"{name} must be said by {channel.factors} choices, got {said}", game.agents[speaker])
        for hearer, spans in placement.columns.items():
            _check_columns(game, channel, name, hearer, spans)
    return None


def _check_columns(game: Game, channel: Channel, name: str, hearer: int, spans: Spans) -> None:
    agent = game.agents[hearer]
    if set(spans) != set(channel.audible(hearer)):
        raise Broken(f"{name} must be heard of {channel.audible(hearer)}, got columns of {list(spans)}", agent)
    places = [place for copies in spans.values() for place in copies]
    wide = channel.columns(hearer) // len(spans)
    if {stop - start for start, stop in places} != {wide}:
        raise Broken(f"{name} must be heard in {wide} columns a speaker, got {places}", agent)
    columns = [column for start, stop in places for column in range(start, stop)]
    seen = game.observation_spaces[hearer].shape[0]
    if len(set(columns)) < len(columns) or not set(columns) <= set(range(seen)):
        raise Broken(f"{name} must be heard in columns of its own among {seen}, got {places}", agent)


KERNEL_RULES: dict[str, Callable[[Batch], str | None]] = {
    rule.__name__: rule
    for rule in (
        values,
        leaves,
        starts,
        outcomes,
        observed,
        turns,
        idle,
        lane_wise,
        lane_parameters,
        read_only,
        arrays,
        describes,
        pictures,
        channels,
    )
}
