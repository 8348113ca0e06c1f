"""Gymnasium's vector environments as lanes: all of them are stepped at once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from inspect import signature
from typing import Any
from warnings import catch_warnings, simplefilter

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from games.board import Board
from games.external.contract import BrokenContract, Fault
from games.external.gymnasium import AGENT, PREFIX, registered
from games.external.loading import Entry
from games.external.spaces import IMAGES, Moves, Sight, check_bins, moves, sight
from games.faults import FAULTS, closed_after_errors
from games.noise import unit_seed
from games.spelling import unknown
from games.stepping import CLOSED, SteppedLanes

PINNED = {"autoreset_mode": AutoresetMode.SAME_STEP}
"""What vector environments are asked for that let one choose; it is what lanes do."""


@dataclass(frozen=True)
class Vectorised:
    """A vector environment of Gymnasium's; see `vector_env`. Implements `games.game.Playable`."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    images: str = "flat"
    bins: int | None = None
    strict: bool = False
    agents = (AGENT,)
    masked = (False,)

    def __post_init__(self) -> None:
        if self.images not in IMAGES:
            raise unknown("images", self.images, IMAGES)
        check_bins(self.bins)

    def make(self, num_envs: int) -> VectorEnv:
        """Raises ValueError where there is none, or none that says how it starts over."""
        spec = registered(self.name)
        point = spec.vector_entry_point
        if point is None:
            raise ValueError(f"{spec.id} has no vector environment of its own: use games.external.gymnasium")
        creator = load_env_creator(point) if isinstance(point, str) else point
        pinned = {name: value for name, value in PINNED.items() if name in signature(creator).parameters}
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # of what is an error here
            make = partial(gymnasium.make_vec, spec, num_envs, "vector_entry_point")
            env = Entry(make, spec.id)({**pinned, **self.params})
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            env.close()
            raise ValueError(
                f"the vector environment of {spec.id} must say when it starts episodes: metadata['autoreset_mode'] "
                f"must be a gymnasium.vector.AutoresetMode, got {mode!r}"
            )
        return env

    @cached_property
    def seat(self) -> tuple[Sight, Moves]:
        """How the player sees and acts. Raises ValueError for spaces that cannot be played."""
        env = self.make(1)
        with closed_after_errors(env.close):
            seen, played = env.single_observation_space, env.single_action_space
            try:
                seat = sight(seen, self.images, self.strict), moves(played, self.bins)
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        env.close()
        return seat

    @property
    def observation_spaces(self) -> tuple[Box]:
        return (self.seat[0].space,)

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box]:
        return (self.seat[1].space,)

    def lanes(self, num_lanes: int) -> SteppedLanes:
        return SteppedLanes(self, num_lanes, VectorHost)

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without the functions that were made from them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def vector_env(
    name: str, images: str = "flat", bins: int | None = None, strict: bool = False, **params: Any
) -> Vectorised:
    """The vector environment that an environment of Gymnasium's registry brings along, as CartPole-v1 does.

    It steps all lanes at once, often much faster than one by one. But it is seeded as a whole: episodes depend on the
    number of lanes and on what is played in the others, so lanes play one unit of work at a time, whose results hold
    for that number of lanes. For play that does not depend on it, and for action masks, see
    `games.external.gymnasium.single_agent`, which has the other parameters too.

    An environment is asked to start episodes in the step that ends them (`AutoresetMode.SAME_STEP`), if it lets one
    ask. In `NEXT_STEP` the player of a lane is away for the step between two episodes; in `DISABLED` lanes are reset
    by a mask.

    Raises ValueError for ids that are unknown, have no vector environment, or one that does not say its mode, and for
    spaces that cannot be played; BrokenContract where it breaks the rules of Gymnasium's interface, or its mode.

    >>> vector_env("CartPole-v1").action_spaces
    (Discrete(2),)
    """
    made = Vectorised(name.removeprefix(PREFIX), params, images, bins, strict)
    _ = made.seat  # what cannot be played should fail before anything is played
    return made


class VectorHost:
    """A vector environment that plays all lanes. Implements `games.stepping.Host`."""

    def __init__(self, source: Vectorised, num_lanes: int):
        self.sight, self.moves = source.seat
        self.board = Board.of(source, num_lanes)
        self.env, self.closed, self.seed, self.steps = source.make(num_lanes), False, 0, 0
        self.mode = self.env.metadata["autoreset_mode"]
        seen = self.env.single_observation_space
        # Numbers are read in one piece; pictures are scaled one by one, and other spaces have their parts in between.
        whole = isinstance(seen, Box) and seen.dtype != np.uint8
        self.whole = sight(self.env.observation_space, strict=source.strict) if whole else None

    def reset(self, seed: int, names: Sequence[str]) -> None:
        units = {name.rpartition("/")[0] for name in names}
        if len(units) > 1:
            raise ValueError(
                f"a vector environment is seeded as a whole, and plays one unit of work at a time; got {len(units)}: "
                "play them in lanes of single_agent"
            )
        self.seed, self.steps = unit_seed(seed, units.pop()) & (2**31 - 1), 0
        with self._told():
            self._see(self._answer(2, "reset", seed=self.seed)[0])
        for part in (self.board.rewards, self.board.terminated, self.board.truncated, self.board.done):
            part[:] = 0
        self.board.alive[:] = self.board.acting[:] = True

    def step(self, actions: Sequence[np.ndarray]) -> None:
        self.steps += 1
        with self._told():
            self._step(self._chosen(actions[0]))

    def _step(self, actions: Any) -> None:
        board, away = self.board, ~self.board.alive[:, 0]  # the environment starts their episodes, whatever they do
        seen, rewards, terminated, truncated, infos = self._answer(5, "step", actions)
        self._see(seen)
        with np.errstate(over="ignore"):  # what is beyond float32 is infinite in it
            board.rewards[:, 0] = self._column("rewards", rewards)
        if not np.isfinite(board.rewards).all():
            raise Fault("rewards", f"rewards must be finite (in float32), got {rewards}")
        board.terminated[:, 0] = self._column("terminations", terminated)
        board.truncated[:, 0] = self._column("truncations", truncated) & ~board.terminated[:, 0]
        board.done[:] = done = board.terminated[:, 0] | board.truncated[:, 0]
        if done[away].any() or board.rewards[away].any():
            raise Fault("autoreset", f"in {self.mode}, the step that starts an episode must neither pay nor end it")
        if done.any():
            self._restart(done, seen, infos)
        board.alive[:, 0] = board.acting[:, 0] = ~(done & (self.mode == AutoresetMode.NEXT_STEP))
        board.observations[0][~board.alive[:, 0]] = 0

    def _restart(self, done: np.ndarray, seen: Any, infos: dict) -> None:
        """Keep what was seen last of the episodes that are over, and start the next ones where that is ours to do."""
        board, final = self.board, self.board.finals[0]
        if self.mode == AutoresetMode.SAME_STEP:
            last = infos.get("final_obs") if isinstance(infos, dict) else None
            if last is None:
                raise Fault("autoreset", "in SAME_STEP, infos must have the last observations as 'final_obs'")
            for lane in np.flatnonzero(done):
                self.sight.write(last[lane], final[lane])
        else:
            final[done] = board.observations[0][done]
        if self.mode == AutoresetMode.DISABLED:
            going_on = board.observations[0][~done]
            self._see(self._answer(2, "reset", options={"reset_mask": done.copy()})[0])
            if (board.observations[0][~done] != going_on).any():
                raise Fault("autoreset", "in DISABLED, a reset must leave alone what its option reset_mask leaves out")

    def _see(self, seen: Any) -> None:
        rows = self.board.observations[0]
        if self.whole is not None:
            self.whole.write(np.asarray(seen), rows.reshape(-1))
        else:
            for one, row in zip(iterate(self.env.observation_space, seen), rows, strict=True):
                self.sight.write(one, row)

    def _chosen(self, actions: np.ndarray) -> Any:
        """The environment's actions; of players who are away, any that it takes."""
        space, played = self.env.single_action_space, self.moves.space
        lowest = played.low if isinstance(played, Box) else 0
        actions = np.where(self.board.acting.reshape(-1, *(1,) * (actions.ndim - 1)), actions, lowest)
        if isinstance(space, Discrete):
            return actions + int(space.start)
        chosen = [self.moves.decode(action) for action in actions.astype(played.dtype)]
        empty: Any = create_empty_array(space, len(chosen))
        return concatenate(space, chosen, empty)

    def _answer(self, parts: int, what: str, *given: Any, **named: Any) -> tuple:
        if self.closed:
            raise ValueError(CLOSED)
        try:
            answer = getattr(self.env, what)(*given, **named)
        except FAULTS as error:
            raise Fault("plays", f"{what} raised {error!r}") from error
        if not isinstance(answer, tuple) or len(answer) != parts:
            raise Fault("plays", f"{what} must give {parts} things, got {answer!r:.200}")
        return answer

    def _column(self, what: str, given: Any) -> np.ndarray:
        """[B] of what a step gave."""
        column, wanted = np.asarray(given), self.board.done.shape
        if column.shape != wanted or column.dtype.kind not in "fiub":
            raise Fault("plays", f"{what} must be numbers of shape {wanted}, got {column.dtype} {column.shape}")
        return column if what == "rewards" else column.astype(bool)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say where a fault happened, and close what is in an unknown state then."""
        try:
            with closed_after_errors(self.close):
                yield
        except Fault as fault:
            name = self.env.spec.id if self.env.spec else str(self.env)
            raise BrokenContract(name, fault.rule, fault.message, None, self.steps, self.seed) from fault.__cause__

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.env.close()
