"""Lanes of environments that are stepped one by one: other people's, each in an object that owns its state."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box

from games.board import Board, Seats, blank_actions
from games.faults import FAULTS, closed_after_errors
from games.game import Array, Legal, Outcome, factors
from games.noise import Noise, unit_seed

CLOSED = "these lanes are closed: make new ones"
OWNED = "these environments own their state: do the unit of work again from its start"


class Episode(Protocol):
    """One environment, that plays one episode after the other in one lane.

    What it sees and pays it writes into `row`, its lane of the board: observations, legal, acting and alive at all
    times; rewards, terminated, truncated and done of a step. Seats that are dead, or not there yet, are neither alive
    nor acting, earn 0, and may see anything: the lanes show zeros.
    """

    def begin(self, seed: int, row: Board) -> None:
        """Start an episode, which is a function of the seed (31 bits); leaves the outcome of the last step alone."""

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        """One step; an action a seat, of which those of seats that do not act are ignored."""

    def close(self) -> None:
        """Let go of what the environment holds."""


@runtime_checkable
class Keeping(Episode, Protocol):
    """An environment whose state can be looked at, kept and restored; optional."""

    def state(self) -> Any:
        """A copy of the state, for search and analysis."""

    def saved(self) -> Any:
        """Everything `restore` needs, in plain containers and arrays."""

    def restore(self, saved: Any, row: Board) -> None:
        """Go on from what an equal environment has `saved`, and show that as `begin` does."""


class Source(Seats, Protocol):
    """Where episodes come from. A value: equal to its pickled copy."""

    def episode(self) -> Episode:
        """An environment of its own for one lane."""


class Host(Protocol):
    """Has the episodes of a board's lanes, and steps them."""

    board: Board

    def reset(self, seed: int, names: Sequence[str]) -> None:
        """Start every lane afresh; lane i's episodes are those of names[i], in order."""

    def step(self, actions: Sequence[np.ndarray]) -> None:
        """One step of every lane; those whose episode ends start the next one at once."""

    def close(self) -> None:
        """Close every environment, then raise the first error of one that failed to; may be called again.

        `reset` and `step` raise ValueError from then on.
        """


class Here:
    """Episodes in this process, shown on `board`, or on one of their own. Implements `Host`.

    Where one fails the others would be a step ahead of it, or behind: all are closed.
    """

    def __init__(self, source: Source, num_lanes: int, board: Board | None = None):
        self.board = Board.of(source, num_lanes) if board is None else board
        self.rows = [self.board.row(lane) for lane in range(num_lanes)]
        self.episodes: list[Episode] = []
        with closed_after_errors(self.close):
            for _ in self.rows:
                self.episodes.append(source.episode())

    def reset(self, seed: int, names: Sequence[str]) -> None:
        if not self.episodes:
            raise ValueError(CLOSED)
        with closed_after_errors(self.close):
            self._reset(seed, names)

    def step(self, actions: Sequence[np.ndarray]) -> None:
        if not self.episodes:
            raise ValueError(CLOSED)
        with closed_after_errors(self.close):
            self._step(actions)

    def _reset(self, seed: int, names: Sequence[str]) -> None:
        self.seed, self.names, self.begun = seed, list(names), [0] * len(self.rows)
        for part in (self.board.rewards, self.board.terminated, self.board.truncated, self.board.done):
            part[:] = 0
        for lane in range(len(self.rows)):
            self._begin(lane)
        self._blank()

    def _step(self, actions: Sequence[np.ndarray]) -> None:
        board = self.board
        for flags in (board.terminated, board.truncated):
            flags[board.done] = False
        board.rewards[:] = 0
        board.done[:] = False
        before = board.terminated | board.truncated
        for episode, row, *chosen in zip(self.episodes, self.rows, *map(_items, actions), strict=True):
            episode.play(chosen, row)
        ended = (board.terminated | board.truncated) & ~before
        for seat, final in enumerate(board.finals):
            final[ended[:, seat]] = board.observations[seat][ended[:, seat]]
            final[board.done & ~ended[:, seat]] = 0
        for lane in np.flatnonzero(board.done).tolist():
            self._begin(lane)
        board.terminated[board.done] |= ~board.truncated[board.done]  # seats that never came to life are over too
        self._blank()

    def _begin(self, lane: int) -> None:
        seed = unit_seed(self.seed, f"{self.names[lane]}/{self.begun[lane]}") & (2**31 - 1)
        self.begun[lane] += 1
        self.episodes[lane].begin(seed, self.rows[lane])

    def keeping(self) -> list[Keeping]:
        """The episodes of all lanes. Raises NotImplementedError where their states cannot be kept."""
        episodes = [episode for episode in self.episodes if isinstance(episode, Keeping)]
        if len(episodes) < len(self.rows):
            raise NotImplementedError(OWNED)
        return episodes

    def load_state_dict(self, state: dict) -> None:
        """Go on from how often each lane had `begun` and what its episode had `saved`, after `reset`."""
        self.begun = list(state["begun"])
        for episode, row, saved in zip(self.keeping(), self.rows, state["saved"], strict=True):
            episode.restore(saved, row)
        self._blank()

    def _blank(self) -> None:
        """Seats that are not alive see zeros, and those that do not act have no legal choice."""
        board = self.board
        if not board.acting.all():  # else all are alive
            for seat, (seen, masks) in enumerate(zip(board.observations, board.legal, strict=True)):
                seen[~board.alive[:, seat]] = 0
                for mask in masks or ():
                    mask[~board.acting[:, seat]] = False

    def close(self) -> None:
        failures = []
        while self.episodes:
            try:
                self.episodes.pop().close()
            except FAULTS as error:
                failures.append(error)
        if failures:
            raise failures[0]


def _items(actions: np.ndarray) -> list:
    """An entry a lane: integers for [B], arrays for [B, ...], which environments may keep or write to."""
    return actions.tolist() if actions.ndim == 1 else list(actions.copy())


class SteppedLanes:
    """`num_lanes` episodes of a source's environments, on NumPy. Implements `games.game.Lanes`.

    Most environments own their state, and refuse `state_dict`: units of work are done again, not resumed. Episodes are
    functions of (seed, unit, lane, how many came before), as far as the environments are of their seeds. `close` lets
    go of the environments; so does the garbage collector.

    Raises ValueError for no lanes; whatever an environment raises, after which the lanes are closed.
    """

    def __init__(self, source: Seats, num_lanes: int, host: Callable[[Any, int], Host] = Here):
        if not isinstance(num_lanes, int | np.integer) or num_lanes < 1:
            raise ValueError(f"lanes need at least one episode to play, a whole number, got num_lanes={num_lanes!r}")
        self._source, self.num_lanes, self.agents = source, num_lanes, source.agents
        self.observation_spaces, self.action_spaces = source.observation_spaces, source.action_spaces
        self._host = host(source, num_lanes)
        self._board = self._host.board
        self._wanted = blank_actions(source, num_lanes)
        self._noise: Noise | None = None

    def __repr__(self) -> str:
        return f"SteppedLanes({self._source!r}, {self.num_lanes})"

    def reset(self, seed: int, *units: str) -> None:
        """Start every lane afresh; `units` share the lanes in equal blocks (default: one unit named "lanes").

        Raises ValueError where the blocks would not be equal.
        """
        units = units or ("lanes",)
        if self.num_lanes % len(units):
            raise ValueError(f"{self.num_lanes} lanes cannot hold {len(units)} units in equal blocks")
        self._block = self.num_lanes // len(units)
        self._key, self._noise, self._steps = (seed, units), Noise(seed, units), 0
        self._host.reset(seed, [f"{unit}/{lane}" for unit in units for lane in range(self._block)])
        self._ended = np.zeros_like(self._board.alive)

    def noise(self, purpose: int, columns: int) -> np.ndarray:
        if self._noise is None:
            raise ResetNeeded("call reset(seed) before anything else is asked of lanes")
        return self._noise.draw(purpose, self._steps, self._block, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        """As `Lanes.step`. Raises ValueError for actions that are not one legal array a seat; what environments raise.

        Actions of seats that do not act may be anything.
        """
        board = self._started()
        over = (board.terminated | board.truncated) & ~board.done[:, None]
        self._host.step(self._checked(actions))
        self._steps += 1
        self._ended = ((board.terminated | board.truncated) & ~over) | board.done[:, None]
        parts = (board.rewards, board.terminated, board.truncated, board.done)
        return Outcome(*(part.copy() for part in parts))

    def _checked(self, actions: tuple[Array, ...]) -> list[np.ndarray]:
        """The actions as a host takes them: environments see the same wherever they are."""
        strange = [type(action).__name__ for action in actions if not isinstance(action, np.ndarray)]
        if strange:
            raise ValueError(f"actions must be one NumPy array a seat, in the order of agents; got a {strange[0]}")
        shapes = [wanted.shape for wanted in self._wanted]
        if [action.shape for action in actions] != shapes:
            raise ValueError(f"actions must be {shapes}, got {[action.shape for action in actions]}")
        for agent, action, wanted in zip(self.agents, actions, self._wanted, strict=True):
            if not np.can_cast(action.dtype, wanted.dtype, "same_kind"):
                raise ValueError(f"actions of {agent} must be {wanted.dtype}, got {action.dtype}")
        cast = [action.astype(wanted.dtype, copy=False) for action, wanted in zip(actions, self._wanted, strict=True)]
        for seat, action in enumerate(cast):
            wrong = self._board.acting[:, seat] & ~self._within(seat, action)
            if wrong.any():
                lane = int(wrong.argmax())
                agent, masks = self.agents[seat], self._board.legal[seat]
                legal = [] if masks is None else [np.flatnonzero(mask[lane]).tolist() for mask in masks]
                allowed = f"; legal now: {' and '.join(map(str, legal))}" if legal else ""
                space = self.action_spaces[seat]
                raise ValueError(f"{agent} must act within {space}, got {action[lane]} in lane {lane}{allowed}")
        return cast

    def _within(self, seat: int, action: np.ndarray) -> np.ndarray:
        """[B] whether actions are within the seat's space, and legal."""
        space, masks = self.action_spaces[seat], self._board.legal[seat]
        if isinstance(space, Box):
            return np.all((action >= space.low) & (action <= space.high), axis=1)
        choices, sizes = action.reshape(self.num_lanes, -1), np.array(factors(space))
        within = np.all((choices >= 0) & (choices < sizes), axis=1)
        if masks is not None:
            lanes = np.arange(self.num_lanes)
            for column, mask in enumerate(masks):
                within &= mask[lanes, choices[:, column].clip(0, sizes[column] - 1)]
        return within

    def observe(self, seat: int) -> np.ndarray:
        return self._started().observations[seat].copy()

    def legal(self, seat: int) -> Legal:
        masks = self._started().legal[seat]
        return None if masks is None else tuple(mask.copy() for mask in masks)

    @property
    def acting(self) -> np.ndarray:
        return self._started().acting.copy()

    @property
    def alive(self) -> np.ndarray:
        return self._started().alive.copy()

    def final_observations(self, seat: int) -> np.ndarray:
        seen = self.observe(seat)
        seen[self._ended[:, seat]] = self._board.finals[seat][self._ended[:, seat]]
        return seen

    def state(self, lane: int) -> Any:
        """A copy of a lane's state, such as a `pyspiel.State`.

        Raises NotImplementedError where environments do not offer that, or live in other processes.
        """
        host = self._keeping()
        self._started()
        return host.keeping()[lane].state()

    def state_dict(self) -> dict:
        """As `Lanes.state_dict`. Raises NotImplementedError as `state`."""
        host = self._keeping()
        self._started()
        seed, units = self._key
        saved = [episode.saved() for episode in host.keeping()]
        return {"seed": seed, "units": list(units), "steps": self._steps, "begun": list(host.begun), "saved": saved}

    def load_state_dict(self, state: dict) -> None:
        """As `Lanes.load_state_dict`. Raises NotImplementedError as `state`."""
        host = self._keeping()
        self.reset(state["seed"], *state["units"])
        self._steps = state["steps"]
        host.load_state_dict(state)

    def _keeping(self) -> Here:
        """The host, if it can keep the states of its episodes."""
        if not isinstance(self._host, Here):
            raise NotImplementedError(OWNED)
        self._host.keeping()
        return self._host

    def close(self) -> None:
        """Let go of the environments."""
        self._host.close()

    def _started(self) -> Board:
        if self._noise is None:
            raise ResetNeeded("call reset(seed) before anything else is asked of lanes")
        return self._board
