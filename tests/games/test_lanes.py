import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import games
from games.bucket_brigade import BucketBrigade
from games.lanes import GameLanes, put_lanes, tree_leaves, tree_map
from games.noise import Purpose
from games.policies import Uniform

B = 40


def lanes_of(game=None, put=np.asarray, units=("a",), lanes=B, seed=0) -> GameLanes:
    made = GameLanes(game or BucketBrigade("hard", rules="engine", max_nights=17), lanes, put=put)
    made.reset(seed, *units)
    return made


def play_on(lanes: GameLanes, steps: int) -> list:
    """Steps of uniform play: observations, outcome and final observation of seat 1, as NumPy arrays."""
    policies = [Uniform.of(space) for space in lanes.action_spaces]
    shown = []
    for _ in range(steps):
        actions = tuple(
            policy.act(None, None, None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))[0]
            for seat, policy in enumerate(policies)
        )
        seen = lanes.observe(1)
        shown.append([np.asarray(part) for part in (seen, *lanes.step(actions), lanes.final_observations(1))])
    return shown


def assert_same(one: list, other: list, rows=slice(None)) -> None:
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x[rows], y)


def test_units_side_by_side_play_what_they_play_alone():
    together = play_on(lanes_of(units=("a", "b")), 30)
    for block, unit in enumerate("ab"):
        rows = slice(block * B // 2, (block + 1) * B // 2)
        assert_same(together, play_on(lanes_of(units=(unit,), lanes=B // 2), 30), rows)


def test_every_lane_may_play_a_cell_of_its_own():
    game = BucketBrigade("minimal_specialization")
    kappa = np.repeat([0.1, 0.9], B // 2)
    sweep = GameLanes(game, B, game.params(kappa=kappa))
    sweep.reset(0, "a")
    shown = play_on(sweep, 30)
    for cell, rows in ((0.1, slice(0, B // 2)), (0.9, slice(B // 2, B))):
        alone = GameLanes(game, B, game.params(kappa=cell))
        alone.reset(0, "a")
        for a, b in zip(shown, play_on(alone, 30), strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x[rows], y[rows])


def test_mistakes_are_refused():
    with pytest.raises(ValueError, match="at least one episode"):
        GameLanes(BucketBrigade(), 0)
    with pytest.raises(ValueError, match=r"\[1 or 40, \.\.\.\]"):
        GameLanes(BucketBrigade(), B, BucketBrigade().params(kappa=[0.1, 0.2, 0.3]))
    with pytest.raises(ValueError, match="equal blocks"):
        lanes_of(units=("a", "b", "c"))


@pytest.mark.parametrize("wrong", [-1, 10])
def test_actions_outside_the_space_are_refused(xp, wrong):
    lanes = lanes_of(put=xp.put)
    actions = [np.zeros((B, 3), np.int64) for _ in range(4)]
    actions[2][7, 0] = wrong
    with pytest.raises(ValueError, match=r"agent_2 must act within MultiDiscrete\(.*\), got .*in lane 7"):
        lanes.step(tuple(xp.put(action) for action in actions))
    with pytest.raises(ValueError, match=r"actions must be \[\(40, 3\), .*\], got \[\(40, 3\)\]"):
        lanes.step((xp.put(actions[0]),))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.full((B, 2), 0.5, np.float32), r"actions must be \[\(40, 1\)\], got \[\(40, 2\)\]"),
        (np.full((B, 1), 0.5), "player_0 must act in float32, got float64: cast actions"),
        (np.eye(B, dtype=np.float32)[:, 7:8] * 2, r"player_0 must act within Box\(.*\), got .*2.* in lane 7"),
        (np.where(np.arange(B) == 3, np.nan, 0).astype(np.float32)[:, None], "nan.* in lane 3"),
    ],
)
def test_continuous_actions_outside_the_space_are_refused(xp, actions, message):
    lanes = lanes_of(games.make("lqr"), xp.put)
    with pytest.raises(ValueError, match=message):
        lanes.step((xp.put(actions),))


def test_nothing_works_before_reset():
    fresh = GameLanes(BucketBrigade(), B)
    uses = [lambda: fresh.observe(0), lambda: fresh.acting, lambda: fresh.final_observations(0), fresh.state_dict]
    for use in (*uses, lambda: fresh.step(tuple(np.zeros((B, 3), np.int64) for _ in range(4)))):
        with pytest.raises(ResetNeeded, match=r"call reset\(seed\)"):
            use()
    with pytest.raises(AttributeError, match="'GameLanes' object has no attribute 'rest'"):
        _ = fresh.rest


def test_trees_keep_their_kind():
    state = lanes_of()._state
    doubled = tree_map(lambda leaf: leaf + leaf, state)
    assert type(doubled) is type(state)
    assert doubled.meters is None
    assert len(tree_leaves((None, (state, None)))) == sum(leaf is not None for leaf in state)


def test_put_lanes_writes_a_copy(xp):
    old, new = xp.put(np.zeros((3, 2))), xp.put(np.ones((3, 2)))
    merged = put_lanes(xp.put(np.array([True, False, True])), new, old)
    assert np.asarray(merged).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert np.asarray(old).sum() == 0
