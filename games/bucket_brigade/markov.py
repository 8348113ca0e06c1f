"""Small instances of Bucket Brigade solved exactly: returns, best responses and NashConv of Markov profiles.

The game is enumerated over all that its policies read: the night, the ring, and those parts of everyone's last actions
on which some distribution depends. Values are exact up to rounding: they are of float64 uniforms and the kernel's
float32 numbers, by backward induction from the last night. Late nights are all alike, and added until those left until
`max_nights` could change no value by more than 1e-11 of the largest.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from games.bucket_brigade.enumerated import Model, Night, write_out
from games.bucket_brigade.rules import BucketBrigade
from games.bucket_brigade.tables import LIMIT, MarkovPolicy, Table, check_features, decision_tables, parts_read
from games.game import Policy

PRECISION = 1e-11
"""Of the largest value: by how much nights that are left out could change one."""


class Response(NamedTuple):
    """A best response, and what it earns; as `games.exact.Response`, but with a policy for a part of a strategy."""

    value: float  # the exact return of the seat that responds
    policy: MarkovPolicy  # deterministic; earns it


class OptimalTeam(NamedTuple):
    """The best profile of all, and what it earns; as `optimum.Optimum`, but always exact, and with its play."""

    value: float  # the exact sum of all agents' returns
    profile: list[MarkovPolicy]  # deterministic; earns it


def exact_returns(game: BucketBrigade, profile: Sequence[Policy], limit: int = LIMIT) -> np.ndarray:
    """[N] float64 expected returns of a profile, one policy a seat.

    Raises ValueError where the game cannot be written out (`enumerated.write_out`), where a policy is not a function of
    the state or does not tell its probabilities (`tables.decision_table`), where there is not one a seat, and for more
    than `limit` joint actions in all the states of a night that the policies tell apart.

    >>> from games.bucket_brigade.scripted import policy
    >>> game = BucketBrigade("v2_minimal", rho=0.0)
    >>> exact_returns(game, [policy("always_rest", game)] * 4).tolist()  # nine nights of 10 for the ring, 0.5 for rest
    [94.5, 94.5, 94.5, 94.5]
    """
    return returns(*write_out_profile(game, profile, limit))


def best_response(game: BucketBrigade, profile: Sequence[Policy], seat: int, limit: int = LIMIT) -> Response:
    """The most that `seat` can earn against the others' policies in `profile`, and a policy that does.

    No policy earns more, whatever it remembers or draws: against Markov policies, the best Markov policy is best. Its
    own policy in the profile is ignored. Raises ValueError as `exact_returns` does, for a seat that is not in the game,
    and for games that do not show the features which the policy reads.
    """
    check_features(game)
    check_seat(game, seat)
    model, tables = write_out_profile(game, profile, limit)
    return respond(model, tables, seat)


def deviation_gains(game: BucketBrigade, profile: Sequence[Policy], limit: int = LIMIT) -> np.ndarray:
    """[N] what each agent's best response would gain on what its policy in the profile earns, 0 up to rounding or more.

    Raises ValueError as `exact_returns` does.
    """
    model, tables = write_out_profile(game, profile, limit)
    best = [respond(model, tables, seat).value for seat in range(model.N)]
    return np.array(best) - returns(model, tables)


def nash_conv(game: BucketBrigade, profile: Sequence[Policy], limit: int = LIMIT) -> float:
    """Sum over agents of `deviation_gains`, 0 up to rounding at Nash equilibria and nowhere else; raises as those."""
    return float(deviation_gains(game, profile, limit).clip(min=0).sum())


def optimal_team(game: BucketBrigade) -> OptimalTeam:
    """The most that all agents' returns can add up to, and a profile that earns it.

    Exact where `optimum.team_optimum` has but a bound, and for small rings only. Raises ValueError where the game
    cannot be written out (`enumerated.write_out`), and for one that does not show the features which the profile reads.
    """
    check_features(game)
    model = write_out(game)
    choices: list[np.ndarray] = []

    def back(night: int, later: np.ndarray) -> np.ndarray:
        rules = model.night(night)
        values = rules.rewards.sum(axis=2) + model.chance @ np.where(rules.going, later, 0.0)
        choices.append(values.argmax(axis=1))
        return values.max(axis=1)

    values, nights = backward(model, len(model.nights), back, np.zeros(len(model.start)))
    moves = np.unravel_index(np.stack(choices[: -nights - 1 : -1]), (2 * model.H,) * model.N)
    unread = (1,) * (3 * model.N)
    profile = [MarkovPolicy((2 * move).reshape(*move.shape, *unread), model.N, model.H) for move in moves]
    return OptimalTeam(float(model.start @ values), profile)


def gap_closed(value: float, random: float, reference: float) -> float:
    """Where a value lies between random play at 0 and a reference at 1: the team's optimum, or a best response.

    Raises ValueError where those two are the same up to rounding: there is no gap to close.
    """
    gap = reference - random
    if abs(gap) <= 1e-9 * max(abs(reference), abs(random)):
        raise ValueError(f"a gap is closed between different values, got {random} for random play and the reference")
    return (value - random) / gap


def check_seat(game: BucketBrigade, seat: int) -> None:
    """Raises ValueError for a seat that is not in the game."""
    if not 0 <= seat < game.N:
        raise ValueError(f"wanted one of the seats 0 to {game.N - 1}, got {seat}")


def write_out_profile(game: BucketBrigade, profile: Sequence[Policy], limit: int) -> tuple[Model, list[Table]]:
    """The game, and a table a seat. Raises ValueError as `exact_returns` does, before the game is written out."""
    if len(profile) != game.N:
        raise ValueError(f"a profile is one policy for each of {game.N} seats, got {len(profile)}")
    tables = decision_tables(game, [[policy] for policy in profile], limit)
    return write_out(game), [table for (table,) in tables]


def returns(model: Model, tables: Sequence[Table]) -> np.ndarray:
    """[N] `exact_returns` of a game and a profile written out."""
    states = States(model, tables)
    play = states.play(tables, range(model.N))

    def back(night: int, later: np.ndarray) -> np.ndarray:
        rules = model.night(night)
        return play(night, states.ahead(rules, rules.rewards, later))

    values, _ = backward(model, states.nights, back, states.nothing(model.N))
    return model.start @ values[:, 0]


def respond(model: Model, tables: Sequence[Table], seat: int) -> Response:
    """`best_response` of a game and a profile written out."""
    others = [i for i in range(model.N) if i != seat]
    states = States(model, [tables[i] for i in others])
    play = states.play([tables[i] for i in others], others)
    choices: list[np.ndarray] = []

    def back(night: int, later: np.ndarray) -> np.ndarray:
        rules = model.night(night)
        ahead = states.ahead(rules, rules.rewards[:, :, seat : seat + 1], later)
        values = play(night, np.moveaxis(ahead[..., 0], 1 + seat, -1))
        choices.append(values.argmax(axis=2).astype(np.int16))
        return values.max(axis=2, keepdims=True)

    values, nights = backward(model, states.nights, back, states.nothing(1))
    actions = states.action_numbers(seat)[np.stack(choices[: -nights - 1 : -1])].astype(np.int16)
    policy = MarkovPolicy(actions.reshape(nights, len(model.start), *states.parts), model.N, model.H)
    return Response(float(model.start @ values[:, 0, 0]), policy)


def backward(
    model: Model, nights: int, back: Callable[[int, np.ndarray], np.ndarray], values: np.ndarray
) -> tuple[np.ndarray, int]:
    """Values at the start, and on how many first nights what was done last for them differs; all later ones repeat it.

    `back(night, later)` gives the values before a night from those after it, and is asked of the last night first;
    `nights` is a number of first nights of which the last stands for all that follow. `values` are those of the end.
    """
    last, differ = min(nights, model.max_nights) - 1, model.max_nights
    for night in range(model.max_nights - 1, last, -1):
        before = back(night, values)
        change, values = np.abs(before - values).max(initial=0), before
        # No night changes values by more than the one that comes after it did.
        if change * (night - last) <= PRECISION * np.abs(values).max(initial=0):
            differ = last + 1
            break
    for night in range(last, -1, -1):
        values = back(night, values)
    return values, differ


class States:
    """The Markov states [S, L] of some policies: S rings, and L combinations of the parts of last actions they read.

    An agent's *deeds* are its U = 2 H or 4 H actions, told apart by their signal only where that is read.
    """

    def __init__(self, model: Model, tables: Sequence[Table]):
        self.model = model
        self.parts = parts_read(tables) if tables else (1,) * (3 * model.N)
        self.nights = max([len(model.nights), *map(len, tables)])
        self._read = np.array(self.parts).reshape(model.N, 3)
        self.deeds = [2 * model.H * signals for signals in self._read[:, 2].tolist()]
        self._kept = [self.kept(seat, self.action_numbers(seat)) for seat in range(model.N)]

    def nothing(self, columns: int) -> np.ndarray:
        """[S, L, columns] zeros: values when play is over."""
        return np.zeros((len(self.model.start), int(self._read.prod()), columns))

    def action_numbers(self, seat: int) -> np.ndarray:
        """[U] an action of every deed, with signal 0 where nobody reads it."""
        return np.arange(self.deeds[seat]) * (1 if self._read[seat, 2] > 1 else 2)

    def kept(self, seat: int, actions: np.ndarray) -> np.ndarray:
        """[n] which of the combinations of this agent's parts that are read its actions [n] leave."""
        parts = np.stack([self.model.places[seat][actions // 4], actions // 2 % 2, actions % 2])
        return np.ravel_multi_index(tuple(parts * (self._read[seat] > 1)[:, None]), tuple(self._read[seat]))

    def shares(self, seat: int, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[n] what actions [n] of this agent add to the numbers of the joint move, and of the last actions."""
        later = slice(seat + 1, None)
        move = actions // 2 * (2 * self.model.H) ** (self.model.N - 1 - seat)
        return move, self.kept(seat, actions) * int(self._read[later].prod())

    def does(self, night: np.ndarray, seat: int) -> np.ndarray:
        """[S, L, U] a night of a table [S, ..., A] as probabilities of deeds."""
        full = np.broadcast_to(night, (len(night), *self.parts, night.shape[-1]))
        full = full.reshape(len(night), -1, 2 * self.model.H, 2)
        return full.reshape(*full.shape[:2], -1) if self._read[seat, 2] > 1 else full.sum(axis=3)

    def after(self, values: np.ndarray) -> np.ndarray:
        """[S, U_1, ..., U_N, C] the values [S, L, C] of the ring with the last actions that deeds leave."""
        combinations = [int(n) for n in self._read.prod(axis=1)]
        table = values.reshape(len(values), *combinations, -1)
        for seat, kept in enumerate(self._kept):
            table = table.take(kept, axis=1 + seat)
        return table

    def ahead(self, rules: Night, rewards: np.ndarray, later: np.ndarray) -> np.ndarray:
        """[S, U_1, ..., U_N, C] expected rewards [S, M, C] of a night and values [S, L, C] after it, by all deeds."""
        N, S, C = self.model.N, len(self.model.start), later.shape[2]
        signals = self._read[:, 2].tolist()
        table = self.after(later * rules.going[:, None, None])
        table = table.reshape(S, *(n for signal in signals for n in (2 * self.model.H, signal)), C)
        moves, spoken = range(1, 2 * N + 1, 2), range(2, 2 * N + 1, 2)
        order = (*moves, 0, *spoken, 2 * N + 1)
        table = table.transpose(order)
        shape = table.shape
        values = self.model.chance.swapaxes(0, 1) @ table.reshape(-1, S, int(np.prod(signals)) * C)
        values = values.reshape(len(values), S, -1, C) + rewards.swapaxes(0, 1)[:, :, None]
        return values.reshape(shape).transpose(np.argsort(order)).reshape(S, *self.deeds, C)

    def play(self, tables: Sequence[Table], seats: Sequence[int]) -> Callable[[int, np.ndarray], np.ndarray]:
        """A function of a night and [S, U_1, ..., C], an axis of each of `seats`, that takes the mean [S, L, C] over
        what those do.
        """
        half = (len(seats) + 1) // 2
        ready: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}

        def play(night: int, ahead: np.ndarray) -> np.ndarray:
            key = tuple(min(night, len(table) - 1) for table in tables)
            if key not in ready:
                ready.clear()  # one night's distributions at a time, for they are large
                each = [self.does(table[number], seat) for table, number, seat in zip(tables, key, seats, strict=True)]
                ready[key] = self._together(each[:half]), self._together(each[half:])
            left, right = ready[key]
            occur = np.flatnonzero(self.model.occur(night))
            return _mean(left, right, ahead.reshape(len(ahead), -1, ahead.shape[-1]), occur)

        return play

    def _together(self, each: Sequence[np.ndarray]) -> np.ndarray:
        """[S, L, U_1 * U_2 * ...] probabilities of what some agents do together, from each one's [S, L, U]."""
        together = np.ones_like(self.nothing(1))
        for one in each:
            together = (together[..., :, None] * one[..., None, :]).reshape(*one.shape[:2], -1)
        return together


def _mean(left: np.ndarray, right: np.ndarray, table: np.ndarray, occur: np.ndarray) -> np.ndarray:
    """[S, L, C] means of table [S, X * Y, C] under independent left [S, L, X] and right [S, L, Y]; 0 for rings that do
    not `occur`.

    One matrix product a ring for half the agents, many small ones for the rest: no product of all of them is made.
    """
    S, L, X = left.shape
    Y, C = right.shape[2], table.shape[2]
    means = np.zeros((S, L, C))
    for ring in occur:
        some = (left[ring] @ table[ring].reshape(X, Y * C)).reshape(L, Y, C)
        means[ring] = (right[ring][:, None, :] @ some)[:, 0]
    return means
