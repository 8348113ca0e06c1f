"""What one update of PPO makes of a rollout: advantages, and clipped steps of a policy and a critic network."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from games.game import Policy
from games.noise import Noise, Purpose, unit_seed
from marl.collect import Rollout
from marl.losses import explained_variance, gae, normalised
from marl.networks import (
    Layers,
    Parameters,
    backward,
    clip_norm,
    forward,
    last_outputs,
    layer_inputs,
    orthogonal_layers,
    policy_outputs,
)
from marl.oracles.ppo import PPO, Rates
from marl.scales import ReturnScale

WATCHED = ("value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm")


class Trainee:
    """A perceptron for the policy and one for the critic. Implements `Trained`."""

    def __init__(
        self,
        settings: PPO,
        rollouts: Sequence[Rollout],
        features_seen: int,
        name: str,
        seed: int,
        start: Policy | None,
    ):
        self.settings, self.head = settings, rollouts[0].head
        features = rollouts[0].observations.shape[-1]
        generator = np.random.default_rng(unit_seed(seed, f"init/{name}"))
        actor = self.head.layers(features, settings.hidden, generator)
        critic = orthogonal_layers((features_seen, *settings.hidden, 1), 1.0, generator)
        if start is not None:
            actor = self.head.resumed(start, features)
        self.parameters = Parameters([actor, critic], rollouts[0].device)
        self.actor, self.critic = self.parameters.networks
        self.shuffles = Noise(seed, [f"shuffle/{name}"])
        self.scale = ReturnScale()

    def act(self, place: int, rollout: Rollout, step: int) -> Tensor:
        return policy_outputs(self.actor, rollout.observations[step])

    def improve(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int, rates: Rates
    ) -> dict[str, float]:
        """All epochs over the rollouts; see `Trained`."""
        settings = self.settings
        batch, fit = self._batch(rollouts, seen, update)
        size = settings.batch * len(rollouts)
        rows = size // settings.minibatches
        samples = [
            {name: part[..., first : first + rows] for name, part in batch.items()} for first in range(0, size, rows)
        ]
        for _ in range(settings.epochs):
            watched = [self._step(sample, rates) for sample in samples]
        means = torch.stack([torch.stack(metrics) for metrics in watched]).mean(0)
        return dict(zip(WATCHED, means.tolist(), strict=True)) | {"explained_variance": fit.item()}

    def _step(self, sample: dict[str, Tensor], rates: Rates) -> tuple[Tensor, ...]:
        """One gradient step; the WATCHED."""
        settings, parameters = self.settings, self.parameters
        actor_inputs = layer_inputs(self.actor, sample["observations"].t())
        critic_inputs = layer_inputs(self.critic, sample["seen"].t())
        found = self.head.gradient(
            last_outputs(self.actor, actor_inputs[-1]), sample, settings.clip, rates.entropy_coef
        )
        miss = torch.nn.functional.linear(critic_inputs[-1], *self.critic[-1])[:, 0] - sample["targets"]
        by_value = miss * sample["alive"] * (settings.value_coef / len(miss))
        backward(self.actor, parameters.gradients[0], actor_inputs, found.outputs.t())
        backward(self.critic, parameters.gradients[1], critic_inputs, by_value[:, None])
        norms = [clip_norm(part, settings.max_grad_norm) for part in parameters.parts]
        parameters.descend(rates.learning_rate)
        kl = (found.log_ratio.exp() - 1 - found.log_ratio) * sample["acting"]  # [Schulman 2020]
        clipped = found.clipped * sample["acting"]
        value_loss = miss.square() * sample["alive"]
        return (value_loss.mean(), (found.entropy * sample["acting"]).mean(), kl.mean(), clipped.mean(), norms[0])

    def values(self, observations: Tensor) -> Tensor:
        """[...] expected discounted returns from what the critic sees [..., D]."""
        return self.scale.undo(forward(self.critic, observations)[..., 0])

    def _batch(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The rollouts' samples in shuffled order; and the critic's explained variance.

        Samples are the last axis of every part, so that a minibatch is a slice of each.
        """
        values = [self.values(observed) for observed in seen]
        bootstrapped = [next_values(rollout, now, self.values) for rollout, now in zip(rollouts, values, strict=True)]
        estimated, fit = estimates(
            self.settings, rollouts, joined([now[:-1] for now in values]), joined(bootstrapped), self.scale, self.critic
        )
        flat = {name: part.movedim(0, -2).flatten(-2) for name, part in estimated.items()}
        order = self._shuffled(update, flat["targets"].shape[-1], rollouts[0].device)
        batch = {name: part.index_select(-1, order) for name, part in flat.items()}
        observed = [rollout.observations for rollout in rollouts]
        batch["observations"] = _rows(observed, order)
        own = all(part is other for part, other in zip(observed, seen, strict=True))
        batch["seen"] = batch["observations"] if own else _rows(seen, order)
        return batch, fit

    def _shuffled(self, update: int, rows: int, device: torch.device) -> Tensor:
        keys = self.shuffles.draw(Purpose.SHUFFLE, update, rows, 1)[:, 0]
        return torch.as_tensor(np.argsort(keys, kind="stable"), device=device)

    def policy(self) -> Policy:
        copied: Layers = [(weight.clone(), bias.clone()) for weight, bias in self.actor]
        return self.head.policy(copied, self.settings.greedy)

    @property
    def finite(self) -> bool:
        return bool(self.parameters.vector.isfinite().all())

    def state_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters.state_dict(), "scale": self.scale.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parameters.load_state_dict(state["parameters"])
        self.scale.load_state_dict(state["scale"])


def next_values(rollout: Rollout, values: Tensor, valued: Callable[[Tensor], Tensor]) -> Tensor:
    """[T, B] values of the states that steps led to, before any restart; `values` [T + 1, B] are of what was seen."""
    found = values[1:].clone()
    for step, lanes, final in rollout.finals:
        found[step, lanes] = valued(final)
    return found


def estimates(
    settings: PPO,
    rollouts: Sequence[Rollout],
    values: Tensor,
    next_values: Tensor,
    scale: ReturnScale,
    critic: Layers,
) -> tuple[dict[str, Tensor], Tensor]:
    """All that the losses need of rollouts side by side: parts [T, ..., M]; and the critic's explained variance.

    `values` and `next_values` [T, M] are the critic's, in units of return; its last layer, and `targets`, follow the
    scale, if returns are normalised.
    """
    advantages = gae(
        joined([rollout.rewards for rollout in rollouts]),
        values,
        next_values,
        joined([rollout.terminated for rollout in rollouts]),
        joined([rollout.ended for rollout in rollouts]),
        settings.gamma,
        settings.gae_lambda,
    )
    acting, alive = (
        joined([getattr(rollout, mask) for rollout in rollouts]).to(torch.float32) for mask in ("acting", "alive")
    )
    returns = advantages + values
    fit = explained_variance(returns.flatten(), values.flatten(), alive.flatten())
    if settings.normalise_returns:
        scale.follow(returns.flatten(), alive.flatten(), critic[-1])
    parts = {
        "actions": joined([rollout.actions for rollout in rollouts]),
        "log_probs": joined([rollout.log_probs for rollout in rollouts]),
        "advantages": normalised(advantages, acting),
        "targets": scale.apply(returns),
        "acting": acting / acting.mean().clamp(min=1e-8),
        "alive": alive / alive.mean().clamp(min=1e-8),
    }
    if any(rollout.allowed is not None for rollout in rollouts):
        parts["allowed"] = joined([rollout.masks() for rollout in rollouts])
    return parts, fit


def joined(parts: Sequence[Tensor], axis: int = -1) -> Tensor:
    """What several rollouts recorded, their lanes side by side."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)


def _rows(parts: Sequence[Tensor], order: Tensor) -> Tensor:
    """[D, M] in the order of [T * B] of what was observed [T + 1, B, D] in several rollouts, without the last."""
    return joined([part[:-1] for part in parts], axis=1).flatten(0, 1).index_select(0, order).t()
