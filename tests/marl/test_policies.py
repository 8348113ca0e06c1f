"""Neural policies play legal, keyed actions; files bring back the same player."""

import json

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete, MultiDiscrete

import games
from games.bucket_brigade.scripted import POLICIES, policy
from games.exact import TabularPolicy, tabulate
from games.exact.agreement import random_strategy
from games.game import factors
from games.policies import joint_probabilities
from marl.networks import policy_layers
from marl.policies import NeuralPolicy
from marl.policy_files import load_policy, save_policy

SPACES = [Discrete(5), MultiDiscrete([4, 2, 3])]


def some_policy(space, features=6, greedy=False):
    """Untrained, with weights large enough to have preferences."""
    layers = policy_layers(features, (16, 16), factors(space), np.random.default_rng(7))
    layers[-1] = (layers[-1][0] * 100, layers[-1][1])
    return NeuralPolicy.of(layers, space, greedy)


def some_batch(space, rows=500, features=6):
    generator = np.random.default_rng(3)
    legal = tuple(generator.random((rows, choices)) < 0.4 for choices in factors(space))
    noise = generator.random((rows, len(factors(space)))).astype(np.float32)
    return generator.random((rows, features)).astype(np.float32), legal, noise


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("greedy", [False, True])
def test_forbidden_actions_have_probability_zero(space, greedy):
    policy = some_policy(space, greedy=greedy)
    observation, legal, noise = some_batch(space)
    actions = policy.act(observation, legal, None, noise)[0].reshape(len(noise), -1)
    for factor, (mask, row) in enumerate(zip(legal, policy.probabilities(observation, legal), strict=True)):
        np.testing.assert_allclose(row.sum(axis=1), 1, rtol=1e-5)
        some = mask.any(axis=1)
        assert (row[some][~mask[some]] == 0).all()
        assert (row[~some] > 0).all() or greedy
        assert mask[some][np.arange(some.sum()), actions[some, factor]].all()


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_draws_follow_the_probabilities(space):
    policy, rows = some_policy(space), 40_000
    observation = np.repeat(some_batch(space, rows=1)[0], rows, axis=0)
    noise = np.random.default_rng(5).random((rows, policy.noise_size)).astype(np.float32)
    actions = policy.act(observation, None, None, noise)[0].reshape(rows, -1)
    for factor, row in enumerate(policy.probabilities(observation[:1], None)):
        counts = np.bincount(actions[:, factor], minlength=row.shape[1])
        np.testing.assert_allclose(counts / rows, row[0], atol=5 / rows**0.5)


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("greedy", [False, True])
def test_nobody_may_be_asking(space, greedy):
    """As where probabilities are asked of a seat that never acts."""
    policy, (observation, legal, _) = some_policy(space, greedy=greedy), some_batch(space, rows=0)
    for shown in (legal, None):
        assert [row.shape for row in policy.probabilities(observation, shown)] == [(0, n) for n in factors(space)]
        told = joint_probabilities(policy, observation, shown, factors(space))
        assert told.shape == (0, np.prod(factors(space)))


def test_extreme_uniforms_never_draw_what_is_forbidden():
    policy = some_policy(Discrete(5))
    legal = (np.array([[False, True, False, True, False]]).repeat(2, axis=0),)
    noise = np.array([[0], [1 - 2**-24]], np.float32)
    actions, _ = policy.act(np.zeros((2, 6), np.float32), legal, None, noise)
    assert actions.tolist() == [1, 3]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_numpy_and_torch_get_the_same_actions_in_kind(space):
    policy = some_policy(space)
    observation, legal, noise = some_batch(space)
    for array in (observation, noise, *legal):
        array.setflags(write=False)
    actions, memory = policy.act(observation, legal, None, noise)
    masks = tuple(torch.tensor(mask) for mask in legal)
    same, _ = policy.act(torch.tensor(observation), masks, None, torch.tensor(noise))
    assert memory is None
    assert isinstance(actions, np.ndarray)
    assert actions.dtype == np.int64
    assert actions.shape[1:] == space.shape
    assert torch.equal(same, torch.tensor(actions))


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("greedy", [False, True])
def test_a_neural_policy_comes_back_bit_for_bit(space, greedy, tmp_path):
    policy = some_policy(space, greedy=greedy)
    save_policy(policy, tmp_path / "seat.0")
    loaded = load_policy(tmp_path / "seat.0")
    observation, legal, noise = some_batch(space)
    np.testing.assert_array_equal(
        policy.act(observation, legal, None, noise)[0], loaded.act(observation, legal, None, noise)[0]
    )
    for before, after in zip(
        policy.probabilities(observation, None), loaded.probabilities(observation, None), strict=True
    ):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"genome", "genome_full"}))  # they need their genes
def test_scripted_policies_come_back(name, tmp_path):
    before = policy(name, games.make("bucket_brigade"))
    save_policy(before, tmp_path / "player")
    after = load_policy(tmp_path / "player")
    assert type(after) is type(before)
    assert after == before


def test_unknown_policies_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="SCRIPTED"):
        save_policy(object(), tmp_path / "thing")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": 99}, "format"),
        ({"policy": "Oracle"}, "policy"),
        ({"flat": "yes"}, "flat"),
        ({"layers": [6, 16, 17, 5]}, r"1\.weight"),
        ({"choices": [4]}, "choices"),
        ({"choices": [5.0]}, r"choices should be whole numbers > 0, one a factor, got \[5\.0\]"),
        ({"choices": [True] * 5}, "choices should be whole numbers"),
        ({"choices": [5, 0]}, "choices should be whole numbers"),
        ({"choices": []}, r"choices should be whole numbers > 0, one a factor, got \[\]"),
        ({"layers": None}, "layers"),
    ],
)
def test_malformed_files_are_named_with_the_key(change, complaint, tmp_path):
    save_policy(some_policy(Discrete(5)), tmp_path / "broken")
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"broken.*{complaint}"):
        load_policy(tmp_path / "broken")


def test_truncated_weights_are_named(tmp_path):
    save_policy(some_policy(Discrete(5)), tmp_path / "short")
    path = tmp_path / "short.safetensors"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match=r"short\.safetensors"):
        load_policy(tmp_path / "short")
    (tmp_path / "short.json").write_text("{")
    with pytest.raises(ValueError, match=r"short\.json is not JSON"):
        load_policy(tmp_path / "short")


def tabular():
    game = games.make("openspiel:kuhn_poker")
    strategy = random_strategy(game.tree, np.random.default_rng(1))
    return game, TabularPolicy.of(game, 1, strategy[game.tree.slots(1)])


def test_a_tabular_policy_comes_back_bit_for_bit(tmp_path):
    game, policy = tabular()
    save_policy(policy, tmp_path / "table")
    loaded = load_policy(tmp_path / "table")
    np.testing.assert_array_equal(loaded.rows, policy.rows)
    np.testing.assert_array_equal(loaded.table, policy.table)
    np.testing.assert_array_equal(tabulate(game, loaded, 1), tabulate(game, policy, 1))
    noise = np.random.default_rng(2).random((len(policy.rows), 1), np.float32)
    np.testing.assert_array_equal(
        loaded.act(policy.rows, None, None, noise)[0], policy.act(policy.rows, None, None, noise)[0]
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"states": 7}, "rows should have shape"),
        ({"features": "many"}, "features should be of type int"),
        ({"actions": 3}, "table should have shape"),
    ],
)
def test_malformed_tables_are_named_with_the_key(change, complaint, tmp_path):
    save_policy(tabular()[1], tmp_path / "broken")
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"broken.*{complaint}"):
        load_policy(tmp_path / "broken")


@pytest.mark.parametrize("spoilt", [-0.5, 0.7, np.nan])
def test_tables_that_are_no_distributions_are_refused(spoilt, tmp_path):
    policy = tabular()[1]
    policy.table[0, 0] = spoilt
    save_policy(policy, tmp_path / "broken")
    with pytest.raises(ValueError, match=r"broken\.safetensors: .*table"):
        load_policy(tmp_path / "broken")
