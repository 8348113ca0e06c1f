"""Training steps per second of PPO, as a share of the ceiling that its networks' bare passes set."""

from collections.abc import Callable, Iterator
from time import process_time

import numpy as np
import torch
from torch import Tensor

import games
from counterplay.bench.row import Row
from games.bucket_brigade.scripted import AlwaysRest
from games.lanes import GameLanes
from games.versus import Versus
from marl.networks import backward, forward, layer_inputs, policy_outputs
from marl.oracles.ppo import PPO
from marl.oracles.ppo_learner import PPOLearner
from marl.oracles.ppo_trainee import PPOTrainee

ROUNDS = 12


def rows() -> Iterator[Row]:
    """Learner steps per CPU second on one core with the defaults, against players that cost next to nothing."""
    torch.set_num_threads(1)
    ppo = PPO()
    game = games.make_game("bucket_brigade")
    populations = [[AlwaysRest()]] * len(game.agents)
    lanes = Versus(GameLanes(game, ppo.num_lanes), populations, np.ones((1,) * len(populations)), [0])
    learner = PPOLearner(ppo, lanes, [0], 0, "cpu", {})
    training, *bare = _seconds(learner.update, bare_passes(learner), bare_passes(learner, written_out=True))
    ours, (by_torch, by_hand) = ppo.batch / training, (ppo.batch / seconds for seconds in bare)
    yield Row(
        "PPO on bucket_brigade", ours, "steps/s", "its bare networks, autograd", by_torch, ours / by_torch, ">= 0.6"
    )
    yield Row("  the same", ours, "steps/s", "its bare networks, as PPO passes them", by_hand, ours / by_hand, "")


def bare_passes(learner: PPOLearner, written_out: bool = False) -> Callable[[], None]:
    """All that an update asks of the networks: no game, losses or optimiser.

    One inference a sample, then forward and backward a sample and epoch, in the batch sizes of the learner; backward by
    torch's automatic differentiation, or `written_out` as the learner does it.
    """
    ppo, trainee = learner.settings, learner.trainees[0]
    assert isinstance(trainee, PPOTrainee)
    observations = torch.rand(ppo.horizon, ppo.num_lanes, learner.collector.rollouts[0].observations.shape[-1])
    samples = observations.flatten(0, 1).split(ppo.batch // ppo.minibatches)
    actor, critic = (
        [(weight.clone().requires_grad_(), bias.clone().requires_grad_()) for weight, bias in layers]
        for layers in (trainee.actor, trainee.critic)
    )

    def passes() -> None:
        with torch.no_grad():
            for step in observations:
                policy_outputs(actor, step)
            forward(critic, observations)
        for _ in range(ppo.epochs):
            for sample in samples:
                if written_out:
                    _by_hand(trainee, sample)
                else:
                    (policy_outputs(actor, sample).sum() + forward(critic, sample).sum()).backward()
        for weight, bias in (*actor, *critic):
            weight.grad = bias.grad = None

    return passes


def _by_hand(trainee: PPOTrainee, sample: Tensor) -> None:
    for layers, gradients in zip((trainee.actor, trainee.critic), trainee.parameters.gradients, strict=True):
        inputs = layer_inputs(layers, sample)
        outputs = torch.nn.functional.linear(inputs[-1], *layers[-1])
        backward(layers, gradients, inputs, outputs)


def _seconds(*functions: Callable[[], object]) -> list[float]:
    """CPU seconds a call of each, the best of some rounds that take turns: other load only ever slows them."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for index, function in enumerate(functions):
            start = process_time()
            function()
            best[index] = min(best[index], process_time() - start)
    return best
