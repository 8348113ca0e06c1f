"""The empirical game: payoff tables of populations by simulation, and gaps with their errors."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from games.game import Game
from games.play import play, play_mixture
from games.versus import Populations
from metasolvers import deviation_gains


class PayoffTable(NamedTuple):
    """Returns of every joint profile of the populations, from simulated episodes.

    Episodes are kept in two halves, so that what is selected on one can be scored on the other.
    """

    means: np.ndarray  # [2, N, k_1, ..., k_N] mean return a half
    covariances: np.ndarray  # [2, N, N, k_1, ..., k_N] of one episode's returns, across agents
    episodes: np.ndarray  # [2, k_1, ..., k_N] int64

    @property
    def mean(self) -> np.ndarray:
        """[N, k_1, ..., k_N] payoffs: means over all episodes."""
        weights = self.episodes / self.episodes.sum(axis=0)
        return (self.means * weights[:, None]).sum(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        """[N, k_1, ..., k_N] standard errors of `mean`."""
        weights = self.episodes / self.episodes.sum(axis=0)
        variances = np.moveaxis(np.diagonal(self.covariances, axis1=1, axis2=2), -1, 1)
        return np.sqrt((variances * (weights**2 / self.episodes)[:, None]).sum(axis=0))


class Estimate(NamedTuple):
    """A number and how far to trust it."""

    value: float
    standard_error: float
    kind: Literal["exact", "estimate", "lower bound"]

    def __str__(self) -> str:
        prefix = "at least " if self.kind == "lower bound" else ""
        return f"{prefix}{self.value:.4g} ± {self.standard_error:.2g}"


def evaluate(
    game: Game, populations: Populations, episodes: int, seed: int, known: PayoffTable | None = None
) -> PayoffTable:
    """Play `episodes` episodes of every profile of the populations that `known` does not hold yet.

    Each profile is a unit of work named after its policies' indices, so its numbers do not depend on when, or beside
    which others, it is played. Raises ValueError for an odd number of episodes or fewer than 4, or a `known` table of
    populations that these do not extend.
    """
    if episodes < 4 or episodes % 2:
        raise ValueError(f"a profile needs an even number of at least 4 episodes, got {episodes}")
    sizes = tuple(len(population) for population in populations)
    held = (0,) * len(sizes) if known is None else known.episodes.shape[1:]
    if len(held) != len(sizes) or any(old > new for old, new in zip(held, sizes, strict=True)):
        raise ValueError(f"a table of {held} policies cannot be extended to populations of {sizes}")
    table = _enlarged(known, sizes)
    new = [profile for profile in np.ndindex(sizes) if any(i >= old for i, old in zip(profile, held, strict=True))]
    if new:
        profiles = [[populations[seat][index] for seat, index in enumerate(profile)] for profile in new]
        units = ["payoff/" + "-".join(map(str, profile)) for profile in new]
        returns = play(game, profiles, episodes, seed, units).returns
        for profile, sample in zip(new, returns, strict=True):
            _record(table, profile, sample)
    return table


def restricted_gap(table: PayoffTable, sigma: np.ndarray) -> Estimate:
    """CCE gap of sigma among the policies found: the sum over players of the best deviation's gain, not below 0.

    Each player's deviation (or staying, for a gain of 0) is chosen on one half of the episodes and scored on the
    other, both ways round; the standard error is that of the scores, with sigma and the choices held fixed.
    """
    gaps, variances = zip(*(_cross_gap(table, sigma, select) for select in (0, 1)), strict=True)
    return Estimate(float(np.mean(gaps)), float(np.sqrt(np.sum(variances)) / 2), "estimate")


def _cross_gap(table: PayoffTable, sigma: np.ndarray, select: int) -> tuple[float, float]:
    score = 1 - select
    gains = deviation_gains(table.means[select], sigma)
    weights = np.stack([_deviation_weights(gain, sigma, player) for player, gain in enumerate(gains)])
    gap = (weights * table.means[score]).sum()
    variance = np.einsum("i...,ij...,j...->...", weights, table.covariances[score], weights) / table.episodes[score]
    return float(gap), float(variance.sum())


def _deviation_weights(gains: np.ndarray, sigma: np.ndarray, player: int) -> np.ndarray:
    """[k_1, ..., k_N]: what to weigh the player's payoffs by to get its best deviation's gain; zeros to stay."""
    best = int(np.argmax(gains))
    if gains[best] <= 0:
        return np.zeros_like(sigma)
    always_best = np.zeros_like(sigma)
    np.moveaxis(always_best, player, 0)[best] = sigma.sum(axis=player)
    return always_best - sigma


class Value(NamedTuple):
    """What a meta-strategy's play brings."""

    returns: np.ndarray  # [E, N] each agent's return of an episode
    lengths: np.ndarray  # [E]

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


def mixture_value(
    game: Game, populations: Populations, sigma: np.ndarray, episodes: int, seed: int, unit: str
) -> Value:
    """Play `episodes` episodes, each of one joint profile drawn from sigma [k_1, ..., k_N]."""
    return Value(*play_mixture(game, populations, sigma, episodes, seed, unit))


def deviation_value(
    game: Game, populations: Populations, sigma: np.ndarray, deviation: tuple, episodes: int, seed: int, unit: str
) -> Value:
    """As `mixture_value`, with `deviation = (seat, policy)`: that seat always plays the policy, the others sigma."""
    seat, policy = deviation
    populations = [[policy] if i == seat else population for i, population in enumerate(populations)]
    return mixture_value(game, populations, sigma.sum(axis=seat, keepdims=True), episodes, seed, unit)


class FullGap(NamedTuple):
    """How much the players could gain by deviating from a meta-strategy to the best policies anyone found."""

    total: Estimate
    gains: list[Estimate]  # a player
    chosen: list[int | None]  # the deviation: index into population, then responses; None for staying


def full_gap(
    game: Game,
    populations: Populations,
    sigma: np.ndarray,
    responses: Sequence[Sequence],
    episodes: int,
    seed: int,
    unit: str,
) -> FullGap:
    """Lower bound on the full game's CCE gap of sigma, from freshly trained `responses[seat]` and the populations.

    A player's best candidate (or staying, for a gain of 0) is selected on `episodes` episodes and scored, against the
    meta-strategy's own value, on as many others. The gap itself can only be larger than expected: a better deviation
    may exist that no oracle found.
    """
    baseline = [mixture_value(game, populations, sigma, episodes, seed, f"{unit}/{use}") for use in ("select", "score")]
    gains: list[Estimate] = []
    chosen: list[int | None] = []
    for seat, population in enumerate(populations):
        candidates = [*population, *responses[seat]]
        selection = [
            deviation_value(
                game, populations, sigma, (seat, policy), episodes, seed, f"{unit}/select/{seat}/{index}"
            ).mean[seat]
            for index, policy in enumerate(candidates)
        ]
        best = int(np.argmax(selection))
        if selection[best] <= baseline[0].mean[seat]:
            gains.append(Estimate(0.0, 0.0, "lower bound"))
            chosen.append(None)
            continue
        deviation = (seat, candidates[best])
        score = deviation_value(game, populations, sigma, deviation, episodes, seed, f"{unit}/score/{seat}")
        gain = float(score.mean[seat] - baseline[1].mean[seat])
        error = float(np.hypot(score.standard_error[seat], baseline[1].standard_error[seat]))
        gains.append(Estimate(gain, error, "lower bound"))
        chosen.append(best)
    deviating = np.array([index is not None for index in chosen])
    scored = [value.value for value in gains]
    # The players' gains share one baseline sample, whose errors are correlated across players.
    errors = np.array([gain.standard_error for gain in gains])
    shared = _standard_error((baseline[1].returns * deviating).sum(axis=1))
    own = errors**2 - np.where(deviating, baseline[1].standard_error, 0.0) ** 2
    total = Estimate(float(np.sum(scored)), float(np.sqrt(own.sum() + shared**2)), "lower bound")
    return FullGap(total, gains, chosen)


def _enlarged(known: PayoffTable | None, sizes: tuple[int, ...]) -> PayoffTable:
    players = len(sizes)
    table = PayoffTable(
        np.zeros((2, players, *sizes)), np.zeros((2, players, players, *sizes)), np.zeros((2, *sizes), np.int64)
    )
    if known is not None:
        box: tuple = (..., *(slice(0, k) for k in known.episodes.shape[1:]))
        for new, old in zip(table, known, strict=True):
            new[box] = old
    return table


def _record(table: PayoffTable, profile: tuple[int, ...], sample: np.ndarray) -> None:
    players = sample.shape[1]
    for half, returns in enumerate(np.split(sample, 2)):
        table.means[half][:, *profile] = returns.mean(axis=0)
        table.covariances[half][:, :, *profile] = np.cov(returns, rowvar=False).reshape(players, players)
        table.episodes[half][profile] = len(returns)


def _standard_error(sample: np.ndarray) -> np.ndarray:
    return sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
