"""Policies of Stable-Baselines3 as policies of ours."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from sb3_contrib.ars.policies import ARSPolicy
from stable_baselines3.common.policies import BaseModel
from torch import Tensor

from games.game import Array, Legal, Memory, factors
from marl.gaussian import normal_draws
from marl.networks import FORBIDDEN
from marl.policies import aligned, draw, like, masked, padded, tensor
from marl.sb3.build import Blueprint, network


class SB3Policy:
    """Plays a network that an algorithm of Stable-Baselines3 trained. Implements `games.game.Policy`.

    `tensors` are the network's `state_dict()`. Choices are drawn from its probabilities, forbidden ones having exactly
    0 and the others the rest, whether or not the algorithm knew of masks; `greedy` takes the likeliest legal choice of
    each factor, or the mean action. (DQN, QRDQN, ARS, TD3 and DDPG have no probabilities, and are greedy; so is gSDE,
    whose noise is no part of the policy.) Recurrent networks keep the hidden and the cell state of their actor.

    Raises ValueError for weights that do not fit the blueprint.
    """

    def __init__(self, plan: Blueprint, tensors: Mapping[str, Tensor], greedy: bool = True):
        self.plan, self.network = plan, network(plan, {name: part.detach() for name, part in tensors.items()})
        space = plan.action_space
        self.choices = None if isinstance(space, Box) else factors(space)
        self.greedy = greedy or not _draws(self.network)

    def __reduce__(self) -> tuple:
        return SB3Policy, (self.plan, self.tensors, self.greedy)

    def __repr__(self) -> str:
        return f"SB3Policy({self.plan.algorithm}, {self.plan.policy}, {self.plan.settings}, greedy={self.greedy})"

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The network's weights by name."""
        return self.network.state_dict()

    @property
    def device(self) -> torch.device:
        return self.network.device

    def to(self, device: str | torch.device) -> "SB3Policy":
        """The same policy on a device."""
        return SB3Policy(self.plan, {name: part.to(device) for name, part in self.tensors.items()}, self.greedy)

    @property
    def noise_size(self) -> int:
        if self.greedy:
            return 0
        return prod(self.plan.action_space.shape or ()) if self.choices is None else len(self.choices)

    def start(self, lanes: int) -> Memory:
        if not hasattr(self.network, "lstm_actor"):
            return None
        lstm: Any = self.network.lstm_actor
        return tuple(np.zeros((lanes, lstm.num_layers, lstm.hidden_size), np.float32) for _ in range(2))

    @torch.inference_mode()
    def act(self, observation: Array, legal: Legal, memory: Memory, noise: Array) -> tuple[Array, Memory]:
        out, memory = self._output(observation, memory)
        if self.choices is None:
            actions = self._bounded(out, noise)
        else:
            logits = self._logits(out, legal)
            drawn = logits.max(1).indices if self.greedy else draw(logits.softmax(1), tensor(noise, self.device).t())
            actions = drawn.t() if self.plan.action_space.shape else drawn[0]
        return like(actions, observation), memory

    @torch.inference_mode()
    def probabilities(self, observation: Array, legal: Legal) -> tuple[Array, ...]:
        """One [B, A_f] a factor, at the start of an episode; rows without a legal choice are treated as all legal.

        Raises ValueError for continuous actions.
        """
        if self.choices is None:
            raise ValueError(f"continuous actions have no probabilities: {self.plan.action_space}")
        memory = self.start(len(observation))
        logits = self._logits(self._output(observation, memory)[0], legal)
        rows = logits.softmax(1)
        if self.greedy:
            rows = torch.zeros_like(logits).scatter_(1, logits.max(1, keepdim=True).indices, 1.0)
        return tuple(like(row[:size].t(), observation) for row, size in zip(rows, self.choices, strict=True))

    def _output(self, observation: Array, memory: Memory) -> tuple["Output", Memory]:
        shape = self.plan.observation_space.shape
        seen = aligned(tensor(observation, self.device)).reshape(len(observation), *shape)
        states = None
        if memory is not None:  # [B, layers, units] here, [layers, B, units] there
            states = tuple(tensor(leaf, self.device).transpose(0, 1).contiguous() for leaf in memory)
        out, states = output(self.network, seen, states)
        if memory is not None:
            memory = tuple(like(leaf.transpose(0, 1).contiguous(), observation) for leaf in states)
        return out, memory

    def _logits(self, out: "Output", legal: Legal) -> Tensor:
        """[F, A, B]; of choices beyond a factor's own, and of forbidden ones, FORBIDDEN."""
        assert self.choices is not None
        width = max(self.choices)
        parts = [
            torch.nn.functional.pad(part.t(), (0, 0, 0, width - part.shape[1]), value=FORBIDDEN)
            for part in out.raw.split(self.choices, dim=1)
        ]
        logits = torch.stack(parts)
        return logits if legal is None else masked(logits, padded(legal, width, self.device))

    def _bounded(self, out: "Output", noise: Array) -> Tensor:
        """[B, D] within the bounds, from the output's Gaussian, if it has one and uniforms [B, D]."""
        raw = out.raw
        if not self.greedy:
            assert out.log_std is not None
            raw = raw + out.log_std.exp() * normal_draws(tensor(noise, self.device))
        space = self.plan.action_space
        assert isinstance(space, Box)
        low, high = (tensor(bound, self.device).flatten() for bound in (space.low, space.high))
        if out.squash:
            raw = raw.tanh()
        if self.network.squash_output:
            raw = low + 0.5 * (raw + 1.0) * (high - low)
        return raw.clamp(low, high).reshape(-1, *space.shape)


class Output(NamedTuple):
    """What a network says of observations."""

    raw: Tensor
    """[B, A_1 + ... + A_F] logits, or values, of the choices; or [B, D] mean actions."""
    log_std: Tensor | None = None
    """[B, D] or [D] log of the deviations, where actions are drawn from a Gaussian."""
    squash: bool = False
    """The action is the hyperbolic tangent of that."""


def output(net: Any, observations: Tensor, states: Any = None) -> tuple[Output, Any]:
    """What a network says, and the next states of a recurrent one's actor."""
    if hasattr(net, "q_net"):
        return Output(net.q_net(observations)), None
    if hasattr(net, "quantile_net"):
        return Output(net.quantile_net(observations).mean(dim=1)), None
    if isinstance(net, ARSPolicy):
        return Output(net.action_net(net.extract_features(observations, net.features_extractor))), None
    if hasattr(net, "actor"):
        if not hasattr(net.actor, "get_action_dist_params"):
            return Output(net.actor(observations)), None
        mean, log_std, _ = net.actor.get_action_dist_params(observations)
        return Output(mean, log_std, squash=True), None
    features = BaseModel.extract_features(net, observations, net.pi_features_extractor)
    if hasattr(net, "lstm_actor"):
        sequence, states = net.lstm_actor(features[None], states)
        features = sequence[0]
    mean = net.action_net(net.mlp_extractor.forward_actor(features))
    return Output(mean, getattr(net, "log_std", None), squash=net.squash_output), states


def q_values(net: Any, observations: Tensor) -> Tensor | None:
    """[...] values of the greedy actions, by every critic and quantile; None where the algorithm learns none."""
    if hasattr(net, "q_net") or hasattr(net, "quantile_net"):
        return output(net, observations)[0].raw.max(dim=1).values
    if not hasattr(net, "critic") or not hasattr(net, "actor"):
        return None
    values = net.critic(observations, net._predict(observations, deterministic=True))
    return values if isinstance(values, Tensor) else torch.cat(values)


def _draws(net: Any) -> bool:
    """Whether the network says with which probabilities it acts."""
    if hasattr(net, "actor"):
        return hasattr(net.actor, "get_action_dist_params") and not net.actor.use_sde
    return hasattr(net, "action_net") and not isinstance(net, ARSPolicy) and not getattr(net, "use_sde", False)
