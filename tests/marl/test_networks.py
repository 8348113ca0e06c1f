"""Networks against torch's automatic differentiation and optimiser."""

import numpy as np
import pytest
import torch
from torch import nn

from marl.networks import (
    FILTERS,
    Parameters,
    backward,
    check_takes,
    computing,
    convolutions,
    flat_features,
    forward,
    layer_inputs,
    orthogonal_layers,
    policy_outputs,
)


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


def seeing(shape, outputs=3):
    """A network for observations of this shape."""
    generator = np.random.default_rng(0)
    torso, features = convolutions(shape, generator)
    return [*torso, *orthogonal_layers((features, 16, outputs), 1.0, generator)]


def shown(shape, rows=6):
    return torch.rand(rows, *shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(5,), (20,), (4, 5), (2, 7, 5), (1, 12, 14), (3, 40, 44)])
def test_gradients_are_those_of_torchs_own_layers(shape):
    """Perceptrons with few and many inputs, and all kinds of pictures."""
    layers, observations = seeing(shape), shown(shape)
    modules = []
    for weight, bias in layers:
        if weight.ndim == 4:
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], {8: 4, 4: 2, 3: 1}[weight.shape[2]])
        else:
            modules += [] if any(isinstance(module, nn.Linear) for module in modules) else [nn.Flatten()]
            layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.load_state_dict({"weight": weight, "bias": bias})
        modules += [layer, nn.ReLU()]
    module = nn.Sequential(*modules[:-1])
    expected = module(observations[:, None] if len(shape) == 2 else observations)
    torch.testing.assert_close(forward(layers, observations), expected)
    torch.testing.assert_close(policy_outputs(layers, observations), expected.t())
    expected.square().sum().backward()
    parameters = Parameters([layers], torch.device("cpu"))
    inputs = layer_inputs(layers, observations)
    backward(layers, parameters.gradients[0], inputs, 2 * expected.detach())
    ours = [part for pair in parameters.gradients[0] for part in pair]
    for gradient, theirs in zip(ours, module.parameters(), strict=True):
        torch.testing.assert_close(gradient, theirs.grad, rtol=1e-4, atol=1e-4)


def test_filters_are_orthogonal():
    torso, _ = convolutions((4, 84, 84), np.random.default_rng(0))
    for weight, _ in torso:
        rows = weight.flatten(1)
        torch.testing.assert_close(rows @ rows.t(), 2 * torch.eye(len(rows)), rtol=0, atol=1e-5)


def test_the_largest_pictures_get_the_layers_of_mnih_2015():
    """84 x 84 pixels, four of them: 32 filters of 8 x 8 move by 4, 64 of 4 x 4 by 2, 64 of 3 x 3 by 1."""
    torso, features = convolutions((4, 84, 84), np.random.default_rng(0))
    assert [tuple(weight.shape) for weight, _ in torso] == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]
    assert features == flat_features(torso, (4, 84, 84)) == 7 * 7 * 64


@pytest.mark.parametrize("smallest", FILTERS)
def test_the_smallest_pictures_leave_something_to_see(smallest):
    assert convolutions((1, smallest, smallest), np.random.default_rng(0))[1] > 0


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 40), (1, 2, 3, 4), ()])
def test_what_is_neither_features_nor_a_picture_is_refused(shape):
    with pytest.raises(ValueError, match="rows of features"):
        convolutions(shape, np.random.default_rng(0))


def test_networks_are_for_observations_of_one_shape():
    check_takes(seeing((2, 12, 12)), (2, 12, 12))
    check_takes(seeing((12,)), (12,))
    for shape in ((3, 12, 12), (2, 16, 12), (2,), (12, 12)):
        with pytest.raises(ValueError, match="made for others"):
            check_takes(seeing((2, 12, 12)), shape)


@pytest.mark.parametrize("shape", [(20,), (2, 12, 12)])
def test_bfloat16_is_near_float32(shape):
    layers, observations = seeing(shape), shown(shape)
    half = computing(layers, autocast=True)
    exact, near = forward(layers, observations), forward(half, observations)
    assert near.dtype == torch.float32
    torch.testing.assert_close(near, exact, rtol=0.05, atol=0.05)
    found = []
    for used in (layers, half):
        parameters = Parameters([layers], torch.device("cpu"))
        backward(used, parameters.gradients[0], layer_inputs(used, observations), exact)
        found.append(parameters.gradient)
    assert (found[0] - found[1]).norm() < 0.1 * found[0].norm()  # a rectifier or two close elsewhere
    assert not torch.equal(*found)
