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
from marl.networks import Layers, Parameters, backward, computing, last_outputs, layer_inputs
from marl.oracles.checks import check_lanes
from marl.oracles.off_policy import OffPolicyLearner
from marl.oracles.sac import SAC
from marl.oracles.sac_kinds import Improvement, Sample, kind_of
from marl.policies import tensor
from marl.scales import RewardScale


class SACLearner(OffPolicyLearner):
    """Implements `marl.oracles.Learner`; see `SAC.learner`."""

    settings: SAC
    trainees: "list[SoftTrainee]"

    def __init__(
        self, settings: SAC, lanes: Lanes, seats: Sequence[int], seed: int, device: str, start: Mapping[int, Policy]
    ):
        check_lanes(settings, lanes, seats)
        spaces = list(zip(lanes.observation_spaces, lanes.action_spaces, strict=True))
        self.trainees = [
            SoftTrainee(settings, *pair, seat, seed, device, start.get(seat))
            for pair, seat in zip(spaces, seats, strict=True)
        ]
        super().__init__(settings, lanes, seats, seed, device)
        self.random = [
            RandomPlay(space, Noise(seed, [f"explore/{seat}"]), settings.hold, self.experience)
            for seat, (_, space) in zip(self.seats, spaces, strict=True)
        ]

    @property
    def policies(self) -> dict[int, Policy]:
        greedy = self.settings.greedy
        return {seat: trainee.policy(greedy) for seat, trainee in zip(self.seats, self.trainees, strict=True)}

    def update(self) -> dict[str, float]:
        """As `OffPolicyLearner.update`.

        `value_loss`, the critics' mean squared error, and `actor_loss` are in the units that rewards count in;
        `entropy` in nats, of actions in a Box once they are squashed into it, as if it were [-1, 1];
        `critic_grad_norm` is of both critics.
        """
        return super().update()

    def _play(self) -> None:
        """At random at first, then by the actors as they are."""
        early = self.done_updates * self.settings.batch < self.settings.learning_starts
        players = [
            random if early and not trainee.resumed else trainee.player
            for trainee, random in zip(self.trainees, self.random, strict=True)
        ]
        self.experience.play(players, self.settings.horizon)


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
    """One seat's actor, twin critics with their slow copies, and temperature.

    Implements `marl.oracles.off_policy.Trainee`.
    """

    watched: tuple[str, ...] = (
        *("value_loss", "actor_loss", "temperature", "entropy", "q_mean", "q_min", "q_max", "explained_variance"),
        *("actor_grad_norm", "critic_grad_norm"),
    )

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
        (actor,), targets = self._computing(self.actor), self._computing(self.targets)
        beyond = kind.next_values(actor, targets, sample, temperature, ahead)
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
        for critic, gradients in zip(self._computing(self.critics), self.critics.gradients, strict=True):
            inputs = layer_inputs(critic, features)
            value = self.kind.value(last_outputs(critic, inputs[-1]), sample)
            backward(critic, gradients, inputs, self.kind.by_outputs((value - target) / len(target), sample))
            found.append(value)
        return found

    def _improve(self, sample: Sample, temperature: Tensor, noise: Tensor) -> Improvement:
        """Write the actor's gradient."""
        (actor,), critics = self._computing(self.actor), self._computing(self.critics)
        inputs = layer_inputs(actor, sample["observation"])
        improvement = self.kind.improvement(last_outputs(actor, inputs[-1]), critics, sample, temperature, noise)
        backward(actor, self.actor.gradients[0], inputs, improvement.gradient)
        return improvement

    def _computing(self, parameters: Parameters) -> list[Layers]:
        """Networks, as they are computed with."""
        return [computing(layers, self.settings.autocast) for layers in parameters.networks]

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
        return dict(zip(self.watched, torch.stack(found).tolist(), strict=True))

    @property
    def finite(self) -> bool:
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
