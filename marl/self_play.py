"""Self-play against the past: who meets the learner, and what came of it."""

from typing import Any

import numpy as np

from games.game import Outcome, Policy
from games.lanes import to_numpy
from games.versus import Populations, Versus
from marl.matchmaking import MATCHMAKERS
from marl.oracles.joint import JointTraining
from marl.oracles.ppo_learner import PPOLearner
from marl.pool import Pool, Rival

MOST_PROFILES = 2**22
"""Of snapshots in the seats that do not learn, as `games.versus.Cast` lists them."""


class SelfPlay:
    """Casts snapshots of the learner `ppo` into the seats of `versus` that it does not learn: one for all, an episode.

    They play the mixtures they were trained with. An episode is won where the learning seats earned more on average
    than the others. Begins with a pool of the learner as it is. Raises ValueError for too many seats to cast.
    """

    def __init__(self, settings: JointTraining, versus: Versus, ppo: PPOLearner):
        self.settings, self.versus, self.ppo = settings, versus, ppo
        (self.trainee,) = ppo.trainees  # one for all the learner's seats
        self.seats, self.others = list(versus.seats), list(versus.cast.seats)
        if settings.pool_size ** len(self.others) > MOST_PROFILES:
            raise ValueError(f"pool_size={settings.pool_size} is too much for {len(self.others)} seats: lower it")
        self.pool = Pool(settings.pool_size, settings.decay)
        self.pool.add(self._mixture(), 0)
        self.players: list[Rival] = list(self.pool.snapshots)
        """In the order of the cast's populations: those of the pool, and then those who have still to finish."""
        self.chances = np.ones(1)
        self.returns = np.zeros((versus.num_lanes, len(versus.lanes.agents)))  # of the episodes under way
        versus.cast.draw_from(*self._profiles(self.players, self.chances))
        versus.cast.start()
        versus.watch = self._watch

    def arrange(self) -> dict[str, float]:
        """Take a snapshot where one is due, and match the learner for its next update.

        -> `pool`, its size; and of the players to be met, the mean number of updates ago that they were taken,
        `staleness`, and of games that the learner wins against them, `win_rate`. `rating` is the learner's, in Elo
        points above the mean of the pool.
        """
        update = self.ppo.done_updates
        self.pool.age()
        if update % self.settings.snapshot_every == 0:
            self.pool.add(self._mixture(), update)
        standing = self.pool.standing()
        chances = MATCHMAKERS[self.settings.opponents](standing)
        self._cast(chances)
        return {
            "pool": len(self.pool),
            "staleness": float(chances @ self.pool.ages(update)),
            "win_rate": float(chances @ standing.win_rates),
            "rating": standing.rating - float(standing.ratings.mean()),
        }

    def _cast(self, chances: np.ndarray) -> None:
        cast, known = self.versus.cast, {id(player.policy): player for player in (*self.players, *self.pool.snapshots)}
        cast.change(*self._profiles(self.pool.snapshots, chances))
        self.players = [known[id(policy)] for policy in cast.populations[self.others[0]]]
        self.chances = np.pad(chances, (0, len(self.players) - len(chances)))

    def _profiles(self, players: list[Rival], chances: np.ndarray) -> tuple[Populations, np.ndarray]:
        """Populations and sigma of all seats: in every profile, one and the same player has all the others' seats."""
        policies = [player.policy for player in players]
        populations = [
            policies if seat in self.others else policies[:1] for seat in range(len(self.versus.lanes.agents))
        ]
        sigma = np.zeros([len(population) for population in populations])
        for place, chance in enumerate(chances):
            sigma[tuple(place if seat in self.others else 0 for seat in range(sigma.ndim))] = chance
        return populations, sigma

    def _watch(self, profile: np.ndarray, outcome: Outcome) -> None:
        """Note the results of episodes that end with this step."""
        self.returns += to_numpy(outcome.rewards)
        done = to_numpy(outcome.done)
        if not done.any():
            return
        ours, theirs = (self.returns[done][:, seats].mean(axis=1) for seats in (self.seats, self.others))
        even = np.abs(ours - theirs) <= 1e-6 * (np.abs(ours) + np.abs(theirs))  # but for rounding
        scores, opponents = np.where(even, 0.5, ours > theirs), profile[done][:, 0]
        still = opponents < len(self.pool)
        self.pool.record(opponents[still], scores[still])
        self.returns[done] = 0.0

    def _mixture(self) -> Policy:
        """The learner's policy, not greedy: nobody shall be able to foresee it."""
        return self.trainee.policy(greedy=False)

    def state_dict(self) -> dict[str, Any]:
        players = [(player.number, player.update, list(self.trainee.layers(player.policy))) for player in self.players]
        return {
            "pool": self.pool.state_dict(),
            "players": players,
            "chances": self.chances.copy(),
            "returns": self.returns.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`; that of the lanes is to be loaded next."""
        self.players = [
            Rival(number, update, self.trainee.built(layers, greedy=False))
            for number, update, layers in state["players"]
        ]
        self.pool.load_state_dict(state["pool"], {player.number: player.policy for player in self.players})
        self.chances, self.returns = np.array(state["chances"]), np.array(state["returns"])
        self.versus.cast.draw_from(*self._profiles(self.players, self.chances))
