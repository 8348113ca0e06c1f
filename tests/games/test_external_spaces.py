"""Anybody's spaces as ours."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Text, Tuple

from games.external.contract import Fault
from games.external.spaces import moves, sight

PICTURE = Box(0, 255, (6, 5, 3), np.uint8)
NESTED = Dict({"b": Tuple((Discrete(2, start=5), MultiBinary((2, 2)))), "a": Box(-np.inf, 3, (2, 2), np.float64)})

OBSERVED = {
    "box": (Box(-1, 2, (3,)), 3),
    "box of float64 without bounds": (Box(-np.inf, np.inf, (2, 3), np.float64), 6),
    "box of one number": (Box(0, 1, ()), 1),
    "box of integers": (Box(-5, 5, (4,), np.int64), 4),
    "board": (Box(0, 1, (6, 7, 2), np.int8), 84),
    "picture": (PICTURE, 90),
    "discrete": (Discrete(4, start=-1), 4),
    "several": (MultiDiscrete([2, 3]), 5),
    "grid of several": (MultiDiscrete([[2, 3], [1, 2]], start=[[1, 0], [0, 7]]), 8),
    "bits": (MultiBinary((2, 3)), 6),
    "nested": (NESTED, 10),
    "masked": (Dict({"observation": Box(0, 1, (2,)), "action_mask": Box(0, 1, (9,), np.int8)}), 2),
}
"""Spaces, and their numbers of features."""

PLAYED = {
    "discrete": Discrete(4),
    "discrete from 3": Discrete(4, start=3),
    "several": MultiDiscrete([2, 3], start=[0, 4]),
    "grid of several": MultiDiscrete([[2, 3], [1, 2]]),
    "bits": MultiBinary((2, 2)),
    "box": Box(np.array([-1.0, 0.1]), np.array([0.3, 7.0]), dtype=np.float64),
    "grid": Box(-1, 1, (2, 3)),
    "whole numbers": Box(-2, 3, (2,), np.int32),
    "nested": Dict({"b": Tuple((Discrete(2, start=5), MultiBinary(3))), "a": MultiDiscrete([2, 3])}),
}


@pytest.mark.parametrize("images", ["flat", "keep"])
@pytest.mark.parametrize("name", OBSERVED)
def test_observations_become_rows_within_our_space(name, images):
    space, features = OBSERVED[name]
    seen = sight(space, images, strict=True)
    assert seen.space.dtype == np.float32
    assert seen.space.low.size == features
    assert len(seen.space.shape) == (3 if name == "picture" and images == "keep" else 1)
    space.seed(0)
    shown = []
    for _ in range(20):
        row = np.full(seen.space.shape, np.nan, np.float32)
        mask = seen.write(space.sample(), row)
        assert (mask is not None) == (name == "masked")
        assert seen.space.contains(row)
        shown.append(row)
    assert np.ptp(shown, axis=0).any()  # not always the same


def test_leaves_follow_each_other_and_keep_their_bounds():
    observation = {"a": np.array([[1.0, 2], [3, -9]]), "b": (6, np.array([[1, 0], [0, 1]], np.int8))}
    row = np.zeros(10, np.float32)
    seen = sight(NESTED)
    seen.write(observation, row)
    assert row.tolist() == [1, 2, 3, -9, 0, 1, 1, 0, 0, 1]
    assert seen.space.low.tolist() == [-np.inf] * 4 + [0] * 6
    assert seen.space.high.tolist() == [3] * 4 + [1] * 6


@pytest.mark.parametrize("space", [PICTURE, Box(0, 255, (3, 6, 5), np.uint8), Box(10, 20, (6, 5), np.uint8)])
def test_pictures_are_scaled_and_kept_with_channels_first(space):
    picture = np.full(space.shape, 15, np.uint8)
    picture[0, 0] = space.high.max()
    kept, flat = (sight(space, images) for images in ("keep", "flat"))
    rows = [np.zeros(each.space.shape, np.float32) for each in (kept, flat)]
    for each, row in zip((kept, flat), rows, strict=True):
        each.write(picture, row)
        assert each.space.contains(row)
        assert row.max() == 1
    scaled = (15 - space.low.min()) / (space.high.max() - float(space.low.min()))
    assert rows[0].min() == rows[1].min() == np.float32(scaled)
    assert rows[0].shape == {(6, 5, 3): (3, 6, 5)}.get(space.shape, space.shape)
    assert (rows[0][:, 0, 0] == 1).all() if space is PICTURE else (rows[0][0, 0] == 1).all()
    assert (rows[1].reshape(space.shape)[0, 0] == 1).all()


@pytest.mark.parametrize("space", [Text(3), Sequence(Discrete(2)), Graph(Discrete(2), None), OneOf([Discrete(2)])])
def test_observations_of_no_fixed_size_are_refused_by_where_they_are(space):
    with pytest.raises(ValueError, match=rf"got {type(space).__name__} at \['deep', 1\]: wrap the environment"):
        sight(Dict({"deep": Tuple([Discrete(2), space])}))


def test_observations_that_would_be_too_large_or_nothing_are_refused():
    with pytest.raises(ValueError, match="1000000 one-hot features: wrap it"):
        sight(Discrete(10**6))
    with pytest.raises(ValueError, match="must have something to see"):
        sight(Dict({"action_mask": MultiBinary(3)}))


@pytest.mark.parametrize(
    ("space", "observation", "says"),
    [
        (Box(0, 1, (2,)), np.zeros(3), r"shape \(2,\), got float64 \(3,\)"),
        (Box(0, 1, (2,)), [0.5, np.inf], "must be finite"),
        (Box(0, 1, (2,)), np.array(["a", "b"]), "must be numbers"),
        (Discrete(3), 3, r"whole number in Discrete\(3\), got 3"),
        (Discrete(3), 1.0, "whole number"),
        (MultiDiscrete([2, 2]), np.array([0, 2]), "whole numbers in MultiDiscrete"),
        (NESTED, {"a": np.zeros((2, 2))}, "must have 'b'"),
        (NESTED, {"a": np.zeros((2, 2)), "b": (5,)}, r"must have 1, got \(5,\)"),
        (PICTURE, np.zeros((6, 5, 3)), "a picture must be of uint8, got float64"),
    ],
)
def test_observations_that_do_not_fit_are_refused(space, observation, says):
    seen = sight(space)
    with pytest.raises(Fault, match=says):
        seen.write(observation, np.zeros(seen.space.shape, np.float32))


def test_large_numbers_are_finite_too():
    row = np.zeros(2, np.float32)
    sight(Box(-np.inf, np.inf, (2,))).write(np.array([3e38, -3e38], np.float32), row)
    assert row.tolist() == [np.float32(3e38), -np.float32(3e38)]


@pytest.mark.parametrize("bins", [None, 4])
@pytest.mark.parametrize("name", PLAYED)
def test_our_actions_become_theirs(name, bins):
    theirs = PLAYED[name]
    move = moves(theirs, bins)
    move.space.seed(0)
    for _ in range(50):
        action = move.space.sample()
        decoded = move.decode(int(action) if isinstance(move.space, Discrete) else action)
        assert theirs.contains(decoded), (action, decoded)
    if isinstance(move.space, Box):
        for end, wanted in ((move.space.low, theirs.low), (move.space.high, theirs.high)):
            np.testing.assert_allclose(move.decode(end), wanted)
            assert theirs.contains(move.decode(end))


def test_actions_keep_their_order():
    move = moves(PLAYED["nested"])
    assert move.space.nvec.tolist() == [2, 3, 2, 2, 2, 2]
    decoded = move.decode(np.array([1, 2, 1, 0, 1, 1]))
    assert decoded["a"].tolist() == [1, 2]
    assert decoded["b"][0] == 6
    assert decoded["b"][1].tolist() == [0, 1, 1]
    assert moves(Discrete(4, start=3)).decode(0) == 3


def test_bins_are_evenly_spaced_from_bound_to_bound():
    move = moves(Box(np.array([-1, 0], np.float32), np.array([1, 3], np.float32)), bins=3)
    assert [move.decode(np.array(choice)).tolist() for choice in ([0, 0], [1, 1], [2, 2])] == [
        [-1, 0],
        [0, 1.5],
        [1, 3],
    ]
    assert moves(Tuple([Discrete(2), Dict({})])).decode(np.array([1])) == (1, {})
    joint = moves(Tuple([Discrete(2), Box(0, 1, (1,))]), bins=2)
    assert joint.decode(np.array([1, 1])) == (1, np.ones(1, np.float32))


@pytest.mark.parametrize(
    ("space", "bins", "says"),
    [
        (Box(0, np.inf, (2,)), None, "must be bounded, got .*RescaleAction"),
        (Box(0, np.inf, (2,)), 5, "must be bounded"),
        (Tuple([Discrete(2), Box(0, 1, (1,))]), None, "within Dict or Tuple needs bins=k"),
        (Box(0, 1e300, (2,), np.float64), None, r"bounds within ±3.40282e\+38"),
        (Box(-(2**63), 2**63 - 1, (1,), np.int64), 3, "bounds within ±9.0072e"),
        *((empty, None, "must have something to choose") for empty in (Dict({}), Box(0, 1, (0,)))),
        (Text(3), None, "must be Discrete, MultiDiscrete, MultiBinary, Box, Dict or Tuple; got Text"),
    ],
)
def test_actions_that_cannot_be_chosen_are_refused(space, bins, says):
    with pytest.raises(ValueError, match=says):
        moves(space, bins)


@pytest.mark.parametrize(
    ("space", "mask", "wanted"),
    [
        (Discrete(3), np.array([1, 0, 1], np.int8), [[1, 0, 1]]),
        (MultiDiscrete([2, 3]), (np.array([1, 0]), np.array([0, 1, 1])), [[1, 0], [0, 1, 1]]),
        (MultiDiscrete([2, 3]), np.array([1, 0, 0, 1, 1]), [[1, 0], [0, 1, 1]]),
        (MultiDiscrete([2, 2]), [[1, 0], [1, 1]], [[1, 0], [1, 1]]),
        (MultiDiscrete([1, 1]), np.array([1, 1]), [[1], [1]]),
    ],
)
def test_masks_come_by_factor_or_all_in_one(space, mask, wanted):
    legal = [np.zeros(len(row), bool) for row in wanted]
    moves(space).write_mask(mask, legal)
    assert [row.tolist() for row in legal] == [[bool(allowed) for allowed in row] for row in wanted]


@pytest.mark.parametrize(
    "mask",
    [np.ones(4), np.ones((2, 2), int), 3, [[1, [0]], [1, 1, 1]], [[1, 0], [1, 1, 1, 1]], np.array([0, 0, 1, 1, 1])],
)
def test_masks_that_do_not_fit_are_refused(mask):
    with pytest.raises(Fault, match=r"must have \[2, 3\] entries|must have a legal action"):
        moves(MultiDiscrete([2, 3])).write_mask(mask, [np.zeros(2, bool), np.zeros(3, bool)])
