"""Advantages and losses of policy-gradient learners; time is the first axis."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marl.gaussian import moments


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    ended: Tensor,
    gamma: float,
    gae_lambda: float,
) -> Tensor:
    """Generalised advantage estimates, all [T, ...]; the returns to fit are advantages + values.

        A_t = d_t + gamma lambda (1 - ended_t) A_{t+1},  d_t = r_t + gamma (1 - terminated_t) V'_t - V_t

    `next_values` V' are of the states the steps led to, before any restart: termination cuts the bootstrap, while an
    episode that ended otherwise (truncation) keeps it; either end cuts the trace. [Schulman et al. 2016, eq. 16]
    """
    advantages = rewards + gamma * torch.where(terminated, 0.0, next_values) - values
    decay = (~ended).to(advantages.dtype) * (gamma * gae_lambda)
    rows, decays = advantages.unbind(), decay.unbind()  # views, made at once: a step is then one call
    for step in range(len(rows) - 2, -1, -1):
        rows[step].addcmul_(decays[step], rows[step + 1])
    return advantages


class PolicyGradient(NamedTuple):
    """Gradient of the clipped objective by a policy network's outputs, and what was found on the way, a sample."""

    outputs: Tensor  # d loss / d outputs
    log_ratio: Tensor  # [M] log of the chosen actions' new over old probability
    entropy: Tensor  # [M] summed over factors


def clipped_policy_gradient(
    logits: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    clip: float,
    entropy_coef: float,
) -> PolicyGradient:
    """Gradient of mean(weights * (-min(r A, clamp(r, 1 - clip, 1 + clip) A) - entropy_coef H)) by logits [F, A, M].

    r are the ratios of the new to the old probabilities of actions [F, M], H the policy's entropies; all else is [M].
    Written out, since automatic differentiation would walk the logits many times over. [Schulman et al. 2017, eq. 7]
    """
    log_probs, probabilities = logits.log_softmax(1), logits.softmax(1)
    weighted = probabilities * log_probs
    entropies = -weighted.sum(1, keepdim=True)
    chosen = actions[:, None]
    log_ratio = log_probs.gather(1, chosen).sum((0, 1)) - old_log_probs
    share = weights / len(weights)
    by_log_prob = _by_log_prob(log_ratio, advantages, share, clip)
    # d log p_a / d z = 1[a] - p;  d H / d z = -p (log p + H)
    bonus = entropy_coef * share
    gradient = probabilities * (bonus * entropies - by_log_prob) + weighted * bonus
    gradient.scatter_add_(1, chosen, by_log_prob.expand(chosen.shape))
    return PolicyGradient(gradient, log_ratio, entropies.sum((0, 1)))


def clipped_gaussian_gradient(
    outputs: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    clip: float,
    entropy_coef: float,
) -> PolicyGradient:
    """As `clipped_policy_gradient`, by the outputs [2D, M] of Gaussians (`marl.gaussian.moments`) over [D, M].

    Log standard deviations beyond their bounds have no gradient.
    """
    mean, log_std = moments(outputs)
    precision = (-log_std).exp()
    deviations = (actions - mean) * precision
    squares = deviations.square()
    entropies = log_std + 0.5 * math.log(2 * math.pi * math.e)
    log_ratio = -(0.5 * squares + log_std + 0.5 * math.log(2 * math.pi)).sum(0) - old_log_probs
    share = weights / len(weights)
    by_log_prob = _by_log_prob(log_ratio, advantages, share, clip)
    by_log_std = torch.where(outputs[len(mean) :] == log_std, by_log_prob * (squares - 1) - entropy_coef * share, 0.0)
    gradient = torch.cat([by_log_prob * deviations * precision, by_log_std])
    return PolicyGradient(gradient, log_ratio, entropies.sum(0))


def _by_log_prob(log_ratio: Tensor, advantages: Tensor, share: Tensor, clip: float) -> Tensor:
    """[M] gradient of the clipped objective by the new log probabilities."""
    ratio = log_ratio.exp()
    clipped = torch.where(advantages > 0, ratio > 1 + clip, ratio < 1 - clip)
    return torch.where(clipped, 0.0, -ratio * advantages * share)


class ValueGradient(NamedTuple):
    """Of a critic's loss by its values."""

    values: Tensor  # [M] d loss / d values
    loss: Tensor  # [M]


def value_gradient(values: Tensor, targets: Tensor, old_values: Tensor | None, clip: float | None) -> ValueGradient:
    """Of half the squared miss, by values [M]; a sample's loss is the whole square, as it is commonly reported.

    With a `clip` the larger of (V - R)^2 and (V_old + clamp(V - V_old, -clip, clip) - R)^2 counts, so that values gain
    nothing by moving further than that from `old_values` in one update [the code of Schulman et al. 2017; Andrychowicz
    et al. 2021, section 3.4, and Engstrom et al. 2020 find that it does not help].
    """
    miss = values - targets
    if clip is None:
        return ValueGradient(miss, miss.square())
    assert old_values is not None
    moved = values - old_values
    held = old_values + moved.clamp(-clip, clip) - targets
    # Beyond the range the second loss is constant: where it is the larger, there is no gradient.
    free = (moved.abs() <= clip) | (miss.square() > held.square())
    return ValueGradient(torch.where(free, miss, 0.0), torch.maximum(miss.square(), held.square()))


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Mean of values [M] with weights [M]; 0 where no weight is left."""
    return (values * weights).sum() / weights.sum().clamp(min=1e-8)


def normalised(advantages: Tensor, weights: Tensor) -> Tensor:
    """Advantages [M] with weighted mean 0 and standard deviation 1."""
    centred = advantages - weighted_mean(advantages, weights)
    return centred / (weighted_mean(centred.square(), weights).sqrt() + 1e-8)


def explained_variance(returns: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    """1 - Var(returns - values) / Var(returns) of [M]: 1 for a perfect critic, 0 for a constant one."""

    def variance(sample: Tensor) -> Tensor:
        return weighted_mean((sample - weighted_mean(sample, weights)).square(), weights)

    return 1 - variance(returns - values) / variance(returns).clamp(min=1e-8)
