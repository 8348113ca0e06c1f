"""Advantages and losses of policy-gradient learners; time is the first axis."""

from typing import NamedTuple

import torch
from torch import Tensor


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
    for step in range(len(rewards) - 2, -1, -1):
        advantages[step] += decay[step] * advantages[step + 1]
    return advantages


class PolicyGradient(NamedTuple):
    """Gradient of the clipped objective by a policy network's outputs, and what was found on the way, a sample."""

    outputs: Tensor  # d loss / d outputs
    log_ratio: Tensor  # [M] log of the chosen actions' new over old probability
    clipped: Tensor  # [M] bool: where the gradient is cut
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
    ratio = log_ratio.exp()
    clipped = torch.where(advantages > 0, ratio > 1 + clip, ratio < 1 - clip)
    share = weights / len(weights)
    by_log_prob = torch.where(clipped, 0.0, -ratio * advantages * share)
    # d log p_a / d z = 1[a] - p;  d H / d z = -p (log p + H)
    bonus = entropy_coef * share
    gradient = probabilities * (bonus * entropies - by_log_prob) + weighted * bonus
    gradient.scatter_add_(1, chosen, by_log_prob.expand(chosen.shape))
    return PolicyGradient(gradient, log_ratio, clipped, entropies.sum((0, 1)))


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
