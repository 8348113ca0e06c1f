"""Learning from demonstrations: how well a network explains what was done, and a gradient to do so better."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor

from games.game import Policy, factors
from games.noise import Noise, Purpose, unit_seed
from marl.buffers import precise
from marl.demonstrations import Demonstrations
from marl.gaussian import LOG_STD, bounds, in_box, log_prob, moments, squash_correction
from marl.heads import head_of
from marl.networks import Layers, Parameters, backward, computing, last_outputs, layer_inputs, policy_outputs
from marl.oracles.behavioural_cloning import BehaviouralCloning
from marl.oracles.oracle import Progress
from marl.policies import masked
from marl.soft import unit_actions

NARROWEST = -3.0
"""Log standard deviation below which Gaussians are not narrowed: a deterministic expert would have none at all."""
EDGE = 1 - 1e-3
"""How near to the bounds of a Box actions count, for those on them have no finite pre-action."""


class Fit(NamedTuple):
    """How well outputs explain M demonstrated actions."""

    gradient: Tensor  # [M, O] of the mean loss, by the outputs
    loss: Tensor  # [M] minus the logarithm of the action's likelihood
    miss: Tensor  # [M] of the likeliest choice, whether it is another; of the mean action, how far off, in box widths


class Explained(Protocol):
    """A kind of actions that outputs [O, M] of a network explain."""

    def check(self, sample: Demonstrations) -> None:
        """Raises ValueError for actions that are none of the kind, or not legal."""

    def fit(self, outputs: Tensor, sample: Demonstrations) -> Fit:
        """Of outputs [O, M]."""

    def uniform_loss(self, sample: Demonstrations) -> Tensor:
        """[M] loss of who knows nothing but what is legal."""


class ExplainedChoices:
    """One choice a factor, explained by logits. Implements `Explained`."""

    def __init__(self, space: Space):
        self.space, self.sizes = space, torch.tensor(factors(space))
        self.shape = (len(self.sizes), int(self.sizes.max()))

    def check(self, sample: Demonstrations) -> None:
        actions, sizes = sample.actions, self.sizes.to(sample.actions.device)[:, None]
        if actions.dtype != torch.int64 or len(actions) != len(sizes) or not ((actions >= 0) & (actions < sizes)).all():
            raise ValueError(
                f"demonstrated actions must be [{len(sizes)}, M] int64 choices of {self.space}, got {actions}"
            )
        if sample.allowed is not None:
            forbidden = ~sample.allowed.gather(1, actions[:, None]).all(1).all(0)
            if forbidden.any():
                row = int(forbidden.nonzero()[0])
                raise ValueError(f"decision {row} demonstrates {actions[:, row].tolist()}, which is not legal there")

    def fit(self, outputs: Tensor, sample: Demonstrations) -> Fit:
        """Cross-entropy: d loss / d logit = probability - 1[demonstrated]."""
        logits = outputs.view(*self.shape, outputs.shape[1])
        if sample.allowed is not None:
            logits = masked(logits, sample.allowed)
        chosen = sample.actions[:, None]
        gradient = logits.softmax(1)
        gradient.scatter_add_(1, chosen, torch.full_like(chosen, -1.0, dtype=gradient.dtype))
        loss = -logits.log_softmax(1).gather(1, chosen).sum((0, 1))
        wrong = (logits.max(1).indices != sample.actions).any(0)
        return Fit(gradient.flatten(0, 1).t() / len(loss), loss, wrong.to(loss.dtype))

    def uniform_loss(self, sample: Demonstrations) -> Tensor:
        if sample.allowed is None:
            return self.sizes.to(sample.source.device).log().sum().expand(sample.source.shape)
        return sample.allowed.sum(1).log().sum(0)


class ExplainedActions:
    """A point of a bounded Box, explained by a squashed Gaussian; densities are those in [-1, 1]^D.

    Implements `Explained`.
    """

    def __init__(self, space: Space):
        self.low, self.high = (torch.as_tensor(bound) for bound in bounds(space))

    def check(self, sample: Demonstrations) -> None:
        actions = sample.actions
        if len(actions) != len(self.low) or not actions.isfinite().all():
            raise ValueError(f"demonstrated actions must be [{len(self.low)}, M] finite numbers, got {actions}")

    def fit(self, outputs: Tensor, sample: Demonstrations) -> Fit:
        """Minus the log density; with z = (u - mean) / sigma, d / d mean = -z / sigma and d / d log sigma = 1 - z^2."""
        low, high = (bound.to(outputs.device) for bound in (self.low, self.high))
        u = unit_actions(sample.actions.t(), low, high).t().clamp(-EDGE, EDGE).atanh()
        mean, given = outputs.chunk(2)
        log_std = given.clamp(NARROWEST, LOG_STD[1])
        z = (u - mean) * (-log_std).exp()
        by_mean = -z * (-log_std).exp()
        by_log_std = torch.where(given == log_std, 1 - z.square(), 0.0)
        loss = squash_correction(u) - log_prob(torch.cat([mean, log_std]), u)
        widths = (high - low).clamp(min=torch.finfo(high.dtype).tiny)[:, None]
        miss = (in_box(moments(outputs).mean, low, high) - sample.actions).abs() / widths
        return Fit(torch.cat([by_mean, by_log_std]).t() / len(loss), loss, miss.mean(0))

    def uniform_loss(self, sample: Demonstrations) -> Tensor:
        return torch.full_like(sample.observations[:, 0], len(self.low) * math.log(2))


def explained(space: Space) -> Explained:
    """The kind of an action space. Raises ValueError for any but Discrete, MultiDiscrete and bounded Boxes (D,)."""
    return ExplainedActions(space) if isinstance(space, Box) else ExplainedChoices(space)


class Imitator:
    """A network that comes to do as is demonstrated to it, one gradient step after the other.

    Raises ValueError for observations that are not rows of features, and for a policy to start from of another kind.
    """

    def __init__(
        self,
        seen: Space,
        space: Space,
        hidden: Sequence[int],
        name: int | str,
        seed: int,
        device: str,
        start: Policy | None,
        weight_decay: float = 0.0,
        autocast: bool = False,
    ):
        features = seen.shape or ()
        if len(features) != 1:
            raise ValueError(f"observations must be rows of features, Box((D,)); got {seen}: flatten them first")
        self.weight_decay, self.autocast, self.explained = weight_decay, autocast, explained(space)
        self.head = head_of(space, log_std=0.0)
        generator = np.random.default_rng(unit_seed(seed, f"init/{name}"))
        actor = self.head.layers(features[0], hidden, generator)
        resumed = actor if start is None else self.head.resumed(start, features[0])
        self.parameters = Parameters([resumed], torch.device(device))
        (self.actor,) = self.parameters.networks

    def fit(self, sample: Demonstrations) -> Fit:
        """How well the network explains these."""
        return self.explained.fit(policy_outputs(self._computing(), sample.observations), sample)

    def step(self, batch: Demonstrations, learning_rate: float) -> Tensor:
        """Adam with decoupled weight decay [Loshchilov & Hutter 2019]; loss, miss, and norm of the gradient."""
        actor = self._computing()
        inputs = layer_inputs(actor, batch.observations)
        fit = self.explained.fit(last_outputs(actor, inputs[-1]), batch)
        backward(actor, self.parameters.gradients[0], inputs, fit.gradient)
        if self.weight_decay:
            for weight, _ in self.actor:  # biases stay, among them those of choices that do not exist
                weight.mul_(1 - learning_rate * self.weight_decay)
        self.parameters.descend(learning_rate)
        return torch.stack([fit.loss.mean(), fit.miss.mean(), self.parameters.gradient.norm()])

    def _computing(self) -> Layers:
        """The network, as it is computed with."""
        return computing(self.actor, self.autocast)

    @property
    def finite(self) -> bool:
        """Whether all parameters are finite numbers."""
        return bool(self.parameters.vector.isfinite().all())

    def policy(self, greedy: bool) -> Policy:
        """As fitted so far; further steps leave it as it is."""
        copied = [(weight.clone(), bias.clone()) for weight, bias in self.actor]
        return self.head.policy(copied, greedy)


class Student:
    """A network, and the demonstrations it learns from."""

    def __init__(
        self,
        settings: BehaviouralCloning,
        seen: Space,
        space: Space,
        name: int | str,
        seed: int,
        device: str,
        start: Policy | None,
    ):
        self.settings, self.device = settings, torch.device(device)
        self.imitator = Imitator(
            seen, space, settings.hidden, name, seed, device, start, settings.weight_decay, settings.autocast
        )
        self.shuffles = Noise(seed, [f"shuffle/{name}"])
        self.demonstrations: Demonstrations | None = None

    def watch(self, demonstrations: Demonstrations) -> None:
        """Learn from these from now on. Raises ValueError where they do not fit."""
        seen, actions, allowed, source = demonstrations
        counts = len(seen), actions.shape[-1], len(source), len(seen) if allowed is None else allowed.shape[-1]
        if len(set(counts)) > 1 or seen.ndim != 2 or not seen.isfinite().all():
            raise ValueError(
                f"demonstrations are as many finite observations [M, D] as actions, sources and masks, got {counts}"
            )
        self.imitator.explained.check(demonstrations)
        self.demonstrations = demonstrations
        self.known, self.held_out = demonstrations.split(self.settings.held_out)

    def epoch(self, number: int, learning_rate: float) -> dict[str, float]:
        """A gradient step a batch of what is known; metrics by name."""
        order = self._shuffled(number)
        batches = [self.known.rows(rows) for rows in order.split(self.settings.batch_size)]
        weights = torch.tensor([len(batch.source) for batch in batches], device=order.device) / len(order)
        told = torch.stack([self.imitator.step(batch, learning_rate) for batch in batches])
        loss, miss, norm = (weights @ told).tolist()
        watched = {"loss": loss, "miss": miss, "grad_norm": norm}
        watched["uniform_loss"] = self.imitator.explained.uniform_loss(self.known).mean().item()
        if len(self.held_out.source):
            fit = self.imitator.fit(self.held_out)
            watched |= {"held_out_loss": fit.loss.mean().item(), "held_out_miss": fit.miss.mean().item()}
        return watched

    def _shuffled(self, epoch: int) -> Tensor:
        source = self.known.source
        keys = precise(self.shuffles.draw(Purpose.SHUFFLE, epoch, len(source), 2))
        return torch.as_tensor(np.argsort(keys, kind="stable"), device=source.device)

    def policy(self) -> Policy:
        """As fitted so far; further epochs leave it as it is."""
        return self.imitator.policy(self.settings.greedy)

    def state_dict(self) -> dict[str, Any]:
        shown = None if self.demonstrations is None else tuple(self.demonstrations)
        return {"parameters": self.imitator.parameters.state_dict(), "demonstrations": shown}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.imitator.parameters.load_state_dict(state["parameters"])
        shown = state["demonstrations"]
        if shown is None:
            self.demonstrations = None
        else:
            parts: list[Any] = [None if part is None else torch.as_tensor(part, device=self.device) for part in shown]
            self.watch(Demonstrations(*parts))


def clone(
    demonstrations: Demonstrations,
    space: Space,
    settings: BehaviouralCloning | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Policy:
    """A policy that does as was demonstrated, by whomever; of the settings, expert, steps and lanes play no part.

    Raises ValueError where demonstrations do not fit the space, or are too few to hold some out.

    >>> from gymnasium.spaces import Discrete
    >>> observations = torch.rand(1000, 4, generator=torch.Generator().manual_seed(0))
    >>> right = (observations[:, 2] > 0.5).long()
    >>> shown = Demonstrations(observations, right[None], None, torch.arange(1000))
    >>> copy = clone(shown, Discrete(2), BehaviouralCloning(batch_size=50))
    >>> actions, _ = copy.act(observations, None, None, torch.zeros(1000, 0))
    >>> bool((actions == right).float().mean() > 0.98)
    True
    """
    settings = settings or BehaviouralCloning()
    features = Box(-np.inf, np.inf, (demonstrations.observations.shape[1],), np.float32)
    student = Student(settings, features, space, "clone", seed, device, None)
    student.watch(demonstrations)
    for epoch in range(settings.epochs):
        told = student.epoch(epoch, settings.rate(epoch))
        if progress is not None:
            progress({"update": epoch + 1} | told)
    return student.policy()
