"""Rollouts: what learners see of the lanes, one buffer a seat, written in place over and over."""

from collections.abc import Sequence

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor

from games.game import Array, Lanes, Outcome, factors
from games.noise import Purpose
from marl.networks import Layers, choice_logits
from marl.policies import draw, like, masked, padded, tensor


class Rollout:
    """T steps of B lanes as one seat saw them; T + 1 observations.

    `ended` is where the seat's episode was over, `terminated` where nothing was to come any more; `finals` holds
    (step, lanes, observations) of the states where it was truncated: what the critic bootstraps from there.
    """

    def __init__(self, horizon: int, lanes: int, features: int, choices: tuple[int, ...], device: torch.device):
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        steps = (horizon, lanes)
        self.choices, self.width, self.device = choices, max(choices), device
        self.observations = zeros(horizon + 1, lanes, features)
        self.actions = zeros(horizon, len(choices), lanes, dtype=torch.int64)
        self.log_probs, self.rewards = zeros(*steps), zeros(*steps)
        self.acting, self.alive = zeros(*steps, dtype=torch.bool), zeros(*steps, dtype=torch.bool)
        self.terminated, self.ended = zeros(*steps, dtype=torch.bool), zeros(*steps, dtype=torch.bool)
        self.allowed: Tensor | None = None  # [T, F, A, B], made when the lanes first forbid something
        self.finals: list[tuple[int, Tensor, Tensor]] = []

    def act(self, step: int, layers: Layers, legal: tuple[Array, ...] | None, noise: Array) -> Tensor:
        """Draw and record the actions [F, B] of one step, whose observations are already written."""
        logits = choice_logits(layers, self.observations[step], len(self.choices))
        if legal is not None:
            allowed = padded(legal, self.width, self.device)
            if self.allowed is None:
                self.allowed = torch.zeros((len(self.rewards), *allowed.shape), dtype=torch.bool, device=self.device)
            self.allowed[step] = allowed
            logits = masked(logits, allowed)
        probabilities = logits.softmax(1)
        actions = draw(probabilities, tensor(noise, self.device).t())
        self.actions[step] = actions
        self.log_probs[step] = probabilities.gather(1, actions[:, None]).log().sum((0, 1))
        return actions


class Collector:
    """Plays lanes `horizon` steps at a time and records a `Rollout` for every one of their seats."""

    def __init__(self, lanes: Lanes, horizon: int, device: str | torch.device = "cpu"):
        self.lanes, self.horizon, self.device = lanes, horizon, torch.device(device)
        self.choices = [factors(space) for space in lanes.action_spaces]
        self.rollouts = [
            Rollout(horizon, lanes.num_lanes, _features(space), choices, self.device)
            for space, choices in zip(lanes.observation_spaces, self.choices, strict=True)
        ]
        self.returns = torch.zeros(lanes.num_lanes, len(lanes.agents), device=self.device)  # of the episodes under way
        self.last_returns = torch.full_like(self.returns, torch.nan)  # of each lane's last whole episode

    def collect(self, layers: Sequence[Layers]) -> list[Rollout]:
        """Play on, seat i with the policy layers[i]; the rollouts are overwritten next time."""
        for rollout in self.rollouts:
            rollout.finals.clear()
        self._observe(0)
        for step in range(self.horizon):
            acting, alive = self.lanes.acting, self.lanes.alive
            for seat, rollout in enumerate(self.rollouts):  # now: lanes may change these arrays as they step
                write(rollout.acting[step], acting[:, seat])
                write(rollout.alive[step], alive[:, seat])
            actions = tuple(self._act(step, seat, seat_layers) for seat, seat_layers in enumerate(layers))
            self._record(step, self.lanes.step(actions))
            self._observe(step + 1)
        return self.rollouts

    def mean_returns(self) -> tuple[Tensor, Tensor]:
        """[n] mean over lanes of the return of each one's last whole episode, and its standard error.

        nan before the first episode, and the second. (A mean over the episodes that happened to end in one rollout
        would favour long ones in some, short in others.)
        """
        mean, whole = self.last_returns.nanmean(dim=0), (~self.last_returns.isnan()).sum(dim=0)
        squares = (self.last_returns - mean).square().nansum(dim=0)
        return mean, (squares / (whole - 1) / whole).sqrt()

    def _act(self, step: int, seat: int, layers: Layers) -> Array:
        choices = self.choices[seat]
        noise = self.lanes.noise(Purpose.SEAT + seat, len(choices))
        actions = self.rollouts[seat].act(step, layers, self.lanes.legal(seat), noise)
        return like(actions.t() if self.lanes.action_spaces[seat].shape else actions[0], noise)

    def _observe(self, step: int) -> None:
        for seat, rollout in enumerate(self.rollouts):
            write(rollout.observations[step], self.lanes.observe(seat))

    def _record(self, step: int, outcome: Outcome) -> None:
        done = outcome.done
        cut = outcome.truncated & ~outcome.terminated
        ended = outcome.terminated | cut | done[:, None]
        for seat, rollout in enumerate(self.rollouts):
            write(rollout.rewards[step], outcome.rewards[:, seat])
            write(rollout.terminated[step], (ended & ~cut)[:, seat])
            write(rollout.ended[step], ended[:, seat])
        if cut.any():
            self._bootstrap(step, cut)
        self.returns += tensor(outcome.rewards, self.device)
        if done.any():
            over = tensor(done, self.device)[:, None]
            self.last_returns = torch.where(over, self.returns, self.last_returns)
            self.returns = torch.where(over, 0.0, self.returns)

    def _bootstrap(self, step: int, cut: Array) -> None:
        for seat, rollout in enumerate(self.rollouts):
            lanes = tensor(cut[:, seat], self.device).nonzero()[:, 0]
            if len(lanes):
                final = tensor(self.lanes.final_observations(seat), self.device)
                rollout.finals.append((step, lanes, final[lanes]))


def write(buffer: Tensor, array: Array) -> None:
    """Copy NumPy's or torch's array into a tensor in place."""
    if isinstance(array, np.ndarray) and buffer.device.type == "cpu":
        np.copyto(buffer.numpy(), array, casting="same_kind")
    else:
        buffer.copy_(tensor(array, buffer.device))


def _features(space: Space) -> int:
    if space.shape is None or len(space.shape) != 1:
        raise ValueError(f"observations must be rows of features, Box((D,)); got {space}: flatten them first")
    return space.shape[0]
