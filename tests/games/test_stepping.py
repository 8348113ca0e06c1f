"""Lanes of environments that own their state."""

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games import make
from games.game import Lanes
from games.lanes import closing
from games.lanes import lanes_of as lanes_to_play
from games.stepping import SteppedLanes


class Clock:
    """Counts to a random length; seat 1 is absent at first, and dies a step early. A source and its episode."""

    agents = ("one", "two")
    observation_spaces = (Box(0, 99, (2,)), Box(0, 99, (1,)))
    action_spaces = (MultiDiscrete([2, 3]), Discrete(4))
    masked = (False, True)
    closed = 0

    def episode(self):
        return Clock()

    def begin(self, seed, row):
        self.time, self.length = 0, 3 + seed % 3
        self._show(row)

    def play(self, actions, row):
        self.time += 1
        row.rewards[:] = row.alive * (1.0 + actions[1])
        row.terminated[1] = self.time >= self.length - 1
        row.truncated[0] = row.done[0] = self.time >= self.length
        self._show(row)

    def _show(self, row):
        row.observations[0][:] = self.time, self.length
        row.observations[1][:] = self.time
        row.alive[:] = self.time < self.length, 0 < self.time < self.length - 1
        row.acting[:] = row.alive
        row.legal[1][0][:] = [True, True, self.time > 1, False]

    def close(self):
        Clock.closed += 1


def lanes_of(lanes=4, seed=0, units=("a",)) -> Lanes:
    made = SteppedLanes(Clock(), lanes)
    made.reset(seed, *units)
    return made


def wait(lanes=4):
    return np.zeros((lanes, 2), np.int64), np.zeros(lanes, np.int64)


def test_the_absent_and_the_dead_see_zeros_and_may_do_nothing():
    lanes = lanes_of(1)
    shown = []
    for _ in range(12):
        alive = lanes.alive[0].tolist()
        shown.append((alive, float(lanes.observe(1)[0, 0]), lanes.legal(1)[0][0].tolist()))
        lanes.step(wait(1))
    assert shown[0] == ([True, False], 0.0, [False] * 4)
    assert shown[1] == ([True, True], 1.0, [True, True, False, False])
    assert all(seen == 0 and not any(legal) for alive, seen, legal in shown if not alive[1])
    assert lanes.legal(0) is None


def test_outcomes_stay_until_the_episode_is_over_and_finals_are_of_the_step_that_ended_it():
    lanes = lanes_of(1)
    length = int(lanes.observe(0)[0, 1])
    for step in range(1, length + 1):
        outcome = lanes.step(wait(1))
        assert outcome.terminated.tolist() == [[False, step >= length - 1]]
        assert outcome.truncated.tolist() == [[step == length, False]]
        assert outcome.done.tolist() == [step == length]
        assert lanes.final_observations(0).tolist() == [[step, length]]
        assert lanes.final_observations(1).tolist() == [[step if step < length else 0]]
    assert lanes.observe(0)[0, 0] == 0  # the next one has begun
    after = lanes.step(wait(1))
    assert not (after.terminated | after.truncated | after.done[:, None]).any()


def test_units_side_by_side_play_what_they_play_alone():
    together, alone = lanes_of(4, 7, ("a", "b")), lanes_of(2, 7, ("b",))
    for _ in range(20):
        np.testing.assert_array_equal(together.observe(0)[2:], alone.observe(0))
        np.testing.assert_array_equal(together.noise(16, 3)[2:], alone.noise(16, 3))
        together.step(wait(4))
        alone.step(wait(2))


def test_what_was_handed_out_stays_as_it_was():
    lanes = lanes_of()
    handed = [lanes.observe(0), lanes.alive, lanes.acting, lanes.legal(1)[0], *lanes.step(wait())]
    kept = [part.copy() for part in handed]
    for _ in range(7):
        lanes.step(wait())
    for part, before in zip(handed, kept, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        (
            (np.zeros((4, 2), np.int64), np.zeros(3, np.int64)),
            r"must be \[\(4, 2\), \(4,\)\], got \[\(4, 2\), \(3,\)\]",
        ),
        (([[0, 0]] * 4, [0] * 4), "one NumPy array a seat, in the order of agents; got a list"),
        ((np.zeros((4, 2)), np.zeros(4, np.int64)), "actions of one must be int64, got float64"),
        ((np.full((4, 2), 2), np.zeros(4, np.int64)), r"one must act within MultiDiscrete.*, got \[2 2\] in lane 0$"),
        (
            (np.zeros((4, 2), np.int64), np.array([0, 0, 2, 0])),
            r"two must act within .*got 2 in lane 2; legal now: \[0, 1\]",
        ),
        ((np.zeros((4, 2), np.int64), np.array([0, 0, 0, 9])), r"two must act within Discrete\(4\), got 9 in lane 3"),
    ],
)
def test_actions_that_are_not_legal_are_refused(actions, says):
    lanes = lanes_of()
    lanes.step(wait())
    with pytest.raises(ValueError, match=says):
        lanes.step(actions)


def test_lanes_must_be_reset_and_have_room_for_their_units():
    lanes = SteppedLanes(Clock(), 3)
    for use in (lambda: lanes.observe(0), lambda: lanes.acting, lambda: lanes.noise(0, 1), lambda: lanes.step(wait(3))):
        with pytest.raises(ResetNeeded, match="call reset"):
            use()
    with pytest.raises(ValueError, match="3 lanes cannot hold 2 units"):
        lanes.reset(0, "a", "b")
    with pytest.raises(ValueError, match="at least one episode"):
        SteppedLanes(Clock(), 0)
    lanes.reset(0)
    with pytest.raises(NotImplementedError, match="own their state"):
        lanes.state_dict()


def test_an_error_in_one_lane_closes_them_all(monkeypatch):
    lanes = lanes_of(3)
    Clock.closed = 0
    monkeypatch.setattr(Clock, "play", lambda clock, actions, row: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lanes.step(wait(3))
    assert Clock.closed == 3
    with pytest.raises(ValueError, match="are closed"):
        lanes.step(wait(3))


def test_environments_that_do_not_close_leave_no_other_open_and_hide_no_error(monkeypatch):
    def fail(clock, *given):
        Clock.closed += 1
        raise KeyError(Clock.closed)

    first, second = lanes_of(3), lanes_of(3)
    monkeypatch.setattr(Clock, "close", fail)
    Clock.closed = 0
    with pytest.raises(KeyError, match="1"):
        first.close()
    assert Clock.closed == 3
    with pytest.raises(ZeroDivisionError) as raised, closing(second):
        raise ZeroDivisionError
    assert "KeyError(4)" in raised.value.__notes__[0]


@pytest.mark.parametrize("num_lanes", ["3", 2.5, 0])
def test_numbers_of_lanes_are_whole(num_lanes):
    with pytest.raises(ValueError, match="at least one episode to play, a whole number, got num_lanes="):
        SteppedLanes(Clock(), num_lanes)


def test_closing_closes_every_environment():
    Clock.closed = 0
    lanes = lanes_of(3)
    lanes.close()
    assert Clock.closed == 3
    with pytest.raises(ValueError, match="are closed"):
        lanes.step(wait(3))


def test_lanes_are_told_in_words():
    with closing(lanes_to_play(make("openspiel_stepped:kuhn_poker"), 2)) as lanes:
        assert "kuhn_poker" in repr(lanes)
        assert " object at " not in repr(lanes)
    assert repr(lanes_to_play(make("cart_pole"), 2)) == "GameLanes(CartPole(max_steps=500), 2)"
