"""Advantages and losses of policy-gradient learners; time is the first axis."""

from typing import Any, NamedTuple

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


class Surrogate(NamedTuple):
    """The policy's part of the PPO loss, and what to watch about it; scalars."""

    loss: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def clipped_surrogate(log_ratio: Tensor, advantages: Tensor, weights: Tensor, clip: float) -> Surrogate:
    """Clipped policy-gradient loss, weighted by `weights`; all [M].

    -mean(min(r A, clamp(r, 1 - clip, 1 + clip) A)) with r = exp(log_ratio) [Schulman et al. 2017, eq. 7]; the KL
    divergence from the old policy is estimated by mean((r - 1) - log r) [Schulman 2020].
    """
    ratio = log_ratio.exp()
    gained = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    with torch.no_grad():
        kl = weighted_mean(ratio - 1 - log_ratio, weights)
        clipped = weighted_mean(((ratio - 1).abs() > clip).to(ratio.dtype), weights)
    return Surrogate(-weighted_mean(gained, weights), kl, clipped)


class _ChosenAndEntropy(torch.autograd.Function):
    """Written out, since automatic differentiation would walk the logits many times; `tests` compare the two."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        log_probs, probabilities = logits.log_softmax(1), logits.softmax(1)
        weighted = probabilities * log_probs
        entropies = -weighted.sum(1, keepdim=True)
        ctx.save_for_backward(probabilities, weighted, entropies, actions)
        return log_probs.gather(1, actions[:, None]).sum((0, 1)), entropies.sum((0, 1))

    @staticmethod
    def backward(ctx: Any, chosen_grad: Tensor, entropy_grad: Tensor) -> tuple[Tensor, None]:
        probabilities, weighted, entropies, actions = ctx.saved_tensors
        # d log p_a / d z = 1[a] - p;  d H / d z = -p (log p + H)
        grad = probabilities * (-chosen_grad - entropy_grad * entropies) - weighted * entropy_grad
        return grad.scatter_add_(1, actions[:, None], chosen_grad.expand_as(actions)[:, None]), None


def chosen_and_entropy(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability [M] of actions [F, M], and entropy [M], under logits [F, A, M]; factors add up."""
    return _ChosenAndEntropy.apply(logits, actions)


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
