"""Small rings by plain recursion on the rules of the reference, and policies that read all that they see."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.game import Policy
from games.policies import draw
from tests.games.nights import cell_of, reference_of

TRIO = {"scenario": "v2_minimal", "num_houses": 3, "num_agents": 2, "min_nights": 3, "rho": 0.1}
PAIR = {"scenario": "v2_minimal", "num_agents": 2, "rho": 0.25, "kappa": 0.5}


@dataclass(frozen=True, eq=False)
class Linear:
    """Draws every factor from softmax(observation @ weights): reads all that it sees."""

    weights: tuple[Any, ...]  # one [D, A_f] a factor
    noise_size: ClassVar[int] = 3

    @classmethod
    def of(cls, game: BucketBrigade, seed: int, reads: slice = slice(None), scale: float = 1.0) -> "Linear":
        """Random weights, 0 for columns of the observation that are not among `reads`."""
        rng, columns = np.random.default_rng(seed), game.observation_spaces[0].shape[0]
        weights = []
        for choices in (game.H, 2, 2):
            drawn, kept = rng.normal(0, scale, (columns, choices)), np.zeros((columns, choices))
            kept[reads] = drawn[reads]
            weights.append(kept)
        return cls(tuple(weights))

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        chosen = [draw(rows, noise[:, f]) for f, rows in enumerate(self.probabilities(observation, legal))]
        return np.stack(chosen, axis=1), None

    def probabilities(self, observation, legal):
        # Summed column by column: every row in the same order, whatever the number of rows.
        logits = [sum(seen[:, None] * row for seen, row in zip(observation.T, w, strict=True)) for w in self.weights]
        return tuple(np.exp(row) / np.exp(row).sum(axis=1, keepdims=True) for row in logits)


class ByHand:
    """A game of few nights as a recursion over (ring, night, last actions), with the rules of the reference."""

    def __init__(self, game: BucketBrigade):
        self.game, self.params, self.cell = game, game.params(), cell_of(game)
        self.actions = list(product(range(game.H), range(2), range(2)))
        self.outcomes, self.distribution = cache(self._outcomes), cache(self._distribution)

    def starts(self) -> list[tuple[float, tuple]]:
        """(probability, state) of every start."""
        rho, nothing = self.cell["rho"], ((0, 0, 0),) * self.game.N
        rings = product(("safe", "burning"), repeat=self.game.H)
        return [(prod(rho if h == "burning" else 1 - rho for h in ring), (ring, 0, nothing)) for ring in rings]

    def _outcomes(self, ring: tuple, night: int, moves: tuple) -> list[tuple[float, tuple, np.ndarray]]:
        """(probability, next ring and positions or None at the end, mean rewards [N]) of all a night may lead to."""
        size, found = self.game.H, {}
        reference = reference_of(self.game)
        reference.actions = [reference.valid(seat, (*move, 0)) for seat, move in enumerate(moves)]
        saves = [1 - (1 - self.cell["kappa"]) ** reference.workers(house) for house in range(size)]
        odds = [save if state == "burning" else 0.0 for save, state in zip(saves, ring, strict=True)]
        for low in product((False, True), repeat=2 * size):
            each = zip([*odds, *[self.cell["rho"]] * size], low, strict=True)
            chance = prod(p if is_low else 1 - p for p, is_low in each)
            if not chance:
                continue
            reference.houses, reference.nights, reference.meters = list(ring), night, [0.0] * size
            paid = reference.night(reference.actions, [0.0 if is_low else 1 - 1e-9 for is_low in low])
            over = reference.over() or reference.nights >= self.game.max_nights
            places = tuple(place for place, _, _ in reference.actions)
            after = None if over else (tuple(reference.houses), places)
            total, earned = found.get(after, (0.0, np.zeros(self.game.N)))
            found[after] = total + chance, earned + chance * np.array(paid)
        return [(total, after, earned / total) for after, (total, earned) in found.items()]

    def _distribution(self, player: Policy, seat: int, state: tuple) -> list[float]:
        """Probabilities of `actions`, asked of the policy in this one state alone."""
        ring, night, last = state
        codes = [{"safe": 0, "burning": 1, "ruined": 2}[house] for house in ring]
        lane = self.game.init(self.params, np.zeros((1, self.game.H), np.float32))
        positions, modes, signals = (np.array([column], np.int8) for column in zip(*last, strict=True))
        lane = lane._replace(houses=np.array([codes], np.int8), night=np.array([night], np.int16))
        lane = lane._replace(positions=positions, modes=modes, signals=signals)
        rows = [factor[0].tolist() for factor in player.probabilities(self.game.observe(self.params, lane, seat), None)]
        return [prod(f[a] for f, a in zip(rows, act, strict=True)) for act in self.actions]

    def returns(self, profile: list[Policy]) -> np.ndarray:
        @cache
        def value(state: tuple) -> np.ndarray:
            odds = [self.distribution(player, seat, state) for seat, player in enumerate(profile)]
            total = np.zeros(self.game.N)
            for joint in product(range(len(self.actions)), repeat=self.game.N):
                chance = prod(odds[seat][act] for seat, act in enumerate(joint))
                total += chance * self.ahead(state, joint, value)
            return total

        return sum(chance * value(state) for chance, state in self.starts())

    def ahead(self, state: tuple, joint: tuple[int, ...], value: Callable, seat: Any = slice(None)) -> Any:
        """Expected rewards of joint actions, and of what follows, of a seat or of all."""
        actions, total = [self.actions[act] for act in joint], 0.0
        for chance, after, paid in self.outcomes(*state[:2], tuple(action[:2] for action in actions)):
            total = total + chance * paid[seat]
            if after is not None:
                last = tuple((place, *action[1:]) for place, action in zip(after[1], actions, strict=True))
                total = total + chance * value((after[0], state[1] + 1, last))
        return total

    def best(self, types: list[list[Policy]], prior: list[float], seat: int) -> float:
        """The most that a seat can earn by whatever it did and saw, while the others are of one of `types`."""
        others = [i for i in range(self.game.N) if i != seat]

        @cache
        def value(state: tuple, beliefs: tuple[float, ...]) -> float:
            odds = [[self.distribution(kind[i], i, state) for i in others] for kind in types]
            worths = np.zeros(len(self.actions))
            for theirs in product(range(len(self.actions)), repeat=len(others)):
                likely = [prod(row[a] for row, a in zip(rows, theirs, strict=True)) for rows in odds]
                weighed = [belief * p for belief, p in zip(beliefs, likely, strict=True)]
                after = tuple(weight / sum(weighed) for weight in weighed)
                for mine in range(len(self.actions)):
                    joint = (*theirs[:seat], mine, *theirs[seat:])
                    worths[mine] += sum(weighed) * self.ahead(
                        state, joint, lambda state, b=after: value(state, b), seat
                    )
            return worths.max()

        return sum(chance * value(state, tuple(prior)) for chance, state in self.starts())


def profile_of(game: BucketBrigade, *names: str) -> list[Policy]:
    return [policy(names[seat % len(names)], game) for seat in range(game.N)]
