"""What became of decisions: the rewards until the seat's n-th next one, and what it saw there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from games.game import Array
from games.lanes import put_like, to_numpy
from marl.buffers import Batch, Parts

AHEAD = {"observation": "next_observation", "legal": "next_legal"}
"""Parts of the decision that a transition leads to, and their names there."""


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

    Arrays are of the kind of `like`, which tells where the lanes live.
    """

    def __init__(self, steps: int, gamma: float, lanes: int, parts: Parts, like: Array):
        def zeros(shape: tuple[int, ...], kind: str) -> Array:
            return put_like(np.zeros((steps, lanes, *shape), kind), like)

        self.steps, self.gamma, self._xp = steps, gamma, array_namespace(like)
        self.parts = {name: zeros(shape, kind) for name, (shape, kind) in parts.items()}
        self.reward, self.discount, self.open = zeros((), "float32"), zeros((), "float32"), zeros((), "bool")
        self.slot = put_like(np.zeros(lanes, np.int64), like)  # [B] where the next decision goes: the oldest lies there

    def decide(self, acting: Array, decision: Batch) -> Batch | None:
        """Take in the decisions [B, ...] of lanes where the seat is acting [B]; rows of those now known."""
        lanes = self._xp.nonzero(acting)[0]
        slots = self.slot[lanes]
        known = self.open[slots, lanes]
        rows = None
        if known.any():
            over = lanes[known]
            rows = self._rows(slots[known], over, {name: decision[name][over] for name in AHEAD if name in decision})
        for name, part in self.parts.items():
            part[slots, lanes] = decision[name][lanes]
        self.reward[slots, lanes], self.discount[slots, lanes], self.open[slots, lanes] = 0, 1, True
        self.slot[lanes] = (slots + 1) % self.steps
        return rows

    def pay(self, rewards: Array) -> None:
        """A step was played and brought rewards [B]."""
        self.reward += self.discount * rewards
        self.discount *= self.gamma

    def end(self, ended: Array, terminated: Array, finals: Batch) -> Batch | None:
        """Episodes are over where ended [B], by the rules where terminated [B], else cut short; rows of what was open.

        `finals` [B, ...] are the AHEAD parts of the last states.
        """
        slots, lanes = self._xp.nonzero(self.open & ended)
        if not len(lanes):
            return None
        self.discount[slots, lanes] *= self._xp.astype(~terminated[lanes], self._xp.float32)
        rows = self._rows(slots, lanes, {name: part[lanes] for name, part in finals.items()})
        self.open[slots, lanes] = False
        return rows

    def forget(self, lanes: Array) -> None:
        """Drop what is open in lanes of this mask [B]."""
        self.open &= ~lanes

    def _rows(self, slots: Array, lanes: Array, ahead: Batch) -> dict[str, Array]:
        """Rows of the decisions in slots [M] of lanes [M]."""
        rows = {name: part[slots, lanes] for name, part in self.parts.items()}
        rows |= {"reward": self.reward[slots, lanes], "discount": self.discount[slots, lanes]}
        return rows | {AHEAD[name]: part for name, part in ahead.items()}

    def state_dict(self) -> dict[str, Any]:
        return {name: np.array(to_numpy(part)) for name, part in self._arrays().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, part in self._arrays().items():
            part[:] = put_like(np.asarray(state[name]), part)

    def _arrays(self) -> dict[str, Array]:
        own = {name: getattr(self, name) for name in ("reward", "discount", "open", "slot")}
        return {f"decision/{name}": part for name, part in self.parts.items()} | own
