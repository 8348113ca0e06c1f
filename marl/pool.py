"""A pool of snapshots of a learner: who they are, how old, and who beats whom how often."""

from typing import Any, NamedTuple

import numpy as np

from games.game import Policy
from games.numbers import real, whole
from marl.matchmaking import Standing
from metasolvers.ratings import bradley_terry

PRIOR = 0.5
"""Wins of everybody over everybody that are taken for granted: rates and ratings are finite before a game is played."""


class Rival(NamedTuple):
    """A snapshot: a policy as it was after some updates of its learner."""

    number: int  # how many were taken before: names it for good
    update: int
    policy: Policy


class Pool:
    """At most `capacity` snapshots, oldest first, with the games that they and the learner have played.

    A full pool lets go of the snapshot that the learner beats most surely, of several the oldest, when a new one comes.
    The learner moves on, so its results count `decay` times as much after every update as before it; a snapshot keeps
    those that the learner had when it was taken.

    Raises ValueError for a capacity below 1 and a decay out of [0, 1].
    """

    def __init__(self, capacity: int = 16, decay: float = 0.95):
        self.capacity, self.decay = whole("capacity", capacity), real("decay", decay, 0, 1)
        self.snapshots: list[Rival] = []
        self.taken = self.turn = 0
        self.wins = np.zeros((1, 1))  # [1 + k, 1 + k] of the row over the column, a draw half a win; the learner first

    def __len__(self) -> int:
        return len(self.snapshots)

    def add(self, policy: Policy, update: int) -> None:
        """Take the learner's policy in; it counts as having played the learner's games."""
        if len(self) == self.capacity:
            self._remove(int(self.standing().win_rates.argmax()))
        self.snapshots.append(Rival(self.taken, update, policy))
        self.taken += 1
        grown = np.zeros((1 + len(self), 1 + len(self)))
        grown[:-1, :-1] = self.wins
        grown[-1, 1:-1], grown[1:-1, -1] = self.wins[0, 1:], self.wins[1:, 0]
        self.wins = grown

    def record(self, opponents: np.ndarray, scores: np.ndarray) -> None:
        """Note games [M] of the learner: indices of the snapshots it met, and 1 for a win, 0.5 a draw, 0 a loss.

        Raises ValueError for an opponent that is not there, and scores out of [0, 1].
        """
        if not ((opponents >= 0) & (opponents < len(self))).all():
            raise ValueError(f"opponents must be indices of the {len(self)} snapshots, got {np.unique(opponents)}")
        if not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError(f"scores must be 1 for a win, 0.5 for a draw, 0 for a loss; got {np.unique(scores)}")
        np.add.at(self.wins[0], 1 + opponents, scores)
        np.add.at(self.wins[:, 0], 1 + opponents, 1 - scores)

    def age(self) -> None:
        """Let the learner's results count for less, as it has been updated; a match was made meanwhile."""
        self.wins[0] *= self.decay
        self.wins[:, 0] *= self.decay
        self.turn += 1

    def standing(self) -> Standing:
        """What matchmakers want to know; ratings by Bradley and Terry's model, their mean 0."""
        won, lost = self.wins[0, 1:] + PRIOR, self.wins[1:, 0] + PRIOR
        elo = bradley_terry(self.wins, prior=PRIOR).elo
        return Standing(won / (won + lost), elo[1:], float(elo[0]), self.turn)

    def ages(self, update: int) -> np.ndarray:
        """[k] updates since each snapshot was taken."""
        return update - np.array([snapshot.update for snapshot in self.snapshots], np.int64)

    def state_dict(self) -> dict[str, Any]:
        """All but the policies, which stand in `snapshots`."""
        known = [(snapshot.number, snapshot.update) for snapshot in self.snapshots]
        return {"snapshots": known, "taken": self.taken, "turn": self.turn, "wins": self.wins.copy()}

    def load_state_dict(self, state: dict[str, Any], policies: dict[int, Policy]) -> None:
        """Go on from a `state_dict()`; the policies by the numbers of their snapshots."""
        self.snapshots = [Rival(number, update, policies[number]) for number, update in state["snapshots"]]
        self.taken, self.turn, self.wins = state["taken"], state["turn"], np.array(state["wins"])

    def _remove(self, index: int) -> None:
        del self.snapshots[index]
        self.wins = np.delete(np.delete(self.wins, 1 + index, axis=0), 1 + index, axis=1)
