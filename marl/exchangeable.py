"""Do the seats of a group earn the same? The statistics that refuse them, with the evidence.

A profile of exchangeable seats is played in turns that move each policy through all seats of its group, so that every
profile can show that a seat matters: by what it pays, or by a policy that reads its seat from the observation.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from games.versus import Populations
from metasolvers.symmetric import Groups

FALSE_REFUSAL = 1e-4
"""How likely, at most, exchangeable seats are refused: by a check, and by all extensions of one table together."""
ROUNDING = 1e-6
"""Differences up to this share of the largest return are taken for rounding: rewards are sums of float32."""


class Played(NamedTuple):
    """Episodes of sorted profiles, played in turns."""

    returns: np.ndarray  # [P, R, E, N] of every seat: E episodes in each of R turns
    policies: np.ndarray  # [P, N] the sorted profiles
    turns: np.ndarray  # [R, N] the seat that place i of the profile has in each turn

    @property
    def by_place(self) -> np.ndarray:
        """[P, R, E, N] returns of every place of the sorted profiles."""
        return np.take_along_axis(self.returns, self.turns[None, :, None, :], axis=-1)


class Compared(NamedTuple):
    """Two ways to play a policy that earn the same where seats are exchangeable, in the profiles `of` [P'] of a sample.

    Terms [P', T], of which the first `terms` [P'] count, are differences of independent or paired episodes.
    """

    place: int  # where the profile holds the policy
    names: tuple[str, str]
    of: np.ndarray
    first: np.ndarray
    second: np.ndarray
    terms: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """[P'] sum of the differences over the root of the sum of their squares.

        Between exchangeable seats a difference is as likely as its negative; |z| then exceeds t with probability
        at most 2 exp(-t^2 / 2), whatever its distribution and number [Hoeffding 1963, given the sizes; Efron 1969].
        """
        difference = self.first - self.second
        largest = np.maximum(np.abs(self.first), np.abs(self.second)).max(axis=1, keepdims=True)
        difference[np.abs(difference) <= ROUNDING * largest] = 0
        size = np.sqrt((difference**2).sum(axis=1))
        return np.divide(difference.sum(axis=1), size, out=np.zeros(len(size)), where=size > 0)


def seat_turns(groups: Groups) -> np.ndarray:
    """[R, N]: in turn r, place i of a sorted profile sits in seat turns[r, i].

    Each group goes round until all are back, and where one has three seats or more, goes round once again with
    places 1 and 2 exchanged, so that other places meet side by side. Every place has every seat of its group equally
    often. Groups of one have one turn.
    """
    rounds = 2 if max(map(len, groups)) > 2 else 1
    period = math.lcm(*map(len, groups))
    turns = np.empty((rounds, period, sum(map(len, groups))), np.int64)
    for group in groups:
        order = np.arange(len(group))
        for again in range(rounds):
            if again and len(group) > 2:
                order[[1, 2]] = 2, 1
            for shift in range(period):
                turns[again, shift, list(group)] = np.array(group)[(order + shift) % len(group)]
    return turns.reshape(rounds * period, -1)


def check_earnings(played: Played, groups: Groups, populations: Populations, false_refusal: float) -> None:
    """Raises ValueError where policies earn more in one seat of their group than in another, beyond chance.

    Each policy of each profile is compared between every two seats it had, between the two orders that groups of three
    or more sit in, and in groups of four or more between every two places of the profile that it holds. The threshold,
    by Bonferroni's inequality, refuses exchangeable seats with probability at most `false_refusal`, however few the
    episodes. Groups of four or more sit in few of their orders: what shows in the others alone is not seen.
    """
    for group in groups:
        made, worst, row, highest = 0, None, 0, 0.0
        for compared in comparisons(played, group):
            z = np.abs(compared.z)
            made += len(z)
            if z.max(initial=0) > highest:
                worst, row, highest = compared, int(z.argmax()), float(z.max())
        limit = np.sqrt(2 * np.log(2 * max(made, 1) * len(groups) / false_refusal))
        if worst is not None and highest > limit:
            profile = played.policies[worst.of[row]]
            names = [type(populations[seat][policy]).__name__ for seat, policy in enumerate(profile)]
            raise ValueError(
                f"seats {group} are not exchangeable: in profile {_dashed(profile)} ({', '.join(names)}), policy "
                f"{profile[worst.place]} ({names[worst.place]}) earns {_evidence(worst, row)}. Exchangeable seats give "
                f"|z| > {limit:.2f} in any of the {made} comparisons made with probability "
                f"{false_refusal / len(groups):.2g} at most. Either the game treats these seats differently, or a "
                f"policy of the profile does, reading its seat from the observation: give the seats groups of their own"
            )


def comparisons(played: Played, group: Sequence[int]) -> Iterator[Compared]:
    """All comparisons of a group; each holds those profiles to which it applies."""
    policies, by_place = played.policies, played.by_place
    seat_plays = policies[:, played.turns.argsort(axis=1)]  # [P, R, N]
    for j, place in enumerate(group):
        for other in group[j + 1 :] if len(group) > 3 else ():  # fewer seats sit in all orders, which hides places
            alike = np.flatnonzero(policies[:, place] == policies[:, other])
            names = f"in place {place} of the profile", f"in place {other}"
            yield _sides(place, names, alike, by_place[alike, ..., place], by_place[alike, ..., other])
        new = np.flatnonzero((policies[:, [*group[:j]]] != policies[:, [place]]).all(axis=1))
        has = seat_plays[new] == policies[new, place][:, None, None]
        for k, seat in enumerate(group):
            yield from (_seats(played.returns, place, new, has, seat, other) for other in group[k + 1 :])
        if len(group) > 2:
            first, second = np.split(by_place[new, ..., place], 2, axis=1)
            straight, crossed = (
                f"going round from seats {_dashed(half[0, [*group]])}" for half in np.split(played.turns, 2)
            )
            yield _sides(place, (straight, crossed), new, first, second)


def _sides(place: int, names: tuple[str, str], of: np.ndarray, first: np.ndarray, second: np.ndarray) -> Compared:
    """Two samples of equal size [P', ..., E] of every profile."""
    first, second = _rows(first), _rows(second)
    return Compared(place, names, of, first, second, np.full(len(of), first.shape[1]))


def _seats(returns: np.ndarray, place: int, of: np.ndarray, has: np.ndarray, seat: int, other: int) -> Compared:
    """One policy in two seats: paired where both have it in a turn, else between turns; `has` [P', R, N]."""
    both = has[..., seat] & has[..., other]
    sides = []
    for side in (seat, other):
        order = np.argsort(-(has[..., side] * 1 + both), axis=1, kind="stable")
        sides.append(returns[of[:, None], order, :, side])
    turns = has[..., seat].sum(axis=1)
    for values in sides:
        values[np.arange(values.shape[1]) >= turns[:, None]] = 0
    names = f"in seat {seat}", f"in seat {other}"
    return Compared(place, names, of, _rows(sides[0]), _rows(sides[1]), turns * returns.shape[2])


def _rows(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _evidence(compared: Compared, row: int) -> str:
    first, second = (side[row, : compared.terms[row]] for side in (compared.first, compared.second))
    ways = [f"{_mean(side)} {name}" for name, side in zip(compared.names, (first, second), strict=True)]
    return (
        f"{' but '.join(ways)}, over {len(first)} episodes each: a difference of {_mean(first - second)}, "
        f"z = {compared.z[row]:+.1f}"
    )


def _mean(sample: np.ndarray) -> str:
    return f"{sample.mean():.6g} ± {sample.std(ddof=1) / np.sqrt(len(sample)):.2g}"


def _dashed(numbers: np.ndarray) -> str:
    return "-".join(map(str, numbers))
