import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from games.game import factors
from games.policies import Uniform, draw, draw_legal, joint_probabilities

N = 20_000
SEEN = np.zeros((N, 1), np.float32)


def test_uniform_actions_are_uniform(xp):
    player = Uniform.of(MultiDiscrete([3, 2]))
    noise = np.random.default_rng(0).random((N, 2), np.float32)
    actions = np.asarray(player.act(xp.put(SEEN), None, None, xp.put(noise))[0])
    counts = np.zeros((3, 2))
    np.add.at(counts, tuple(actions.T), 1)
    assert (np.abs(counts / N - 1 / 6) < 4 * np.sqrt(5 / 36 / N)).all()
    assert Uniform.of(Discrete(4)).act(SEEN, None, None, noise[:, :1])[0].shape == (N,)


def test_many_choices_are_drawn_as_few_are(xp, monkeypatch):
    generator = np.random.default_rng(0)
    legal, noise = xp.put(generator.random((500, 100)) < 0.05), generator.random(500, np.float32)
    noise[0] = np.float32(1 - 2**-24)
    drawn = []
    for limit in (99, 100):
        monkeypatch.setattr("games.policies.MANY", limit)
        drawn.append(draw_legal(legal, xp.put(noise)))
    assert (drawn[0] == drawn[1]).all()


def test_uniform_stays_in_range_at_the_edges(xp):
    largest = np.array([[1 - 2**-24], [0.0]], np.float32)
    for n in (2, 3, 10, 1000):
        actions = Uniform.of(Discrete(n)).act(xp.put(SEEN[:2]), None, None, xp.put(largest))[0]
        assert np.asarray(actions).tolist() == [n - 1, 0]


def test_uniform_fills_boxes_wider_than_the_largest_number(xp):
    largest = 2.0**127
    noise = np.array([[0.0], [0.25], [0.5], [0.75]], np.float32)
    actions = Uniform.of(Box(-largest, largest, (1,))).act(xp.put(SEEN[:4]), None, None, xp.put(noise))[0]
    assert np.asarray(actions)[:, 0].tolist() == [-largest, -largest / 2, 0, largest / 2]


def test_uniform_plays_legal_actions_only(xp):
    legal = np.array([[True, False, True], [False, True, False], [False, False, False]])
    legal = np.repeat(legal, N // 4, axis=0)
    noise = np.random.default_rng(0).random((len(legal), 1), np.float32)
    player = Uniform.of(Discrete(3))
    actions, _ = player.act(xp.put(SEEN[: len(legal)]), (xp.put(legal),), None, xp.put(noise))
    rows = np.asarray(actions).reshape(3, -1)
    assert [set(row.tolist()) for row in rows] == [{0, 2}, {1}, {0, 1, 2}]
    assert abs((rows[0] == 2).mean() - 0.5) < 0.03


def test_uniform_play_of_a_box_is_uniform(xp):
    player = Uniform.of(Box(np.array([-1, 2], np.float32), np.array([3, 2.5], np.float32)))
    noise = np.random.default_rng(0).random((N, 2), np.float32)
    actions = np.asarray(player.act(xp.put(SEEN), None, None, xp.put(noise))[0])
    assert (actions.shape, actions.dtype) == ((N, 2), np.float32)
    np.testing.assert_allclose(actions.mean(axis=0), [1, 2.25], atol=0.05)
    np.testing.assert_allclose(np.quantile(actions, 0.25, axis=0), [0, 2.125], atol=0.05)
    with pytest.raises(ValueError, match="Discrete or a flat MultiDiscrete"):
        Uniform.of(Box(0, np.inf, (1,)))


BOUNDS = st.floats(-1000, 1000, width=32)


@given(BOUNDS, BOUNDS, st.sampled_from([0.0, 1 - 2**-23, 1 - 2**-24]))
def test_uniform_play_stays_within_a_box(one, other, largest):
    space = Box(min(one, other), max(one, other), (1,), np.float32)
    action, _ = Uniform.of(space).act(SEEN[:1], None, None, np.array([[largest]], np.float32))
    assert space.contains(action[0])


@given(
    arrays(np.float32, (5, 4), elements=st.sampled_from([0.0, 0.1, 0.5, 2.0])),
    arrays(np.float32, 5, elements=st.sampled_from([0.0, 0.3, 0.999, float(np.float32(1) - 2**-24)])),
)
def test_choices_of_probability_zero_are_never_drawn(weights, noise):
    weights[:, 2] += weights.sum(axis=1) == 0
    chosen = draw(weights, noise)
    assert (weights[np.arange(5), chosen] > 0).all()


def test_draws_follow_their_probabilities(xp):
    probabilities = np.tile(np.array([0.2, 0.0, 0.5, 0.3], np.float32), (N, 1))
    noise = np.random.default_rng(0).random(N, np.float32)
    share = np.bincount(np.asarray(draw(xp.put(probabilities), xp.put(noise))), minlength=4) / N
    np.testing.assert_allclose(share, probabilities[0], atol=0.015)


def test_joint_probabilities_of_independent_factors_are_products():
    legal = (np.array([[True, True]]), np.array([[True, False, True]]))
    told = joint_probabilities(Uniform.of(MultiDiscrete([2, 3])), SEEN[:1], legal, (2, 3))
    np.testing.assert_array_equal(told, [[0.25, 0, 0.25, 0.25, 0, 0.25]])


def test_factors_of_other_spaces_are_refused():
    assert factors(Discrete(3)) == (3,)
    assert factors(MultiDiscrete([3, 2])) == (3, 2)
    with pytest.raises(ValueError, match="Discrete or a flat MultiDiscrete"):
        factors(MultiDiscrete([[2, 2], [2, 2]]))
