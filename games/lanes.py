"""Lanes from a Game: thousands of episodes side by side, restarted as they end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Space

from games.faults import closed_after_errors
from games.game import Array, Game, Lanes, Legal, Outcome, Params, Playable, State, factors
from games.noise import Noise, Purpose


class GameLanes:
    """`num_lanes` episodes of `game`, stepped together. Implements `games.game.Lanes`.

    `params` are the game's own by default; leaves [num_lanes, ...] let every lane play its own cell.
    `put` moves a NumPy array to where the lanes live (e.g. to a CUDA device); the default keeps NumPy. Noise is
    always drawn by NumPy, so the same seed plays the same episodes wherever the arrays live.

    Raises ValueError for no lanes, or params of another number of lanes.

    >>> from games import make
    >>> lanes = GameLanes(make("rock_paper_scissors"), num_lanes=2)
    >>> lanes.reset(seed=0)
    >>> lanes.step((np.array([0, 1]), np.array([2, 1]))).rewards  # rock and scissors; paper twice
    array([[ 1., -1.],
           [ 0.,  0.]], dtype=float32)
    """

    def __init__(
        self, game: Game, num_lanes: int, params: Params = None, put: Callable[[np.ndarray], Array] = np.asarray
    ):
        if not isinstance(game, Game):
            raise ValueError(f"{game!r} is no game of pure functions, but may be played by its own .lanes({num_lanes})")
        if num_lanes < 1:
            raise ValueError(f"lanes need at least one episode to play, got num_lanes={num_lanes}")
        self.game, self.num_lanes, self._put = game, num_lanes, put
        self.params = tree_map(put, game.params() if params is None else params)
        for leaf in tree_leaves(self.params):
            if leaf.shape[0] not in (1, num_lanes):
                raise ValueError(f"params leaves must be [1 or {num_lanes}, ...], got shape {tuple(leaf.shape)}")
        self.agents = game.agents
        self.observation_spaces, self.action_spaces = game.observation_spaces, game.action_spaces
        self._shapes = [(num_lanes, *(space.shape or ())) for space in self.action_spaces]
        self._discrete = [seat for seat, space in enumerate(self.action_spaces) if not isinstance(space, Box)]
        # As large as the actions: broadcasting would take three times as long.
        self._last = [put(_last_choices(self.action_spaces[seat], num_lanes)) for seat in self._discrete]

    def __repr__(self) -> str:
        return f"GameLanes({self.game!r}, {self.num_lanes})"

    def __getattr__(self, name: str) -> Any:
        if name in ("_state", "_ended", "_noise", "_key"):  # what `reset` sets
            raise ResetNeeded("call reset(seed) before anything else is asked of lanes")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def reset(self, seed: int, *units: str) -> None:
        """Start every lane afresh; `units` share the lanes in equal blocks (default: one unit named "lanes").

        Raises ValueError where the blocks would not be equal.
        """
        self._key = (seed, units or ("lanes",))
        if self.num_lanes % len(self._key[1]):
            raise ValueError(f"{self.num_lanes} lanes cannot hold {len(units)} units in equal blocks")
        self._noise = Noise(seed, self._key[1])
        self._steps = 0
        self._state = self._ended = self.game.init(self.params, self.noise(Purpose.INIT, self.game.noise_sizes[0]))

    def noise(self, purpose: int, columns: int) -> Array:
        return self._put(self._noise.draw(purpose, self._steps, self.num_lanes // len(self._key[1]), columns))

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        """As `Lanes.step`. Raises ValueError for actions that are not one array a seat, within its space.

        Those of a Box must be of its dtype: float64 would spread through the states.
        """
        game, params = self.game, self.params
        self._check(actions)
        ended = game.step(params, self._state, actions, self.noise(Purpose.STEP, game.noise_sizes[1]))
        self._steps += 1
        rewards = game.rewards(params, ended)
        terminated, truncated = game.terminated(params, ended), game.truncated(params, ended)
        done = terminated | truncated
        self._ended = self._state = ended
        if done.any():
            fresh = game.init(params, self.noise(Purpose.INIT, game.noise_sizes[0]))
            self._state = tree_map(lambda new, old: put_lanes(done, new, old), fresh, ended)
        terminated, truncated = (_for_all(flag, rewards) for flag in (terminated, truncated))
        return Outcome(rewards, terminated, truncated, done)

    def _check(self, actions: tuple[Array, ...]) -> None:
        if [tuple(action.shape) for action in actions] != self._shapes:
            raise ValueError(f"actions must be {self._shapes}, got {[tuple(action.shape) for action in actions]}")
        for seat, space in enumerate(self.action_spaces):
            if isinstance(space, Box):
                action = to_numpy(actions[seat])
                if action.dtype != space.dtype:
                    raise ValueError(f"{self.agents[seat]} must act in {space.dtype}, got {action.dtype}: cast actions")
                self._check_lanes(seat, action, (action >= space.low) & (action <= space.high))
        if not self._discrete:
            return
        # A sign bit shows where an action, or its distance from the last choice, is negative; asked once for all seats,
        # for an answer from a GPU is awaited.
        chosen = [actions[seat] for seat in self._discrete]
        signs = [(action | (last - action)).min() for action, last in zip(chosen, self._last, strict=True)]
        if array_namespace(*chosen).stack(signs).min() < 0:
            for seat, action, last in zip(self._discrete, chosen, self._last, strict=True):
                self._check_lanes(seat, action, to_numpy((action >= 0) & (action <= last)))

    def _check_lanes(self, seat: int, action: Array, within: np.ndarray) -> None:
        """Raises ValueError for the first lane whose action is not within the seat's space."""
        wrong = ~within.reshape(self.num_lanes, -1).all(axis=1)
        if wrong.any():
            lane, agent, space = int(wrong.argmax()), self.agents[seat], self.action_spaces[seat]
            raise ValueError(f"{agent} must act within {space}, got {action[lane]} in lane {lane}")

    def observe(self, seat: int) -> Array:
        return self.game.observe(self.params, self._state, seat)

    def legal(self, seat: int) -> Legal:
        return self.game.legal(self.params, self._state, seat)

    @property
    def acting(self) -> Array:
        return self.game.acting(self.params, self._state)

    @property
    def alive(self) -> Array:
        # An episode of these games ends for all seats at once, and the next one starts in the same step.
        return array_namespace(self.acting).ones_like(self.acting)

    @property
    def ended(self) -> State:
        """States that the last step, or reset, led to, before any restart."""
        return self._ended

    def final_observations(self, seat: int) -> Array:
        return self.game.observe(self.params, self._ended, seat)

    def state_dict(self) -> dict:
        leaves = [np.array(to_numpy(leaf)) for leaf in tree_leaves(self._state)]
        return {"seed": self._key[0], "units": list(self._key[1]), "steps": self._steps, "state": leaves}

    def load_state_dict(self, state: dict) -> None:
        self.reset(state["seed"], *state["units"])
        self._steps = state["steps"]
        leaves = iter(state["state"])
        self._state = self._ended = tree_map(lambda _: self._put(np.asarray(next(leaves))), self._state)


def lanes_of(game: Game | Playable, num_lanes: int, put: Callable[[np.ndarray], Array] = np.asarray) -> Lanes:
    """Lanes of a Game where `put` puts them, or of anything else that is played in lanes, which stays on NumPy."""
    return GameLanes(game, num_lanes, put=put) if isinstance(game, Game) else game.lanes(num_lanes)


@contextmanager
def closing(lanes: Lanes) -> Iterator[Lanes]:
    """The lanes for the length of a block; then those that hold environments or processes let go of them."""
    with closed_after_errors(partial(close, lanes)):
        yield lanes
    close(lanes)


def close(lanes: Lanes) -> None:
    """Let go of environments or processes, if the lanes hold any."""
    if hasattr(lanes, "close"):
        lanes.close()


def _for_all(flag: Array, rewards: Array) -> Array:
    """flag [B] for every seat of rewards [B, N]."""
    column = flag[:, None]
    return column if rewards.shape[1] == 1 else array_namespace(rewards).broadcast_to(column, rewards.shape)


def _last_choices(space: Space, lanes: int) -> np.ndarray:
    """[B] or [B, factors] the largest choice of every factor."""
    tiled = np.tile(np.array(factors(space)) - 1, (lanes, 1))
    return tiled if space.shape else tiled[:, 0].copy()


def tree_map(function: Callable, tree: Any, *others: Any) -> Any:
    """Apply `function` to every array leaf of nested tuples of the same structure; None stays None."""
    if tree is None:
        return None
    if isinstance(tree, tuple):
        mapped = [tree_map(function, *branches) for branches in zip(tree, *others, strict=True)]
        return type(tree)(*mapped) if hasattr(tree, "_fields") else tuple(mapped)
    return function(tree, *others)


def tree_leaves(tree: Any) -> list[Array]:
    """The array leaves of nested tuples, in order."""
    leaves: list[Array] = []
    tree_map(leaves.append, tree)
    return leaves


def put_lanes(mask: Array, new: Array, old: Array) -> Array:
    """`new` on the lanes of mask [B], else `old`, as a new array; leaves are [B, ...]."""
    merged = array_namespace(old).asarray(old, copy=True)
    lanes = array_namespace(mask).nonzero(mask)[0]  # few lanes end at once: writing their rows beats `where`
    merged[lanes] = new[lanes]
    return merged


def put_like(tree: Any, array: Array) -> Any:
    """The leaves of nested tuples as arrays of the kind of `array`, where that lives."""
    return tree_map(lambda leaf: array_namespace(array).asarray(leaf, device=device(array)), tree)


def to_numpy(array: Array) -> np.ndarray:
    """The same numbers as a NumPy array, without a copy where they are in the CPU's memory."""
    return np.asarray(to_device(array, "cpu"))
