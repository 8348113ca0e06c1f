"""What one update of PPO makes of a rollout: advantages, and clipped steps of a policy and a critic network."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from games.game import Policy
from games.noise import Noise, Purpose, unit_seed
from marl.collect import Rollout
from marl.heads import Head
from marl.losses import PolicyGradient, explained_variance, gae, normalised, value_gradient
from marl.networks import (
    Layers,
    Parameters,
    backward,
    channels,
    check_takes,
    clip_norm,
    computing,
    convolutions,
    copied,
    forward,
    last_outputs,
    layer_inputs,
    orthogonal_layers,
    policy_outputs,
)
from marl.oracles.ppo import PPO, Rates
from marl.scales import ObservationScale, ReturnScale

WATCHED = ("value_loss", "entropy", "approx_kl", "clip_fraction", "actor_grad_norm", "critic_grad_norm")
KL = WATCHED.index("approx_kl")


class Objective(NamedTuple):
    """Gradients of the losses of M samples by the outputs of both networks, and what was found on the way."""

    by_outputs: Tensor  # [M, O]
    by_values: Tensor  # [M, 1]
    policy: PolicyGradient
    value_loss: Tensor  # [M]
    sample: dict[str, Tensor]
    clip: float

    def watched(self) -> tuple[Tensor, ...]:
        """All WATCHED but the norms."""
        found, acting = self.policy, self.sample["acting"]
        moved = found.log_ratio.exp() - 1
        kl = (moved - found.log_ratio) * acting  # [Schulman 2020]
        beyond = (moved.abs() > self.clip) * acting
        value_loss, entropy = self.value_loss * self.sample["alive"], found.entropy * acting
        return value_loss.mean(), entropy.mean(), kl.mean(), beyond.mean()


class Views:
    """How the actor (0) and the critic (1) see observations of these shapes: as they are, where none is given.

    `warm` is whether the actor is one to go on from.
    """

    def __init__(self, shapes: Sequence[Sequence[int]], device: torch.device, warm: bool):
        self.scales, self.warm = [ObservationScale(shape, device) for shape in shapes], warm

    @property
    def ready(self) -> bool:
        """Whether it is known how large features are."""
        return all(scale.seen for scale in self.scales)

    def shown(self, network: int, observations: Tensor) -> Tensor:
        return self.scales[network].apply(observations) if self.scales else observations

    def look(self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], networks: Sequence[Layers]) -> None:
        """Take in how large observations are, at the end of an update: in between probability ratios must stay."""
        observed = [rollout.observations for rollout in rollouts]
        weights = joined([rollout.alive for rollout in rollouts]).flatten().to(torch.float32)
        for index, (scale, parts) in enumerate(zip(self.scales, (observed, seen), strict=False)):
            known = scale.seen > 0 or (self.warm and index == 0)  # of new networks nothing is to be kept
            rows = joined([part[:-1] for part in parts], axis=1).flatten(0, 1)
            scale.follow(rows, weights, networks[index][:1] if known else ())

    def folded(self, first_layer: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The actor's first layer, for observations as they are."""
        return self.scales[0].folded(first_layer) if self.scales else first_layer

    def state_dict(self) -> list[dict[str, Any]]:
        return [scale.state_dict() for scale in self.scales]

    def load_state_dict(self, state: Sequence[dict[str, Any]]) -> None:
        for scale, saved in zip(self.scales, state, strict=True):
            scale.load_state_dict(saved)


class PPOTrainee:
    """A network for the policy and one for the critic. Implements `Trainee`."""

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
        device, shape = rollouts[0].device, tuple(rollouts[0].observations.shape[2:])
        self.shape = shape
        generator = np.random.default_rng(unit_seed(seed, f"init/{name}"))
        torso, features = convolutions(shape, generator)
        actor: Layers = [*torso, *self.head.layers(features, settings.hidden, generator)]
        self.seen_shape = (*shape[:-1], features_seen)
        torso, features = convolutions(self.seen_shape, generator)
        critic = [*torso, *orthogonal_layers((features, *settings.hidden, 1), 1.0, generator)]
        if start is not None:
            actor = self.layers(start)
        self.parameters = Parameters([actor, critic], device)
        self.actor, self.critic = self.parameters.networks
        self.shuffles = Noise(seed, [f"shuffle/{name}"])
        self.scale = ReturnScale()
        shapes = (shape, self.seen_shape) if settings.normalise_observations else ()
        self.views = Views(shapes, device, start is not None)

    @torch.inference_mode()
    def act(self, place: int, rollout: Rollout, step: int) -> Tensor:
        return policy_outputs(self._computing(self.actor), self.views.shown(0, rollout.observations[step]))

    @torch.inference_mode()
    def improve(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int, rates: Rates
    ) -> dict[str, float]:
        """All epochs over the rollouts; see `Trainee`. Of `epochs` those that were taken count, in parts too."""
        settings = self.settings
        batch, fit = self._batch(rollouts, seen, update)
        size = settings.batch * len(rollouts)
        rows = size // settings.minibatches
        samples = [
            {name: part[..., first : first + rows] for name, part in batch.items()} for first in range(0, size, rows)
        ]
        epochs = settings.epochs if self.views.ready else 0
        told = passes(settings, self.parameters, rates, samples, partial(self._differentiate, rates), epochs)
        self.views.look(rollouts, seen, self.parameters.networks)
        return told | {"explained_variance": fit.item()}

    def _differentiate(self, rates: Rates, sample: dict[str, Tensor]) -> Objective:
        """Write the parameters' gradients."""
        actor, critic = self._computing(self.actor), self._computing(self.critic)
        actor_inputs = layer_inputs(actor, self.views.shown(0, sample["observations"].movedim(-1, 0)))
        critic_inputs = layer_inputs(critic, self.views.shown(1, sample["seen"].movedim(-1, 0)))
        found = objective(
            self.settings,
            self.head,
            last_outputs(actor, actor_inputs[-1]),
            last_outputs(critic, critic_inputs[-1])[0],
            sample,
            rates,
        )
        backward(actor, self.parameters.gradients[0], actor_inputs, found.by_outputs)
        backward(critic, self.parameters.gradients[1], critic_inputs, found.by_values)
        return found

    def values(self, observed: Tensor) -> Tensor:
        """[...] expected discounted returns from what the critic sees [..., D] or [..., C, H, W]."""
        if len(self.seen_shape) > 1 and observed.ndim > len(self.seen_shape) + 1:
            # What convolutions find in a whole rollout might not fit in memory.
            return torch.stack([self.values(step) for step in observed])
        return self.scale.undo(forward(self._computing(self.critic), self.views.shown(1, observed))[..., 0])

    def _computing(self, layers: Layers) -> Layers:
        return computing(layers, self.settings.autocast)

    def _batch(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The rollouts' samples in shuffled order; and the critic's explained variance.

        Samples are the last axis of every part, so that a minibatch is a slice of each.
        """
        values = [self.values(observed) for observed in seen]
        bootstrapped = [
            next_values(rollout, now, lambda step, lanes, final: self.values(final))
            for rollout, now in zip(rollouts, values, strict=True)
        ]
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

    def policy(self, greedy: bool) -> Policy:
        return self.built([self.views.folded(self.actor[0]), *self.actor[1:]], greedy)

    def layers(self, policy: Policy) -> Layers:
        layers = self.head.resumed(policy, channels(self.shape))
        check_takes(layers, self.shape)
        return layers

    def built(self, layers: Layers, greedy: bool) -> Policy:
        return self.head.policy(copied(layers, self.parameters.vector.device), greedy)

    @property
    def finite(self) -> bool:
        return bool(self.parameters.vector.isfinite().all())

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters.state_dict(),
            "scale": self.scale.state_dict(),
            "views": self.views.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parameters.load_state_dict(state["parameters"])
        self.scale.load_state_dict(state["scale"])
        self.views.load_state_dict(state["views"])


def objective(
    settings: PPO, head: Head, outputs: Tensor, values: Tensor, sample: dict[str, Tensor], rates: Rates
) -> Objective:
    """Of the policy's outputs [O, M] and the critic's values [M], in the scale of the targets."""
    found = head.gradient(outputs, sample, rates.clip, rates.entropy_coef)
    valued = value_gradient(values, sample["targets"], sample.get("old_values"), settings.clip_value)
    by_values = valued.values * sample["alive"] * (settings.value_coef / len(values))
    return Objective(found.outputs.t(), by_values[:, None], found, valued.loss, sample, rates.clip)


def passes(
    settings: PPO,
    parameters: Parameters,
    rates: Rates,
    samples: Sequence[Any],
    differentiate: Callable[[Any], Objective],
    epochs: int,
) -> dict[str, float]:
    """Steps along clipped gradients, that `differentiate` writes, until one would go further than `target_kl` allows.

    The WATCHED in the mean of the last epoch's steps, and how many `epochs` were taken, in parts too; with 0 epochs
    all is only looked at.
    """
    steps, target = 0, settings.target_kl
    for epoch in range(max(epochs, 1)):
        watched: list[Tensor] = []
        for sample in samples:
            found = differentiate(sample)
            norms = [clip_norm(part, settings.max_grad_norm) for part in parameters.parts]
            if target is not None or epoch >= epochs - 1:
                watched.append(torch.stack([*found.watched(), *norms]))
            if epochs and target is not None and watched[-1][KL] > 1.5 * target:
                return _told(watched, steps / len(samples))
            if epochs:
                parameters.descend(rates.learning_rate)
                steps += 1
    return _told(watched, steps / len(samples))


def _told(watched: Sequence[Tensor], epochs: float) -> dict[str, float]:
    return dict(zip(WATCHED, torch.stack(list(watched)).mean(0).tolist(), strict=True)) | {"epochs": epochs}


def next_values(rollout: Rollout, values: Tensor, valued: Callable[[int, Tensor, Tensor], Tensor]) -> Tensor:
    """[T, B] values of the states that steps led to, before any restart; `values` [T + 1, B] are of what was seen.

    `valued(step, lanes, observations)` are of what was seen last in lanes that were cut in that step.
    """
    found = values[1:].clone()
    for step, lanes, final in rollout.finals:
        found[step, lanes] = valued(step, lanes, final)
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
        "advantages": normalised(advantages, acting) if settings.normalise_advantages else advantages,
        "targets": scale.apply(returns),
        "acting": acting / acting.mean().clamp(min=1e-8),
        "alive": alive / alive.mean().clamp(min=1e-8),
    }
    if settings.clip_value is not None:
        parts["old_values"] = scale.apply(values)
    if any(rollout.allowed is not None for rollout in rollouts):
        parts["allowed"] = joined([rollout.masks() for rollout in rollouts])
    return parts, fit


def joined(parts: Sequence[Tensor], axis: int = -1) -> Tensor:
    """What several rollouts recorded, their lanes side by side."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)


def _rows(parts: Sequence[Tensor], order: Tensor) -> Tensor:
    """[..., M] in the order of [T * B] of what was observed [T + 1, B, ...] in several rollouts, without the last."""
    return joined([part[:-1] for part in parts], axis=1).flatten(0, 1).index_select(0, order).movedim(0, -1)
