"""What an expert did in lanes, decision by decision."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from games.game import Array, Lanes, Memory, Policy
from games.lanes import put_lanes, put_like, tree_map
from games.noise import Purpose
from marl.collect import Returns, check_finite, check_legal
from marl.policies import padded, tensor


class Demonstrations(NamedTuple):
    """M decisions, each with what was seen and legal then."""

    observations: Tensor  # [M, D]
    actions: Tensor  # [F, M] int64 choices, or [D, M] float32
    allowed: Tensor | None  # [F, A, M] as `marl.policies.padded` makes it; None where everything was
    source: Tensor  # [M] int64 lane, episode or player it is from

    def rows(self, chosen: Tensor) -> "Demonstrations":
        """Some of them, by their numbers, or where a mask is True."""
        index = chosen.nonzero()[:, 0] if chosen.dtype == torch.bool else chosen
        allowed = None if self.allowed is None else self.allowed.index_select(-1, index)
        return Demonstrations(
            self.observations.index_select(0, index),
            self.actions.index_select(-1, index),
            allowed,
            self.source.index_select(0, index),
        )

    def split(self, share: float) -> tuple["Demonstrations", "Demonstrations"]:
        """Those to learn from, and those of the last `share` of the sources, rounded up, to be held out."""
        sources = self.source.unique()
        first = len(sources) - math.ceil(share * len(sources))
        if first == 0:
            raise ValueError(f"holding out {share:g} of {len(sources)} sources leaves none to learn from: take more")
        known = self.source < sources[first] if first < len(sources) else torch.ones_like(self.source, dtype=torch.bool)
        return self.rows(known), self.rows(~known)


def demonstrate(
    lanes: Lanes, experts: Sequence[Policy], steps: int, device: str | torch.device = "cpu"
) -> tuple[list[Demonstrations], Returns]:
    """What experts, one a seat of the lanes, do in so many steps of each lane; sources are the lanes.

    Lanes must have been reset. Raises FloatingPointError for observations that are not finite, ValueError where an
    expert does not fit its seat, or does what is not legal.
    """
    players = [_Player(lanes, seat, expert, torch.device(device)) for seat, expert in enumerate(experts)]
    returns = Returns(lanes.num_lanes, len(lanes.agents), device)
    for step in range(steps):
        outcome = lanes.step(tuple(player.act(step) for player in players))
        returns.add(outcome.rewards, outcome.done)
        for player in players:
            player.restart(outcome.done)
    return [player.demonstrations() for player in players], returns


class _Player:
    """An expert in one seat of the lanes, and what it did there."""

    def __init__(self, lanes: Lanes, seat: int, expert: Policy, device: torch.device):
        self.lanes, self.seat, self.expert, self.device = lanes, seat, expert, device
        self.agent, self.space = lanes.agents[seat], lanes.action_spaces[seat]
        self.memory = self._fresh()
        self.kept: list[Demonstrations] = []

    def _fresh(self) -> Memory:
        return put_like(self.expert.start(self.lanes.num_lanes), self.lanes.acting)

    def act(self, step: int) -> Array:
        lanes, seat, expert = self.lanes, self.seat, self.expert
        observation, legal, acting = lanes.observe(seat), lanes.legal(seat), lanes.acting[:, seat]
        check_finite(self.agent, observation, step)
        check_legal(self.agent, acting, legal, step)
        try:
            noise = lanes.noise(Purpose.SEAT + seat, expert.noise_size)
            actions, self.memory = expert.act(observation, legal, self.memory, noise)
        except (ValueError, RuntimeError, IndexError) as error:
            raise ValueError(f"the expert {expert!r} cannot play {self.agent}: {error}") from error
        wanted = (lanes.num_lanes, *(self.space.shape or ()))
        if tuple(actions.shape) != wanted:
            raise ValueError(
                f"the expert {expert!r} should give {self.agent} actions {wanted}, got {tuple(actions.shape)}"
            )
        allowed = None
        if legal is not None:
            allowed = padded(legal, max(mask.shape[1] for mask in legal), self.device)
        taken = tensor(actions, self.device).reshape(lanes.num_lanes, -1).t()
        seen = tensor(observation, self.device).to(torch.float32, copy=True)
        decisions = Demonstrations(seen, taken, allowed, torch.arange(lanes.num_lanes, device=self.device))
        self.kept.append(decisions.rows(tensor(acting, self.device)))
        return actions

    def restart(self, done: Array) -> None:
        """Episodes are over where done [B]."""
        if self.memory is not None and done.any():
            self.memory = tree_map(lambda new, old: put_lanes(done, new, old), self._fresh(), self.memory)

    def demonstrations(self) -> Demonstrations:
        observations, actions, allowed, source = zip(*self.kept, strict=True)
        masks = None if allowed[0] is None else torch.cat(allowed, -1)
        return Demonstrations(torch.cat(observations), torch.cat(actions, -1), masks, torch.cat(source))
