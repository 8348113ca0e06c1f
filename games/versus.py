"""Seats played by populations: one joint profile per lane and episode, drawn from a meta-strategy."""

from collections.abc import Callable, Iterable, Sequence, Sized
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from games.game import Array, Lanes, Legal, Memory, Outcome, Policy
from games.lanes import put_lanes, put_like, to_numpy, tree_leaves, tree_map
from games.noise import Purpose

Populations = Sequence[Sequence[Policy]]
Watch = Callable[[np.ndarray, Outcome], None]


def checked_sigma(populations: Sequence[Sized], sigma: ArrayLike) -> np.ndarray:
    """[k_1, ..., k_N] float64, scaled to sum to 1 up to rounding, as far as it did not.

    Raises ValueError where sigma is not a distribution over the populations' profiles.
    """
    sizes = tuple(len(population) for population in populations)
    joint = np.asarray(sigma, np.float64)
    if joint.shape != sizes:
        raise ValueError(f"sigma must have one axis entry per policy, {sizes}, got shape {joint.shape}")
    if not (np.isfinite(joint).all() and (joint >= 0).all() and abs(joint.sum() - 1) < 1e-6):
        raise ValueError(f"sigma must be a distribution: entries >= 0 that sum to 1, got a sum of {joint.sum()}")
    return joint / joint.sum()


class Cast:
    """Plays `seats` of `lanes`: every episode of every lane is cast afresh with one *joint* profile from `sigma`.

    sigma [k_1, ..., k_N] is a distribution over the profiles of all N seats; the seats that are not cast are summed
    out, so the correlation of the others is kept. After a reset of the lanes, call `start`; then `act` once before each
    step, and `recast` with the step's `done` after it.

    Raises ValueError where sigma is not a distribution over the populations' profiles.
    """

    profile: np.ndarray
    """[B, M] who plays the M cast seats of every lane."""
    _memory: dict[tuple[int, int], Memory]
    _forbidden: dict[int, Array]  # [B] by column, where the last choice was not legal; if not told yet

    def __init__(self, lanes: Lanes, populations: Populations, sigma: np.ndarray, seats: Sequence[int]):
        self.lanes, self.seats = lanes, tuple(seats)
        self._forbidden = {}
        self._dtypes = [str(space.dtype) if isinstance(space, Box) else "int64" for space in lanes.action_spaces]
        self.draw_from(populations, sigma)

    def draw_from(self, populations: Populations, sigma: np.ndarray) -> None:
        """Take these populations and sigma; call `start` or `load_state_dict` next."""
        if len(populations) != len(self.lanes.agents):
            raise ValueError(f"there must be one population per seat: {len(self.lanes.agents)}, got {len(populations)}")
        self.populations, self.sigma = populations, checked_sigma(populations, sigma)
        joint = self.sigma.sum(axis=tuple(seat for seat in range(self.sigma.ndim) if seat not in self.seats))
        self._profiles = np.argwhere(joint > 0)
        self._cumulative = np.cumsum(joint[joint > 0])

    def change(self, populations: Populations, sigma: np.ndarray) -> None:
        """Draw from these from now on, while episodes under way are played to their end by who began them.

        Who plays one and is not in the new populations is appended to them, and sigma gives it 0.
        """
        checked_sigma(populations, sigma)
        extended = [list(population) for population in populations]
        profile, carried = self.profile.copy(), {}
        for column, seat in enumerate(self.seats):
            for index in np.unique(self.profile[:, column]):
                policy, free = self.populations[seat][index], len(extended[seat])
                found = (place for place, other in enumerate(extended[seat]) if other is policy)
                place = next((place for place in found if (column, place) not in carried), free)
                extended[seat] += [policy] * (place == free)
                profile[self.profile[:, column] == index, column] = place
                carried[column, place] = self._memory[column, index]
        added = [(0, len(more) - len(population)) for more, population in zip(extended, populations, strict=True)]
        self.draw_from(extended, np.pad(np.asarray(sigma, np.float64), added))
        self.profile = profile
        self._memory = self._memories() | carried

    def start(self) -> None:
        """Cast every lane; call after the lanes were reset.

        Raises ValueError naming the agent and the policy whose memory is not of all lanes.
        """
        self.profile = self._draw()
        self._memory = self._memories()

    def act(self) -> dict[int, Array]:
        """The cast's actions: seat -> [B] or [B, factors].

        Raises ValueError naming the agent and the policy that chose actions of another kind or shape, or what is not
        legal, or whose memory changes its shape. What is not legal on a GPU is told by `recast`, which awaits an answer
        of it anyway.
        """
        self._forbidden = {}
        actions = {seat: self._act(column, seat) for column, seat in enumerate(self.seats)}
        if all(str(device(wrong)) == "cpu" for wrong in self._forbidden.values()):
            self._refuse(map(to_numpy, self._forbidden.values()))
        return actions

    def recast(self, done: Array) -> None:
        """Draw new profiles, and start memories afresh, on the lanes of done [B]."""
        news = array_namespace(done).stack([done, *self._forbidden.values()]) if self._forbidden else done[None]
        if not news.any():
            return
        ended, *forbidden = to_numpy(news)
        self._refuse(forbidden)
        self.profile = np.where(ended[:, None], self._draw(), self.profile)
        for (column, index), memory in self._memory.items():
            fresh = self._fresh(self.seats[column], index, done)
            self._memory[column, index] = tree_map(lambda new, old: put_lanes(done, new, old), fresh, memory)

    def state_dict(self) -> dict:
        kept = [self._memory[key] for key in self._players()]
        memories = [np.array(to_numpy(leaf)) for memory in kept for leaf in tree_leaves(memory)]
        return {"profile": self.profile.copy(), "memories": memories}

    def load_state_dict(self, state: dict) -> None:
        self.profile = state["profile"].copy()
        self._memory = self._memories()
        leaves = iter(state["memories"])
        for key, memory in self._memory.items():
            self._memory[key] = tree_map(lambda leaf: put_like(next(leaves), leaf), memory)

    def _fresh(self, seat: int, index: int, where: Array) -> Memory:
        """Memory of fresh episodes on all lanes, in arrays like `where`.

        Raises ValueError where a part of it is not [B, ...].
        """
        policy, lanes = self.populations[seat][index], self.lanes.num_lanes
        memory = put_like(policy.start(lanes), where)
        if any(leaf.shape[:1] != (lanes,) for leaf in tree_leaves(memory)):
            raise ValueError(
                f"memory of {self.lanes.agents[seat]} must be arrays [{lanes}, ...] in nested tuples, or None; got "
                f"{_shapes(memory)} from the start of {policy!r}"
            )
        return memory

    def _draw(self) -> np.ndarray:
        uniforms = to_numpy(self.lanes.noise(Purpose.CAST, 1))[:, 0]
        drawn = np.searchsorted(self._cumulative, uniforms, side="right")
        # Rounding may leave the last cumulative sum just below the largest uniform.
        return self._profiles[np.minimum(drawn, len(self._profiles) - 1)]

    def _players(self) -> list[tuple[int, int]]:
        """(column, index) of those who may be drawn, and of those who play."""
        both = np.concatenate([self._profiles, self.profile])
        return [(column, index) for column in range(len(self.seats)) for index in np.unique(both[:, column]).tolist()]

    def _memories(self) -> dict[tuple[int, int], Memory]:
        """Memories of fresh episodes of all players."""
        where = self.lanes.acting
        return {(column, index): self._fresh(self.seats[column], index, where) for column, index in self._players()}

    def _act(self, column: int, seat: int) -> Array:
        policies, observation, legal = self.populations[seat], self.lanes.observe(seat), self.lanes.legal(seat)
        players = [index for place, index in self._memory if place == column]
        noise = self.lanes.noise(Purpose.SEAT + seat, max(policies[index].noise_size for index in players))
        xp = array_namespace(observation)
        actions = None
        for index in players:
            mine = self.profile[:, column] == index
            if not mine.any():
                continue
            # A view of all rows spares the copies where one policy plays every lane.
            rows = slice(None) if mine.all() else put_like(np.flatnonzero(mine), observation)
            policy = policies[index]
            masks = None if legal is None else tuple(mask[rows] for mask in legal)
            old: Memory = tree_map(lambda leaf, rows=rows: leaf[rows], self._memory[column, index])
            seen = observation[rows]
            chosen, memory = policy.act(seen, masks, old, noise[rows, : policy.noise_size])
            self._check(seat, policy, chosen, seen)
            self._remember(column, index, rows, old, memory)
            if actions is None:
                # Not in the dtype of whoever comes first: what others choose might not fit it.
                dtype = getattr(xp, self._dtypes[seat])
                actions = xp.zeros((self.lanes.num_lanes, *chosen.shape[1:]), dtype=dtype, device=device(chosen))
            actions[rows] = chosen
        if legal is not None:
            self._forbidden[column] = self.lanes.acting[:, seat] & ~_allowed(legal, actions)
        return actions

    def _check(self, seat: int, policy: Policy, chosen: Array, seen: Array) -> None:
        """Raises ValueError unless the choice for what the policy has seen is of the seat's shape and dtype."""
        wanted, dtype = (len(seen), *(self.lanes.action_spaces[seat].shape or ())), self._dtypes[seat]
        if not isinstance(chosen, type(seen)):
            got = f"a {type(chosen).__name__}"
        elif tuple(chosen.shape) != wanted or not _is_of(chosen, dtype):
            got = f"{tuple(chosen.shape)} of {chosen.dtype}"
        else:
            return
        agent, kind = self.lanes.agents[seat], type(seen).__name__
        raise ValueError(
            f"{agent} acts in {len(seen)} lanes by a {kind} {wanted} of {dtype}, got {got} from {policy!r}: was that "
            "made for this seat?"
        )

    def _refuse(self, forbidden: Iterable[np.ndarray]) -> None:
        """Raises ValueError for the first lane of [B], one for each of `self._forbidden`, where that is so."""
        for column, wrong in zip(self._forbidden, forbidden, strict=True):
            if wrong.any():
                lane, seat = int(wrong.argmax()), self.seats[column]
                policy = self.populations[seat][self.profile[lane, column]]
                raise ValueError(
                    f"{self.lanes.agents[seat]} chose an action in lane {lane} that is not legal there: {policy!r} has "
                    "to keep to what `act` is told to be legal"
                )
        self._forbidden = {}

    def _remember(self, column: int, index: int, rows: Array | slice, old: Memory, memory: Memory) -> None:
        """Write the memory after an action where the old one of these rows was. Raises ValueError for unlike ones."""
        if memory is None and old is None:
            return
        if (wanted := _shapes(old)) != (got := _shapes(memory)):
            seat = self.seats[column]
            raise ValueError(
                f"memory of {self.lanes.agents[seat]} must keep the shapes {wanted}, got {got} from "
                f"{self.populations[seat][index]!r}"
            )

        def put(whole: Array, new: Array) -> Array:
            whole[rows] = new
            return whole

        tree_map(put, self._memory[column, index], memory)


def _is_of(array: Array, dtype: str) -> bool:
    """Whether an array is of a dtype; integers of any size serve as any others."""
    xp = array_namespace(array)
    wanted = getattr(xp, dtype)
    return array.dtype == wanted or (xp.isdtype(array.dtype, "integral") and xp.isdtype(wanted, "integral"))


def _shapes(tree: Memory) -> Any:
    """The leaves' shapes, in the same nested tuples; of what is no array, its type."""
    if isinstance(tree, tuple):
        return tuple(_shapes(branch) for branch in tree)
    if tree is None:
        return None
    return list(tree.shape) if hasattr(tree, "shape") else type(tree).__name__


def _allowed(legal: tuple[Array, ...], actions: Array) -> Array:
    """[B] whether actions [B] or [B, factors] are legal in every factor; those beyond its choices count as the last."""
    lanes = array_namespace(actions).arange(len(actions), device=device(actions))
    choices = actions[:, None] if actions.ndim == 1 else actions
    found = (mask[lanes, choices[:, factor].clip(0, mask.shape[1] - 1)] for factor, mask in enumerate(legal))
    return reduce(and_, found)


class Versus:
    """The game as `seats` see it while a cast plays the others; implements `games.game.Lanes`.

    Seats are renumbered 0.. in the order given. `populations` and `sigma` cover all N seats of the inner lanes; those
    of the learning seats are summed out. `watch` is told of every step: the cast's `profile` and the outcome of all N.
    """

    def __init__(
        self,
        lanes: Lanes,
        populations: Populations,
        sigma: np.ndarray,
        seats: Sequence[int],
        watch: Watch | None = None,
    ):
        self.lanes, self.seats, self.num_lanes, self.watch = lanes, tuple(seats), lanes.num_lanes, watch
        if (
            not self.seats
            or len(set(self.seats)) < len(self.seats)
            or not set(self.seats) <= set(range(len(lanes.agents)))
        ):
            raise ValueError(f"learning seats must be different numbers below {len(lanes.agents)}, got {self.seats}")
        others = [seat for seat in range(len(lanes.agents)) if seat not in self.seats]
        self.cast = Cast(lanes, populations, sigma, others)
        self.agents = tuple(lanes.agents[seat] for seat in self.seats)
        self.observation_spaces = tuple(lanes.observation_spaces[seat] for seat in self.seats)
        self.action_spaces = tuple(lanes.action_spaces[seat] for seat in self.seats)
        self._columns = list(self.seats)

    def reset(self, seed: int, *units: str) -> None:
        self.lanes.reset(seed, *units)
        self.cast.start()

    def noise(self, purpose: int, columns: int) -> Array:
        if purpose >= Purpose.SEAT:  # the learner's seats keep the numbers of the game, apart from the cast's
            purpose = Purpose.SEAT + self.seats[purpose - Purpose.SEAT]
        return self.lanes.noise(purpose, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        played = self.cast.act() | dict(zip(self.seats, actions, strict=True))
        outcome = self.lanes.step(tuple(played[seat] for seat in range(len(played))))
        if self.watch is not None:
            self.watch(self.cast.profile, outcome)
        self.cast.recast(outcome.done)
        columns = self._columns
        return Outcome(
            outcome.rewards[:, columns], outcome.terminated[:, columns], outcome.truncated[:, columns], outcome.done
        )

    def observe(self, seat: int) -> Array:
        return self.lanes.observe(self.seats[seat])

    def legal(self, seat: int) -> Legal:
        return self.lanes.legal(self.seats[seat])

    @property
    def acting(self) -> Array:
        return self.lanes.acting[:, self._columns]

    @property
    def alive(self) -> Array:
        return self.lanes.alive[:, self._columns]

    def final_observations(self, seat: int) -> Array:
        return self.lanes.final_observations(self.seats[seat])

    def state_dict(self) -> dict:
        return {"lanes": self.lanes.state_dict(), "cast": self.cast.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        self.lanes.load_state_dict(state["lanes"])
        self.cast.load_state_dict(state["cast"])
