"""Lanes in which everybody meets what the others play by and large, and what they are about to play."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from games.game import Array, Lanes, Legal, Outcome, Policy
from games.lanes import put_like, to_numpy
from games.noise import Purpose
from marl.collect import Returns

Watch = Callable[[int, Array, Legal, Array, np.ndarray], None]
"""Of a seat: observations [B, ...], what is legal, what its best response chooses, and in which lanes [B] it learns."""


class Anticipation:
    """Lanes in which, every episode, one seat learns, and the others anticipate; implements `games.game.Lanes`.

    Who learns is drawn uniformly, in every lane for itself, and plays as the learner chooses. Each of the others plays
    its best response with probability `eta` and its average policy otherwise, for the whole episode: together, the
    anticipatory dynamics of Heinrich & Silver [2016, section 3.2]. To the learner of a seat all other seats, and its
    own in the lanes where another one learns, are out of its hands: there it is neither alive nor acting. (Rewards are
    everybody's all the same; `returns` has those of the episodes in which a seat learns.)

    `averages` and `responses`, a policy a seat without memory, are to be set before the first step, and anew as these
    learn. `watch` is told of all that is decided.
    """

    averages: Sequence[Policy]
    responses: Sequence[Policy]

    def __init__(self, lanes: Lanes, eta: float, watch: Watch):
        self.lanes, self.eta, self.watch = lanes, eta, watch
        self.num_lanes, self.agents = lanes.num_lanes, lanes.agents
        self.observation_spaces, self.action_spaces = lanes.observation_spaces, lanes.action_spaces
        self.averages, self.responses = (), ()
        self.returns = Returns(lanes.num_lanes, len(lanes.agents))

    def reset(self, seed: int, *units: str) -> None:
        self.lanes.reset(seed, *units)
        self._learns, self._responds = self._drawn()

    def _drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """[B, N] each, for episodes that begin: who learns, and who plays a best response should another one learn."""
        seats = len(self.agents)
        uniforms = to_numpy(self.lanes.noise(Purpose.CAST, 1 + seats))
        learner = np.minimum((uniforms[:, :1] * seats).astype(np.int64), seats - 1)
        return np.arange(seats) == learner, uniforms[:, 1:] < self.eta

    def noise(self, purpose: int, columns: int) -> Array:
        return self.lanes.noise(purpose, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        outcome = self.lanes.step(tuple(self._played(seat, chosen) for seat, chosen in enumerate(actions)))
        done = to_numpy(outcome.done)
        self.returns.add(to_numpy(outcome.rewards), done, self._learns)
        if done.any():
            fresh = zip((self._learns, self._responds), self._drawn(), strict=True)
            self._learns, self._responds = (np.where(done[:, None], new, old) for old, new in fresh)
        return outcome

    def _played(self, seat: int, chosen: Array) -> Array:
        """[B] or [B, F] what a seat plays where its learner has chosen so."""
        lanes = self.lanes
        seen, legal = lanes.observe(seat), lanes.legal(seat)
        response, average = (
            # Nobody but one of them, or the learner, plays in a lane: they may draw by the same uniforms.
            policy.act(seen, legal, None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))[0]
            for policy in (self.responses[seat], self.averages[seat])
        )
        learns = self._learns[:, seat]
        self.watch(seat, seen, legal, response, learns & to_numpy(lanes.acting[:, seat]))
        xp, shape = array_namespace(chosen), (-1, *(1,) * (chosen.ndim - 1))
        learning, responding = (put_like(mask.reshape(shape), chosen) for mask in (learns, self._responds[:, seat]))
        return xp.where(learning, chosen, xp.where(responding, response, average))

    def observe(self, seat: int) -> Array:
        return self.lanes.observe(seat)

    def legal(self, seat: int) -> Legal:
        return self.lanes.legal(seat)

    @property
    def acting(self) -> Array:
        acting = self.lanes.acting
        return acting & put_like(self._learns, acting)

    @property
    def alive(self) -> Array:
        alive = self.lanes.alive
        return alive & put_like(self._learns, alive)

    def final_observations(self, seat: int) -> Array:
        return self.lanes.final_observations(seat)

    def state_dict(self) -> dict[str, Any]:
        """Without the policies."""
        roles = {"learns": self._learns.copy(), "responds": self._responds.copy()}
        return {"lanes": self.lanes.state_dict(), "returns": self.returns.state_dict(), **roles}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lanes.load_state_dict(state["lanes"])
        self.returns.load_state_dict(state["returns"])
        self._learns, self._responds = (np.array(state[name], bool) for name in ("learns", "responds"))
