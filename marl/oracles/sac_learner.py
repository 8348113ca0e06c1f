"""The learning behind `SAC`: play, remember, and gradient steps of twin critics, actor and temperature."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor

from games.game import Array, Lanes, Legal, Policy
from games.lanes import put_like
from games.noise import Noise, Purpose, unit_seed
from games.policies import Uniform
from marl.buffers import Replay, precise
from marl.experience import Experience
from marl.losses import explained_variance
from marl.networks import Parameters, backward, last_outputs, layer_inputs
from marl.oracles.checks import check_lanes
from marl.oracles.oracle import diverged, named
from marl.oracles.sac import SAC
from marl.oracles.sac_kinds import Improvement, Sample, kind_of
from marl.policies import tensor
from marl.scales import RewardScale

WATCHED = (
    *("value_loss", "actor_loss", "temperature", "entropy", "q_mean", "q_min", "q_max", "explained_variance"),
    *("actor_grad_norm", "critic_grad_norm"),
)


class SACLearner:
    """Implements `marl.oracles.Learner`; see `SAC.learner`."""

    def __init__(
        self, settings: SAC, lanes: Lanes, seats: Sequence[int], seed: int, device: str, start: Mapping[int, Policy]
    ):
        check_lanes(settings, lanes, seats)
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        spaces = list(zip(lanes.observation_spaces, lanes.action_spaces, strict=True))
        self.trainees = [
            SoftTrainee(settings, *pair, seat, seed, device, start.get(seat))
            for pair, seat in zip(spaces, self.seats, strict=True)
        ]
        lanes.reset(seed, "train")
        capacity = min(settings.capacity, max(settings.total_steps, settings.num_lanes * settings.n_step))
        self.experience = Experience(lanes, capacity, settings.gamma, settings.n_step, device)
        self.random = [
            RandomPlay(space, Noise(seed, [f"explore/{seat}"]), settings.hold, self.experience)
            for seat, (_, space) in zip(self.seats, spaces, strict=True)
        ]

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    @property
    def policies(self) -> dict[int, Policy]:
        greedy = self.settings.greedy
        return {seat: trainee.policy(greedy) for seat, trainee in zip(self.seats, self.trainees, strict=True)}

    def update(self) -> dict[str, float]:
        """Some steps and the gradient steps that follow; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; the rest is of the last gradient step, and nan before it: `value_loss`, the critics' mean squared error,
        and `actor_loss` in the units that rewards count in; `entropy` in nats, of actions in a Box once they are
        squashed into it, as if it were [-1, 1]; `critic_grad_norm` is of both critics. Raises FloatingPointError where
        a loss or a parameter is no longer finite.
        """
        settings, left = self.settings, 1 - self.done_updates / self.settings.updates
        self.experience.play(self._players(), settings.horizon)
        self.done_updates += 1
        steps = self.done_updates * settings.batch
        returns, errors = (statistic.tolist() for statistic in self.experience.returns.mean())
        metrics: dict[str, float] = {"update": self.done_updates, "steps": steps}
        for column, (seat, trainee) in enumerate(zip(self.seats, self.trainees, strict=True)):
            replay = self.experience.replays[column]
            watched = dict.fromkeys(WATCHED, math.nan)
            if steps >= settings.learning_starts and replay.size:
                watched = trainee.improve(replay, left)
                if not (all(map(math.isfinite, watched.values())) and trainee.finite):
                    raise diverged(seat, self.done_updates, steps, watched)
            watched = {"return": returns[column], "return_error": errors[column]} | watched
            metrics |= named(self.seats, seat, watched)
        return metrics

    def _players(self) -> list[Policy]:
        """Who plays: at random at first, then the actors as they are."""
        early = self.done_updates * self.settings.batch < self.settings.learning_starts
        return [
            random if early and not trainee.resumed else trainee.player
            for trainee, random in zip(self.trainees, self.random, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.done_updates,
            "experience": self.experience.state_dict(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = state["updates"]
        self.experience.load_state_dict(state["experience"])
        for trainee, saved in zip(self.trainees, state["trainees"], strict=True):
            trainee.load_state_dict(saved)


class RandomPlay:
    """Uniform play that keeps to its uniforms for `hold` steps. Implements `games.game.Policy`."""

    noise_size = 0

    def __init__(self, space: Space, noise: Noise, hold: int, experience: Experience):
        self.policy, self.noise, self.hold, self.experience = Uniform.of(space), noise, hold, experience

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        step, columns = self.experience.played // self.hold, self.policy.noise_size
        uniforms = self.noise.draw(Purpose.SEAT, step, len(observation), columns)
        return self.policy.act(observation, legal, None, put_like(uniforms, observation))


class Taught(NamedTuple):
    """What a gradient step saw."""

    target: Tensor  # [M]
    values: list[Tensor]  # of each critic, [M]
    actor: Improvement


class SoftTrainee:
    """One seat's actor, twin critics with their slow copies, and temperature."""

    def __init__(
        self, settings: SAC, seen: Space, space: Space, seat: int, seed: int, device: str, start: Policy | None
    ):
        where = torch.device(device)
        self.settings, self.gradient_steps = settings, 0
        self.kind = kind_of(space, settings.box_entropy, settings.choice_entropy, where)
        self.head, self.resumed, features = self.kind.head, start is not None, _features(seen)
        generator = np.random.default_rng(unit_seed(seed, f"init/{seat}"))
        actor = self.head.layers(features, settings.hidden, generator)
        critics = [self.kind.critic(features, settings.hidden, generator) for _ in range(2)]
        self.actor = Parameters([actor if start is None else self.head.resumed(start, features)], where)
        self.critics, self.targets = Parameters(critics, where), Parameters(critics, where)
        self.log_temperature = torch.tensor(math.log(settings.temperature), device=where)
        self.scale = RewardScale()
        self.noise = Noise(seed, [f"replay/{seat}"])
        self.player = self.head.policy(self.actor.networks[0], greedy=False)  # it plays with the weights in training

    def policy(self, greedy: bool) -> Policy:
        """As trained so far; further training leaves it as it is."""
        return self.head.policy([(weight.clone(), bias.clone()) for weight, bias in self.actor.networks[0]], greedy)

    def improve(self, replay: Replay, left: float) -> dict[str, float]:
        """The gradient steps of an update, with this share of the training left; the WATCHED of the last."""
        settings = self.settings
        learning_rate = settings.learning_rate * (left if settings.anneal else 1.0)
        for index in range(settings.gradient_steps):
            noise = self.noise.draw(Purpose.SHUFFLE, self.gradient_steps, settings.minibatch, 2 + 2 * self.head.rows)
            sample = replay.take(replay.draw(precise(noise[:, :2])))
            if settings.normalise_rewards:
                if index == 0:
                    self._rescale(sample["reward"])
                sample["reward"] /= self.scale.size
            taught = self.step(sample, tensor(noise[:, 2:].T, replay.rows.device), learning_rate)
        return self._watched(taught)

    def step(self, sample: Sample, noise: Tensor, learning_rate: float) -> Taught:
        """One gradient step of everything, by uniforms [2 rows, M] to draw next actions with, and these."""
        settings, kind, (ahead, here) = self.settings, self.kind, noise.chunk(2)
        temperature = self.log_temperature.exp()
        beyond = kind.next_values(self.actor.networks[0], self.targets.networks, sample, temperature, ahead)
        target = sample["reward"] + sample["discount"] * beyond
        values = self._learn_values(sample, target)
        self.critics.descend(learning_rate)
        improvement = self._improve(sample, temperature, here)
        self.actor.descend(learning_rate)
        off = (improvement.entropy - improvement.wanted).mean() / self.head.rows
        self.log_temperature -= settings.temperature_rate * off
        self.targets.vector.lerp_(self.critics.vector, settings.target_rate)
        self.gradient_steps += 1
        return Taught(target, values, improvement)

    def _rescale(self, rewards: Tensor) -> None:
        """Take in some rewards [M], and let values and temperature be worth what they were."""
        ratio = self.scale.follow(rewards)
        self.log_temperature += math.log(ratio)
        for critic in (*self.critics.networks, *self.targets.networks):
            for part in critic[-1]:
                part.mul_(ratio)

    def _learn_values(self, sample: Sample, target: Tensor) -> list[Tensor]:
        """Write the critics' gradients of half the squared miss; their values [M]."""
        features, found = self.kind.critic_features(sample), []
        for critic, gradients in zip(self.critics.networks, self.critics.gradients, strict=True):
            inputs = layer_inputs(critic, features)
            value = self.kind.value(last_outputs(critic, inputs[-1]), sample)
            backward(critic, gradients, inputs, self.kind.by_outputs((value - target) / len(target), sample))
            found.append(value)
        return found

    def _improve(self, sample: Sample, temperature: Tensor, noise: Tensor) -> Improvement:
        """Write the actor's gradient."""
        actor, critics = self.actor.networks[0], self.critics.networks
        inputs = layer_inputs(actor, sample["observation"])
        improvement = self.kind.improvement(last_outputs(actor, inputs[-1]), critics, sample, temperature, noise)
        backward(actor, self.actor.gradients[0], inputs, improvement.gradient)
        return improvement

    def _watched(self, taught: Taught) -> dict[str, float]:
        target, values, actor = taught
        size, both = self.scale.size, torch.stack(values)
        found = (
            (both - target).square().mean(),
            actor.loss.mean(),
            size * self.log_temperature.exp(),
            actor.entropy.mean(),
            *(size * both.mean(), size * both.min(), size * both.max()),
            explained_variance(target, values[0], torch.ones_like(target)),
            *(self.actor.gradient.norm(), self.critics.gradient.norm()),
        )
        return dict(zip(WATCHED, torch.stack(found).tolist(), strict=True))

    @property
    def finite(self) -> bool:
        """Whether all its parameters are finite numbers."""
        return all(bool(part.vector.isfinite().all()) for part in (self.actor, self.critics))

    def state_dict(self) -> dict[str, Any]:
        return {
            "actor": self.actor.state_dict(),
            "critics": self.critics.state_dict(),
            "targets": self.targets.vector.clone(),
            "log_temperature": self.log_temperature.clone(),
            "scale": self.scale.state_dict(),
            "gradient_steps": self.gradient_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.actor.load_state_dict(state["actor"])
        self.critics.load_state_dict(state["critics"])
        self.targets.vector.copy_(torch.as_tensor(state["targets"]))
        self.log_temperature.copy_(torch.as_tensor(state["log_temperature"]))
        self.scale.load_state_dict(state["scale"])
        self.gradient_steps = state["gradient_steps"]


def _features(space: Space) -> int:
    if not isinstance(space, Box) or len(space.shape) != 1:
        raise ValueError(
            f"SAC needs observations that are rows of features, Box((D,)); got {space}: flatten them first"
        )
    return space.shape[0]
