"""The learning behind `DQN`: play with some random choices, remember all, and fit values to what they should be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from torch import Tensor

from games.game import Array, Lanes, Legal, Policy, factors
from games.noise import Noise, Purpose, unit_seed
from marl.buffers import Replay, precise
from marl.losses import explained_variance
from marl.networks import (
    FORBIDDEN,
    Layers,
    Parameters,
    backward,
    clip_norm,
    computing,
    last_outputs,
    layer_inputs,
    policy_outputs,
)
from marl.oracles.dqn import DQN
from marl.oracles.off_policy import OffPolicyLearner
from marl.policies import NeuralPolicy, draw, like, masked, padded, tensor
from marl.prioritised import Prioritised
from marl.q_learning import Branches, Miss, q_loss, q_targets
from marl.scales import RewardScale


class DQNLearner(OffPolicyLearner):
    """Implements `marl.oracles.Learner`; see `DQN.learner`."""

    settings: DQN
    trainees: "list[QTrainee]"

    def __init__(
        self,
        settings: DQN,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        for agent, seen, space in zip(lanes.agents, lanes.observation_spaces, lanes.action_spaces, strict=True):
            if not isinstance(space, Discrete | MultiDiscrete):
                raise ValueError(
                    f"DQN needs Discrete or MultiDiscrete actions, but {agent} has {space}: use sac or ppo"
                )
            if len(seen.shape or ()) != 1:
                raise ValueError(
                    f"DQN needs rows of features, Box((D,)), but {agent} observes {seen}: flatten them first"
                )
        super().__init__(settings, lanes, seats, seed, device)
        self.trainees = [
            QTrainee(settings, replay, space, seat, seed, start.get(seat))
            for replay, space, seat in zip(self.experience.replays, lanes.action_spaces, self.seats, strict=True)
        ]

    @property
    def policies(self) -> dict[int, Policy]:
        return {
            seat: NeuralPolicy.of(trainee.copied_values(), trainee.space, greedy=True)
            for seat, trainee in zip(self.seats, self.trainees, strict=True)
        }

    def update(self) -> dict[str, float]:
        """As `OffPolicyLearner.update`.

        `epsilon` is the share of random choices; `value_loss` the mean squared error (beyond `huber` twice the Huber
        loss), in the units of reward that values count in; `grad_norm` is before it is clipped; `td_error` and the
        values are in units of reward.
        """
        epsilon = self._epsilon
        return super().update() | {"epsilon": epsilon}

    @property
    def _epsilon(self) -> float:
        return self.settings.epsilon(self.done_updates / self.settings.updates)

    def _play(self) -> None:
        players = [EpsilonGreedy(trainee.values(), trainee.space, self._epsilon) for trainee in self.trainees]
        pushed = self.experience.play(players, self.settings.horizon)
        for trainee, places in zip(self.trainees, pushed, strict=True):
            trainee.remember(places)


class QTrainee:
    """One seat's networks, optimiser and priorities. Implements `marl.oracles.off_policy.Trainee`."""

    watched: tuple[str, ...] = ("value_loss", "td_error", "explained_variance", "q_mean", "q_min", "q_max", "grad_norm")

    def __init__(self, settings: DQN, replay: Replay, space: Space, seat: int, seed: int, start: Policy | None):
        self.settings, self.space, self.choices = settings, space, factors(space)
        features, device = replay.rows.record["observation"].shape[0], replay.rows.device
        self.branches = Branches(self.choices, settings.duelling, device)
        generator = np.random.default_rng(unit_seed(seed, f"init/{seat}"))
        layers = self.branches.layers(features, settings.hidden, generator)
        self.resumed = start is not None
        if start is not None:
            layers = self.branches.unfolded(_checked(start, features, self.choices))
        self.parameters, self.target = Parameters([layers], device), Parameters([layers], device)
        self.scale = RewardScale()
        self.noise, self.gradient_steps = Noise(seed, [f"replay/{seat}"]), 0
        alpha = settings.priority_alpha
        self.priorities = Prioritised(replay.capacity, alpha) if alpha else None

    def values(self) -> Layers:
        """Layers of the values of choices, in units of the rewards' scale."""
        return self.branches.folded(self.parameters.networks[0])

    def copied_values(self) -> Layers:
        """Layers of the values of choices, that further training leaves as they are."""
        layers = self.branches.folded(self.parameters.networks[0], self.scale.size)
        return [(weight.clone(), bias.clone()) for weight, bias in layers]

    @property
    def finite(self) -> bool:
        return bool(self.parameters.vector.isfinite().all())

    def remember(self, places: np.ndarray) -> None:
        """Transitions were pushed to these places."""
        if self.priorities is not None:
            self.priorities.add(places)

    def improve(self, replay: Replay, left: float) -> dict[str, float]:
        settings = self.settings
        learning_rate = settings.learning_rate * (left if settings.anneal else 1.0)
        beta = 1 + (settings.priority_beta - 1) * left
        if settings.normalise_rewards:
            self._rescale(replay)
        for _ in range(settings.gradient_steps):
            missed, norm = self._step(replay, learning_rate, beta)
        chosen, errors = missed.chosen.flatten(), missed.errors.flatten()
        fit = explained_variance(chosen - errors, chosen, torch.ones_like(chosen))
        told = self.scale.size * torch.stack([errors.abs().mean(), chosen.mean(), chosen.min(), chosen.max()])
        found = (2 * missed.losses.mean(), told[0], fit, *told[1:], norm)
        return dict(zip(self.watched, torch.stack(found).tolist(), strict=True))

    def _rescale(self, replay: Replay) -> None:
        """Let values count in the size of the rewards now, and stay what they are, if they were learnt."""
        known, before = self.resumed or self.scale.seen > 0, self.scale.size
        places, _ = self._drawn(replay, 1.0)
        self.scale.follow(replay.take(places)["reward"])
        if known:
            for parameters in (self.parameters, self.target):
                for part in parameters.networks[0][-1]:
                    part.mul_(before / self.scale.size)

    def _step(self, replay: Replay, learning_rate: float, beta: float) -> tuple[Miss, Tensor]:
        """One gradient step; how far the values were from their targets, and the gradient's norm."""
        settings, parameters = self.settings, self.parameters
        places, weights = self._drawn(replay, beta)
        sample = replay.take(places)
        online, target = self._computing(self.parameters), self._computing(self.target)
        inputs = layer_inputs(online, sample["observation"])
        values = self._branched(last_outputs(online, inputs[-1]))
        ahead = sample["next_observation"]
        targets = q_targets(
            sample["reward"] / self.scale.size,
            sample["discount"],
            self._branched(policy_outputs(online, ahead)),
            self._branched(policy_outputs(target, ahead)),
            sample["next_legal"].movedim(0, 2) if "next_legal" in sample else None,
        )
        missed = q_loss(values, sample["action"].t(), targets, weights, settings.huber)
        gradients = parameters.gradients[0]
        folded = (torch.empty_like(online[-1][0]), torch.empty_like(online[-1][1]))
        backward(online, [*gradients[:-1], folded], inputs, missed.gradient.flatten(0, 1).t())
        self.branches.write_gradient(gradients[-1], folded)
        norm = clip_norm(parameters.gradient, settings.max_grad_norm)
        parameters.descend(learning_rate)
        self.gradient_steps += 1
        if self.gradient_steps % settings.target_every == 0:
            self.target.vector.lerp_(parameters.vector, settings.target_rate)
        if self.priorities is not None:
            self.priorities.update(places, missed.errors.abs().mean(0).numpy(force=True))
        return missed, norm

    def _computing(self, parameters: Parameters) -> Layers:
        """Layers of values, as they are computed with."""
        return computing(self.branches.folded(parameters.networks[0]), self.settings.autocast)

    def _branched(self, outputs: Tensor) -> Tensor:
        return outputs.view(len(self.choices), max(self.choices), -1)

    def _drawn(self, replay: Replay, beta: float) -> tuple[np.ndarray, Tensor | None]:
        """Places to learn from, and the weights of their losses."""
        uniforms = precise(self.noise.draw(Purpose.SHUFFLE, self.gradient_steps, self.settings.minibatch, 2))
        if self.priorities is None:
            return replay.draw(uniforms), None
        places = self.priorities.draw(uniforms)
        return places, torch.as_tensor(self.priorities.weights(places, beta), device=replay.rows.device)

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters.state_dict(),
            "target": self.target.vector.clone(),
            "scale": self.scale.state_dict(),
            "gradient_steps": self.gradient_steps,
            "priorities": None if self.priorities is None else self.priorities.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parameters.load_state_dict(state["parameters"])
        self.target.vector.copy_(torch.as_tensor(state["target"]))
        self.scale.load_state_dict(state["scale"])
        self.gradient_steps = state["gradient_steps"]
        if self.priorities is not None:
            self.priorities.load_state_dict(state["priorities"])


class EpsilonGreedy:
    """Each factor's best choice, or with probability `epsilon` any legal one. Implements `games.game.Policy`.

    `layers` end in F * A values, see `marl.q_learning`.
    """

    def __init__(self, layers: Layers, space: Space, epsilon: float):
        self.layers, self.flat, self.epsilon, self.choices = layers, space.shape == (), epsilon, factors(space)
        self.device = layers[0][0].device

    @property
    def noise_size(self) -> int:
        return len(self.choices)

    def start(self, lanes: int) -> None:
        return None

    @torch.inference_mode()
    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        outputs = policy_outputs(self.layers, tensor(observation, self.device))
        values = outputs.view(len(self.choices), max(self.choices), -1)
        if legal is not None:
            values = masked(values, padded(legal, max(self.choices), self.device))
        allowed = (values > FORBIDDEN).to(torch.float32)
        probabilities = allowed * (self.epsilon / allowed.sum(1, keepdim=True))
        greedy = torch.full_like(probabilities[:, :1], 1 - self.epsilon)
        probabilities.scatter_add_(1, values.max(1, keepdim=True).indices, greedy)
        actions = draw(probabilities, tensor(noise, self.device).t())
        return like(actions[0] if self.flat else actions.t(), observation), None


def _checked(start: Policy, features: int, choices: tuple[int, ...]) -> Layers:
    if not isinstance(start, NeuralPolicy) or (start.features, start.choices) != (features, choices):
        raise ValueError(f"DQN goes on from a NeuralPolicy of {features} features and choices {choices}, got {start}")
    return start.layers
