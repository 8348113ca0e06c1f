"""A2C is PPO that takes one step on each rollout, and learns like it."""

from dataclasses import fields, replace

import pytest
import torch

import games
from games.lanes import GameLanes
from marl.networks import forward
from marl.oracles import A2C, PPO
from tests.marl.test_ppo import brigade_mixture, weights

SHORT = A2C(steps=4 * 64 * 8, num_lanes=64, horizon=8, normalise_advantages=False, entropy_start=0.01)
PLAIN = replace(SHORT, normalise_returns=False, max_grad_norm=1e6, gamma=0.9)


def test_its_gradient_is_that_of_the_actor_critic_loss():
    """mean(-log pi(a) A - c H + v (V - R)^2 / 2), by automatic differentiation [Mnih et al. 2016, section 4.3]."""
    learner = PLAIN.learner(GameLanes(games.make("cart_pole"), 64), [0], 3)
    trainee, rollout = learner.trainees[0], learner.collector.rollouts[0]
    actor, critic = (
        [tuple(part.clone().requires_grad_() for part in pair) for pair in layers]
        for layers in trainee.parameters.networks
    )
    told = learner.update()
    values = forward(critic, rollout.observations)[..., 0]
    returns = values.detach().clone()
    for step in reversed(range(PLAIN.horizon)):  # nothing is cut within 8 steps, but poles fall
        returns[step] = rollout.rewards[step] + PLAIN.gamma * torch.where(rollout.ended[step], 0.0, returns[step + 1])
    miss = (values - returns)[:-1]
    played = torch.distributions.Categorical(logits=forward(actor, rollout.observations[:-1]))
    gained = played.log_prob(rollout.actions[:, 0]) * -miss.detach() + PLAIN.entropy_start * played.entropy()
    (PLAIN.value_coef * miss.square() / 2 - gained).mean().backward()
    for ours, theirs in zip(trainee.parameters.gradients, (actor, critic), strict=True):
        for pair, expected in zip(ours, theirs, strict=True):
            for gradient, part in zip(pair, expected, strict=True):
                torch.testing.assert_close(gradient, part.grad, rtol=1e-3, atol=1e-5)
    assert told["clip_fraction"] == 0
    assert abs(told["approx_kl"]) < 1e-6


def test_where_ratios_are_one_clipping_changes_nothing():
    ppo = replace(SHORT.as_ppo(), clip=1e-3)
    learners = [oracle.learner(brigade_mixture(64), [1], 3) for oracle in (SHORT, ppo)]
    for learner in learners:
        for _ in range(3):
            learner.update()
    assert all(map(torch.equal, *map(weights, learners)))


def test_its_settings_are_ppos_own():
    """Each is handed on, and described alike."""
    names = {field.name for field in fields(A2C)}
    assert names <= {field.name for field in fields(PPO)}
    ppo = A2C(num_lanes=32, gamma=0.5, log_std=-1.0).as_ppo()
    assert (ppo.num_lanes, ppo.gamma, ppo.log_std, ppo.epochs, ppo.minibatches) == (32, 0.5, -1.0, 1, 1)
    with pytest.raises(ValueError, match="gamma"):
        A2C(gamma=2.0)
