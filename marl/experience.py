"""Off-policy collection: plays lanes with any policies, and keeps every seat's transitions for replay."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from games.game import Array, Lanes, Policy, factors
from games.lanes import to_numpy
from games.noise import Purpose
from games.numbers import whole
from marl.buffers import Parts, Replay
from marl.collect import Returns, check_finite, check_legal, check_outcome, check_seen
from marl.decisions import Decisions, transition_parts


class Experience:
    """Plays lanes, which must have been reset, and pushes the transitions of every seat to a replay of its own.

    A transition spans from one decision of the seat to its `steps`-th next one, or to the end of its episode: see
    `marl.decisions.Decisions` for `reward` and `discount`. Rows of `replays[seat]`, on the device, have the parts

        observation, next_observation  [*shape] of the space's dtype
        action                         [F] int64, a factor each; of a Box [D] float32
        reward, discount               float32
        legal, next_legal              [F, A] bool, A the most choices of a factor, where lanes tell what is legal

    Where an episode is merely cut short, next_observation is its final one. What would be legal there lanes do not
    tell: in games that do forbid something, decisions that are cut short are not learnt from.
    """

    def __init__(self, lanes: Lanes, capacity: int, gamma: float, steps: int = 1, device: str | torch.device = "cpu"):
        self.lanes, self.device, self.played = lanes, torch.device(device), 0
        self._begun = False
        self.returns = Returns(lanes.num_lanes, len(lanes.agents), device)
        parts = [decision_parts(lanes, seat) for seat in range(len(lanes.agents))]
        self.replays = [Replay(capacity, transition_parts(part), device) for part in parts]
        self.decisions = [Decisions(steps, gamma, lanes.num_lanes, part) for part in parts]

    def play(self, policies: Sequence[Policy], steps: int = 1) -> list[np.ndarray]:
        """Play so many steps of all lanes, seat i by policies[i], without memory; [M] places pushed to, for each seat.

        Raises FloatingPointError for observations that are not finite, ValueError where nothing is legal for who acts,
        and where the lanes do not keep to their spaces from the first.
        """
        if not self._begun:
            check_seen(self.lanes)
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
        lanes, agent, decisions = self.lanes, self.lanes.agents[seat], self.decisions[seat]
        observation, legal = lanes.observe(seat), lanes.legal(seat)
        check_finite(agent, observation, self.played)
        check_legal(agent, acting, legal, self.played)
        if (legal is not None) != ("legal" in decisions.names):
            raise ValueError(
                f"lanes must always tell what is legal for {agent}, or never, but changed at {self.played}"
            )
        actions, _ = policy.act(observation, legal, None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))
        seen = {"observation": to_numpy(observation), "action": to_numpy(actions).reshape(lanes.num_lanes, -1)}
        if legal is not None:
            seen["legal"] = stacked(legal)
        self._push(seat, decisions.decide(to_numpy(acting), seen), pushed)
        return actions

    def _step(self, actions: tuple[Array, ...], pushed: list[list[np.ndarray]]) -> None:
        outcome = self.lanes.step(actions)
        if not self._begun:
            check_outcome(self.lanes, outcome)
            self._begun = True
        self.returns.add(outcome.rewards, outcome.done)
        rewards, terminated, truncated, done = map(to_numpy, outcome)
        cut = truncated & ~terminated
        ended = terminated | cut | done[:, None]
        some = ended.any()
        for seat, decisions in enumerate(self.decisions):
            decisions.pay(rewards[:, seat])
            if some:
                finals = self._finals(seat, cut[:, seat])
                self._push(seat, decisions.end(ended[:, seat], ~cut[:, seat], finals), pushed[seat])

    def _finals(self, seat: int, cut: np.ndarray) -> dict[str, np.ndarray]:
        """What decisions lead to whose episodes are over; what are cut short is forgotten where it is not known."""
        decisions, lanes = self.decisions[seat], self.lanes
        any_cut = cut.any()  # where nothing is to come any finite numbers will do
        final = lanes.final_observations(seat) if any_cut else lanes.observe(seat)
        check_finite(lanes.agents[seat], final, self.played)
        if "legal" not in decisions.names:
            return {"observation": to_numpy(final)}
        if any_cut:
            decisions.forget(cut)
        return {"observation": to_numpy(final), "legal": np.ones(decisions.window["legal"].shape[1:], bool)}

    def _push(self, seat: int, rows: np.ndarray, pushed: list[np.ndarray]) -> None:
        if len(rows):
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
        self.played = whole("played", state["played"], 0)
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


def stacked(legal: tuple[Array, ...]) -> np.ndarray:
    """Masks [B, A_f], one a factor, as one [B, F, A]; nothing is legal beyond a factor's own choices.

    Rows without a legal choice, of seats that do not act, become all legal.
    """
    masks = [to_numpy(mask) for mask in legal]
    rows = np.zeros((len(masks[0]), len(masks), max(mask.shape[1] for mask in masks)), bool)
    for factor, mask in enumerate(masks):
        rows[:, factor, : mask.shape[1]] = mask | ~mask.any(axis=1, keepdims=True)
    return rows
