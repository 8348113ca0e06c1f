"""Exact values of signalling: of strategies, of babbling, and the best that a team can do.

A speaker's strategy [states, messages] and a listener's [hearings, actions] are distributions, one a row; messages and
what they are heard as go by number (`Channel.messages`, `Channel.hearings`). Values [2] are expected sums over an
episode, to the speaker and to a listener, where all listeners play alike and everyone plays alike in every round.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from games.policies import MASS_TOLERANCE
from games.signaling.rules import Signaling

MAX_WORK = 10**8
"""Entries of all tables [hearings, actions] that an enumeration makes, one for every way to give referents messages."""
MAX_DIVIDED = 12
"""Referents that are divided in all ways."""
BLOCK = 2**20
"""Of these at a time."""
TIE = 1e-9
"""Payoffs within this share of the largest are equal."""


class Optimum(NamedTuple):
    """The first of the best pure profiles of a team."""

    value: float  # in a round, the mean over agents
    speaker: np.ndarray  # [states] message
    listener: np.ndarray  # [hearings] guess
    number: int  # of equally good profiles; those that differ in what can never be heard are one


def values(game: Signaling, speaker: ArrayLike, listener: ArrayLike) -> np.ndarray:
    """[2] what strategies earn. Raises ValueError for what are none, and for a referent that lasts several rounds.

    >>> game = Signaling(noise=0.3)  # 3 symbols of 10 are replaced, every third of these by itself
    >>> values(game, *signalling_system(game)).round(9).tolist()
    [0.8, 0.8]
    """
    return game.rounds * _worth(game, *_checked(game, speaker, listener))


def uniform_value(game: Signaling) -> np.ndarray:
    """[2] what it earns when everyone chooses uniformly."""
    messages, hearings = game.medium.message_matrix.shape
    says, guesses = np.full((game.states, messages), 1 / messages), np.full((hearings, game.guesses), 1 / game.guesses)
    return game.rounds * _worth(game, says, guesses)


def babbling(game: Signaling) -> np.ndarray:
    """[2] what it earns when messages mean nothing, which is an equilibrium of every signalling game."""
    return game.rounds * _worth(game, *babble(game))


def babble(game: Signaling) -> tuple[np.ndarray, np.ndarray]:
    """Strategies of `babbling`: the cheapest message, and the guess that is best by the prior, each the first such."""
    costs, (messages, hearings) = game.medium.message_costs, game.medium.message_matrix.shape
    says, guesses = np.zeros((game.states, messages)), np.zeros((hearings, game.guesses))
    says[:, costs.argmin()] = 1
    guesses[:, (game.referents @ game.pays[1]).argmax()] = 1
    return says, guesses


def signalling_system(game: Signaling) -> tuple[np.ndarray, np.ndarray]:
    """Strategies: message i tells referent i, as far as messages go, and a listener guesses what is best for it.

    The convention of [Lewis 1969], an equilibrium where interests are common and messages enough.
    """
    messages = len(game.medium.message_matrix)
    says = np.eye(messages)[np.arange(game.states) % messages]
    return says, np.eye(game.guesses)[(_heard(game, says).T @ game.pays[1]).argmax(axis=1)]


def deviation_gains(game: Signaling, speaker: ArrayLike, listener: ArrayLike) -> np.ndarray:
    """[2] what the speaker, and one listener, could earn more by its best reply. Raises ValueError as `values`."""
    says, guesses = _checked(game, speaker, listener)
    told = game.pays[0] @ guesses.T @ game.medium.message_matrix.T - game.medium.message_costs  # [states, messages]
    inferred = _heard(game, says).T @ game.pays[1]  # [hearings, actions]
    best = np.array([game.referents @ told.max(axis=1), inferred.max(axis=1).sum()])
    return game.rounds * np.maximum(best - _worth(game, says, guesses), 0)  # rounding may leave it just below


def is_equilibrium(game: Signaling, speaker: ArrayLike, listener: ArrayLike, tolerance: float = 1e-9) -> bool:
    """Whether nobody gains more than `tolerance` by another strategy. Raises ValueError as `values`."""
    return bool((deviation_gains(game, speaker, listener) <= tolerance).all())


def pooling(game: Signaling, speaker: ArrayLike) -> str:
    """`separating`: no message is said of two referents; `pooling`: of all the same is said; else `partial pooling`.

    Raises ValueError for what is no strategy.
    """
    shape = (game.states, len(game.medium.message_matrix))
    says = _distributions(speaker, shape, "speaker")[game.referents > 0]
    if ((says > MASS_TOLERANCE).sum(axis=0) <= 1).all():
        return "separating"
    return "pooling" if np.abs(says - says[0]).max() <= MASS_TOLERANCE else "partial pooling"


def information(joint: ArrayLike) -> float:
    """Mutual information, in bits, of the rows and the columns of a table of joint probabilities or of counts.

    Of referents and messages: `information(game.referents[:, None] * speaker)` of a strategy, or of what was `said` in
    play [Lowe et al. 2019]. Counts estimate it too high, by about (rows - 1)(columns - 1) / (2 ln 2 * their sum)
    [Miller 1955]. Raises ValueError for another table.
    """
    table = np.asarray(joint, np.float64)
    if table.ndim != 2 or not (table >= 0).all() or not 0 < table.sum() < np.inf:
        raise ValueError(f"wanted a table of joint probabilities or counts, got {table}")
    table = table / table.sum()
    apart = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    there = table > 0
    return max(0.0, float((table[there] * np.log2(table[there] / apart[there])).sum()))


def optimum(game: Signaling) -> float:
    """The most that a team can earn in an episode, as the mean over its agents, by pure strategies agreed beforehand.

    Referents that are drawn anew are told one by one; a lasting one is told ever more finely, round by round. Raises
    ValueError where too many ways to talk would have to be tried: through a channel that is exact and free those of
    more referents than messages and `MAX_DIVIDED`, through others those of more than `MAX_WORK` entries; and for a
    lasting referent, if the channel is neither exact and free nor useless, or not all of it is remembered.

    >>> optimum(Signaling(states=4, messages=2)), optimum(Signaling(states=4, messages=2, rounds=2, lasting=True))
    (0.5, 1.5)
    """
    weights, (rows, costs) = _weights(game), _different(game)
    untold, lasts = float(weights.sum(axis=0).max()), game.lasting and game.rounds > 1
    if len(rows) == 1:
        return game.rounds * (untold - _share(game) * float(costs[0]))
    free = game.medium.exact and not costs.any()
    if lasts and not (free and game.memory in (None, game.rounds)):
        raise ValueError(
            "of a referent that lasts several rounds the optimum is known for exact and free channels only, and agents "
            f"who remember all {game.rounds} rounds"
        )
    if lasts:
        return game.delay * untold + _divided(weights, len(rows), game.rounds - game.delay)
    if free:
        return game.rounds * _divided(weights, len(rows), 1)
    return game.rounds * max(float(team.max()) for _, _, team in _enumerated(game, rows, costs))


def optimal_profiles(game: Signaling) -> Optimum:
    """The best that a team can do in one round, by trying all pure strategies of the speaker.

    Raises ValueError where these make more than `MAX_WORK` entries.
    """
    rows, costs = game.medium.message_matrix, game.medium.message_costs
    possible = rows.any(axis=0)
    scale = TIE * max(1.0, abs(game.pays).max())
    value, number, best = -np.inf, 0.0, (np.zeros(0), np.zeros(0))
    for maps, inferred, team in _enumerated(game, rows, costs):
        if team.max() > value + scale:
            value, number, first = float(team.max()), 0.0, int(team.argmax())
            best = maps[first], inferred[first].argmax(axis=1)
        good = inferred[team >= value - scale][:, possible]
        ties = (good >= good.max(axis=2, keepdims=True) - scale).sum(axis=2)
        number += ties.prod(axis=1, dtype=np.float64).sum()
    return Optimum(value, *best, int(number))


def _weights(game: Signaling) -> np.ndarray:
    """[states, actions] probability of a referent times the mean payoff of a guess over agents."""
    team = (game.pays[0] + game.listeners * game.pays[1]) * _share(game)
    return game.referents[:, None] * team


def _share(game: Signaling) -> float:
    """Of the speaker in the mean over agents."""
    return 1 / (1 + game.listeners)


def _different(game: Signaling) -> tuple[np.ndarray, np.ndarray]:
    """[m, hearings] how the messages that differ to hearers are heard, and [m] the least they cost."""
    rows, place = np.unique(game.medium.message_matrix, axis=0, return_inverse=True)
    costs = np.full(len(rows), np.inf)
    np.minimum.at(costs, place.ravel(), game.medium.message_costs)
    return rows, costs


def _worth(game: Signaling, says: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """[2] what strategies earn in a round."""
    paid = game.referents @ says @ game.medium.message_costs
    return (_heard(game, says) @ guesses * game.pays).sum(axis=(1, 2)) - [paid, 0]


def _heard(game: Signaling, says: np.ndarray) -> np.ndarray:
    """[states, hearings] joint probabilities."""
    return game.referents[:, None] * says @ game.medium.message_matrix


def _checked(game: Signaling, speaker: ArrayLike, listener: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    if game.lasting and game.rounds > 1:
        raise ValueError("strategies of one round do not suit a lasting referent: see games.exact and the game's tree")
    messages, hearings = game.medium.message_matrix.shape
    says = _distributions(speaker, (game.states, messages), "speaker")
    return says, _distributions(listener, (hearings, game.guesses), "listener")


def _distributions(strategy: ArrayLike, shape: tuple[int, int], whose: str) -> np.ndarray:
    rows = np.asarray(strategy, np.float64)
    if rows.shape != shape or not ((abs(rows.sum(axis=1) - 1) <= MASS_TOLERANCE) & (rows >= 0).all(axis=1)).all():
        raise ValueError(f"a {whose}'s strategy must be distributions {list(shape)}, got {rows.shape}: {rows}")
    return rows


def _enumerated(
    game: Signaling, rows: np.ndarray, costs: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of b speakers' pure strategies: messages [b, states], what guesses are worth then by what is heard
    [b, hearings, actions], and the team's value with the best of them [b].
    """
    number, work = float(len(rows)) ** game.states, rows.shape[1] * game.guesses
    if number * work > MAX_WORK:
        raise ValueError(
            f"{len(rows)} messages for {game.states} referents can be given in {number:.0e} ways, too many to try: "
            "make the game smaller"
        )
    weights, total = _weights(game), len(rows) ** game.states
    block = max(1, BLOCK // work)
    for first in range(0, total, block):
        maps = np.stack(
            np.unravel_index(np.arange(first, min(first + block, total)), (len(rows),) * game.states), axis=1
        )
        inferred = np.einsum("bih,ia->bha", rows[maps], weights, optimize=True)
        paid = costs[maps] @ game.referents
        yield maps, inferred, inferred.max(axis=2).sum(axis=1) - _share(game) * paid


def _divided(weights: np.ndarray, parts: int, rounds: int) -> float:
    """What `rounds` rounds earn that each begin by dividing what is known into as many parts, with `weights` of guesses
    [states, actions].
    """
    states, each = len(weights), weights.max(axis=1)
    if (weights >= 0).all() and ((weights > 0).sum(axis=0) <= 1).all():  # every guess is for one referent
        best = np.sort(each)[::-1].cumsum()
        return float(sum(best[min(parts**number, states) - 1] for number in range(1, rounds + 1)))
    if parts >= states:
        return rounds * float(each.sum())
    if states > MAX_DIVIDED:
        raise ValueError(f"{states} referents can be divided in too many ways: at most {MAX_DIVIDED} are")
    sets = np.arange(2**states)
    members = (sets[:, None] >> np.arange(states)) & 1
    alone, told = (members @ weights).max(axis=1), members @ each
    within = [np.flatnonzero(sets & ~whole == 0) for whole in sets]
    future = np.zeros(len(sets))  # of every set of referents, in the rounds to come
    for number in range(rounds):
        before, worth = future, alone + future
        future = worth
        for _ in range(parts - 1):
            future = np.array([(worth[some] + future[whole ^ some]).max() for whole, some in enumerate(within)])
        if np.allclose(future - before, told, rtol=0, atol=1e-12):  # and so it goes on
            return float(future[-1] + (rounds - number - 1) * told[-1])
    return float(future[-1])
