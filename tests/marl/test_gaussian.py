"""Squashed Gaussians against torch's distributions; policies stay in their box, and files bring them back."""

import json
import pickle

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import AffineTransform, Independent, Normal, TanhTransform, TransformedDistribution

from marl.gaussian import GaussianPolicy, entropy, in_box, log_prob, normal_draws, sample, squash_correction
from marl.networks import orthogonal_layers
from marl.policy_files import load_policy, save_policy
from marl.soft import unit_actions

LOW, HIGH = np.array([-2.0, 0.5, -1e-3], np.float32), np.array([2.0, 7.0, 1e3], np.float32)
SPACE = Box(LOW, HIGH)


def some_policy(greedy=False, gain=1.0, space=SPACE):
    layers = orthogonal_layers((5, 16, 2 * space.shape[0]), gain, np.random.default_rng(7))
    return GaussianPolicy.of(layers, space, greedy)


def some_batch(rows=500):
    generator = np.random.default_rng(3)
    return generator.standard_normal((rows, 5), np.float32), generator.random((rows, 3), np.float32)


def some_outputs(rows=50, dimensions=3):
    return torch.randn(2 * dimensions, rows, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 2


def referee(outputs):
    """torch's squashed Gaussian in [-1, 1]^D, rows first."""
    mean, log_std = (part.t() for part in outputs.chunk(2))
    return TransformedDistribution(Independent(Normal(mean, log_std.exp()), 1), [TanhTransform()])


def test_densities_are_those_of_torch():
    outputs = some_outputs()
    u = sample(outputs, torch.rand(3, 50, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    found = log_prob(outputs, u) - squash_correction(u)
    torch.testing.assert_close(found, referee(outputs).log_prob(u.tanh().t()))
    gaussian = referee(outputs).base_dist
    torch.testing.assert_close(log_prob(outputs, u), gaussian.log_prob(u.t()))
    torch.testing.assert_close(entropy(outputs), gaussian.entropy())


def test_the_density_of_actions_integrates_to_one():
    outputs = torch.tensor([[0.4], [-0.7]], dtype=torch.float64)
    action = torch.linspace(-1, 1, 20_001, dtype=torch.float64)[1:-1]
    u = action.atanh()[None]
    density = (log_prob(outputs.expand(2, len(action)), u) - squash_correction(u)).exp()
    assert torch.trapezoid(density, action).item() == pytest.approx(1, abs=1e-6)


def test_the_correction_is_exact_where_tanh_rounds_to_one():
    """log(1 - tanh(u)^2) tends to log 4 - 2 |u|."""
    u = torch.tensor([[-50.0, 50.0, 0.0]])
    assert squash_correction(u).tolist() == pytest.approx([np.log(4) - 100, np.log(4) - 100, 0.0])


def test_log_standard_deviations_are_cut_off():
    outputs = torch.tensor([[0.0, 0.0], [-1e6, 1e6]])
    torch.testing.assert_close(entropy(outputs), entropy(torch.tensor([[0.0, 0.0], [-20.0, 2.0]])))
    assert sample(outputs, torch.full((1, 2), 0.9)).isfinite().all()


@given(noise=st.integers(0, 2**24 - 1))
def test_any_uniform_gives_a_finite_number_and_its_mirror_image(noise):
    uniforms = torch.tensor([noise * 2**-24, (noise >> 1) * 2**-23, 1 - 2**-23 - (noise >> 1) * 2**-23])
    drawn = normal_draws(uniforms)
    assert drawn.isfinite().all()
    assert drawn[1].item() == pytest.approx(-drawn[2].item(), rel=1e-4, abs=1e-6)


def test_draws_are_normal():
    drawn = normal_draws((torch.arange(2**16) + 0.5) / 2**16)
    assert [drawn.mean().item(), drawn.square().mean().item()] == pytest.approx([0, 1], abs=1e-3)
    assert (drawn < 1).float().mean().item() == pytest.approx(0.841345, abs=1e-4)


@given(
    u=st.floats(width=32, allow_nan=False, allow_infinity=False),
    bounds=st.tuples(st.floats(width=32, allow_infinity=False, allow_nan=False), st.floats(0, 2.0**100, width=32)),
)
def test_actions_stay_within_their_bounds(u, bounds):
    low = torch.tensor([bounds[0]])
    high = torch.maximum(low, low + bounds[1]).clamp(max=torch.finfo(torch.float32).max)
    action = in_box(torch.tensor([[u]]), low, high)
    assert low.item() <= action.item() <= high.item()


@pytest.mark.parametrize("greedy", [False, True])
def test_actions_are_those_of_the_space(greedy):
    observation, noise = some_batch()
    policy = some_policy(greedy, gain=100.0)
    actions, memory = policy.act(observation, None, None, noise[:, : policy.noise_size])
    assert memory is None
    assert actions.dtype == np.float32
    assert all(action in SPACE for action in actions)
    # Preferences so strong reach both ends.
    assert (actions == LOW).any(axis=0).all()
    assert (actions == HIGH).any(axis=0).all()


def test_actions_follow_the_density():
    policy, (observation, _) = some_policy(), some_batch(rows=1)
    noise = np.random.default_rng(5).random((40_000, 3), np.float32)
    actions = policy.act(observation.repeat(len(noise), 0), None, None, noise)[0]
    weights = [(weight.double(), bias.double()) for weight, bias in policy.layers]
    hidden = torch.nn.functional.linear(torch.as_tensor(observation).double(), *weights[0]).relu()
    base = referee(torch.nn.functional.linear(hidden, *weights[1]).t())
    low, high = torch.as_tensor(LOW), torch.as_tensor(HIGH)
    expected = TransformedDistribution(base, [AffineTransform((low + high) / 2, (high - low) / 2, event_dim=1)])
    torch.manual_seed(0)
    theirs = expected.sample((40_000,))[:, 0].numpy()
    np.testing.assert_allclose(actions.mean(0), theirs.mean(0), atol=0.02 * (HIGH - LOW).max())
    for share in (0.1, 0.5, 0.9):
        found, wanted = (np.quantile(drawn, share, axis=0) for drawn in (actions, theirs))
        np.testing.assert_allclose(found / (HIGH - LOW), wanted / (HIGH - LOW), atol=0.02)


def test_the_greedy_action_is_the_squashed_mean():
    observation, _ = some_batch()
    middle = np.full((len(observation), 3), 0.5 - 2**-24, np.float32)  # whose draw is 0
    greedy, drawn = some_policy(greedy=True), some_policy()
    assert greedy.noise_size == 0
    np.testing.assert_array_equal(
        greedy.act(observation, None, None, middle[:, :0])[0], drawn.act(observation, None, None, middle)[0]
    )


def test_numpy_and_torch_get_the_same_actions_in_kind():
    policy, (observation, noise) = some_policy(), some_batch()
    for array in (observation, noise):
        array.setflags(write=False)
    actions, _ = policy.act(observation, None, None, noise)
    same, _ = policy.act(torch.tensor(observation), None, None, torch.tensor(noise))
    assert isinstance(actions, np.ndarray)
    assert torch.equal(same, torch.tensor(actions))


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("way", ["files", "pickle", "device"])
def test_it_comes_back_bit_for_bit(way, greedy, tmp_path):
    policy, (observation, noise) = some_policy(greedy), some_batch()
    if way == "files":
        save_policy(policy, tmp_path / "seat.0")
        again = load_policy(tmp_path / "seat.0")
    else:
        again = pickle.loads(pickle.dumps(policy)) if way == "pickle" else policy.to("cpu")
    assert repr(again) == repr(policy)
    np.testing.assert_array_equal(
        again.act(observation, None, None, noise)[0], policy.act(observation, None, None, noise)[0]
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"low": [0.0]}, "low"),
        ({"high": [1.0, 8.0, "inf"]}, "high"),
        ({"low": [3.0, 0.5, 0.0]}, "low must be at most high"),
        ({"layers": [5, 16, 8]}, r"1\.weight"),
        ({"greedy": 1}, "greedy"),
    ],
)
def test_malformed_files_are_named_with_the_key(change, complaint, tmp_path):
    save_policy(some_policy(), tmp_path / "broken")
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"broken.*{complaint}"):
        load_policy(tmp_path / "broken")


@pytest.mark.parametrize("spoilt", [torch.nan, -torch.inf])
def test_weights_that_are_no_numbers_are_refused(spoilt, tmp_path):
    policy = some_policy()
    policy.layers[1][0][2, 3] = spoilt
    save_policy(policy, tmp_path / "broken")
    with pytest.raises(ValueError, match=r"broken\.safetensors: 1\.weight should be finite"):
        load_policy(tmp_path / "broken")


WIDE = torch.tensor([torch.finfo(torch.float32).max])


@pytest.mark.parametrize("share", [-1.0, -0.75, 0.0, 0.25, 0.5, 1.0])
def test_boxes_may_be_wider_than_the_largest_number(share):
    action = in_box(torch.tensor([[share]]).atanh(), -WIDE, WIDE)
    torch.testing.assert_close(action / WIDE, torch.tensor([[share]]))
    torch.testing.assert_close(unit_actions(action.t(), -WIDE, WIDE), torch.tensor([[share]]))


@given(
    low=st.floats(-(2.0**30), 2.0**30, width=32, allow_subnormal=False),
    width=st.floats(2.0**-30, 2.0**30, width=32),
    share=st.floats(-1, 1, width=32),
)
def test_halving_changes_no_bit(low, width, share):
    low = torch.tensor([low])
    high, u = low + width, torch.tensor([[share]]).atanh()
    whole = (low + (u.tanh() + 1) * (0.5 * high - 0.5 * low)).clamp(low, high)
    assert torch.equal(in_box(u, low, high), whole)
    if high > low:
        assert torch.equal(unit_actions(whole.t(), low, high), (whole.t() - low) / (0.5 * high - 0.5 * low) - 1)


@pytest.mark.parametrize(
    "space",
    [Discrete(3), Box(-1, 1, (2, 2)), Box(-np.inf, 1, (2,)), Box(0, 1, (2,), np.float64), Box(-1, 1, (0,))],
    ids=str,
)
def test_other_spaces_are_refused(space):
    with pytest.raises(ValueError, match="bounded Box"):
        GaussianPolicy.of(orthogonal_layers((5, 4), 1.0, np.random.default_rng(0)), space)


def test_layers_and_bounds_must_fit():
    layers = orthogonal_layers((5, 4), 1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="3 dimensions need 6 outputs, got 4"):
        GaussianPolicy(layers, LOW, HIGH)
    with pytest.raises(ValueError, match="rows"):
        GaussianPolicy(layers, 0.0, 1.0)
