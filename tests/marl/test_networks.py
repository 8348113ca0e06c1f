"""Networks against torch's automatic differentiation and optimiser."""

import numpy as np
import torch

from marl.networks import Parameters, backward, forward, layer_inputs, orthogonal_layers


def networks():
    generator = np.random.default_rng(0)
    return [orthogonal_layers((5, 8, 7, 3), 1.0, generator), orthogonal_layers((5, 9, 1), 1.0, generator)]


def test_training_steps_are_those_of_torch():
    parameters = Parameters(networks(), torch.device("cpu"))
    leaves = [[tuple(part.clone().requires_grad_() for part in pair) for pair in layers] for layers in networks()]
    flat = [part for layers in leaves for pair in layers for part in pair]
    optimiser = torch.optim.Adam(flat, lr=0.01, eps=Parameters.EPSILON)
    features = torch.rand(20, 5, generator=torch.Generator().manual_seed(0))
    for _ in range(5):
        optimiser.zero_grad()
        sum(forward(layers, features).square().sum() for layers in leaves).backward()
        optimiser.step()
        for layers, gradients in zip(parameters.networks, parameters.gradients, strict=True):
            backward(layers, gradients, layer_inputs(layers, features), 2 * forward(layers, features))
        parameters.descend(0.01)
    ours = [part for layers in parameters.networks for pair in layers for part in pair]
    for part, expected in zip(ours, flat, strict=True):
        torch.testing.assert_close(part, expected.detach(), rtol=1e-4, atol=1e-5)
        assert part.data_ptr() % 64 == 0
