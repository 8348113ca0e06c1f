"""One population for exchangeable seats: payoffs by counts, by simulation, and one best response a group.

`groups` divides the seats (`metasolvers.symmetric`); those of a group have the same list of policies.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from games.game import Game, Playable, Policy
from games.normal_form import NormalForm
from games.policies import Uniform
from games.versus import Populations
from marl.exchangeable import FALSE_REFUSAL, Played, check_earnings, seat_turns
from marl.population import HERE, rollout
from marl.workers import Workers
from metasolvers.symmetric import (
    Groups,
    check_groups,
    check_symmetric,
    expand,
    group_sizes,
    pooled,
    pooling,
    seat_policies,
    symmetrised,
)

if TYPE_CHECKING:
    from marl.psro import Respond, Snapshot

Train = Callable[[Populations, np.ndarray, int, int], Policy]


class SharedTable(NamedTuple):
    """Returns of every sorted profile of the populations, from simulated episodes.

    Axes and rows are those of a sorted table (`metasolvers.symmetric`); M_g profiles of group g.
    """

    group: np.ndarray  # [N] int64 number of the group that every seat is in
    sorted_mean: np.ndarray  # [N, M_1, ..., M_G] mean returns of the profile's places
    sorted_covariance: np.ndarray  # [N, N, M_1, ..., M_G] of one episode's returns, across places
    sorted_episodes: np.ndarray  # [M_1, ..., M_G] int64

    @property
    def groups(self) -> Groups:
        return tuple(tuple(np.flatnonzero(self.group == g).tolist()) for g in range(self.sorted_episodes.ndim))

    @property
    def episodes(self) -> np.ndarray:
        """[k_1, ..., k_N] int64 that the payoffs of each profile are the means of."""
        each_place = np.broadcast_to(self.sorted_episodes, self.sorted_mean.shape)
        return expand(each_place, self.groups)[0]

    @property
    def mean(self) -> np.ndarray:
        """[N, k_1, ..., k_N] payoffs: what a seat earns, averaged over the seats that play the same policy."""
        return expand(pooled(self.sorted_mean, self.groups), self.groups)

    @property
    def standard_error(self) -> np.ndarray:
        """[N, k_1, ..., k_N] standard errors of `mean`: the mean over seats is one number an episode."""
        weights = pooling(self.groups, group_sizes(self.sorted_episodes, self.groups))
        variances = np.einsum("ij...,jk...,ik...->i...", weights, self.sorted_covariance, weights)
        return expand(np.sqrt(np.maximum(variances, 0) / self.sorted_episodes), self.groups)


def evaluate_shared(
    game: Game | Playable,
    populations: Populations,
    groups: Sequence[Sequence[int]],
    episodes: int,
    seed: int,
    known: SharedTable | None = None,
    workers: Workers = HERE,
) -> SharedTable:
    """Play `episodes` episodes of every sorted profile of the populations that `known` does not hold yet.

    They are divided over the R turns of `seat_turns`, which move every policy through the seats of its group: each turn
    is a unit of work named after the policies' indices. With groups of one this is `population.evaluate`.

    Raises ValueError for populations that differ within a group, episodes that are no multiple of R or less than 2 a
    turn, a `known` table of other groups or policies, and where new profiles show that seats are not exchangeable.

    >>> from games import make
    >>> game = make("rock_paper_scissors")
    >>> table = evaluate_shared(game, [[Uniform.of(space)] for space in game.action_spaces], [(0, 1)], 100, seed=0)
    >>> table.sorted_episodes.tolist(), table.mean.shape
    ([100], (2, 1, 1))
    """
    seated = check_groups(groups, len(populations))
    sizes = _shared_sizes(populations, seated)
    table = _enlarged(known, seated, sizes)
    new = np.argwhere(table.sorted_episodes == 0)
    if len(new):
        played = _play(game, populations, seated, new, episodes, seed, "payoff", workers)
        # The chances over all extensions add up to FALSE_REFUSAL: each has more policies than the one before.
        policies = sum(sizes)
        check_earnings(played, seated, populations, FALSE_REFUSAL / (policies * (policies + 1)))
        for profile, sample in zip(new, played.by_place.reshape(len(new), episodes, -1), strict=True):
            where = (..., *profile)
            table.sorted_mean[where] = sample.mean(axis=0)
            table.sorted_covariance[where] = np.cov(sample, rowvar=False)
            table.sorted_episodes[where] = episodes
    return table


def check_exchangeable(
    game: Game | Playable, groups: Sequence[Sequence[int]], probes: Populations, episodes: int, seed: int
) -> None:
    """Raises ValueError, with the evidence, where seats of a group are not exchangeable.

    They need equal spaces; in a normal-form game exchanging them must exchange the payoffs exactly; in any game the
    policies `probes[seat]`, the same for the seats of a group, and Uniform must earn the same in each seat, over
    `episodes` episodes of every sorted profile (`marl.exchangeable`): a few hundred at least, or chance hides
    everything. Policies that come later are checked by `evaluate_shared`. Raises ValueError also as that does.
    """
    seated = check_groups(groups, len(game.agents))
    for group in seated:
        for kind, spaces in (("observation", game.observation_spaces), ("action", game.action_spaces)):
            for seat in group[1:]:
                if spaces[seat] != spaces[group[0]]:
                    raise ValueError(
                        f"seats {group} are not exchangeable: {game.agents[group[0]]} has {kind} space "
                        f"{spaces[group[0]]}, but {game.agents[seat]} has {spaces[seat]}: give them groups of their own"
                    )
    if isinstance(game, NormalForm):
        check_symmetric(game.payoffs, seated)
    _shared_sizes(probes, seated)
    uniform = [Uniform.of(space) for space in game.action_spaces]
    populations = [[*(p for p in mine if p != other), other] for mine, other in zip(probes, uniform, strict=True)]
    every = np.argwhere(_enlarged(None, seated, _shared_sizes(populations, seated)).sorted_episodes == 0)
    played = _play(game, populations, seated, every, episodes, seed, "exchangeable", HERE)
    check_earnings(played, seated, populations, FALSE_REFUSAL)


def shared_responses(groups: Sequence[Sequence[int]], train: Train) -> "Respond":
    """The `respond` of `marl.psro.psro` for shared populations: one best response a group, for all its seats.

    `train(populations, sigma, seat, iteration)` is asked for the group's first seat, against the symmetrised sigma:
    what it earns there against that is the mean of what it would earn in each seat of the group against sigma.
    """

    def respond(before: "Snapshot") -> list[list[Policy]]:
        seated, fair = check_groups(groups, before.sigma.ndim), symmetrised(before.sigma, groups)
        train_seat = partial(train, before.populations, fair)
        response = {group: train_seat(group[0], before.iteration + 1) for group in seated}
        return [[response[group]] for seat in range(before.sigma.ndim) for group in seated if seat in group]

    return respond


def _shared_sizes(populations: Populations, groups: Groups) -> tuple[int, ...]:
    """Number of policies of each group. Raises ValueError where its seats have different ones."""
    seats = sum(map(len, groups))
    if len(populations) != seats:
        raise ValueError(f"there must be one list of policies per seat: {seats}, got {len(populations)}")
    for group in groups:
        first = populations[group[0]]
        for seat in group[1:]:
            other = populations[seat]
            if len(other) != len(first):
                what = f"{len(first)} policies in seat {group[0]} but {len(other)} in seat {seat}"
            elif unlike := [i for i, (one, two) in enumerate(zip(first, other, strict=True)) if one is not two != one]:
                what = f"policy {unlike[0]} of seat {group[0]} is not that of seat {seat}"
            else:
                continue
            raise ValueError(f"seats {group} are declared exchangeable, but {what}: give them one list of policies")
    return tuple(len(populations[group[0]]) for group in groups)


def _enlarged(known: SharedTable | None, groups: Groups, sizes: tuple[int, ...]) -> SharedTable:
    seats = sum(map(len, groups))
    group = np.array([g for seat in range(seats) for g, members in enumerate(groups) if seat in members])
    shape = np.broadcast_shapes(*(column.shape for column in seat_policies(groups, sizes)))
    table = SharedTable(group, np.zeros((seats, *shape)), np.zeros((seats, seats, *shape)), np.zeros(shape, np.int64))
    if known is None:
        return table
    if not np.array_equal(known.group, group):
        raise ValueError(f"a table of groups {known.groups} cannot be extended to groups {groups}")
    held = group_sizes(known.sorted_episodes, groups)
    if any(old > new for old, new in zip(held, sizes, strict=True)):
        raise ValueError(f"a table of {held} policies cannot be extended to populations of {sizes}")
    box: tuple = (..., *(slice(0, profiles) for profiles in known.sorted_episodes.shape))
    for mine, theirs in zip(table[1:], known[1:], strict=True):
        mine[box] = theirs
    return table


def _play(
    game: Game | Playable,
    populations: Populations,
    groups: Groups,
    new: np.ndarray,
    episodes: int,
    seed: int,
    unit: str,
    workers: Workers,
) -> Played:
    """Episodes of the sorted profiles at the indices new [P, G]."""
    turns = seat_turns(groups)
    each, rest = divmod(episodes, len(turns))
    if rest or each < 2:
        raise ValueError(
            f"groups {groups} go round in {len(turns)} turns: episodes must be a multiple of that, and at least 2 a "
            f"turn for standard errors; got {episodes}: use {max(2, each + (rest > 0)) * len(turns)}"
        )
    sizes = [len(populations[group[0]]) for group in groups]
    places = np.stack(np.broadcast_arrays(*seat_policies(groups, sizes)))
    policies = places[(slice(None), *new.T)].T
    profiles, units = [], []
    for profile in policies:
        for turn, seats in enumerate(turns):
            seated = profile[seats.argsort()]
            profiles.append([populations[seat][index] for seat, index in enumerate(seated)])
            units.append(f"{unit}/{'-'.join(map(str, profile))}" + (f"/{turn}" if turn else ""))
    returns = np.empty((len(profiles), each, len(populations)))
    for index, sample in rollout(game, profiles, each, seed, units, workers):
        returns[index] = sample
    return Played(returns.reshape(len(policies), len(turns), each, -1), policies, turns)
