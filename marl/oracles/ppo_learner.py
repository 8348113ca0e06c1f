"""The learning behind `PPO`: rollouts, advantages, clipped updates; one independent network pair a seat."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from games.game import Lanes, Policy
from games.noise import Noise, Purpose, unit_seed
from marl.collect import Collector, Rollout
from marl.losses import clipped_policy_gradient, explained_variance, gae, normalised, weighted_mean
from marl.networks import (
    Layers,
    Parameters,
    backward,
    forward,
    layer_inputs,
    logits_of,
    orthogonal_layers,
    policy_layers,
)
from marl.oracles.ppo import PPO
from marl.policies import NeuralPolicy, masked

WATCHED = ("value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm")


class PPOLearner:
    """Implements `marl.oracles.Learner`; see `PPO.learner`."""

    def __init__(
        self,
        settings: PPO,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        if len(seats) != len(lanes.agents) or len(set(seats)) != len(seats):
            raise ValueError(f"seats must name each of the lanes' {len(lanes.agents)} seats once, got {tuple(seats)}")
        if lanes.num_lanes != settings.num_lanes:
            raise ValueError(f"PPO was set to num_lanes={settings.num_lanes}, got lanes of {lanes.num_lanes}")
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        lanes.reset(seed, "train")
        self.collector = Collector(lanes, settings.horizon, device)
        self.trainees = [
            Trainee(settings, rollout, seat, seed, start.get(seat))
            for rollout, seat in zip(self.collector.rollouts, self.seats, strict=True)
        ]

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    @property
    def policies(self) -> dict[int, Policy]:
        spaces = self.lanes.action_spaces
        return {
            seat: NeuralPolicy.of(trainee.copied_actor(), space, self.settings.greedy)
            for seat, trainee, space in zip(self.seats, self.trainees, spaces, strict=True)
        }

    def update(self) -> dict[str, float]:
        """One rollout and the epochs over it; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; the rest is of the last epoch's minibatches; `explained_variance` is the critic's before the update.
        Raises FloatingPointError where a loss is no longer finite.
        """
        settings, update = self.settings, self.done_updates
        left = 1 - update / settings.updates
        learning_rate = settings.learning_rate * (left if settings.anneal else 1.0)
        entropy_coef = settings.entropy_end + (settings.entropy_start - settings.entropy_end) * left
        rollouts = self.collector.collect([trainee.actor for trainee in self.trainees])
        returns, errors = (statistic.tolist() for statistic in self.collector.mean_returns())
        metrics: dict[str, float] = {"update": update + 1, "steps": (update + 1) * settings.batch}
        for column, (seat, trainee, rollout) in enumerate(zip(self.seats, self.trainees, rollouts, strict=True)):
            improved = trainee.improve(rollout, update, learning_rate, entropy_coef)
            watched = {"return": returns[column], "return_error": errors[column]} | improved
            finite = all(math.isfinite(watched[name]) for name in WATCHED)
            if not finite or not trainee.parameters.vector.isfinite().all():
                raise FloatingPointError(
                    f"seat {seat} diverged in update {update + 1}: {watched}; lower learning_rate, or check the rewards"
                )
            metrics |= {name if len(self.seats) == 1 else f"{name}/{seat}": value for name, value in watched.items()}
        self.done_updates += 1
        return metrics

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.done_updates,
            "lanes": self.lanes.state_dict(),
            "returns": self.collector.returns.clone(),
            "last_returns": self.collector.last_returns.clone(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = state["updates"]
        self.lanes.load_state_dict(state["lanes"])
        self.collector.returns.copy_(torch.as_tensor(state["returns"]))
        self.collector.last_returns.copy_(torch.as_tensor(state["last_returns"]))
        for trainee, saved in zip(self.trainees, state["trainees"], strict=True):
            trainee.load_state_dict(saved)


class Trainee:
    """One seat's actor, critic and optimiser."""

    def __init__(self, settings: PPO, rollout: Rollout, seat: int, seed: int, start: Policy | None):
        self.settings, self.choices, self.width = settings, rollout.choices, rollout.width
        features, device = rollout.observations.shape[-1], rollout.device
        generator = np.random.default_rng(unit_seed(seed, f"init/{seat}"))
        actor: Layers = policy_layers(features, settings.hidden, self.choices, generator)
        critic = orthogonal_layers((features, *settings.hidden, 1), 1.0, generator)
        if start is not None:
            actor = _checked(start, features, self.choices)
        self.parameters = Parameters([actor, critic], device)
        self.actor, self.critic = self.parameters.networks
        self.shuffles = Noise(seed, [f"shuffle/{seat}"])
        self.scale = ReturnScale()

    def improve(self, rollout: Rollout, update: int, learning_rate: float, entropy_coef: float) -> dict[str, float]:
        """All epochs over one rollout; metrics by name."""
        settings = self.settings
        batch, fit = self._batch(rollout, self._shuffled(update, settings.batch, rollout.device))
        rows = settings.batch // settings.minibatches
        samples = [
            {name: part[..., first : first + rows] for name, part in batch.items()}
            for first in range(0, settings.batch, rows)
        ]
        for _ in range(settings.epochs):
            watched = [self._step(sample, learning_rate, entropy_coef) for sample in samples]
        means = torch.stack([torch.stack(metrics) for metrics in watched]).mean(0)
        return dict(zip(WATCHED, means.tolist(), strict=True)) | {"explained_variance": fit.item()}

    def _step(self, sample: dict[str, Tensor], learning_rate: float, entropy_coef: float) -> tuple[Tensor, ...]:
        """One gradient step; the WATCHED."""
        settings, parameters, observations = self.settings, self.parameters, sample["observations"].t()
        actor_inputs, critic_inputs = (layer_inputs(layers, observations) for layers in (self.actor, self.critic))
        logits = logits_of(self.actor, actor_inputs[-1], len(self.choices))
        if "allowed" in sample:
            logits = masked(logits, sample["allowed"])
        found = clipped_policy_gradient(
            logits,
            sample["actions"],
            sample["log_probs"],
            sample["advantages"],
            sample["acting"],
            settings.clip,
            entropy_coef,
        )
        miss = torch.nn.functional.linear(critic_inputs[-1], *self.critic[-1])[:, 0] - sample["targets"]
        by_value = miss * sample["alive"] * (settings.value_coef / len(miss))
        backward(self.actor, parameters.gradients[0], actor_inputs, found.logits.flatten(0, 1).t())
        backward(self.critic, parameters.gradients[1], critic_inputs, by_value[:, None])
        norms = [clip_norm(part, settings.max_grad_norm) for part in parameters.parts]
        parameters.descend(learning_rate)
        kl = (found.log_ratio.exp() - 1 - found.log_ratio) * sample["acting"]  # [Schulman 2020]
        clipped = found.clipped * sample["acting"]
        value_loss = miss.square() * sample["alive"]
        return (value_loss.mean(), (found.entropy * sample["acting"]).mean(), kl.mean(), clipped.mean(), norms[0])

    def values(self, observations: Tensor) -> Tensor:
        """[...] expected discounted returns from observations [..., D]."""
        return self.scale.undo(forward(self.critic, observations)[..., 0])

    def _batch(self, rollout: Rollout, order: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The rollout in the order of [T * B], with advantages and targets; and the critic's explained variance.

        Samples are the last axis of every part, so that a minibatch is a slice of each.
        """
        settings, observations = self.settings, rollout.observations
        values = self.values(observations)
        next_values = values[1:].clone()
        for step, lanes, final in rollout.finals:
            next_values[step, lanes] = self.values(final)
        values = values[:-1]
        advantages = gae(
            rollout.rewards,
            values,
            next_values,
            rollout.terminated,
            rollout.ended,
            settings.gamma,
            settings.gae_lambda,
        )
        acting, alive = (mask.to(torch.float32).flatten() for mask in (rollout.acting, rollout.alive))
        returns = (advantages + values).flatten()
        fit = explained_variance(returns, values.flatten(), alive)
        if settings.normalise_returns:
            self.scale.follow(returns, alive, self.critic[-1])
        flat = {
            "actions": rollout.actions.movedim(0, 1).flatten(1),
            "log_probs": rollout.log_probs.flatten(),
            "advantages": normalised(advantages.flatten(), acting),
            "targets": self.scale.apply(returns),
            "acting": acting / acting.mean().clamp(min=1e-8),
            "alive": alive / alive.mean().clamp(min=1e-8),
        }
        if rollout.allowed is not None:
            flat["allowed"] = rollout.allowed.movedim(0, 2).flatten(2)
        batch = {name: part.index_select(-1, order) for name, part in flat.items()}
        batch["observations"] = observations[:-1].flatten(0, 1).index_select(0, order).t()
        return batch, fit

    def _shuffled(self, update: int, rows: int, device: torch.device) -> Tensor:
        keys = self.shuffles.draw(Purpose.SHUFFLE, update, rows, 1)[:, 0]
        return torch.as_tensor(np.argsort(keys, kind="stable"), device=device)

    def copied_actor(self) -> Layers:
        return [(weight.clone(), bias.clone()) for weight, bias in self.actor]

    def state_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters.state_dict(), "scale": self.scale.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parameters.load_state_dict(state["parameters"])
        self.scale.load_state_dict(state["scale"])


class ReturnScale:
    """Running mean and deviation of the returns, in which the critic's output counts.

    When they move, the critic's last layer moves against them, so that its values stay what they were
    [van Hasselt et al. 2016, Pop-Art].
    """

    RATE = 0.1  # of the newest rollout; the first ones count equally

    def __init__(self) -> None:
        self.mean, self.variance, self.deviation, self.seen = 0.0, 0.0, 1.0, 0

    def apply(self, returns: Tensor) -> Tensor:
        return (returns - self.mean) / self.deviation

    def undo(self, values: Tensor) -> Tensor:
        return values * self.deviation + self.mean

    def follow(self, returns: Tensor, weights: Tensor, head: tuple[Tensor, Tensor]) -> None:
        """Take in a rollout's returns [M] and rescale the head [1, H], [1] accordingly, in place."""
        returns, weights = returns.double(), weights.double()
        centre = weighted_mean(returns, weights)
        spread = weighted_mean((returns - centre).square(), weights)
        old_mean, old_deviation = self.mean, self.deviation
        self.seen += 1
        rate = max(self.RATE, 1 / self.seen)
        step = centre.item() - self.mean
        self.mean += rate * step
        # The variance of two samples together: within each, and between their means.
        self.variance = (1 - rate) * (self.variance + rate * step**2) + rate * spread.item()
        # Returns that differ by less than float32 can tell are all the same: their own size is the unit then.
        differ = math.sqrt(self.variance) > 1e-6 * abs(self.mean)
        self.deviation = math.sqrt(self.variance) if differ else abs(self.mean) or 1.0
        weight, bias = head
        weight.mul_(old_deviation / self.deviation)
        bias.copy_((bias * old_deviation + old_mean - self.mean) / self.deviation)

    def state_dict(self) -> dict[str, float]:
        return {"mean": self.mean, "variance": self.variance, "deviation": self.deviation, "seen": self.seen}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.mean, self.variance, self.deviation = state["mean"], state["variance"], state["deviation"]
        self.seen = int(state["seen"])


def clip_norm(gradient: Tensor, limit: float) -> Tensor:
    """Scale a gradient [P] down to norm `limit`, in place; the norm it had."""
    norm = gradient.norm()
    gradient.mul_((limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


def _checked(start: Policy, features: int, choices: tuple[int, ...]) -> Layers:
    if not isinstance(start, NeuralPolicy) or (start.features, start.choices) != (features, choices):
        raise ValueError(f"PPO goes on from a NeuralPolicy of {features} features and choices {choices}, got {start}")
    return start.layers
