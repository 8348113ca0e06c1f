"""The two policies that a genome of ten numbers makes, and the five published genomes [rjwalters/bucket-brigade].

Nash equilibria were searched with the simplified policy of the Rust evaluator, `Genome`; the baselines of the phase
diagram's cells were measured with the full policy of the Python package, `FullGenome`, on the same genomes.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from games.bucket_brigade.observation import Seen, first, house_numbers, nth_fire, number, read
from games.bucket_brigade.rules import REST
from games.game import Array, Legal

GENES = (
    *("honesty", "work", "neighbor_help", "own_priority", "risk_aversion"),
    *("coordination", "exploration", "fatigue", "rest_bias", "altruism"),
)
"""In the order of the published vectors."""

SIMPLE_GENES = ("honesty", "work", "own_priority", "rest_bias")
"""Those that the simplified policy reads."""

ARCHETYPES: dict[str, dict[str, Any]] = {
    name: dict(zip(GENES, vector, strict=True))
    for name, vector in {
        "firefighter": (1.0, 0.9, 0.5, 0.8, 0.5, 0.7, 0.1, 0.0, 0.0, 0.8),
        "free_rider": (0.7, 0.2, 0.0, 0.9, 0.0, 0.0, 0.1, 0.0, 0.9, 0.0),
        "hero": (1.0, 1.0, 1.0, 0.5, 0.1, 0.5, 0.0, 0.9, 0.0, 1.0),
        "coordinator": (0.9, 0.6, 0.7, 0.6, 0.8, 1.0, 0.05, 0.0, 0.2, 0.6),
        "liar": (0.1, 0.7, 0.0, 0.9, 0.2, 0.8, 0.3, 0.0, 0.4, 0.2),
    }.items()
}
"""The published genomes [rjwalters/bucket-brigade at 5335008e, definitions/archetypes.json]."""


@dataclass(frozen=True)
class Genome:
    """The simplified genome policy of the Rust Nash evaluator, by the four genes it reads.

    Works with probability work * (1 - rest_bias): at house i (its agent's number) with probability `own_priority` if
    that burns, else at a burning house drawn uniformly, or at house i if none burns; rests at house i. The signal
    equals the mode with probability `honesty`. Raises ValueError for a gene outside [0, 1].
    """

    honesty: float
    work: float
    own_priority: float
    rest_bias: float
    agents: int = 4
    houses: int = 10
    noise_size: ClassVar[int] = 4

    def __post_init__(self) -> None:
        _check_genes(self, SIMPLE_GENES)

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        fires, home = number(seen.burning), first(seen.asked > 0) % self.houses
        mode = xp.astype(noise[:, 0] < self.work * (1 - self.rest_bias), xp.int64)
        drawn = xp.astype(noise[:, 2] * xp.astype(fires, xp.float32), xp.int64)
        drawn = nth_fire(seen, xp.where(drawn < fires, drawn, fires - 1))
        burns_at_home = xp.any((seen.burning > 0) & (house_numbers(seen) == home[:, None]), axis=1)
        goes_home = (mode == REST) | (fires == 0) | (burns_at_home & (noise[:, 1] < self.own_priority))
        signal = xp.where(noise[:, 3] < self.honesty, mode, 1 - mode)
        return xp.stack([xp.where(goes_home, home, drawn), mode, signal], axis=1), None

    def joint(self, observation: Array, legal: Legal) -> Array:
        """[B, 4 H] float64 probabilities of the actions, as `games.policies.joint_probabilities` asks for them."""
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        fires = xp.astype(seen.burning, xp.float64)
        number_of_fires = xp.sum(fires, axis=1, keepdims=True)
        home = xp.astype(house_numbers(seen) == (first(seen.asked > 0) % self.houses)[:, None], xp.float64)
        elsewhere = fires / xp.clip(number_of_fires, 1, None) + home * xp.astype(number_of_fires == 0, xp.float64)
        stays = xp.sum(home * fires, axis=1, keepdims=True) * self.own_priority
        works = self.work * (1 - self.rest_bias)
        rests, goes = home * (1 - works), (home * stays + elsewhere * (1 - stays)) * works
        lies = 1 - self.honesty
        cells = [rests * self.honesty, rests * lies, goes * lies, goes * self.honesty]  # by mode, then by signal
        return xp.reshape(xp.stack(cells, axis=2), (fires.shape[0], -1))


@dataclass(frozen=True)
class FullGenome:
    """The full genome policy of the Python package, by all ten genes.

    Signals whether it intends to work, or lies; works if it said so and is honest, else by its altruism. The house is
    drawn by a score: near house i (its agent's number), burning, beside fires, where agents stand. It explores by a
    uniform house and mode, and with probability `fatigue` repeats last night's. Only nights are remembered: what it
    does in a first phase is not. Raises ValueError for a gene outside [0, 1].
    """

    honesty: float
    work: float
    neighbor_help: float
    own_priority: float
    risk_aversion: float
    coordination: float
    exploration: float
    fatigue: float
    rest_bias: float
    altruism: float
    agents: int = 4
    houses: int = 10
    noise_size: ClassVar[int] = 7  # honesty, house, mode; whether to explore, house, mode; whether to repeat

    def __post_init__(self) -> None:
        _check_genes(self, GENES)

    def start(self, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """House and mode of the last night, -1 before the first."""
        return np.full(lanes, -1, np.int64), np.full(lanes, -1, np.int64)

    def act(
        self, observation: Array, legal: Legal, memory: tuple[Array, Array], noise: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        last_house, last_mode = memory
        intent = self.intent(seen)
        honest = noise[:, 0] < self.honesty
        signal = xp.astype((intent > 0.5) == honest, xp.int64)
        house = _draw(self.scores(seen), noise[:, 1])
        works = xp.where(signal > 0, xp.full_like(intent, self.honesty), intent * self.altruism)
        mode = xp.astype(noise[:, 2] < works, xp.int64)
        explores = noise[:, 3] < self.exploration
        house = xp.where(explores, _uniform(noise[:, 4], self.houses), house)
        mode = xp.where(explores, _uniform(noise[:, 5], 2), mode)
        repeats = (last_house >= 0) & (noise[:, 6] < self.fatigue)
        house, mode = xp.where(repeats, last_house, house), xp.where(repeats, last_mode, mode)
        if seen.second is None:
            memory = house, mode
        else:
            plays = seen.second[:, 0] > 0
            memory = xp.where(plays, house, last_house), xp.where(plays, mode, last_mode)
        return xp.stack([house, mode, signal], axis=1), memory

    def intent(self, seen: Seen) -> Array:
        """[B] within [0, 1] how much it means to work."""
        xp = array_namespace(seen.burning)
        fires = xp.sum(seen.burning, axis=1) * (1 / self.houses)
        own = xp.sum(seen.burning * self._own(seen), axis=1)
        wish = self.work + self.risk_aversion * fires + (0.5 * self.own_priority) * own
        return xp.clip(wish * (1 - self.rest_bias), 0.0, 1.0)

    def scores(self, seen: Seen) -> Array:
        """[B, H] weights, of at least 0.01, with which the house is drawn."""
        xp = array_namespace(seen.burning)
        fires = xp.roll(seen.burning, 1, axis=1) + xp.roll(seen.burning, -1, axis=1)
        places = xp.astype(xp.round(seen.positions * (self.houses - 1)), xp.int64)
        agents = sum(xp.astype(places[:, i, None] == house_numbers(seen), xp.float32) for i in range(self.agents))
        around = xp.abs(house_numbers(seen) - (first(seen.asked > 0) % self.houses)[:, None])
        distance = xp.astype(xp.minimum(around, self.houses - around), xp.float32)
        score = 0.1 / (1 + distance) + self.own_priority * self._own(seen) + 0.5 * seen.burning
        score = score + (0.3 * self.neighbor_help) * xp.astype(fires > 0, xp.float32)
        score = score + (0.1 * self.coordination) * agents - (0.2 * self.risk_aversion) * fires
        return xp.clip(score, 0.01, None)

    def _own(self, seen: Seen) -> Array:
        """[B, H] 1 at house i, the agent's number counted round the ring."""
        xp = array_namespace(seen.asked)
        return xp.astype(house_numbers(seen) == (first(seen.asked > 0) % self.houses)[:, None], xp.float32)


def _check_genes(policy: Genome | FullGenome, genes: tuple[str, ...]) -> None:
    for gene in genes:
        if not 0 <= getattr(policy, gene) <= 1:
            raise ValueError(f"the gene {gene} must lie in [0, 1], got {getattr(policy, gene)}")


def _draw(weights: Array, noise: Array) -> Array:
    """[B] int64 columns drawn with probability proportional to positive weights [B, n], by uniforms [B]."""
    xp, n = array_namespace(weights), weights.shape[1]
    # Added up in a fixed order: cumulative sums of different libraries differ in the last bit.
    totals = list(accumulate(weights[:, column] for column in range(n)))
    return sum(xp.astype(noise * totals[-1] >= total, xp.int64) for total in totals[:-1])


def _uniform(noise: Array, n: int) -> Array:
    """[B] int64 below n, by uniforms [B]."""
    xp = array_namespace(noise)
    return xp.clip(xp.astype(noise * n, xp.int64), None, n - 1)  # the largest uniform times n may round up to n
