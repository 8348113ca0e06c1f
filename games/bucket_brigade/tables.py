"""What policies of Bucket Brigade do in every state of a small ring, and a policy that plays by such a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from games.bucket_brigade.enumerated import check, rings, stationary_from
from games.bucket_brigade.observation import read
from games.bucket_brigade.params import Params
from games.bucket_brigade.rules import BucketBrigade, State
from games.game import Array, Legal, Policy
from games.lanes import put_like
from games.policies import joint_probabilities
from games.versus import Populations

LIMIT = 200_000_000
"""Joint actions, in all states of a night that policies tell apart, up to which they are solved: half a second a night.

With 2 houses and 4 agents who read everything they are 150,994,944, with 3 houses that are all they read 34,992.
"""
TABLE_LIMIT = 1_000_000
"""States of a night with everyone's last actions, 3^H (4 H)^N, up to which policies are asked about them all: a GB."""

Table = list[np.ndarray]
"""Of every night, the last one for all that follow: [S, H, 2, 2, ..., A] probabilities of the A = 4 H actions.

After the ring come the last position, mode and signal of every agent, an axis of length 1 where nobody reads it.
"""


@dataclass(frozen=True, eq=False)
class MarkovPolicy:
    """An action for every night, ring and last actions; reads the layout `features`, and counts nights itself.

    choices [nights, S, H, 2, 2, ...] int: numbers 4 * house + 2 * mode + signal of actions. The last night stands for
    all that follow; axes are of length 1 where a last position, mode or signal is not read.
    """

    choices: np.ndarray
    agents: int
    houses: int
    noise_size: ClassVar[int] = 0

    def start(self, lanes: int) -> np.ndarray | None:
        """[lanes] int64 nights played; None for a policy that is the same every night."""
        return np.zeros(lanes, np.int64) if len(self.choices) > 1 else None

    def act(self, observation: Array, legal: Legal, memory: Array | None, noise: Array) -> tuple[Array, Array | None]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        ring = seen.burning + 2 * seen.ruined
        codes = [ring[:, house] for house in range(self.houses)]
        for seat in range(self.agents):
            codes += [seen.positions[:, seat] * (self.houses - 1), seen.modes[:, seat], seen.signals[:, seat]]
        index = xp.astype(observation[:, 0] * 0, xp.int64)
        if memory is not None:
            index, memory = xp.clip(memory, max=len(self.choices) - 1), memory + 1
        for code, length in zip(codes, (3,) * self.houses + self.choices.shape[2:], strict=True):
            if length > 1:
                index = index * length + xp.astype(xp.round(code), xp.int64)
        choice = put_like(self.choices.reshape(-1).astype(np.int64), observation)[index]
        return xp.stack([choice // 4, choice // 2 % 2, choice % 2], axis=1), memory


def decision_tables(game: BucketBrigade, populations: Populations, limit: int = LIMIT) -> list[list[Table]]:
    """A table of every policy of every seat's population.

    Raises ValueError as `decision_table` does, where there is not one population a seat, and for more than `limit`
    joint actions in all the states that the policies together tell apart.
    """
    if len(populations) != game.N:
        raise ValueError(f"there must be one population per seat: {game.N}, got {len(populations)}")
    tables: list[list[Table]] = [[] for _ in populations]
    for seat, population in enumerate(populations):
        for policy in population:
            tables[seat].append(decision_table(game, policy, seat, limit))
            check_read(game, [table for own in tables for table in own], limit)
    return tables


def decision_table(game: BucketBrigade, policy: Policy, seat: int, limit: int = LIMIT) -> Table:
    """The policy's distribution in every state, as `game.observe` shows it to the seat, without what it does not read.

    A last position, mode or signal, or the night, counts as read where the distribution differs in any bit. Raises
    ValueError for a game that is too large (`enumerated.check`, `TABLE_LIMIT`, and `limit` as `decision_tables`), for a
    policy with memory, unless `MarkovPolicy`, and for one that does not tell its probabilities.
    """
    check(game)
    params = game.params()
    choices: Iterator[np.ndarray]
    if isinstance(policy, MarkovPolicy):
        check_markov(game, policy)
        choices = (np.eye(4 * game.H, dtype=np.int8)[night] for night in policy.choices)
    elif policy.start(1) is None:
        choices = _distributions(game, policy, seat)
    else:
        raise ValueError(
            f"exact solutions want policies without memory, got {type(policy).__name__} in seat {seat}: "
            "what it does depends on more than the state; estimate by games.play instead"
        )
    table: Table = []
    for night in islice(choices, game.max_nights):
        table.append(_read_only_parts(_arrived(params, seat, night)))
        check_read(game, [table[-1:]], limit)
    while len(table) > 1 and np.array_equal(table[-1], table[-2]):
        table.pop()
    return table


def check_features(game: BucketBrigade) -> None:
    """Raises ValueError for a game that does not show what a `MarkovPolicy` reads."""
    if game.observation != "features":
        raise ValueError(f"best responses read observation='features' only, got a game with {game.observation!r}")


def check_markov(game: BucketBrigade, policy: MarkovPolicy) -> None:
    """Raises ValueError for a policy of games of another size, and for a game that does not show what it reads."""
    check_features(game)
    if (policy.agents, policy.houses) != (game.N, game.H):
        raise ValueError(
            f"a Markov policy of {policy.agents} agents and {policy.houses} houses cannot play in a game of "
            f"{game.N} and {game.H}: respond in this game instead"
        )


def check_read(game: BucketBrigade, tables: Sequence[Table], limit: int) -> None:
    """Raises ValueError for more than `limit` joint actions in all states that the tables tell apart."""
    parts = parts_read(tables)
    last, joint = prod(parts), prod(2 * game.H * signals for signals in parts[2::3])
    if 3**game.H * last * joint > limit:
        raise ValueError(
            f"exact solutions want at most limit={limit} joint actions in all states of a night, got "
            f"{3**game.H * last * joint}: 3^{game.H} rings times {last} combinations of the last actions that policies "
            f"read times {joint} joint actions; take fewer houses or agents or policies that read less, or raise the "
            "limit (time and memory grow with it)"
        )


def parts_read(tables: Sequence[Table]) -> tuple[int, ...]:
    """[3 N] lengths of the axes of last actions that are left once tables are broadcast against each other."""
    return np.broadcast_shapes(*(night.shape[1:-1] for table in tables for night in table))


def _states(game: BucketBrigade) -> State:
    """Every ring with everyone's every last action, in C order. Raises ValueError for more than `TABLE_LIMIT`."""
    states = 3**game.H * (4 * game.H) ** game.N
    if states > TABLE_LIMIT:
        raise ValueError(
            f"policies are asked about at most {TABLE_LIMIT} states of a night, got {states}: 3^{game.H} rings times "
            f"{4 * game.H}^{game.N} last actions; take fewer houses or agents"
        )
    last = np.indices((game.H, 2, 2) * game.N).reshape(game.N, 3, -1).astype(np.int8)
    houses = rings(game.H)
    ring, action = (index.ravel() for index in np.indices((len(houses), last.shape[2])))
    positions, modes, signals = (last[:, part, action].T for part in range(3))
    state = game.init(game.params(), np.zeros((len(ring), game.H), np.float32))
    return state._replace(houses=houses[ring], positions=positions, modes=modes, signals=signals)


def _distributions(game: BucketBrigade, policy: Policy, seat: int) -> Iterator[np.ndarray]:
    """[S, H, 2, 2, ..., A] of every night until all are alike, of a policy without memory."""
    params, states = game.params(), _states(game)
    for number in range(stationary_from(game) + 1):
        state = states._replace(night=np.full_like(states.night, number))
        rows = joint_probabilities(policy, game.observe(params, state, seat), None, (game.H, 2, 2))
        yield rows.reshape(-1, *(game.H, 2, 2) * game.N, 4 * game.H)


def _arrived(params: Params, seat: int, night: np.ndarray) -> np.ndarray:
    """Distributions [..., A] over where agents set out for, as those over where they arrive."""
    if params.reach is None:
        return night
    actions = night.reshape(*night.shape[:-1], -1, 4)
    arrived = np.zeros_like(actions)
    for house, place in enumerate(params.reach[0, seat]):
        arrived[..., place, :] += actions[..., house, :]
    return arrived.reshape(night.shape)


def _read_only_parts(night: np.ndarray) -> np.ndarray:
    """A night of a table with every axis of last actions cut to length 1 along which nothing changes."""
    for axis in range(1, night.ndim - 1):
        first = night.take([0], axis)
        if (night == first).all():
            night = first
    return night
