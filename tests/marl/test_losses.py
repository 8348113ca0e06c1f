"""Advantages and losses against closed forms and automatic differentiation."""

import json
from pathlib import Path

import pytest
import torch

from marl.losses import chosen_and_entropy, clipped_surrogate, explained_variance, gae, normalised, weighted_mean
from marl.networks import FORBIDDEN

GOLDEN = Path(__file__).parents[1] / "data" / "golden.json"


def some(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def golden_cases():
    cases = json.loads(GOLDEN.read_text())["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if case["check"] == "gae"]


@pytest.mark.parametrize("case", golden_cases())
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


def test_chosen_and_entropy_differentiate_as_written():
    logits = some(2, 3, 5).requires_grad_()
    actions = torch.tensor([[0, 1, 2, 0, 1], [1, 1, 0, 2, 2]])
    distribution = torch.distributions.Categorical(logits=logits.transpose(1, 2))
    chosen, entropy = chosen_and_entropy(logits, actions)
    torch.testing.assert_close(chosen, distribution.log_prob(actions).sum(0))
    torch.testing.assert_close(entropy, distribution.entropy().sum(0))
    assert torch.autograd.gradcheck(lambda z: chosen_and_entropy(z, actions), logits)


def test_forbidden_choices_get_no_gradient():
    logits = some(1, 3, 4)
    logits[0, 2] = FORBIDDEN
    logits.requires_grad_()
    chosen, entropy = chosen_and_entropy(logits, torch.tensor([[0, 1, 0, 1]]))
    (chosen.sum() + entropy.sum()).backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[0, 2] == 0).all()


def test_clipping_stops_only_what_improves_beyond_the_range():
    log_ratio = torch.tensor([0.5, 0.5, -0.5, -0.5]).requires_grad_()
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    surrogate = clipped_surrogate(log_ratio, advantages, torch.ones(4), clip=0.2)
    surrogate.loss.backward()
    assert (log_ratio.grad != 0).tolist() == [False, True, True, False]
    assert surrogate.clip_fraction == 1
    assert surrogate.approx_kl > 0


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
