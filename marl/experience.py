"""Off-policy collection: plays lanes with any policies, and keeps every seat's transitions for replay."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games.game import Array, Lanes, Policy, factors
from games.noise import Purpose
from marl.buffers import Batch, Parts, Replay
from marl.collect import Returns, check_finite, check_legal
from marl.decisions import Decisions, transition_parts


class Experience:
    """Plays lanes, which must have been reset, and pushes the transitions of every seat to a replay of its own.

    A transition spans from one decision of the seat to its `steps`-th next one, or to the end of its episode: see
    `marl.decisions.Decisions` for `reward` and `discount`. Rows of `replays[seat]` have the parts

        observation, next_observation  [*shape] of the space's dtype
        action                         [F] int64, a factor each; of a Box [D] float32
        reward, discount               float32
        legal, next_legal              [F, A] bool, A the most choices of a factor, where lanes tell what is legal

    Where an episode is merely cut short, next_observation is its final one. What would be legal there lanes do not
    tell: in games that do forbid something, decisions that are cut short are not learnt from.
    """

    def __init__(self, lanes: Lanes, capacity: int, gamma: float, steps: int = 1, device: str | torch.device = "cpu"):
        self.lanes, self.device, self.played = lanes, torch.device(device), 0
        self.returns = Returns(lanes.num_lanes, len(lanes.agents), device)
        parts = [decision_parts(lanes, seat) for seat in range(len(lanes.agents))]
        self.replays = [Replay(capacity, transition_parts(part), device) for part in parts]
        like = lanes.acting
        self.decisions = [Decisions(steps, gamma, lanes.num_lanes, part, like) for part in parts]

    def play(self, policies: Sequence[Policy], steps: int = 1) -> list[np.ndarray]:
        """Play so many steps of all lanes, seat i by policies[i], without memory; [M] places pushed to, for each seat.

        Raises FloatingPointError for observations that are not finite, ValueError where nothing is legal for who acts.
        """
        pushed: list[list[np.ndarray]] = [[] for _ in policies]
        for _ in range(steps):
            acting = self.lanes.acting
            actions = tuple(
                self._act(seat, policy, acting[:, seat], pushed[seat]) for seat, policy in enumerate(policies)
            )
            self._step(actions, pushed)
            self.played += 1
        return [np.concatenate(places) if places else np.zeros(0, np.int64) for places in pushed]

    def _act(self, seat: int, policy: Policy, acting: Array, pushed: list[np.ndarray]) -> Array:
        lanes, agent = self.lanes, self.lanes.agents[seat]
        observation, legal = lanes.observe(seat), lanes.legal(seat)
        check_finite(agent, observation, self.played)
        check_legal(agent, acting, legal, self.played)
        actions, _ = policy.act(observation, legal, None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))
        decision = {"observation": observation, "action": actions.reshape(lanes.num_lanes, -1)}
        if (legal is not None) != ("legal" in self.decisions[seat].parts):
            raise ValueError(
                f"lanes must always tell what is legal for {agent}, or never, but changed at {self.played}"
            )
        if legal is not None:
            decision["legal"] = stacked(legal)
        self._push(seat, self.decisions[seat].decide(acting, decision), pushed)
        return actions

    def _step(self, actions: tuple[Array, ...], pushed: list[list[np.ndarray]]) -> None:
        outcome = self.lanes.step(actions)
        self.returns.add(outcome.rewards, outcome.done)
        cut = outcome.truncated & ~outcome.terminated
        ended = outcome.terminated | cut | outcome.done[:, None]
        some = ended.any()
        for seat, decisions in enumerate(self.decisions):
            decisions.pay(outcome.rewards[:, seat])
            if some:
                finals = self._finals(seat, cut[:, seat])
                self._push(seat, decisions.end(ended[:, seat], ~cut[:, seat], finals), pushed[seat])

    def _finals(self, seat: int, cut: Array) -> dict[str, Array]:
        """What decisions lead to whose episodes are over, and what is forgotten where that is not known."""
        decisions = self.decisions[seat]
        xp, final = array_namespace(cut), {}
        final["observation"] = self.lanes.observe(seat)  # where nothing is to come any finite numbers will do
        if cut.any():
            final["observation"] = self.lanes.final_observations(seat)
            check_finite(self.lanes.agents[seat], final["observation"], self.played)
            if "legal" in decisions.parts:
                decisions.forget(cut)
        if "legal" in decisions.parts:
            final["legal"] = xp.ones_like(decisions.parts["legal"][0])
        return final

    def _push(self, seat: int, rows: Batch | None, pushed: list[np.ndarray]) -> None:
        if rows is not None:
            pushed.append(self.replays[seat].push(rows))

    def state_dict(self) -> dict[str, Any]:
        """The lanes' state among it."""
        return {
            "played": self.played,
            "lanes": self.lanes.state_dict(),
            "returns": self.returns.state_dict(),
            "replays": [replay.state_dict() for replay in self.replays],
            "decisions": [decisions.state_dict() for decisions in self.decisions],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.played = state["played"]
        self.lanes.load_state_dict(state["lanes"])
        self.returns.load_state_dict(state["returns"])
        for replay, saved in zip(self.replays, state["replays"], strict=True):
            replay.load_state_dict(saved)
        for decisions, saved in zip(self.decisions, state["decisions"], strict=True):
            decisions.load_state_dict(saved)


def decision_parts(lanes: Lanes, seat: int) -> Parts:
    """Parts of a seat's decisions. Raises ValueError for actions that are neither choices nor a Box's."""
    seen, space = lanes.observation_spaces[seat], lanes.action_spaces[seat]
    parts = {"observation": (tuple(seen.shape or ()), str(seen.dtype))}
    if isinstance(space, Box):
        return parts | {"action": (space.shape, str(space.dtype))}
    choices = factors(space)
    parts["action"] = ((len(choices),), "int64")
    return parts if lanes.legal(seat) is None else parts | {"legal": ((len(choices), max(choices)), "bool")}


def stacked(legal: tuple[Array, ...]) -> Array:
    """Masks [B, A_f], one a factor, as one [B, F, A]; nothing is legal beyond a factor's own choices.

    Rows without a legal choice, of seats that do not act, become all legal.
    """
    xp, width = array_namespace(*legal), max(mask.shape[1] for mask in legal)
    padded = []
    for mask in legal:
        mask = mask | ~xp.any(mask, axis=1, keepdims=True)
        beyond = xp.zeros_like(mask[:, :1])
        padded.append(xp.concat([mask] + [beyond] * (width - mask.shape[1]), axis=1))
    return xp.stack(padded, axis=1)
