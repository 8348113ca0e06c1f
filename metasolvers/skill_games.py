"""Games of skill: antisymmetric matrices of what one policy earns against another, drawn from a seed.

Real games are transitive and cyclic at once, most cyclic where policies are of middling strength [Czarnecki et al.
2020, Real world games look like spinning tops, arXiv 2004.09468]; these families have a known share of each.

>>> skill_game("rock_paper_scissors", 3).astype(int)
array([[ 0, -1,  1],
       [ 1,  0, -1],
       [-1,  1,  0]])
"""

from collections.abc import Callable
from difflib import get_close_matches
from itertools import combinations
from math import comb

import numpy as np

from metasolvers.hodge import hodge

Family = Callable[..., np.ndarray]
"""(k, seed, options) -> antisymmetric [k, k]; equal arguments give equal matrices."""


def disc_game(k: int, seed: int = 0) -> np.ndarray:
    """Points drawn evenly in the unit disc; v beats w by v^T [[0, 1], [-1, 0]] w [Balduzzi et al. 2019].

    Cyclic around the centre, of rank 2; payoffs in [-1, 1].
    """
    rng = _generator(k, seed)
    angle, radius = 2 * np.pi * rng.random(k), np.sqrt(rng.random(k))
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    return np.outer(x, y) - np.outer(y, x)


def elo_game(k: int, seed: int = 0, spread: float = 400.0, noise: float = 0.0) -> np.ndarray:
    """Normal ratings of standard deviation `spread` Elo points; P(win) - P(loss) = tanh(log-odds / 2), in [-1, 1].

    The stronger agent is always ahead. Normal noise of standard deviation `noise`, in units of payoff, makes cycles
    between agents of like strength: "Elo + noise" of [Czarnecki et al. 2020]; payoffs may then leave [-1, 1].
    Raises ValueError for a negative spread or noise.
    """
    if not (0 <= spread < np.inf and 0 <= noise < np.inf):
        raise ValueError(f"spread (Elo points) and noise (payoff) must be finite and 0 or more; got {spread}, {noise}")
    rng = _generator(k, seed)
    strength = spread * np.log(10) / 400 * rng.normal(size=k)
    return np.tanh((strength[:, None] - strength) / 2) + noise * _normal(rng, k)


def mixture(k: int, seed: int = 0, transitive: float = 0.5) -> np.ndarray:
    """A transitive and a cyclic game, both normal, of norms sqrt(share) and sqrt(1 - share) times sqrt(k (k - 1)).

    `hodge` finds exactly the share `transitive` in [0, 1]; the mean square of an entry is 1.
    Raises ValueError for other shares, and for k < 3 with a cyclic share: two agents have no cycles.
    """
    if not 0 <= transitive <= 1:
        raise ValueError(f"transitive must be a share in [0, 1]; got {transitive}")
    rng = _generator(k, seed)
    if k < 3 and transitive < 1:
        raise ValueError(f"cycles need at least 3 policies; got k={k}: take more, or transitive=1")
    strength = rng.normal(size=k)
    grades, cycles = _unit(strength[:, None] - strength), _unit(hodge(_normal(rng, k)).cyclic)
    return np.sqrt(k * (k - 1)) * (np.sqrt(transitive) * grades + np.sqrt(1 - transitive) * cycles)


def random_game_of_skill(k: int, seed: int = 0, skill: float = 1.0) -> np.ndarray:
    """(W - W^T) / 2 + skill (S_i - S_j), W and S standard normal [Czarnecki et al. 2020]: cycles of all ranks."""
    rng = _generator(k, seed)
    strength = skill * rng.normal(size=k)
    return strength[:, None] - strength + _normal(rng, k) / np.sqrt(2)


def random_antisymmetric(k: int, seed: int = 0) -> np.ndarray:
    """(W - W^T) / sqrt(2), W standard normal, so that entries are too; the transitive share is about 2 / k."""
    return _normal(_generator(k, seed), k)


def rock_paper_scissors(k: int, seed: int = 0) -> np.ndarray:
    """k policies around a circle, each of which beats the (k - 1) / 2 before it, for 1, and loses to those after it.

    Cyclic, with all policies alike; opposite ones tie where k is even. It is a known game, and the same for all seeds.
    """
    _generator(k, seed)
    ahead = (np.arange(k)[:, None] - np.arange(k)) % k
    return np.where(ahead > 0, np.sign(k - 2.0 * ahead), 0.0)


def blotto(k: int, seed: int = 0, soldiers: int = 10, fields: int = 3) -> np.ndarray:
    """Colonel Blotto: who has more soldiers on more fields wins 1 [Borel 1921]; k of all divisions, each drawn once.

    The k drawn are in lexicographic order; with k = C(soldiers + fields - 1, soldiers), which is 66 for 10 soldiers on
    3 fields, they are all there are. Raises ValueError for more, for no soldiers, and fewer than two fields.
    """
    rng = _generator(k, seed)
    if soldiers < 1 or fields < 2:
        raise ValueError(f"Blotto needs soldiers and at least 2 fields; got soldiers={soldiers}, fields={fields}")
    plans = comb(soldiers + fields - 1, soldiers)
    if k > plans:
        raise ValueError(f"{soldiers} soldiers stand on {fields} fields in {plans} ways; got k={k}: take more soldiers")
    drawn = divisions(soldiers, fields)[np.sort(rng.choice(plans, size=k, replace=False))]
    return np.sign(np.sign(drawn[:, None] - drawn).sum(axis=2)).astype(float)


def divisions(soldiers: int, fields: int) -> np.ndarray:
    """[C(soldiers + fields - 1, soldiers), fields] every way to divide soldiers over fields, lexicographic.

    >>> divisions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    places = soldiers + fields - 1
    bars = np.array(list(combinations(range(places), fields - 1)))  # between the soldiers of one field and the next
    return np.diff(bars, prepend=-1, append=places, axis=1) - 1


FAMILIES: dict[str, Family] = {
    "disc": disc_game,
    "elo": elo_game,
    "mixture": mixture,
    "random_game_of_skill": random_game_of_skill,
    "random_antisymmetric": random_antisymmetric,
    "rock_paper_scissors": rock_paper_scissors,
    "blotto": blotto,
}
"""By name: (k, seed, options) -> antisymmetric [k, k]."""


def skill_game(family: str, k: int, seed: int = 0, **options: float) -> np.ndarray:
    """k policies of the family of that name: antisymmetric [k, k], what the row's policy earns against the column's.

    `metasolvers.comparisons.two_player` makes it a payoff table for meta-solvers.
    Raises ValueError, with the nearest names, for an unknown family, and for what the family refuses.
    """
    if family not in FAMILIES:
        near = get_close_matches(family, FAMILIES) or sorted(FAMILIES)
        raise ValueError(f"no family of games {family!r}: did you mean {' or '.join(map(repr, near))}?")
    return FAMILIES[family](k, seed, **options)


def _generator(k: int, seed: int) -> np.random.Generator:
    if k < 1 or k != int(k):
        raise ValueError(f"k must be a whole number of policies, at least 1; got {k}")
    return np.random.default_rng(seed)


def _normal(rng: np.random.Generator, k: int) -> np.ndarray:
    """Antisymmetric [k, k] of standard normal entries."""
    entries = rng.normal(size=(k, k))
    return (entries - entries.T) / np.sqrt(2)


def _unit(matrix: np.ndarray) -> np.ndarray:
    return matrix / (np.linalg.norm(matrix) or 1.0)
