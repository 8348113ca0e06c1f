"""What became of decisions: the rewards until the seat's n-th next one, and what it saw there."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from marl.buffers import Parts, record

AHEAD = {"observation": "next_observation", "legal": "next_legal"}
"""Parts of the decision that a transition leads to, and their names there."""

Seen = Mapping[str, np.ndarray]
"""[B, ...] parts by name."""


def transition_parts(decision: Parts) -> Parts:
    """Parts of the rows that decisions of these parts turn into."""
    outcome: Parts = {"reward": ((), "float32"), "discount": ((), "float32")}
    ahead = {later: decision[name] for name, later in AHEAD.items() if name in decision}
    return {**decision, **outcome, **ahead}


class Decisions:
    """The last `steps` decisions of one seat in each of B lanes, until what followed them is known.

    A decision at step t that is followed at t + m by the seat's `steps`-th next one becomes a row with

        reward = sum_{k < m} gamma^k r_{t+k},  discount = gamma^m,

    to which a learner adds discount * (value of the next observation) [Sutton & Barto 2018, section 7.1]. Where the
    episode ended before that, m goes up to its end, and discount is 0 unless it was merely cut short. Discounting is
    by steps of the lanes: those in which others move count.

    Rows are structured arrays of the `record` of `transition_parts(parts)`, on the CPU.
    """

    def __init__(self, steps: int, gamma: float, lanes: int, parts: Parts):
        self.steps, self.gamma, self.names = steps, gamma, tuple(parts)
        self.window = np.zeros((steps, lanes), record(transition_parts(parts)))
        self.open = np.zeros((steps, lanes), bool)
        self.slot = np.zeros(lanes, np.int64)  # where the next decision goes: the oldest lies there

    def decide(self, acting: np.ndarray, decision: Seen) -> np.ndarray:
        """Take in the decisions of lanes where the seat is acting [B]; rows of those now known."""
        lanes = np.flatnonzero(acting)
        slots = self.slot[lanes]
        known = self.open[slots, lanes]
        over = lanes[known]
        rows = self._rows(slots[known], over, decision)
        for name in self.names:
            self.window[name][slots, lanes] = decision[name][lanes]
        self.window["reward"][slots, lanes], self.window["discount"][slots, lanes] = 0, 1
        self.open[slots, lanes] = True
        self.slot[lanes] = (slots + 1) % self.steps
        return rows

    def pay(self, rewards: np.ndarray) -> None:
        """A step was played and brought rewards [B]."""
        reward, discount = self.window["reward"], self.window["discount"]
        reward += discount * rewards
        discount *= self.gamma

    def end(self, ended: np.ndarray, terminated: np.ndarray, finals: Seen) -> np.ndarray:
        """Episodes are over where ended [B], by the rules where terminated [B], else cut short; rows of what was open.

        `finals` are the AHEAD parts of the last states.
        """
        slots, lanes = np.nonzero(self.open & ended)
        rows = self._rows(slots, lanes, finals)
        rows["discount"] *= ~terminated[lanes]
        self.open[slots, lanes] = False
        return rows

    def forget(self, lanes: np.ndarray) -> None:
        """Drop what is open in lanes of this mask [B]."""
        self.open &= ~lanes

    def _rows(self, slots: np.ndarray, lanes: np.ndarray, ahead: Seen) -> np.ndarray:
        """Rows of the decisions in slots [M] of lanes [M], which led to what is `ahead` of all lanes."""
        whole = self.window.view(np.dtype((np.void, self.window.itemsize)))  # copied as it is, not part by part
        rows = whole[slots, lanes].view(self.window.dtype)
        for name, later in AHEAD.items():
            if name in self.names:
                rows[later] = ahead[name][lanes]
        return rows

    def state_dict(self) -> dict[str, Any]:
        names = self.window.dtype.names or ()
        return {"open": self.open.copy(), "slot": self.slot.copy()} | {
            f"window/{name}": self.window[name].copy() for name in names
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.open[:], self.slot[:] = state["open"], state["slot"]
        for name in self.window.dtype.names or ():
            self.window[name] = state[f"window/{name}"]
