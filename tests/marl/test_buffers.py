"""Buffers keep what they promise, with the probabilities they promise, and are as fast as their peers."""

from collections import deque
from pathlib import Path
from resource import getpagesize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from games.noise import Noise, Purpose
from marl.buffers import Replay, Reservoir, precise, reservoir_places
from marl.decisions import transition_parts
from marl.prioritised import Prioritised, SumTree
from tests.golden_cases import select

PARTS = {"observation": ((2,), "float32"), "action": ((1,), "int64"), "number": ((), "int64")}
UNLIKELY = 1e-4
"""Of a test that goes by chance: its seed is fixed, so that it passes always or never."""


def batch(numbers):
    """Rows that all know their number."""
    numbers = np.asarray(numbers)
    observation = np.stack([numbers, -numbers], axis=1).astype(np.float32)
    return {"observation": observation, "action": numbers[:, None] % 7, "number": numbers}


def check_rows(rows):
    numbers = rows["number"].numpy()
    for name, part in batch(numbers).items():
        np.testing.assert_array_equal(rows[name].numpy(), part)
    return numbers.tolist()


def everything(buffer):
    return check_rows(buffer.take(np.arange(buffer.size)))


@given(st.integers(1, 9), st.lists(st.integers(1, 9), max_size=8))
def test_a_replay_keeps_the_latest_rows(capacity, sizes):
    replay, model, pushed = Replay(capacity, PARTS), deque(maxlen=capacity), 0
    for size in (min(size, capacity) for size in sizes):
        numbers = list(range(pushed, pushed + size))
        places = replay.push(batch(numbers))
        assert check_rows(replay.take(places)) == numbers
        model.extend(numbers)
        pushed += size
    assert sorted(everything(replay)) == list(model)


def test_a_replay_draws_every_row_equally_often():
    replay, noise = Replay(1000, PARTS), Noise(0, ["test"])
    replay.push(batch(range(700)))
    counts = np.zeros(700)
    for step in range(100):
        np.add.at(counts, replay.draw(precise(noise.draw(Purpose.SHUFFLE, step, 1000, 2))), 1)
    assert chisquare(counts).pvalue > UNLIKELY


def test_uniforms_tell_a_million_rows_apart_evenly():
    """Uniforms of 23 bits would fall on some of a million rows 8 times in 2^23, on others 9 times."""
    noise = Noise(0, ["test"]).draw(Purpose.SHUFFLE, 0, 1000, 2)
    fine = precise(noise) * 2.0**46
    assert (fine == np.round(fine)).all()
    assert len(np.unique(precise(noise))) == 1000
    assert (precise(noise).astype(np.float32) >= noise[:, 0]).all()
    assert precise(np.full((1, 2), np.float32(1 - 2**-23)))[0] < 1


def test_the_largest_uniform_draws_the_last_row():
    replay = Replay(5, PARTS)
    replay.push(batch(range(3)))
    assert replay.draw(np.array([0.0, np.nextafter(1, 0)])).tolist() == [0, 2]


@pytest.mark.parametrize("kind", [Replay, lambda capacity, parts: Reservoir(capacity, parts, seed=3)])
def test_a_saved_buffer_goes_on_where_it_was(kind):
    straight, resumed = kind(10, PARTS), kind(10, PARTS)
    straight.push(batch(range(7)))
    saved = straight.state_dict()
    straight.push(batch(range(7, 14)))
    resumed.load_state_dict(saved)
    assert resumed.size == 7
    resumed.push(batch(range(7, 14)))
    assert everything(resumed) == everything(straight)
    with pytest.raises(ValueError, match=r"10 rows of .* were saved: they cannot be 3 of"):
        kind(3, PARTS).load_state_dict(saved)


@pytest.mark.parametrize(
    ("rows", "key", "values"),
    [(7, "next", (6, 8, -1, 10, 10**9, "7", None)), (12, "next", (-1, 10)), (7, "seen", (6, 8, -1, 7.5, "7"))],
)
def test_places_that_no_buffer_has_are_not_loaded(rows, key, values):
    buffer = Replay(10, PARTS) if key == "next" else Reservoir(10, PARTS, seed=3)
    for part in (range(7), range(7, rows)):
        buffer.push(batch(part))
    saved = buffer.state_dict()
    buffer.load_state_dict(saved)
    for value in values:
        with pytest.raises(ValueError, match=rf"{key} must be a whole number|the next has that number|are kept, got 7"):
            buffer.load_state_dict(saved | {key: value})


@pytest.mark.parametrize("kind", [Replay, lambda capacity, parts: Reservoir(capacity, parts, seed=3)])
def test_rows_that_do_not_fit_are_refused(kind):
    buffer, rows = kind(10, PARTS), batch(range(3))
    for wrong in ({"number": rows["number"]}, rows | {"reward": rows["number"]}, rows | {"action": np.zeros((2, 1))}):
        with pytest.raises(ValueError, match="must have rows"):
            buffer.push(wrong)
    with pytest.raises(ValueError, match="nothing was pushed yet"):
        buffer.draw(np.zeros(1))
    with pytest.raises(ValueError, match="capacity"):
        kind(0, PARTS)


def test_more_rows_than_a_replay_holds_are_refused():
    with pytest.raises(ValueError, match="11 rows do not fit"):
        Replay(10, PARTS).push(batch(range(11)))


@pytest.mark.parametrize("case", select("buffers"))
def test_every_row_of_a_stream_stays_in_the_reservoir_equally_likely(case):
    """By the exact law of the places that rows draw: t + 1 uniforms in the middle of equal parts stand for all."""
    capacity, stream = case["input"]["capacity"], case["input"]["stream"]
    kept = np.zeros((stream, capacity))  # the probability that a row lies in a place
    for row in range(stream):
        parts = (np.arange(row + 1) + 0.5) / (row + 1)
        places = np.concatenate([reservoir_places(row, capacity, part[None]) for part in parts])
        replaced = np.bincount(places, minlength=capacity)[:capacity] / len(places)
        kept[:row] *= 1 - replaced
        kept[row] = replaced
    np.testing.assert_allclose(
        kept.sum(axis=1), case["expected"]["inclusion_probability"], rtol=0, atol=case["tolerance"]
    )


def test_a_reservoir_keeps_each_row_equally_often():
    counts = np.zeros(40)
    for seed in range(1000):
        reservoir = Reservoir(10, PARTS, seed)
        reservoir.push(batch(range(25)))
        reservoir.push(batch(range(25, 40)))
        kept = everything(reservoir)
        assert len(set(kept)) == 10
        counts[kept] += 1
    error = (1000 * 0.25 * 0.75) ** 0.5
    assert abs(counts - 250).max() < 4 * error
    assert np.var(counts) / error**2 == pytest.approx(1, abs=0.6)


@given(st.lists(st.integers(1, 30), max_size=8))
def test_a_reservoir_filled_at_once_equals_one_filled_row_by_row(sizes):
    together, single, pushed = Reservoir(6, PARTS, 1), Reservoir(6, PARTS, 1), 0
    for size in sizes:
        together.push(batch(range(pushed, pushed + size)))
        for number in range(pushed, pushed + size):
            single.push(batch([number]))
        pushed += size
    assert everything(together) == everything(single)


@given(st.integers(1, 20), st.data())
def test_a_sum_tree_finds_what_a_walk_finds(capacity, data):
    """With whole numbers for weights, whose sums are exact."""
    tree, weights = SumTree(capacity), np.zeros(capacity)
    leaf = st.integers(0, capacity - 1)
    for leaves in data.draw(st.lists(st.lists(leaf, min_size=1, max_size=9), min_size=1, max_size=4)):
        values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(leaves), max_size=len(leaves))), float)
        tree.put(np.array(leaves), values)
        for one, value in zip(leaves, values, strict=True):
            weights[one] = value
    assert tree.total == weights.sum()
    assert tree[np.arange(capacity)].tolist() == weights.tolist()
    sums = np.arange(0, tree.total, 0.5)
    walked = [next(one for one in range(capacity) if weights[: one + 1].sum() > at) for at in sums]
    assert tree.find(sums).tolist() == walked


def test_leaves_without_weight_are_never_found():
    tree = SumTree(8)
    tree.put(np.array([1, 3]), np.array([0.1, 0.2]))
    assert set(tree.find(np.linspace(0, 1.1 * tree.total, 1000)).tolist()) == {1, 3}


def test_rows_are_drawn_by_their_priority():
    priorities = np.array([0.5, 1.0, 4.0, 0.1, 2.0])
    drawn, noise = Prioritised(8, alpha=0.6), Noise(0, ["test"])
    drawn.add(np.arange(5))
    drawn.update(np.arange(5), -priorities)
    shares = (priorities + Prioritised.FLOOR) ** 0.6
    shares /= shares.sum()
    # A draw from each hundredth of all priority would come out too even: draw one at a time.
    places = [drawn.draw(precise(noise.draw(Purpose.SHUFFLE, step, 1, 2)))[0] for step in range(2000)]
    assert chisquare(np.bincount(places, minlength=5), 2000 * shares).pvalue > UNLIKELY
    weights = drawn.weights(np.arange(5), beta=0.4)
    np.testing.assert_allclose(weights, ((5 * shares) ** -0.4) / ((5 * shares) ** -0.4).max(), rtol=1e-6)
    assert drawn.weights(np.array([2, 2]), beta=1.0).tolist() == [1.0, 1.0]


def test_a_batch_is_drawn_from_equal_parts_of_all_priority():
    drawn = Prioritised(8, alpha=1.0)
    drawn.add(np.arange(8))
    assert drawn.draw(np.full(8, 0.99)).tolist() == list(range(8))
    drawn.update(np.array([7]), np.array([8.0]))
    assert (drawn.draw(np.full(15, 0.5)) == 7).sum() == 8


def test_new_rows_have_the_highest_priority_there_was():
    drawn = Prioritised(4, alpha=1.0)
    drawn.add(np.array([0, 1]))
    drawn.update(np.array([0, 1]), np.array([5.0, 0.25]))
    drawn.add(np.array([1, 2]))
    np.testing.assert_allclose(drawn.tree[np.arange(4)], [5, 5, 5, 0], rtol=1e-5)


def test_saved_priorities_draw_the_same():
    straight, resumed = Prioritised(6, 0.6), Prioritised(6, 0.6)
    straight.add(np.arange(5))
    straight.update(np.arange(5), np.arange(5.0))
    resumed.load_state_dict(straight.state_dict())
    assert (resumed.tree.nodes == straight.tree.nodes).all()
    assert (resumed.size, resumed.highest) == (straight.size, straight.highest)
    with pytest.raises(ValueError, match="nothing was added"):
        Prioritised(6, 0.6).draw(np.zeros(1))


def resident():
    """Bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_a_million_transitions_of_bucket_brigade_take_less_than_half_a_gigabyte():
    """47 features of 32 bits, now and next, and three factors of an action."""
    before = resident()
    replay = Replay(1_000_000, transition_parts({"observation": ((47,), "float32"), "action": ((3,), "int64")}))
    rows = np.zeros(1000, replay.rows.record)
    for _ in range(1000):
        replay.push(rows)
    assert replay.size == 1_000_000
    assert 400e6 < resident() - before < 500e6
