"""The T-maze against the enumeration of all policies of a kind."""

from itertools import product

import numpy as np
import pytest

from games.lanes import GameLanes, to_numpy
from games.t_maze import BACK, FORWARD, LEFT, RIGHT, SIGHTS, TMaze

CUES = slice(2)


class Balanced(TMaze):
    """Every other lane's cue says right."""

    def init(self, params, noise):
        state = super().init(params, noise)
        return state._replace(goal=LEFT + np.arange(len(noise)) % 2)


def returns(game, tables):
    """[P] mean returns of tables [P, cue, sight] of actions, the cue being what was seen first: two episodes each."""
    lanes, policy = GameLanes(game, 2 * len(tables)), np.arange(2 * len(tables)) // 2
    lanes.reset(seed=0)
    earned, running = np.zeros(len(policy)), np.ones(len(policy), bool)
    cue = lanes.observe(0).argmax(axis=1)
    for _ in range(game.limit):
        outcome = lanes.step((tables[policy, cue, lanes.observe(0).argmax(axis=1)],))
        earned += np.where(running, outcome.rewards[:, 0], 0)
        running &= ~outcome.done
    assert not running.any()
    return earned.reshape(-1, 2).mean(axis=1)


@pytest.mark.parametrize("values", [{"length": 2}, {"length": 1, "bump": 0.0}, {"length": 3, "blur": 0.4}])
def test_no_policy_without_memory_beats_its_exact_value(values):
    game = Balanced(**values)
    tables = np.array(list(product(range(4), repeat=len(SIGHTS))))
    found = returns(game, np.repeat(tables[:, None], 2, axis=1))
    assert found.max() == pytest.approx(game.best_without_memory)


def test_no_policy_with_memory_beats_the_optimum():
    each = np.array(list(product(range(4), repeat=3)))  # of one cue: at once, in the corridor, at the junction
    pairs = np.stack([each[index] for index in np.indices((64, 64)).reshape(2, -1)], axis=1)
    game = Balanced(length=2, max_steps=4)
    found = returns(game, np.insert(pairs, 1, pairs[:, :, 0], axis=2))
    assert found.max() == game.optimum
    best = pairs[found == game.optimum].tolist()
    assert best == [[[FORWARD, FORWARD, LEFT], [FORWARD, FORWARD, RIGHT]]]


def test_the_cue_is_seen_in_the_first_step_only(xp):
    lanes = GameLanes(TMaze(length=1), 8, put=xp.put)
    lanes.reset(seed=3)
    shown = to_numpy(lanes.observe(0))
    assert sorted(set(map(tuple, shown.tolist()))) == [(0, 1, 0, 0), (1, 0, 0, 0)]
    bumps = lanes.step((xp.put(np.full(8, BACK)),))
    assert to_numpy(bumps.rewards).tolist() == [[np.float32(-0.1)]] * 8
    assert to_numpy(lanes.observe(0)).tolist() == [[0, 0, 1, 0]] * 8
    lanes.step((xp.put(np.full(8, FORWARD)),))
    assert to_numpy(lanes.observe(0)).tolist() == [[0, 0, 0, 1]] * 8
    turns = lanes.step((xp.put(np.where(shown[:, 0] == 1, LEFT, RIGHT)),))
    assert to_numpy(turns.rewards).tolist() == [[1.0]] * 8
    assert to_numpy(turns.terminated).all()


def test_walls_and_the_wrong_side_and_the_limit():
    game = TMaze(length=1, max_steps=3)
    lanes = GameLanes(game, 64)
    for actions, rewards, ends in (
        ((LEFT, RIGHT, FORWARD), (-0.1, -0.1, 0), "truncated"),
        ((FORWARD, FORWARD, BACK), (0, -0.1, 0), "truncated"),
        ((FORWARD, LEFT), (0, None), "terminated"),
    ):
        lanes.reset(seed=0)
        for action, reward in zip(actions, rewards, strict=True):
            outcome = lanes.step((np.full(64, action),))
            if reward is not None:
                assert np.allclose(outcome.rewards, reward)
        assert getattr(outcome, ends).all()
    assert set(outcome.rewards.ravel().tolist()) == {0.0, 1.0}


def test_blurred_observations_differ_and_can_be_told_apart():
    lanes = GameLanes(TMaze(blur=0.45), 100)
    lanes.reset(seed=0)
    seen = lanes.observe(0)
    assert len(np.unique(seen)) == seen.size
    assert (seen[:, CUES].max(axis=1) > 0.5).all()
    assert (seen[:, 2:] < 0.5).all()


@pytest.mark.parametrize("state", ["start", "bumped", "junction", "right", "wrong"])
def test_pictures_and_texts_tell_states_apart(state):
    game = TMaze(length=3)
    params = game.params()
    start = game.init(params, np.zeros((1, 1), np.float32))
    changes = {
        "start": {},
        "bumped": {"steps": np.array([1]), "rewards": np.array([[-0.1]], np.float32)},
        "junction": {"steps": np.array([3]), "position": np.array([3])},
        "right": {"steps": np.array([4]), "turned": np.array([LEFT]), "rewards": np.ones((1, 1), np.float32)},
        "wrong": {"steps": np.array([4]), "turned": np.array([RIGHT])},
    }
    pictures = {name: game.frame(params, start._replace(**change)) for name, change in changes.items()}
    texts = {name: game.describe(params, start._replace(**change)) for name, change in changes.items()}
    assert pictures[state].shape == (400, 960, 3)
    for other in changes.keys() - {state}:
        assert (pictures[state] != pictures[other]).any()
        assert texts[state] != texts[other]


def test_long_corridors_are_told_in_numbers():
    game = TMaze(length=10**6)
    state = game.init(game.params(), np.zeros((1, 1), np.float32))
    assert game.describe(game.params(), state).startswith("step 0: cell 0 of 1000000 |")
    assert game.frame(game.params(), state).shape == (400, 960, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"length": 0}, "length must be a whole number of at least 1 and at most .*, got 0"),
        ({"length": 5, "max_steps": 5}, "max_steps must be a whole number of at least 6, got 5"),
        ({"blur": 0.5}, "blur must be a finite number of at least 0 and below 0.5"),
        ({"bump": -1.0}, "bump must be a finite number of at least 0"),
        ({"bump": float("nan")}, "bump must be a finite number of at least 0"),
    ],
)
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        TMaze(**values)
