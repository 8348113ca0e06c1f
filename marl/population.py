"""The empirical game: payoff tables of populations by simulation, and gaps with their errors."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from games.game import Game, Playable, Policy
from games.play import Profile, play, play_mixture, profiles_at_once
from games.versus import Populations
from marl.workers import Here, Unit, Workers

HERE = Here()


class PayoffTable(NamedTuple):
    """Returns of every joint profile of the populations, from simulated episodes."""

    mean: np.ndarray  # [N, k_1, ..., k_N] payoffs: mean returns
    covariance: np.ndarray  # [N, N, k_1, ..., k_N] of one episode's returns, across agents
    episodes: np.ndarray  # [k_1, ..., k_N] int64

    @property
    def standard_error(self) -> np.ndarray:
        """[N, k_1, ..., k_N] standard errors of `mean`."""
        variances = np.moveaxis(np.diagonal(self.covariance, axis1=0, axis2=1), -1, 0)
        return np.sqrt(variances / self.episodes)


class Estimate(NamedTuple):
    """A number and how far to trust it."""

    value: float
    standard_error: float
    kind: Literal["exact", "estimate", "lower bound"]


def evaluate(
    game: Game | Playable,
    populations: Populations,
    episodes: int,
    seed: int,
    known: PayoffTable | None = None,
    workers: Workers = HERE,
) -> PayoffTable:
    """Play `episodes` episodes of every profile of the populations that `known` does not hold yet.

    Each profile is a unit of work named after its policies' indices, so its numbers do not depend on when, where, or
    beside which others, it is played. Raises ValueError for fewer than 2 episodes, which show no variance, or a `known`
    table of populations that these do not extend.
    """
    if episodes < 2:
        raise ValueError(f"a profile needs at least 2 episodes for its standard error, got {episodes}")
    sizes = tuple(len(population) for population in populations)
    held = held_sizes(known, sizes)
    table = _enlarged(known, sizes)
    new = [profile for profile in np.ndindex(sizes) if any(i >= old for i, old in zip(profile, held, strict=True))]
    if new:
        profiles = [[populations[seat][index] for seat, index in enumerate(profile)] for profile in new]
        units = ["payoff/" + "-".join(map(str, profile)) for profile in new]
        for index, sample in rollout(game, profiles, episodes, seed, units, workers):
            _record(table, new[index], sample)
    return table


class Table(Protocol):
    """Payoffs of populations, however they came about."""

    @property
    def mean(self) -> np.ndarray:
        """[N, k_1, ..., k_N]"""


def held_sizes(known: Table | None, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Policies a player of the `known` table; none without one. Raises ValueError where `sizes` do not extend them."""
    held = (0,) * len(sizes) if known is None else known.mean.shape[1:]
    if len(held) != len(sizes) or any(old > new for old, new in zip(held, sizes, strict=True)):
        raise ValueError(f"a table of {held} policies cannot be extended to populations of {sizes}")
    return held


def rollout(
    game: Game | Playable,
    profiles: Sequence[Profile],
    episodes: int,
    seed: int,
    units: Sequence[str],
    workers: Workers = HERE,
) -> Iterator[tuple[int, np.ndarray]]:
    """(index, returns [episodes, N]) of every profile, as they are played; each plays the unit of its name."""
    block = profiles_at_once(game, episodes)
    blocks = {units[first]: slice(first, first + block) for first in range(0, len(profiles), block)}
    work = [Unit(name, partial(play, game, profiles[b], episodes, seed, units[b])) for name, b in blocks.items()]
    for name, played in workers.run(work):
        yield from enumerate(played.returns, blocks[name].start)


class Value(NamedTuple):
    """What a meta-strategy's play brings."""

    returns: np.ndarray  # [E, N] each agent's return of an episode
    lengths: np.ndarray  # [E]
    won: np.ndarray  # [E, N] what of it were gains: sums of positive rewards

    @property
    def mean(self) -> np.ndarray:
        """[N] mean returns."""
        return self.returns.mean(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        """[N] standard errors of `mean`."""
        return _standard_error(self.returns)

    @property
    def team(self) -> Estimate:
        """Sum of all agents' returns of an episode."""
        team = self.returns.sum(axis=1)
        return Estimate(float(team.mean()), float(_standard_error(team)), "estimate")

    @property
    def team_per_step(self) -> Estimate:
        """Mean over episodes of the team's return divided by the episode's length."""
        team = self.returns.sum(axis=1) / self.lengths
        return Estimate(float(team.mean()), float(_standard_error(team)), "estimate")


def points_won(value: Value, seats: Sequence[int]) -> Estimate:
    """The share that these seats won of all they won or lost: of points, where each is a reward of 1 or -1."""
    won = value.won[:, seats].sum(axis=1)
    stakes = 2 * won - value.returns[:, seats].sum(axis=1)
    share = won.sum() / stakes.sum()
    return _share(share, _standard_error(won - share * stakes) / stakes.mean(), len(won))  # of a ratio of means


def episodes_won(value: Value, seats: Sequence[int]) -> Estimate:
    """The share of episodes in which these seats together earn more than 0."""
    won = value.returns[:, seats].sum(axis=1) > 0
    return _share(won.mean(), _standard_error(won), len(won))


def _share(share: Any, error: Any, episodes: int) -> Estimate:
    """Of 0 or 1 the standard error is that with one more episode won and one more lost: it is not known exactly."""
    if share in (0, 1):
        careful = (share * episodes + 1) / (episodes + 2)
        error = np.sqrt(careful * (1 - careful) / (episodes + 2))
    return Estimate(float(share), float(error), "estimate")


def mixture_value(
    game: Game | Playable, populations: Populations, sigma: np.ndarray, episodes: int, seed: int, unit: str
) -> Value:
    """Play `episodes` episodes, each of one joint profile drawn from sigma [k_1, ..., k_N]."""
    return Value(*play_mixture(game, populations, sigma, episodes, seed, unit))


def deviation_value(
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    deviation: tuple[int, Policy],
    episodes: int,
    seed: int,
    unit: str,
) -> Value:
    """As `mixture_value`, with `deviation = (seat, policy)`: that seat always plays the policy, the others sigma."""
    return mixture_value(game, *deviating(populations, sigma, deviation), episodes, seed, unit)


def mixture_values(
    game: Game | Playable,
    mixtures: Mapping[str, tuple[Populations, np.ndarray]],
    episodes: int,
    seed: int,
    unit: str,
    workers: Workers = HERE,
) -> dict[str, Value]:
    """By name, the `mixture_value` of each (populations, sigma); they play the units "{unit}/{name}"."""
    names = {f"{unit}/{name}": name for name in mixtures}
    work = [
        Unit(full, partial(mixture_value, game, *mixtures[name], episodes, seed, full)) for full, name in names.items()
    ]
    return {names[full]: value for full, value in workers.run(work)}


def deviating(
    populations: Populations, sigma: np.ndarray, deviation: tuple[int, Policy] | None
) -> tuple[Populations, np.ndarray]:
    """Populations and sigma once one seat always plays one policy; as they are for None."""
    if deviation is None:
        return populations, sigma
    seat, policy = deviation
    alone = [[policy] if i == seat else population for i, population in enumerate(populations)]
    return alone, sigma.sum(axis=seat, keepdims=True)


def duel_value(
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    seats: Sequence[int],
    others: Sequence[Policy],
    episodes: int,
    seed: int,
    unit: str,
) -> Value:
    """As `mixture_value`, with `seats` alone playing sigma: every other seat i plays others[i]."""
    rivals = tuple(seat for seat in range(sigma.ndim) if seat not in seats)
    mixed = [[others[i]] if i in rivals else population for i, population in enumerate(populations)]
    return mixture_value(game, mixed, sigma.sum(axis=rivals, keepdims=True), episodes, seed, unit)


Chosen = TypeVar("Chosen")
"""A player's deviation: index into its population, then the responses; None for staying. After recommendations, one by
the policy told, unless that is played."""


class FullGap(NamedTuple, Generic[Chosen]):
    """How much the players could gain by deviating from a meta-strategy to the best policies anyone found."""

    total: Estimate
    gains: list[Estimate]  # a player
    chosen: Sequence[Chosen]  # a player


def full_gap(
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    responses: Sequence[Sequence[Policy]],
    episodes: int,
    seed: int,
    unit: str,
    workers: Workers = HERE,
) -> FullGap[int | None]:
    """Lower bound on the full game's CCE gap of sigma, from best `responses[seat]` to it and the populations.

    A player's best candidate (or staying, for a gain of 0) is selected on `episodes` episodes and scored, against the
    meta-strategy's own value, on as many others. In expectation the gap can only be larger: a better deviation may
    exist that no oracle found. Without responses this bounds the gap restricted to the policies found.
    """

    def values(deviations: dict[str, tuple[int, Policy] | None]) -> dict[str, Value]:
        """By use, the play of each deviation, None for staying."""
        mixtures = {use: deviating(populations, sigma, deviation) for use, deviation in deviations.items()}
        return mixture_values(game, mixtures, episodes, seed, unit, workers)

    candidates = [[*population, *found] for population, found in zip(populations, responses, strict=True)]
    every = {(seat, i): policy for seat, found in enumerate(candidates) for i, policy in enumerate(found)}
    selection = values(
        {"select": None, "score": None} | {f"select/{seat}/{i}": (seat, policy) for (seat, i), policy in every.items()}
    )
    chosen: list[int | None] = []
    for seat, found in enumerate(candidates):
        means = [selection[f"select/{seat}/{i}"].mean[seat] for i in range(len(found))]
        best = int(np.argmax(means))
        chosen.append(best if means[best] > selection["select"].mean[seat] else None)
    leaving = {seat: candidates[seat][best] for seat, best in enumerate(chosen) if best is not None}
    scores = values({f"score/{seat}": (seat, policy) for seat, policy in leaving.items()})
    scored = {seat: scores[f"score/{seat}"] for seat in leaving}
    return _scored(selection["score"], scored, chosen)


def _scored(baseline: Value, scores: dict[int, Value], chosen: list[int | None]) -> FullGap[int | None]:
    """The gains of the seats that deviate, each scored against the one `baseline` sample that serves them all."""
    gains = [Estimate(0.0, 0.0, "lower bound") for _ in chosen]
    shared, variance = np.zeros(len(baseline.returns)), 0.0
    for seat, score in scores.items():
        error = float(np.hypot(score.standard_error[seat], baseline.standard_error[seat]))
        gains[seat] = Estimate(float(score.mean[seat] - baseline.mean[seat]), error, "lower bound")
        shared += baseline.returns[:, seat]
        variance += score.standard_error[seat] ** 2
    total = sum(gain.value for gain in gains)
    error = float(np.sqrt(variance + _standard_error(shared) ** 2))
    return FullGap(Estimate(total, error, "lower bound"), gains, chosen)


def _enlarged(known: PayoffTable | None, sizes: tuple[int, ...]) -> PayoffTable:
    players = len(sizes)
    table = PayoffTable(np.zeros((players, *sizes)), np.zeros((players, players, *sizes)), np.zeros(sizes, np.int64))
    if known is not None:
        box: tuple = (..., *(slice(0, k) for k in known.episodes.shape))
        for new, old in zip(table, known, strict=True):
            new[box] = old
    return table


def _record(table: PayoffTable, profile: tuple[int, ...], returns: np.ndarray) -> None:
    players = returns.shape[1]
    where: tuple = (..., *profile)
    table.mean[where] = returns.mean(axis=0)
    table.covariance[where] = np.cov(returns, rowvar=False).reshape(players, players)
    table.episodes[profile] = len(returns)


def _standard_error(sample: np.ndarray) -> np.ndarray:
    return sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
