"""Mixtures of profiles of Bucket Brigade, of which one is drawn an episode, and hidden: solved exactly, or bracketed.

Who responds to a mixture does not see whom it plays, and infers it from what the others do. Where few enough beliefs
can arise, the game with the belief as part of its state is solved; else there are bounds from both sides.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from games.bucket_brigade.enumerated import Model, write_out
from games.bucket_brigade.markov import States, backward, check_seat, respond, returns
from games.bucket_brigade.rules import BucketBrigade
from games.bucket_brigade.tables import LIMIT, Table, check_features, decision_table, decision_tables
from games.game import Policy
from games.versus import Populations, checked_sigma

BELIEF_LIMIT = 20_000
"""States with their beliefs, over all nights, up to which the best response to a mixture is solved exactly."""

BELIEF_DIGITS = 12
"""After the point, of probabilities: beliefs that agree in these are taken for one."""

Kind = Literal["exact", "lower bound"]


class MixtureResponse(NamedTuple):
    """What the best response to a mixture earns."""

    value: float
    kind: Kind
    upper: float  # no response earns more: that of knowing whom one plays, or the value itself where it is exact
    policy: Policy | None
    """Earns the value; None where that is exact and takes a memory of beliefs."""


class Gap(NamedTuple):
    """How much the players could gain by deviating from a mixture to any policies at all, from both sides."""

    total: float
    gains: np.ndarray  # [N]
    kind: Kind  # exact if all gains are
    upper: float  # the total is no more; itself where that is exact
    upper_gains: np.ndarray  # [N] none is more


def exact_payoffs(game: BucketBrigade, populations: Populations, limit: int = LIMIT) -> np.ndarray:
    """[N, k_1, ..., k_N] expected returns of every profile; the mixture sigma earns their mean under sigma.

    Raises ValueError as `markov.exact_returns` does, and where there is not one population a seat.
    """
    tables, model = decision_tables(game, populations, limit), write_out(game)
    payoffs = np.empty((model.N, *map(len, populations)))
    for profile in np.ndindex(payoffs.shape[1:]):
        payoffs[:, *profile] = returns(model, _chosen(tables, profile))
    return payoffs


def mixture_response(
    game: BucketBrigade,
    populations: Populations,
    sigma: np.ndarray,
    seat: int,
    limit: int = LIMIT,
    belief_limit: int = BELIEF_LIMIT,
) -> MixtureResponse:
    """The best response of `seat` while the others play profiles drawn from sigma [k_1, ..., k_N], one an episode.

    Beliefs that agree in 12 digits are taken for one. Where more than `belief_limit` states with beliefs arise, the
    value is a lower bound: that of the best of the responses to single profiles and the seat's own population. Raises
    ValueError as `markov.best_response` does, and for a sigma that is no distribution over the populations' profiles.
    """
    check_features(game)
    check_seat(game, seat)
    sigma = checked_sigma(populations, sigma)
    tables, model = decision_tables(game, populations, limit), write_out(game)
    return _respond(game, model, tables, sigma, seat, populations, limit, belief_limit)


def cce_gap(
    game: BucketBrigade,
    populations: Populations,
    sigma: np.ndarray,
    limit: int = LIMIT,
    belief_limit: int = BELIEF_LIMIT,
) -> Gap:
    """The gain of every player's best response to the joint sigma [k_1, ..., k_N]; NashConv where sigma is a product.

    A player whom every deviation hurts stays, for a gain of 0. Raises ValueError as `mixture_response` does.
    """
    check_features(game)
    sigma = checked_sigma(populations, sigma)
    tables, model = decision_tables(game, populations, limit), write_out(game)
    value = sum(sigma[tuple(p)] * returns(model, _chosen(tables, tuple(p))) for p in np.argwhere(sigma > 0))
    best = [_respond(game, model, tables, sigma, seat, populations, limit, belief_limit) for seat in range(model.N)]
    gains, most = (
        (np.array(side) - value).clip(min=0) for side in zip(*((r.value, r.upper) for r in best), strict=True)
    )
    kind: Kind = "exact" if all(response.kind == "exact" for response in best) else "lower bound"
    return Gap(float(gains.sum()), gains, kind, float(most.sum()), most)


def _chosen(tables: Sequence[Sequence[Table]], profile: Sequence[int]) -> list[Table]:
    return [own[index] for own, index in zip(tables, profile, strict=True)]


def _respond(
    game: BucketBrigade,
    model: Model,
    tables: list[list[Table]],
    sigma: np.ndarray,
    seat: int,
    populations: Populations,
    limit: int,
    belief_limit: int,
) -> MixtureResponse:
    others = sigma.sum(axis=seat, keepdims=True)
    profiles = [_chosen(tables, tuple(profile)) for profile in np.argwhere(others > 0)]
    weights = others[others > 0]
    value = _Beliefs(model, profiles, weights, seat).solve(belief_limit) if len(profiles) > 1 else None
    if value is not None:
        return MixtureResponse(value, "exact", value, None)
    responses = [respond(model, profile, seat) for profile in profiles]
    candidates: list[tuple[Policy, Table]] = [
        (r.policy, decision_table(game, r.policy, seat, limit)) for r in responses
    ]
    candidates += zip(populations[seat], tables[seat], strict=True)
    if len(profiles) == 1:
        return MixtureResponse(responses[0].value, "exact", responses[0].value, responses[0].policy)

    def earns(table: Table) -> float:
        """Against the mixture."""
        seated = [[*profile[:seat], table, *profile[seat + 1 :]] for profile in profiles]
        return float(weights @ [returns(model, each)[seat] for each in seated])

    values = [earns(table) for _, table in candidates]
    best = int(np.argmax(values))
    upper = float(weights @ [response.value for response in responses])
    return MixtureResponse(values[best], "lower bound", upper, candidates[best][0])


class _Numbered:
    """Keys numbered as they come, each with what it stands for."""

    def __init__(self) -> None:
        self.items: list = []
        self._numbers: dict[bytes | int, int] = {}

    def __len__(self) -> int:
        return len(self.items)

    def number(self, key: bytes | int, item: object) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.items)
            self.items.append(item)
        return self._numbers[key]


class _Layer(NamedTuple):
    """What every deed of the responder leads to, in every state with a belief in which a night may start."""

    rewards: np.ndarray  # [states * U] expected
    row: np.ndarray  # [E] of `rewards`: which state and deed
    next: np.ndarray  # [E] which state of the next night
    chance: np.ndarray  # [E]


class _Beliefs:
    """The states with beliefs that arise while `seat` plays others who are one of `profiles`, with prior `weights`.

    A state is numbered by its belief, ring and last actions, a belief by the order in which distributions arise.
    """

    def __init__(self, model: Model, profiles: list[list[Table]], weights: np.ndarray, seat: int):
        self.model, self.profiles, self.seat = model, profiles, seat
        self.others = [i for i in range(model.N) if i != seat]
        self.states = States(model, [profile[i] for profile in profiles for i in self.others])
        self.shape = len(model.start), int(np.prod(self.states.parts))  # of states without beliefs
        self.beliefs = _Numbered()
        self.prior = self._believed(weights[None])
        self.own_moves, self.own_kept = self.states.shares(seat, self.states.action_numbers(seat))
        # The others' joint actions are told apart by their signals too: those are seen, whether or not they matter.
        self.their_moves = self.their_kept = np.zeros(1, np.int64)
        for other in self.others:
            moves, kept = self.states.shares(other, np.arange(4 * model.H))
            self.their_moves = np.add.outer(self.their_moves, moves).ravel()
            self.their_kept = np.add.outer(self.their_kept, kept).ravel()

    def solve(self, limit: int) -> float | None:
        """The best response's value; None where more than `limit` states with beliefs arise."""
        model, last = self.model, min(self.states.nights, self.model.max_nights) - 1
        opening = np.flatnonzero(model.start)
        now, solved = _Numbered(), 0
        layers: list[_Layer] = []
        for state in self._states(self.prior, opening, np.zeros_like(opening)).tolist():
            now.number(state, state)
        for night in range(last + 1):
            # The last layer stands for all nights that follow: what it leads to is part of it.
            then = _Numbered() if night < last else now
            layer = self._layer(night, now, then, limit - solved)
            if layer is None:
                return None
            layers.append(layer)
            solved, now = solved + len(now), then

        def back(night: int, later: np.ndarray) -> np.ndarray:
            layer = layers[min(night, last)]
            ahead = np.bincount(layer.row, layer.chance * later[layer.next], len(layer.rewards))
            return (layer.rewards + ahead).reshape(-1, len(self.own_moves)).max(axis=1)

        values, _ = backward(model, self.states.nights, back, np.zeros(len(now)))
        return float(model.start[opening] @ values[: len(opening)])

    def _layer(self, night: int, now: _Numbered, then: _Numbered, limit: int) -> _Layer | None:
        """What the states of `now` lead to, numbered in `then`, which may be `now`; None once `limit` is exceeded."""
        if not len(now):  # every episode is over by then
            none = np.zeros(0, np.int64)
            return _Layer(np.zeros(0), none, none, np.zeros(0))
        goes_on = night < self.model.max_nights - 1
        parts: list[tuple[np.ndarray, ...]] = []
        while len(parts) < len(now):
            rewards, deed, following, chance = self._lead(night, now.items[len(parts)])
            kinds, which = np.unique(following[: len(following) * goes_on], return_inverse=True)
            numbers = np.array([then.number(state, state) for state in kinds.tolist()], np.int64)[which]
            parts.append((rewards, (deed + len(parts) * len(rewards))[: len(numbers)], numbers, chance[: len(numbers)]))
            if max(len(now), len(then)) > limit:
                return None
        return _Layer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _lead(self, night: int, state: int) -> tuple[np.ndarray, ...]:
        """Of a state: rewards [U] by deed; and [E] deeds, the states they lead to, and their chances."""
        rules = self.model.night(night)
        belief, ring, last = self._parts(state)
        move, kept, then_believed, weights = self._observed(night, belief, ring, last)
        moves = self.own_moves[:, None] + move
        arrives = self.model.chance[ring, moves] * (weights[:, None] * rules.going)
        deed, group, next_ring = np.nonzero(arrives)
        following = self._states(then_believed[group], next_ring, self.own_kept[deed] + kept[group])
        (deed, following), chance = _summed((deed, following), arrives[deed, group, next_ring])
        return rules.rewards[ring, moves, self.seat] @ weights, deed, following, chance

    def _observed(self, night: int, belief: int, ring: int, last: int) -> tuple[np.ndarray, ...]:
        """[n] each, what the others may do: their shares of the joint move and of the last actions, what is believed
        after it, and the probabilities.
        """
        acts = self._likelihoods(night, ring, last) * self.beliefs.items[belief][:, None]
        chances = acts.sum(axis=0)
        seen = np.flatnonzero(chances)
        believed = self._believed((acts[:, seen] / chances[seen]).T)
        groups, weights = _summed((self.their_moves[seen], self.their_kept[seen], believed), chances[seen])
        return *groups, weights

    def _likelihoods(self, night: int, ring: int, last: int) -> np.ndarray:
        """[K, X] of the others' joint actions, while they play each of the profiles."""
        index = (ring, *map(int, np.unravel_index(last, self.states.parts)))
        rows = []
        for profile in self.profiles:
            row = np.ones(1)
            for other in self.others:
                table = profile[other][min(night, len(profile[other]) - 1)]
                shape = (self.shape[0], *self.states.parts, table.shape[-1])
                row = np.multiply.outer(row, np.broadcast_to(table, shape)[index]).ravel()
            rows.append(row)
        return np.stack(rows)

    def _believed(self, distributions: np.ndarray) -> np.ndarray:
        """[n] numbers of distributions [n, K] over the profiles."""
        rounded, first, which = np.unique(
            distributions.round(BELIEF_DIGITS), axis=0, return_index=True, return_inverse=True
        )
        keys = (row.tobytes() for row in rounded)
        numbers = [self.beliefs.number(key, distributions[i]) for key, i in zip(keys, first, strict=True)]
        return np.array(numbers)[which.ravel()]

    def _states(self, beliefs: np.ndarray, rings: np.ndarray, last: np.ndarray) -> np.ndarray:
        return (beliefs * self.shape[0] + rings) * self.shape[1] + last

    def _parts(self, state: int) -> tuple[int, int, int]:
        """Belief, ring and last actions of a state."""
        before, last = divmod(state, self.shape[1])
        return *divmod(before, self.shape[0]), last


def _summed(columns: tuple[np.ndarray, ...], weights: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The rows of columns [n] of numbers that differ, and the sum of each one's weights [n]."""
    sizes = tuple(int(column.max(initial=0)) + 1 for column in columns)
    rows, which = np.unique(np.ravel_multi_index(columns, sizes), return_inverse=True)
    return np.unravel_index(rows, sizes), np.bincount(which, weights, len(rows))
