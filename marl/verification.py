"""Approximate exploitability, for games too large to be solved: a fixed verification oracle looks for deviations.

It begins anew, several times over, and what it finds is scored on episodes that nothing was selected on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from games.game import Game, Lanes, Playable, Policy
from games.lanes import lanes_of
from games.numbers import whole
from games.versus import Populations
from games.wrappers import mixed_reward
from marl.checkpoint import PolicyStore
from marl.failpoints import failpoint
from marl.oracles import Oracle
from marl.population import HERE, Estimate, FullGap, full_gap
from marl.psro import best_response
from marl.workers import Progress, Unit, Workers
from marl.wrappers import TeamReward

ONE_SIDED = 1.645
"""Standard errors below an estimate that 95 % of a normal distribution lie above."""
FEWEST = 100
"""Episodes: means of fewer returns may be far from normally distributed."""
UNIT = "verify"


def at_least(estimate: Estimate) -> float:
    """The one-sided 95 % lower confidence bound; a number that is known exactly itself."""
    return estimate.value - ONE_SIDED * estimate.standard_error


@dataclass(frozen=True)
class Verification:
    """How deviations are looked for, and measured.

    The oracle's budget should be no less than that of whoever found the policies: a weaker search finds nothing.
    Raises ValueError for no restarts, and for fewer than `FEWEST` episodes.
    """

    oracle: Oracle
    restarts: int = 3
    """Best responses that are trained of every player, all from scratch."""
    episodes: int = 20_000
    """Of each deviation to select the best one; and as many, others, to score it."""
    seed: int = 0
    reward: Literal["own", "team"] = "own"
    """Whose return is to be gained: the deviating player's, or the sum over all players."""
    device: str = "cpu"
    """Where best responses are trained."""

    def __post_init__(self) -> None:
        whole("restarts", self.restarts)
        whole("episodes", self.episodes, FEWEST)
        if self.reward not in ("own", "team"):
            raise ValueError(f"reward is 'own' or 'team', got {self.reward!r}")

    @property
    def trainings(self) -> int:
        """Best responses of every player: one where they are computed, which gives the same every time."""
        return self.restarts if self.oracle.total_steps else 1


def verify(
    how: Verification,
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    store: PolicyStore | None = None,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> FullGap[int | None]:
    """Lower bound on the CCE gap of sigma in the whole game, its NashConv where sigma is a product.

    Of a single profile of policies, `populations` hold one each, and sigma is [[1.0]] or the like. Candidates are the
    populations' policies and all that `responses` trains; see `marl.population.full_gap`, whose `chosen` number them in
    this order. What was chosen was not chosen on the episodes it is scored on, so that its score is unbiased, however
    many candidates and restarts there were: `at_least` of each gain, and of the total, holds with 95 % by itself.
    (It may be below 0, where nobody was found to gain anything.) Results do not depend on workers, nor on what of the
    trainings was in the store.

    >>> import torch
    >>> from games import make
    >>> from games.scripted import profile
    >>> from marl.oracles import PPO
    >>> torch.set_num_threads(1)  # small networks are fastest so
    >>> game = make("openspiel:kuhn_poker")
    >>> uniform = [[policy] for policy in profile("uniform", game)]
    >>> how = Verification(PPO(steps=8192, num_lanes=128, minibatches=2, learning_rate=1e-2), restarts=1, episodes=4000)
    >>> gap = verify(how, game, uniform, np.ones((1, 1)))
    >>> 0.5 < at_least(gap.total) < 0.917  # 11/12 is exact
    True
    """
    found = responses(how, game, populations, sigma, store, workers, progress)
    return full_gap(earning(game, how.reward), populations, sigma, found, how.episodes, how.seed, UNIT, workers)


def responses(
    how: Verification,
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    store: PolicyStore | None = None,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> list[list[Policy]]:
    """The best responses of every player to sigma, one a restart: from the store, or trained, stored and read back.

    Each is a unit of work, named `verify/RESTART/PLAYER`: more restarts only add to what fewer find.
    """
    seats = range(len(populations))
    units = {f"{UNIT}/{restart}/{seat}": seat for seat in seats for restart in range(how.trainings)}
    stored = set() if store is None else {unit for unit in units if unit in store}
    train = partial(best_response, earning(game, how.reward), how.oracle, populations, sigma)
    work = [
        Unit(unit, partial(train, seat, how.seed, unit, device=how.device), how.oracle.total_steps > 0)
        for unit, seat in units.items()
        if unit not in stored
    ]
    trained: dict[str, Policy] = {}
    for unit, policy in workers.run(work, progress):
        failpoint("unit finished")
        if store is not None:
            store.save(unit, policy, [])
        trained[unit] = policy
    found = trained if store is None else {unit: store.load(unit).policy for unit in units}
    return [_of(seat, units, found) for seat in seats]


def _of(seat: int, units: Mapping[str, int], found: Mapping[str, Policy]) -> list[Policy]:
    return [found[unit] for unit, whose in units.items() if whose == seat]


def deviation(chosen: int | None, held: Sequence[Policy], computed: bool = False) -> str:
    """What a player deviates to, as `verify` chose it, where its population holds so many policies.

    Best responses may be `computed`, and not found by one of several trainings.
    """
    if chosen is None:
        return "stays"
    if chosen < len(held):
        return f"policy {chosen}"
    return "exact best response" if computed else f"restart {chosen - len(held)}"


def earning(game: Game | Playable, reward: Literal["own", "team"]) -> Game | Playable:
    """The game as it is, or one in which every player earns the sum of all rewards."""
    if reward == "own":
        return game
    return mixed_reward(game) if isinstance(game, Game) else Team(game)


@dataclass(frozen=True)
class Team:
    """Somebody else's environment in which every seat earns the sum of all rewards: `Playable`."""

    game: Playable

    @property
    def agents(self) -> tuple[str, ...]:
        return self.game.agents

    @property
    def observation_spaces(self) -> tuple:
        return self.game.observation_spaces

    @property
    def action_spaces(self) -> tuple:
        return self.game.action_spaces

    def lanes(self, num_lanes: int) -> Lanes:
        return TeamReward(lanes_of(self.game, num_lanes))
