"""Advantages and losses against closed forms and automatic differentiation."""

from math import exp, log

import pytest
import torch

from marl.gaussian import LOG_STD
from marl.losses import (
    clipped_gaussian_gradient,
    clipped_policy_gradient,
    explained_variance,
    gae,
    normalised,
    value_gradient,
    weighted_mean,
)
from marl.networks import FORBIDDEN
from tests.golden_cases import select


def some(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("case", select("gae", check="gae"))
def test_golden_advantages(case):
    given = case["input"]
    rewards, values, next_values = (
        torch.tensor(given[name], dtype=torch.float64) for name in ("rewards", "values", "next_values")
    )
    terminated, ended = (torch.tensor(given[name]).bool() for name in ("terminated", "episode_end"))
    advantages = gae(rewards, values, next_values, terminated, ended, given["gamma"], given["lam"])
    assert advantages.tolist() == pytest.approx(case["expected"]["advantages"], abs=case["tolerance"])


def test_lambda_one_is_monte_carlo():
    rewards, values, next_values = some(6, 3), some(6, 3, seed=1), some(6, 3, seed=2)
    next_values[:-1] = values[1:]
    terminated = torch.zeros(6, 3, dtype=torch.bool)
    terminated[3, 0] = terminated[5, 1] = True
    gamma = 0.9
    returns = torch.zeros(7, 3, dtype=torch.float64)
    returns[6] = next_values[-1]
    for step in range(5, -1, -1):
        returns[step] = rewards[step] + gamma * returns[step + 1] * ~terminated[step]
    advantages = gae(rewards, values, next_values, terminated, terminated, gamma, 1.0)
    # The trace of a terminated row stops there, and so does what its return counts.
    returns[5, 1] = rewards[5, 1]
    torch.testing.assert_close(advantages, returns[:-1] - values)


def test_lambda_zero_is_the_temporal_difference():
    rewards, values, next_values = some(4, 2), some(4, 2, seed=1), some(4, 2, seed=2)
    never = torch.zeros(4, 2, dtype=torch.bool)
    torch.testing.assert_close(
        gae(rewards, values, next_values, never, never, 0.5, 0.0), rewards + 0.5 * next_values - values
    )


def textbook_loss(logits, actions, old_log_probs, advantages, weights, clip, entropy_coef):
    distribution = torch.distributions.Categorical(logits=logits.transpose(1, 2))
    ratio = (distribution.log_prob(actions).sum(0) - old_log_probs).exp()
    gained = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return ((-gained - entropy_coef * distribution.entropy().sum(0)) * weights).mean()


def test_the_written_gradient_is_that_of_the_textbook_loss():
    logits = some(2, 3, 200).requires_grad_()
    actions = torch.randint(3, (2, 200), generator=torch.Generator().manual_seed(1))
    old = torch.distributions.Categorical(logits=(logits + 0.3 * some(2, 3, 200, seed=2)).transpose(1, 2))
    weights = some(200, seed=4).square()
    given = (actions, old.log_prob(actions).sum(0).detach(), some(200, seed=3), weights, 0.2, 0.1)
    found = clipped_policy_gradient(logits.detach(), *given)
    textbook_loss(logits, *given).backward()
    torch.testing.assert_close(found.outputs, logits.grad)
    assert 0 < ((found.log_ratio.exp() - 1).abs() > 0.2).double().mean() < 1  # some are beyond, some within


def test_the_written_gradient_of_gaussians_is_that_of_the_textbook_loss():
    outputs = some(6, 200)
    outputs[3:, :2] = 5.0 * torch.tensor([1.0, -9.0])  # beyond the bounds of the log standard deviation
    outputs.requires_grad_()
    old, actions, advantages = some(200, seed=1) - 4, some(3, 200, seed=2), some(200, seed=3)
    weights = some(200, seed=4).square()
    mean, log_std = outputs.chunk(2)
    normal = torch.distributions.Normal(mean, log_std.clamp(*LOG_STD).exp())
    ratio = (normal.log_prob(actions).sum(0) - old).exp()
    gained = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    ((-gained - 0.1 * normal.entropy().sum(0)) * weights).mean().backward()
    found = clipped_gaussian_gradient(outputs.detach(), actions, old, advantages, weights, 0.2, 0.1)
    torch.testing.assert_close(found.outputs, outputs.grad)
    torch.testing.assert_close(found.entropy, normal.entropy().sum(0).detach())
    assert 0 < ((found.log_ratio.exp() - 1).abs() > 0.2).double().mean() < 1


ROW = {
    "logits": [0.3, -0.2, 0.7],
    "allowed": [True, True, False],
    "action": 0,
    "old_log_prob": log(0.4),
    "value": 1.4,
    "old_value": 0.9,
    "target": 0.2,
}
"""One sample, and changes of it: inside and beyond every range, for better and for worse."""
CASES = [
    {"advantage": 1.0},
    {"advantage": -1.0},
    {"advantage": 1.0, "old_log_prob": log(0.9)},
    {"advantage": -1.0, "old_log_prob": log(0.9)},
    {"advantage": 0.5, "value": 0.95, "action": 1},
    {"advantage": 0.5, "value": 0.5, "target": 2.0},
    {"advantage": 0.5, "value": 1.3, "target": 2.0, "allowed": [True, True, True], "action": 2},
]


def scalar_loss(row, clip, entropy_coef, value_coef, clip_value):
    """The whole objective of PPO for one sample, number by number."""
    weights = [exp(logit) if allowed else 0.0 for logit, allowed in zip(row["logits"], row["allowed"], strict=True)]
    chances = [weight / sum(weights) for weight in weights]
    ratio = exp(log(chances[row["action"]]) - row["old_log_prob"])
    gained = min(ratio * row["advantage"], min(max(ratio, 1 - clip), 1 + clip) * row["advantage"])
    entropy = -sum(chance * log(chance) for chance in chances if chance)
    held = row["old_value"] + min(max(row["value"] - row["old_value"], -clip_value), clip_value)
    missed = max((row["value"] - row["target"]) ** 2, (held - row["target"]) ** 2)
    return -gained - entropy_coef * entropy + value_coef * missed / 2


@pytest.mark.parametrize("case", CASES)
def test_golden_gradients_of_the_whole_objective(case):
    """By differences of a loss computed number by number."""
    row, step = ROW | case, 1e-6
    settings = {"clip": 0.2, "entropy_coef": 0.05, "value_coef": 0.5, "clip_value": 0.3}

    def slope(change):
        return (scalar_loss(change(step), **settings) - scalar_loss(change(-step), **settings)) / (2 * step)

    def nudged(index, by):
        return row | {"logits": [logit + by * (place == index) for place, logit in enumerate(row["logits"])]}

    def column(name):
        return torch.tensor([row[name]], dtype=torch.float64)

    logits = torch.where(torch.tensor(row["allowed"]), torch.tensor(row["logits"], dtype=torch.float64), FORBIDDEN)
    by_logits = clipped_policy_gradient(
        logits[None, :, None],
        torch.tensor([[row["action"]]]),
        column("old_log_prob"),
        column("advantage"),
        torch.ones(1),
        settings["clip"],
        settings["entropy_coef"],
    ).outputs
    expected = [slope(lambda by, index=index: nudged(index, by)) for index in range(3)]
    assert by_logits.flatten().tolist() == pytest.approx(expected, abs=1e-8)
    valued = value_gradient(column("value"), column("target"), column("old_value"), settings["clip_value"])
    expected = slope(lambda by: row | {"value": row["value"] + by})
    assert settings["value_coef"] * valued.values.item() == pytest.approx(expected, abs=1e-8)


def test_values_that_are_not_clipped_miss_by_their_distance():
    values, targets = some(9), some(9, seed=1)
    free = value_gradient(values, targets, None, None)
    wide = value_gradient(values, targets, some(9, seed=2), 100.0)
    for found in (free, wide):
        torch.testing.assert_close(found.values, values - targets)
        torch.testing.assert_close(found.loss, (values - targets).square())


def test_forbidden_choices_get_no_gradient():
    logits = some(1, 3, 4)
    logits[0, 2] = FORBIDDEN
    actions = torch.tensor([[0, 1, 0, 1]])
    found = clipped_policy_gradient(logits, actions, some(4, seed=1), some(4, seed=2), torch.ones(4), 0.2, 0.1)
    assert torch.isfinite(found.outputs).all()
    assert (found.outputs[0, 2] == 0).all()


def test_clipping_stops_only_what_improves_beyond_the_range():
    logits = torch.zeros(1, 2, 4)
    log_ratio = torch.tensor([0.5, 0.5, -0.5, -0.5])
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    old = torch.tensor(0.5).log() - log_ratio
    found = clipped_policy_gradient(
        logits, torch.zeros(1, 4, dtype=torch.int64), old, advantages, torch.ones(4), clip=0.2, entropy_coef=0.0
    )
    torch.testing.assert_close(found.log_ratio, log_ratio)
    assert (found.outputs[0, 0] != 0).tolist() == [False, True, True, False]


def test_weights_leave_rows_out():
    values, weights = some(6), torch.tensor([1, 1, 0, 1, 0, 1], dtype=torch.float64)
    kept = values[weights > 0]
    torch.testing.assert_close(weighted_mean(values, weights), kept.mean())
    torch.testing.assert_close(normalised(values, weights)[weights > 0], normalised(kept, torch.ones_like(kept)))
    assert weighted_mean(values, weights * 0) == 0


def test_explained_variance_of_perfect_and_constant_critics():
    returns, ones = some(50), torch.ones(50, dtype=torch.float64)
    assert explained_variance(returns, returns + 3, ones) == pytest.approx(1)
    assert explained_variance(returns, 0 * returns, ones) == pytest.approx(0)
