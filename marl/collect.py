"""Rollouts: what learners see of the lanes, one buffer a seat, written in place over and over."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Space
from torch import Tensor

from games.game import Array, Lanes, Legal, Outcome, factors
from games.lanes import to_numpy
from games.noise import Purpose
from marl.heads import Head, head_of
from marl.policies import like, padded, tensor

Actor = Callable[["Rollout", int], Tensor]
"""Outputs [O, B] of a policy network in one step of a rollout, whose observations, and ends before, are written."""


class Returns:
    """Undiscounted returns of every seat, of the episodes under way and of each lane's last whole one."""

    def __init__(self, lanes: int, seats: int, device: str | torch.device = "cpu"):
        self.current = torch.zeros(lanes, seats, device=device)
        self.last = torch.full_like(self.current, torch.nan)

    def add(self, rewards: Array, done: Array, counted: Array | None = None) -> None:
        """A step brought rewards [B, N], and ended the episodes of lanes done [B]; they count for seats counted [B, N].

        For all of them without that.
        """
        device = self.current.device
        self.current += tensor(rewards, device)
        if done.any():
            over = tensor(done, device)[:, None]
            kept = over if counted is None else over & tensor(counted, device)
            self.last = torch.where(kept, self.current, self.last)
            self.current = torch.where(over, 0.0, self.current)

    def mean(self) -> tuple[Tensor, Tensor]:
        """[N] mean over lanes of the return of each one's last whole episode, and its standard error.

        nan before the first episode, and the second. (A mean over the episodes that happened to end in a few steps
        would favour long ones in some, short in others.)
        """
        mean, whole = self.last.nanmean(dim=0), (~self.last.isnan()).sum(dim=0)
        squares = (self.last - mean).square().nansum(dim=0)
        return mean, (squares / (whole - 1) / whole).sqrt()

    def state_dict(self) -> dict[str, Any]:
        return {"current": self.current.clone(), "last": self.last.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.current.copy_(torch.as_tensor(state["current"]))
        self.last.copy_(torch.as_tensor(state["last"]))


class Rollout:
    """T steps of B lanes as one seat saw them; T + 1 observations.

    `ended` is where the seat's episode was over, `terminated` where nothing was to come any more; `finals` holds
    (step, lanes, observations) of the states where it was truncated: what the critic, by its `view`, bootstraps from.
    """

    def __init__(self, horizon: int, lanes: int, space: Box, head: Head, device: torch.device):
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        steps = (horizon, lanes)
        self.head, self.device = head, device
        self.observations = zeros(horizon + 1, lanes, *space.shape)
        self.actions = zeros(horizon, head.rows, lanes, dtype=head.dtype)
        self.log_probs, self.rewards = zeros(*steps), zeros(*steps)
        self.acting, self.alive = zeros(*steps, dtype=torch.bool), zeros(*steps, dtype=torch.bool)
        self.terminated, self.ended = zeros(*steps, dtype=torch.bool), zeros(*steps, dtype=torch.bool)
        self.allowed: Tensor | None = None  # [T, F, A, B], made when the lanes first forbid something
        self.finals: list[tuple[int, Tensor, Tensor]] = []

    def act(self, step: int, outputs: Tensor, legal: Legal, noise: Array) -> Tensor:
        """Draw and record the actions [R, B] of one step."""
        allowed = None
        if legal is not None:
            allowed = padded(legal, self.head.width, self.device)
            if self.allowed is None:
                self.allowed = torch.zeros((len(self.rewards), *allowed.shape), dtype=torch.bool, device=self.device)
            self.allowed[step] = allowed
        self.actions[step], self.log_probs[step] = drawn = self.head.draw(
            outputs, allowed, tensor(noise, self.device).t()
        )
        return drawn.actions

    def masks(self) -> Tensor:
        """[T, F, A, B] what was allowed: everything, where nothing was ever forbidden."""
        if self.allowed is not None:
            return self.allowed
        steps, factors, lanes = self.actions.shape
        return torch.ones((steps, factors, self.head.width, lanes), dtype=torch.bool, device=self.device)


class Collector:
    """Plays lanes `horizon` steps at a time and records a `Rollout` for every one of their seats.

    `views[seat]` are the seats whose observations its critic sees side by side, by default its own; `heads` makes the
    distributions over an action space.

    Raises ValueError for spaces that policy gradients cannot handle.
    """

    def __init__(
        self,
        lanes: Lanes,
        horizon: int,
        device: str | torch.device = "cpu",
        views: Sequence[Sequence[int]] | None = None,
        heads: Callable[[Space], Head] = head_of,
    ):
        self.lanes, self.horizon, self.device, self.played = lanes, horizon, torch.device(device), 0
        self._begun = False
        self.views = [(seat,) for seat in range(len(lanes.agents))] if views is None else views
        self.rollouts = [
            Rollout(horizon, lanes.num_lanes, _seen(space), heads(actions), self.device)
            for space, actions in zip(lanes.observation_spaces, lanes.action_spaces, strict=True)
        ]
        self.returns = Returns(lanes.num_lanes, len(lanes.agents), self.device)

    def collect(self, actors: Sequence[Actor]) -> list[Rollout]:
        """Play on, seat i by actors[i]; the rollouts are overwritten next time.

        Raises FloatingPointError for observations that are not finite, ValueError where nothing is legal for who acts,
        and where the lanes do not keep to their spaces from the first.
        """
        if not self._begun:
            check_seen(self.lanes)
        for rollout in self.rollouts:
            rollout.finals.clear()
        self._observe(0)
        for step in range(self.horizon):
            acting, alive = self.lanes.acting, self.lanes.alive
            for seat, rollout in enumerate(self.rollouts):  # now: lanes may change these arrays as they step
                write(rollout.acting, step, acting[:, seat])
                write(rollout.alive, step, alive[:, seat])
            actions = tuple(self._act(step, seat, actor) for seat, actor in enumerate(actors))
            self._record(step, self.lanes.step(actions))
            self.played += 1
            self._observe(step + 1)
        return self.rollouts

    def critic_observations(self, seat: int) -> Tensor:
        """[T + 1, B, ...] what the seat's critic sees of the last rollout."""
        return _side_by_side([self.rollouts[other].observations for other in self.views[seat]])

    def _act(self, step: int, seat: int, actor: Actor) -> Array:
        rollout, legal = self.rollouts[seat], self.lanes.legal(seat)
        noise = self.lanes.noise(Purpose.SEAT + seat, rollout.head.rows)
        check_legal(self.lanes.agents[seat], self.lanes.acting[:, seat], legal, self.played)
        actions = rollout.act(step, actor(rollout, step), legal, noise)
        return like(rollout.head.played(actions), noise)

    def _observe(self, step: int) -> None:
        for seat, rollout in enumerate(self.rollouts):
            write(rollout.observations, step, self.lanes.observe(seat))
            check_finite(self.lanes.agents[seat], rollout.observations[step], self.played)

    def _record(self, step: int, outcome: Outcome) -> None:
        if not self._begun:
            check_outcome(self.lanes, outcome)
            self._begun = True
        done = outcome.done
        cut = outcome.truncated & ~outcome.terminated
        ended = outcome.terminated | cut | done[:, None]
        for seat, rollout in enumerate(self.rollouts):
            write(rollout.rewards, step, outcome.rewards[:, seat])
            write(rollout.terminated, step, (ended & ~cut)[:, seat])
            write(rollout.ended, step, ended[:, seat])
        if cut.any():
            self._bootstrap(step, cut)
        self.returns.add(outcome.rewards, done)

    def _bootstrap(self, step: int, cut: Array) -> None:
        for seat, rollout in enumerate(self.rollouts):
            lanes = tensor(cut[:, seat], self.device).nonzero()[:, 0]
            if len(lanes):
                seen = [tensor(self.lanes.final_observations(other), self.device) for other in self.views[seat]]
                rollout.finals.append((step, lanes, _side_by_side([final[lanes] for final in seen])))


def write(buffer: Tensor, step: int, array: Array) -> None:
    """Copy NumPy's or torch's array into one step of a tensor."""
    if isinstance(array, np.ndarray) and buffer.device.type == "cpu":
        np.copyto(buffer.numpy()[step], array, casting="same_kind")
    else:
        buffer[step].copy_(tensor(array, buffer.device))


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), -1)


def check_seen(lanes: Lanes) -> None:
    """Raises ValueError naming the agent whose observations or masks are not of its spaces' shapes and dtypes.

    Observations may be of other dtypes of the same kind of numbers, or a narrower one: whole ones for floats, say.
    """
    for seat, agent in enumerate(lanes.agents):
        seen, acts, legal = lanes.observation_spaces[seat], lanes.action_spaces[seat], lanes.legal(seat)
        observations = to_numpy(lanes.observe(seat))
        if observations.shape != (lanes.num_lanes, *(seen.shape or ())) or not _fits(observations, seen.dtype):
            raise ValueError(
                f"observations of {agent} must be [{lanes.num_lanes} lanes] of {seen}, got {_kind(observations)}"
            )
        wanted = [] if isinstance(acts, Box) else [f"{(lanes.num_lanes, choices)} of bool" for choices in factors(acts)]
        got = wanted if legal is None else [_kind(to_numpy(mask)) for mask in legal]
        if got != wanted or legal == ():
            raise ValueError(
                f"masks of what is legal for {agent} must be {' and '.join(wanted) or 'None'} for {acts}, got "
                f"{' and '.join(got)}"
            )


def check_outcome(lanes: Lanes, outcome: Outcome) -> None:
    """Raises ValueError naming the part of a step's outcome that is not of its shape, or no numbers, or flags."""
    everyone = (lanes.num_lanes, len(lanes.agents))
    shapes = Outcome(everyone, everyone, everyone, everyone[:1])
    for name, part, shape in zip(Outcome._fields, map(to_numpy, outcome), shapes, strict=True):
        dtype = np.dtype(np.float32 if name == "rewards" else bool)
        if part.shape != shape or not _fits(part, dtype):
            raise ValueError(f"{name} of a step must be {shape} of {dtype}, got {_kind(part)}")


def check_finite(agent: str, observations: Array, step: int) -> None:
    """Raises FloatingPointError naming the first lane whose observations [B, ...] are not finite numbers."""
    if math.isfinite(observations.sum()):  # which needs no other array, but may overflow
        return
    xp = array_namespace(observations)
    wrong = ~xp.isfinite(observations).reshape(len(observations), -1).all(1)
    if wrong.any():
        lane = int(xp.nonzero(wrong)[0][0])
        raise FloatingPointError(
            f"{agent} observes {observations[lane]} in lane {lane} at step {step}: observations must be finite"
        )


def check_legal(agent: str, acting: Array, legal: Legal, step: int) -> None:
    """Raises ValueError naming the first lane where the agent is acting [B] and has no legal choice."""
    for factor, mask in enumerate(legal or ()):
        stuck = acting & ~mask.any(1)
        if stuck.any():
            lane = int(array_namespace(stuck).nonzero(stuck)[0][0])
            raise ValueError(
                f"{agent} is to act in lane {lane} at step {step}, but has no legal choice for factor {factor} of its "
                "action: a game has to leave it one"
            )


def _fits(array: np.ndarray, dtype: Any) -> bool:
    return np.can_cast(array.dtype, dtype, "same_kind")


def _kind(array: np.ndarray) -> str:
    return f"{array.shape} of {array.dtype}"


def _seen(space: Space) -> Box:
    if not isinstance(space, Box):
        raise ValueError(
            f"observations must be rows of features, Box((D,)), or pictures; got {space}: flatten them first"
        )
    return space
