"""Exchangeable seats: payoffs by how many seats play each policy, whoever they are.

`groups` divides the N seats; the n seats of a group share k policies, and where they are exchangeable only the counts
matter: C(k + n - 1, n) profiles of k^n [Cheng et al. 2004, Notes on equilibria in symmetric games]. A seat that is
like no other is a group of one. A group's profiles are written in sorted order, and numbered in colexicographic order:
those of the first k policies come first, so that tables grow at their end.

A *sorted table* is [N, M_1, ..., M_G], one axis of M_g = C(k_g + n_g - 1, n_g) sorted profiles a group; row i is what
seat i earns when the seats of each group, in ascending order, play the sorted profile.
"""

from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.metagame import check_payoffs, check_sigma

Groups = tuple[tuple[int, ...], ...]

ROUNDING = 1e-9
"""Differences up to this share of the largest payoff are taken for rounding."""


def check_groups(groups: Sequence[Sequence[int]], seats: int) -> Groups:
    """The groups with each one's seats in ascending order. Raises ValueError unless every seat is in exactly one."""
    if sorted(seat for group in groups for seat in group) != list(range(seats)) or not all(groups):
        raise ValueError(
            f"groups must hold every seat of 0..{seats - 1} exactly once; got {tuple(map(tuple, groups))}: "
            f"put a seat that is like no other into a group of one"
        )
    return tuple(tuple(sorted(group)) for group in groups)


def sorted_profiles(seats: int, policies: int) -> np.ndarray:
    """[M, seats] policies of each sorted profile of a group, in the order of their index.

    >>> sorted_profiles(2, 3).tolist()
    [[0, 0], [0, 1], [1, 1], [0, 2], [1, 2], [2, 2]]
    """
    rows = np.zeros((1, 0), np.int64)
    for shorter in range(seats):
        # A last policy a follows every shorter profile of the policies up to a: a prefix of them.
        prefix = [comb(last + shorter, shorter) for last in range(policies)]
        rows = np.column_stack(
            [np.concatenate([rows[:length] for length in prefix]), np.repeat(np.arange(policies), prefix)]
        )
    return rows


def profile_index(profiles: ArrayLike) -> np.ndarray:
    """[...] index of sorted profiles [..., seats]: the inverse of `sorted_profiles`.

    The sum over i = 1..n of C(a_i + i - 1, i) [Knuth, TAOCP 4A, 7.2.1.3, combinatorial number system].
    """
    rows = np.asarray(profiles)
    binomials = [[comb(a + i, i + 1) for a in range(rows.max(initial=0) + 1)] for i in range(rows.shape[-1])]
    return sum((np.array(binomials[i])[rows[..., i]] for i in range(rows.shape[-1])), np.zeros(rows.shape[:-1], int))


def group_sizes(table: np.ndarray, groups: Groups) -> tuple[int, ...]:
    """k_g of each group from the axes of a sorted table [..., M_1, ..., M_G].

    Raises ValueError for an axis that is no number of sorted profiles.
    """
    sizes = []
    for profiles, group in zip(table.shape[table.ndim - len(groups) :], groups, strict=True):
        size = 1
        while comb(size + len(group) - 1, len(group)) < profiles:
            size += 1
        if comb(size + len(group) - 1, len(group)) != profiles:
            raise ValueError(f"{len(group)} seats have no number of policies that gives {profiles} sorted profiles")
        sizes.append(size)
    return tuple(sizes)


def seat_policies(groups: Groups, sizes: Sequence[int]) -> list[np.ndarray]:
    """What each seat plays in the sorted profiles: N arrays that broadcast to [M_1, ..., M_G]."""
    played = {}
    for axis, (group, size) in enumerate(zip(groups, sizes, strict=True)):
        shape = [1] * len(groups)
        shape[axis] = -1
        for seat, column in zip(group, sorted_profiles(len(group), size).T, strict=True):
            played[seat] = column.reshape(shape)
    return [played[seat] for seat in range(len(played))]


def pooling(groups: Groups, sizes: Sequence[int]) -> np.ndarray:
    """[N, N, M_1, ..., M_G] weights that average the rows of a sorted table over a group's seats of equal policy."""
    played, group_of = seat_policies(groups, sizes), {seat: group for group in groups for seat in group}
    shape = np.broadcast_shapes(*(column.shape for column in played))
    alike = [
        [np.broadcast_to((mine == yours) & (group_of[i] == group_of[j]), shape) for j, yours in enumerate(played)]
        for i, mine in enumerate(played)
    ]
    return np.array(alike) / np.sum(alike, axis=1, keepdims=True)


def pooled(table: np.ndarray, groups: Groups) -> np.ndarray:
    """The sorted table with every row the mean over a group's seats of equal policy."""
    return np.einsum("ij...,j...->i...", pooling(groups, group_sizes(table, groups)), table)


def expand(table: np.ndarray, groups: Groups) -> np.ndarray:
    """The payoffs [N, k_1, ..., k_N] of a sorted table: seats that exchange policies exchange earnings.

    >>> dilemma = [[3, 0, 1], [3, 5, 1]]  # both cooperate, the second player defects, both defect
    >>> expand(np.array(dilemma), ((0, 1),)).tolist()
    [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]
    """
    index, rows = _places(groups, group_sizes(table, groups))
    return np.stack([table[(row, *index)] for row in rows])


def reduce(payoffs: ArrayLike, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """The sorted table [N, M_1, ..., M_G] of payoffs [N, k_1, ..., k_N]; what other profiles hold is left out.

    Raises ValueError for groups that do not divide the players, or whose seats have different numbers of policies.
    """
    full = check_payoffs(payoffs)
    seated = check_groups(groups, len(full))
    entries: tuple = (slice(None), *seat_policies(seated, _sizes(full.shape[1:], seated)))
    return full[entries]


def check_symmetric(payoffs: ArrayLike, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """`reduce`, once exchanging the seats of a group is known to exchange their payoffs and nothing else.

    Raises ValueError with two entries that should be equal, and differ by more than ROUNDING of the largest payoff.
    """
    full = check_payoffs(payoffs)
    seated = check_groups(groups, len(full))
    table = reduce(full, seated)
    symmetric = pooled(table, seated)
    off = np.abs(full - expand(symmetric, seated))
    if off.max() <= ROUNDING * np.abs(full).max():
        return symmetric
    entry = tuple(int(i) for i in np.unravel_index(off.argmax(), off.shape))
    twin, moved = _twin(full, entry, seated)
    raise ValueError(
        f"seats {' and '.join(map(str, moved))} are not exchangeable: player {entry[0]} earns {full[entry]:g} in "
        f"profile {entry[1:]}, but player {twin[0]} earns {full[twin]:g} in profile {twin[1:]}, where the same "
        f"policies meet in other seats: give these seats groups of their own"
    )


def exchangeable_groups(payoffs: ArrayLike) -> Groups:
    """All groups of seats that are exchangeable in payoffs [N, k_1, ..., k_N]; a seat like no other is a group of one.

    Exchanging two of a group's seats exchanges their payoffs and nothing else, up to ROUNDING of the largest payoff.

    >>> exchangeable_groups([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])  # the prisoner's dilemma
    ((0, 1),)
    >>> exchangeable_groups([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])  # matching pennies
    ((0,), (1,))
    """
    full = check_payoffs(payoffs)
    groups: list[list[int]] = []
    for seat in range(len(full)):
        alike = next((group for group in groups if _exchangeable(full, group[0], seat)), None)
        if alike is None:
            groups.append([seat])
        else:
            alike.append(seat)
    return tuple(map(tuple, groups))


def symmetric_table(payoffs: ArrayLike) -> np.ndarray:
    """The sorted table [N, M] of a game all whose seats are exchangeable, from its payoffs [N, k, ..., k] or itself.

    A two-player game of matrix M is np.stack([M, M.T]). Raises ValueError for malformed payoffs, and for games that are
    not symmetric, with two entries that differ.
    """
    try:
        axes = np.ndim(payoffs)
    except ValueError:
        axes = 0  # ragged: refused below
    if axes == 2:
        rows, columns = np.shape(payoffs)
        if rows == columns > 1:  # of which no sorted table is
            raise ValueError(
                f"payoffs must be [N, k, ..., k] or a sorted table [N, C(k + N - 1, N)]; got one matrix of shape "
                f"({rows}, {columns}): a two-player game of matrix M is np.stack([M, M.T])"
            )
        table = np.stack([check_payoffs([row])[0] for row in np.asarray(payoffs)])
        symmetric = pooled(table, one_group(len(table)))
        off = np.abs(table - symmetric)
        if off.max() > ROUNDING * np.abs(table).max():
            seat, profile = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
            raise ValueError(
                f"in a sorted table all who play the same policy earn the same; in profile {profile} "
                f"player {seat} earns {table[seat, profile]:g}, where they earn {symmetric[seat, profile]:g} on average"
            )
        return symmetric
    table = check_payoffs(payoffs)
    return check_symmetric(table, one_group(len(table)))


def one_group(seats: int) -> Groups:
    """All seats in one group."""
    return (tuple(range(seats)),)


def symmetrised(sigma: ArrayLike, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """The mean of the joint sigma [k_1, ..., k_N] over all exchanges of seats within groups.

    In a symmetric game it has no larger cce_gap, and every seat of a group has the same marginal: where several
    equilibria could be chosen, a solver may give each seat another one. Raises ValueError as `reduce` does.
    """
    joint = check_sigma(sigma)
    seated = check_groups(groups, joint.ndim)
    sizes = _sizes(joint.shape, seated)
    index, _ = _places(seated, sizes)
    shape = [comb(size + len(group) - 1, len(group)) for group, size in zip(seated, sizes, strict=True)]
    flat = np.ravel_multi_index(np.broadcast_arrays(*index), shape)
    mass, profiles = np.bincount(flat.ravel(), joint.ravel()), np.bincount(flat.ravel())
    return (mass / profiles)[flat]


def _exchangeable(payoffs: np.ndarray, first: int, second: int) -> bool:
    """Whether a game stays the same where two seats are exchanged."""
    if payoffs.shape[1 + first] != payoffs.shape[1 + second]:
        return False
    seats = list(range(len(payoffs)))
    seats[first], seats[second] = second, first
    exchanged = payoffs[seats].swapaxes(1 + first, 1 + second)
    return bool(np.abs(payoffs - exchanged).max() <= ROUNDING * np.abs(payoffs).max())


def _twin(payoffs: np.ndarray, entry: tuple[int, ...], groups: Groups) -> tuple[tuple[int, ...], list]:
    """The entry of the sorted profile that should equal `entry`, and differs most; and the groups that differ."""
    player, *profile = entry
    twin = list(profile)
    for seats in groups:
        for seat, policy in zip(seats, sorted(profile[seat] for seat in seats), strict=True):
            twin[seat] = policy
    own = next(group for group in groups if player in group)
    alike = [(seat, *twin) for seat in own if twin[seat] == profile[player]]
    other = max(alike, key=lambda there: abs(payoffs[there] - payoffs[entry]))
    moved = [group for group in groups if any(twin[seat] != profile[seat] for seat in group)]
    return other, moved if own in moved or other[0] == player else [own, *moved]


def _sizes(shape: tuple[int, ...], groups: Groups) -> tuple[int, ...]:
    for group in groups:
        if len({shape[seat] for seat in group}) > 1:
            raise ValueError(
                f"seats {group} are declared exchangeable, but have {[shape[seat] for seat in group]} policies: "
                f"seats of a group share one population"
            )
    return tuple(shape[group[0]] for group in groups)


def _places(groups: Groups, sizes: Sequence[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Where [k_1, ..., k_N] profiles stand in a sorted table: G arrays of indices, and each seat's row."""
    seats = sum(map(len, groups))
    index, rows = [], {}
    for group, size in zip(groups, sizes, strict=True):
        profiles = np.indices((size,) * len(group)).reshape(len(group), -1)
        order = profiles.argsort(axis=0, kind="stable")
        shape = [size if seat in group else 1 for seat in range(seats)]
        index.append(profile_index(np.take_along_axis(profiles, order, axis=0).T).reshape(shape))
        for seat, place in zip(group, order.argsort(axis=0), strict=True):
            rows[seat] = np.array(group)[place].reshape(shape)
    return index, [rows[seat] for seat in range(seats)]
