"""The learning behind `DQN`: play with some random choices, remember all, and fit values to what they should be."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from torch import Tensor

from games.game import Array, Lanes, Legal, Policy, factors
from games.noise import Noise, Purpose, unit_seed
from marl.buffers import Replay, precise
from marl.experience import Experience
from marl.losses import explained_variance
from marl.networks import FORBIDDEN, Layers, Parameters, backward, clip_norm, last_outputs, layer_inputs, policy_outputs
from marl.oracles.checks import check_lanes
from marl.oracles.dqn import DQN
from marl.oracles.oracle import diverged, named
from marl.policies import NeuralPolicy, draw, like, masked, padded, tensor
from marl.prioritised import Prioritised
from marl.q_learning import Branches, Miss, q_loss, q_targets
from marl.scales import RewardScale

WATCHED = ("value_loss", "td_error", "explained_variance", "q_mean", "q_min", "q_max", "grad_norm")


class DQNLearner:
    """Implements `marl.oracles.Learner`; see `DQN.learner`."""

    def __init__(
        self,
        settings: DQN,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        check_lanes(settings, lanes, seats)
        for agent, seen, space in zip(lanes.agents, lanes.observation_spaces, lanes.action_spaces, strict=True):
            if not isinstance(space, Discrete | MultiDiscrete):
                raise ValueError(
                    f"DQN needs Discrete or MultiDiscrete actions, but {agent} has {space}: use sac or ppo"
                )
            if len(seen.shape or ()) != 1:
                raise ValueError(
                    f"DQN needs rows of features, Box((D,)), but {agent} observes {seen}: flatten them first"
                )
        self.settings, self.lanes, self.seats, self.done_updates = settings, lanes, tuple(seats), 0
        lanes.reset(seed, "train")
        self.experience = Experience(lanes, settings.capacity, settings.gamma, settings.n_step, device)
        self.trainees = [
            QTrainee(settings, replay, space, seat, seed, start.get(seat))
            for replay, space, seat in zip(self.experience.replays, lanes.action_spaces, self.seats, strict=True)
        ]

    @property
    def finished(self) -> bool:
        return self.done_updates >= self.settings.updates

    @property
    def policies(self) -> dict[int, Policy]:
        return {
            seat: NeuralPolicy.of(trainee.copied_values(), trainee.space, greedy=True)
            for seat, trainee in zip(self.seats, self.trainees, strict=True)
        }

    def update(self) -> dict[str, float]:
        """Some steps and the gradient steps that follow; metrics are named `.../seat` where several seats learn.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; `epsilon` the share of random choices in them; the rest is of the last gradient step's minibatch, and nan
        before the first: `value_loss`, the mean squared error (beyond `huber` twice the Huber loss), in the units of
        reward that values count in; `grad_norm` before it is clipped; `td_error` and the values in units of reward.
        Raises FloatingPointError where a loss is no longer finite.
        """
        settings, update = self.settings, self.done_updates
        epsilon, left = settings.epsilon(update / settings.updates), 1 - update / settings.updates
        players = [EpsilonGreedy(trainee.values(), trainee.space, epsilon) for trainee in self.trainees]
        pushed = self.experience.play(players, settings.horizon)
        steps = (update + 1) * settings.batch
        returns, errors = (statistic.tolist() for statistic in self.experience.returns.mean())
        metrics: dict[str, float] = {"update": update + 1, "steps": steps, "epsilon": epsilon}
        for column, (seat, trainee) in enumerate(zip(self.seats, self.trainees, strict=True)):
            trainee.remember(pushed[column])
            watched = {"return": returns[column], "return_error": errors[column]}
            if steps >= settings.learning_starts and trainee.replay.size:
                improved = trainee.improve(settings.gradient_steps, left)
                if not (all(map(math.isfinite, improved.values())) and trainee.finite):
                    raise diverged(seat, update + 1, steps, improved)
            else:
                improved = dict.fromkeys(WATCHED, math.nan)
            metrics |= named(self.seats, seat, watched | improved)
        self.done_updates += 1
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """The replays among it."""
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


class QTrainee:
    """One seat's networks, optimiser and priorities."""

    def __init__(self, settings: DQN, replay: Replay, space: Space, seat: int, seed: int, start: Policy | None):
        self.settings, self.replay, self.space, self.choices = settings, replay, space, factors(space)
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
        self.priorities = Prioritised(settings.capacity, alpha) if alpha else None

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

    def improve(self, gradient_steps: int, left: float) -> dict[str, float]:
        """So many gradient steps, with this share of the training left; the WATCHED of the last."""
        settings = self.settings
        learning_rate = settings.learning_rate * (left if settings.anneal else 1.0)
        beta = 1 + (settings.priority_beta - 1) * left
        if settings.normalise_rewards:
            self._rescale()
        for _ in range(gradient_steps):
            missed, norm = self._step(learning_rate, beta)
        chosen, errors = (part.flatten() * self.scale.size for part in (missed.chosen, missed.errors))
        fit = explained_variance(chosen - errors, chosen, torch.ones_like(chosen))
        watched = (2 * missed.losses.mean(), errors.abs().mean(), fit, chosen.mean(), chosen.min(), chosen.max(), norm)
        return dict(zip(WATCHED, torch.stack(watched).tolist(), strict=True))

    def _rescale(self) -> None:
        """Let values count in the size of the rewards now, and stay what they are, if they were learnt."""
        known, before = self.resumed or self.scale.seen > 0, self.scale.size
        places, _ = self._drawn(1.0)
        self.scale.follow(self.replay.take(places)["reward"])
        if known:
            for parameters in (self.parameters, self.target):
                for part in parameters.networks[0][-1]:
                    part.mul_(before / self.scale.size)

    def _step(self, learning_rate: float, beta: float) -> tuple[Miss, Tensor]:
        """One gradient step; how far the values were from their targets, and the gradient's norm."""
        settings, parameters = self.settings, self.parameters
        places, weights = self._drawn(beta)
        sample = self.replay.take(places)
        online, target = self.values(), self.branches.folded(self.target.networks[0])
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

    def _branched(self, outputs: Tensor) -> Tensor:
        return outputs.view(len(self.choices), max(self.choices), -1)

    def _drawn(self, beta: float) -> tuple[np.ndarray, Tensor | None]:
        """Places to learn from, and the weights of their losses."""
        uniforms = precise(self.noise.draw(Purpose.SHUFFLE, self.gradient_steps, self.settings.minibatch, 2))
        if self.priorities is None:
            return self.replay.draw(uniforms), None
        places = self.priorities.draw(uniforms)
        return places, torch.as_tensor(self.priorities.weights(places, beta), device=self.replay.rows.device)

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
