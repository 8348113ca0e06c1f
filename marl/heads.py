"""Action distributions: what the outputs of a policy network mean to those who play with them and train them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from torch import Tensor

from games.game import Policy, factors
from marl.gaussian import GaussianPolicy, bounds, in_box, log_prob, sample
from marl.losses import PolicyGradient, clipped_gaussian_gradient, clipped_policy_gradient
from marl.networks import Layers, orthogonal_layers, policy_layers
from marl.policies import NeuralPolicy, draw, masked


class Drawn(NamedTuple):
    """Actions as they are recorded, one row a factor or dimension, and the logarithms of their probabilities."""

    actions: Tensor  # [R, B]
    log_probs: Tensor  # [B]


class Head(Protocol):
    """A family of distributions over one action space; outputs are [O, B], the rows of a batch last."""

    rows: int
    """R: of recorded actions; and columns of noise that a draw takes."""
    width: int
    """Choices of the factor that has most: of masks as `marl.policies.padded` makes them."""
    dtype: torch.dtype
    """Of recorded actions."""

    def layers(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        """Fresh layers of a policy network."""

    def draw(self, outputs: Tensor, allowed: Tensor | None, noise: Tensor) -> Drawn:
        """One action a row, for uniforms [R, B] and masks [F, A, B]."""

    def played(self, actions: Tensor) -> Tensor:
        """Recorded actions [R, B] as lanes take them."""

    def gradient(self, outputs: Tensor, sample: dict[str, Tensor], clip: float, entropy_coef: float) -> PolicyGradient:
        """Of the clipped objective by the outputs [O, M].

        The sample holds `actions` [R, M] and, all [M], their old `log_probs`, `advantages` and the weights `acting`;
        where something was forbidden, `allowed` [F, A, M] too.
        """

    def policy(self, layers: Layers, greedy: bool) -> Policy:
        """To play with."""

    def resumed(self, start: Policy, features: int) -> Layers:
        """The layers of a policy to go on from. Raises ValueError where it is of another kind or size.

        features: that the first layer takes, or channels of pictures.
        """


class Categorical:
    """Independent choices, one a factor, of Discrete or MultiDiscrete actions. Implements `Head`.

    Raises ValueError for any other space.
    """

    dtype = torch.int64

    def __init__(self, space: Space):
        self.space, self.choices = space, factors(space)
        self.rows, self.width = len(self.choices), max(self.choices)

    def layers(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        return policy_layers(features, hidden, self.choices, generator)

    def draw(self, outputs: Tensor, allowed: Tensor | None, noise: Tensor) -> Drawn:
        probabilities = self._logits(outputs, allowed).softmax(1)
        actions = draw(probabilities, noise)
        return Drawn(actions, probabilities.gather(1, actions[:, None]).log().sum((0, 1)))

    def played(self, actions: Tensor) -> Tensor:
        return actions.t() if self.space.shape else actions[0]

    def gradient(self, outputs: Tensor, sample: dict[str, Tensor], clip: float, entropy_coef: float) -> PolicyGradient:
        found = clipped_policy_gradient(
            self._logits(outputs, sample.get("allowed")),
            sample["actions"],
            sample["log_probs"],
            sample["advantages"],
            sample["acting"],
            clip,
            entropy_coef,
        )
        return found._replace(outputs=found.outputs.flatten(0, 1))

    def policy(self, layers: Layers, greedy: bool) -> NeuralPolicy:
        return NeuralPolicy.of(layers, self.space, greedy)

    def resumed(self, start: Policy, features: int) -> Layers:
        if not isinstance(start, NeuralPolicy) or (start.features, start.choices) != (features, self.choices):
            raise ValueError(
                f"training goes on from a NeuralPolicy of {features} features and choices {self.choices}, got {start}"
            )
        return start.layers

    def _logits(self, outputs: Tensor, allowed: Tensor | None) -> Tensor:
        logits = outputs.view(self.rows, self.width, outputs.shape[1])
        return logits if allowed is None else masked(logits, allowed)


class Gaussian:
    """Independent Gaussians, one a dimension of a bounded Box, squashed into it. Implements `Head`.

    Actions are recorded as they were before squashing, and `entropy` is of these: ratios of probabilities are the same,
    and bounds are no trouble. Networks put out means and log standard deviations; the latter start at `log_std`.

    Raises ValueError for any other space.
    """

    dtype = torch.float32
    width = 0  # nothing is ever forbidden

    def __init__(self, space: Space, log_std: float = -0.5):
        self.space, self.log_std = space, log_std
        self.low, self.high = map(torch.as_tensor, bounds(space))
        self.rows = len(self.low)

    def layers(self, features: int, hidden: Sequence[int], generator: np.random.Generator) -> Layers:
        layers = orthogonal_layers((features, *hidden, 2 * self.rows), 0.01, generator)
        weight, bias = layers[-1]
        weight[self.rows :], bias[self.rows :] = 0.0, self.log_std
        return layers

    def draw(self, outputs: Tensor, allowed: Tensor | None, noise: Tensor) -> Drawn:
        actions = sample(outputs, noise)
        return Drawn(actions, log_prob(outputs, actions))

    def played(self, actions: Tensor) -> Tensor:
        return in_box(actions, self.low.to(actions.device), self.high.to(actions.device)).t()

    def gradient(self, outputs: Tensor, sample: dict[str, Tensor], clip: float, entropy_coef: float) -> PolicyGradient:
        return clipped_gaussian_gradient(
            outputs,
            sample["actions"],
            sample["log_probs"],
            sample["advantages"],
            sample["acting"],
            clip,
            entropy_coef,
        )

    def policy(self, layers: Layers, greedy: bool) -> GaussianPolicy:
        return GaussianPolicy.of(layers, self.space, greedy)

    def resumed(self, start: Policy, features: int) -> Layers:
        if not isinstance(start, GaussianPolicy) or start.features != features or not self._acts_alike(start):
            raise ValueError(
                f"training goes on from a GaussianPolicy of {features} features in {self.space}, got {start}"
            )
        return start.layers

    def _acts_alike(self, start: GaussianPolicy) -> bool:
        bounds = zip((start.low, start.high), (self.low, self.high), strict=True)
        return all(torch.equal(theirs.cpu(), ours) for theirs, ours in bounds)


def head_of(space: Space, log_std: float = -0.5) -> Head:
    """The distributions that policy gradients train over an action space; Gaussians start at `log_std`.

    Raises ValueError where there are none.
    """
    if isinstance(space, Discrete | MultiDiscrete):
        return Categorical(space)
    if isinstance(space, Box):
        return Gaussian(space, log_std)
    raise ValueError(f"policy gradients need Discrete, MultiDiscrete or Box actions, got {space}")
