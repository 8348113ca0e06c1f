"""Pong: laws of its rules, and its rule-based player."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from games.game import Policy, State
from games.lanes import GameLanes, tree_leaves
from games.noise import Noise, Purpose
from games.play import play
from games.policies import Uniform
from games.pong import Pong
from games.pong.rules import DOWN, STAY, UP, Places, mirrored
from games.pong.rules import State as Court
from games.pong.scripted import Follow

LANES = 32
UNIFORM = Uniform.of(Pong().action_spaces[0])
seeds = st.integers(0, 99)


@st.composite
def dynamics(draw) -> dict[str, float]:
    """Of slow and fast games, long and short paddles."""
    top, steepest = draw(st.floats(0.1, 0.4)), draw(st.floats(0.2, 2.5))
    return {
        "serve_speed": top * draw(st.floats(0.5, 1.0)),
        "speed_up": draw(st.floats(1.0, 1.5)),
        "top_speed": top,
        "paddle_speed": draw(st.floats(0.02, 0.3)),
        "reach": draw(st.floats(0.1, 0.9)),
        "steepest": steepest,
        "wobble": steepest * draw(st.floats(0.0, 1.0)),
    }


def rally(game: Pong, seed: int, steps: int = 60) -> Iterator[tuple[State, list[np.ndarray], np.ndarray, State]]:
    """(state, actions, noise, next state) of players who follow the ball now and then."""
    noise, params, players = Noise(seed, ["pong"]), game.params(), (Follow.of(game, 0.8), Follow.of(game, 0.4))
    state = game.init(params, noise.draw(Purpose.INIT, 0, LANES, 3))
    for step in range(steps):
        uniforms = [noise.draw(Purpose.SEAT + seat, step, LANES, 1) for seat in range(2)]
        actions = [p.act(game.observe(params, state, i), None, None, uniforms[i])[0] for i, p in enumerate(players)]
        drawn = noise.draw(Purpose.STEP, step, LANES, 3)
        following = game.step(params, state, tuple(actions), drawn)
        yield state, actions, drawn, following
        state = following


def court(**given: float) -> Court:
    """A state of one lane: paddles and ball in the middle, but for what is given."""

    def lane(name: str) -> np.ndarray:
        return np.array([given.get(name, 0.0)], np.float32)

    places, none = Places(*(lane(name) for name in Places._fields)), np.zeros(1, np.int32)
    return Court(places, places, lane("dx"), lane("dy"), lane("point"), none, none, none)


def after(game: Pong, state: Court, left: int = STAY, right: int = STAY) -> dict[str, float]:
    """What a step makes of one lane; no chance turns the ball."""
    actions, noise = (np.array([left]), np.array([right])), np.full((1, 3), 0.5, np.float32)
    found = game.step(game.params(), state, actions, noise)
    fields = {name: getattr(found, name) for name in ("dx", "dy", "point")} | found.now._asdict()
    return {name: float(value[0]) for name, value in fields.items()}


def returns(one: Policy, other: Policy, game: Pong, episodes: int = 300) -> float:
    """Mean difference in points of an episode."""
    return float(play(game, [[one, other]], episodes, 0, ["pong"]).returns[0, :, 0].mean())


@settings(max_examples=8)
@given(dynamics(), seeds)
def test_ball_and_paddles_stay_in_the_court_and_speeds_within_their_bounds(numbers, seed):
    game = Pong(**numbers)
    top, serve, edge = (np.float32(bound) for bound in (game.top_speed, game.serve_speed, 1 - game.reach))
    for state, _, _, following in rally(game, seed):
        now, speed = following.now, abs(following.dx)
        assert (abs(now.x) <= 1).all()
        assert (abs(now.y) <= 1).all()
        assert (abs(np.stack([now.left, now.right])) <= edge).all()
        assert ((speed == 0) == (following.point != 0)).all()
        assert ((speed <= top) & ((speed >= serve) | (speed == 0))).all()
        assert (abs(following.dy) <= speed * np.float32(game.steepest) * (1 + 1e-6)).all()
        moved = np.stack([now.left - state.now.left, now.right - state.now.right])
        assert (abs(moved) <= game.paddle_speed + 1e-6).all()


@settings(max_examples=8)
@given(dynamics(), seeds)
def test_points_are_won_where_the_ball_is_missed_and_sum_to_zero(numbers, seed):
    game = Pong(**numbers)
    params = game.params()
    for state, _, _, following in rally(game, seed):
        rewards, point = game.rewards(params, following), following.point
        assert (rewards.sum(axis=1) == 0).all()
        assert (rewards[:, 0] == point).all()
        assert (following.now.x[point != 0] == point[point != 0]).all()
        assert (following.left_points - state.left_points == (point > 0)).all()
        assert (following.right_points - state.right_points == (point < 0)).all()
        served = state.point != 0
        assert (following.now.x[served] == 0).all()
        assert (point[served] == 0).all()


@settings(max_examples=8)
@given(dynamics(), seeds)
def test_a_mirrored_game_is_the_game_with_the_seats_swapped_bit_for_bit(numbers, seed):
    game = Pong(**numbers)
    params = game.params()
    for state, actions, noise, following in rally(game, seed):
        other_side = np.stack([(noise[:, 0] + np.float32(0.5)) % 1, *noise.T[1:]], axis=1)
        found = game.step(params, mirrored(state), tuple(actions[::-1]), other_side)
        assert same(found, mirrored(following))
        for seat in range(2):
            mine = game.observe(params, found, seat)
            assert mine.tobytes() == game.observe(params, following, 1 - seat).tobytes()


@settings(max_examples=8)
@given(dynamics(), seeds)
def test_up_and_down_are_alike(numbers, seed):
    game = Pong(**numbers)

    def flipped(state: Court) -> Court:
        now, before = (Places(p.x, 0 - p.y, 0 - p.left, 0 - p.right) for p in (state.now, state.before))
        return state._replace(now=now, before=before, dy=0 - state.dy)

    swap = np.array([STAY, DOWN, UP])
    for state, actions, noise, following in rally(game, seed):
        turned = np.stack([noise[:, 0], *(1 - noise.T[1:])], axis=1)
        found = game.step(game.params(), flipped(state), tuple(swap[action] for action in actions), turned)
        for mine, wanted in zip(tree_leaves(found), tree_leaves(flipped(following)), strict=True):
            np.testing.assert_array_equal(mine, wanted)


def same(one: State, other: State) -> bool:
    pairs = zip(tree_leaves(one), tree_leaves(other), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def test_long_games_are_the_same_to_the_last_bit_on_numpy_and_torch():
    game = Pong(points=1)
    both = [GameLanes(game, 16, put=put) for put in (np.asarray, lambda array: torch.from_numpy(np.array(array)))]
    for lanes in both:
        lanes.reset(5)
    follow = Follow.of(game)
    for _ in range(250):
        for lanes in both:
            seen = [(lanes.observe(seat), lanes.noise(Purpose.SEAT + seat, 1)) for seat in range(2)]
            lanes.step(tuple(follow.act(observation, None, None, noise)[0] for observation, noise in seen))
        assert same(*(lanes.ended for lanes in both))
    assert (both[0].ended.steps < 200).any()


@pytest.mark.parametrize("offset", [-1.0, -0.5, 0.0, 0.25, 1.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_where_a_paddle_is_hit_decides_how_steeply_and_each_hit_how_fast(offset, side):
    game = Pong(wobble=0.0, reach=0.25, speed_up=1.5, top_speed=0.2, steepest=2.0)
    for speed, faster in ((0.1, 0.15), (0.2, 0.2)):
        ball = {"x": 0.95 * side, "y": 0.25 * offset, "dx": speed * side}
        hit = after(game, court(**ball))
        assert (hit["x"], hit["point"]) == (side, 0)
        assert hit["dx"] == pytest.approx(-side * faster)
        assert hit["dy"] == pytest.approx(2.0 * offset * faster)


@pytest.mark.parametrize("side", [-1, 1])
def test_the_opponent_of_who_misses_wins_the_point_and_the_next_step_serves(side):
    game = Pong()
    missed = after(game, court(x=0.95 * side, y=0.5, dx=0.1 * side))
    assert (missed["point"], missed["dx"], missed["dy"]) == (side, 0, 0)
    served = after(game, court(x=side, y=0.5, point=side))
    assert (served["x"], abs(served["dx"])) == (0, pytest.approx(game.serve_speed))


def test_the_ball_bounces_off_the_walls_and_is_judged_where_it_comes_to_the_line():
    game = Pong()
    bounced = after(game, court(y=0.95, dx=0.1, dy=0.15))
    assert (bounced["y"], bounced["dy"]) == (pytest.approx(0.9), pytest.approx(-0.15))
    # A quarter of the step is left before the line: the ball has not risen past the paddle yet.
    arrived = after(game, court(x=0.95, dx=0.2, dy=0.3, y=0.1))
    assert (arrived["y"], arrived["point"]) == (pytest.approx(0.175), 0)


@pytest.mark.parametrize(("action", "moved"), [(STAY, 0.0), (UP, 0.08), (DOWN, -0.08)])
def test_paddles_move_as_they_are_told(action, moved):
    game = Pong()
    assert after(game, court(), left=action)["left"] == pytest.approx(moved)
    assert after(game, court(right=0.82), right=action)["right"] == pytest.approx(min(0.82 + moved, 0.82))


def test_first_to_so_many_points_wins_and_the_cap_truncates():
    won = play(Pong(points=2), [[UNIFORM, UNIFORM]], 200, 0, ["pong"])
    assert set(np.unique(won.returns[0, :, 0])) == {-2, -1, 1, 2}
    game = Pong(max_steps=20)
    lanes = GameLanes(game, 64)
    lanes.reset(0)
    stay = (np.zeros(64, np.int64),) * 2
    for _ in range(19):
        assert not lanes.step(stay).done.any()
    outcome = lanes.step(stay)
    assert outcome.truncated.all()
    assert not outcome.terminated.any()


def test_dynamics_may_differ_from_lane_to_lane():
    game, speeds = Pong(), [0.04, 0.08]
    lanes = GameLanes(game, 2, game.params(serve_speed=speeds))
    lanes.reset(0)
    np.testing.assert_allclose(abs(lanes.ended.dx), speeds, rtol=1e-6)
    with pytest.raises(ValueError, match="did you mean 'top_speed'"):
        game.params(topspeed=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 0}, "points must be a whole number of at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be a whole number"),
        ({"serve_speed": 0.3}, r"serve_speed <= top_speed.*got serve_speed=\[0.3\]"),
        ({"speed_up": 0.9}, "got speed_up"),
        ({"top_speed": 1.5}, "got top_speed"),
        ({"paddle_speed": 0.0}, "got paddle_speed"),
        ({"reach": 0.05}, "got reach"),
        ({"steepest": 6.0}, "got steepest"),
        ({"wobble": 2.0}, "got wobble"),
        ({"wobble": float("nan")}, "wobble must be a finite number"),
    ],
)
def test_values_that_make_no_game_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Pong(**wrong)


@settings(max_examples=8)
@given(dynamics(), seeds)
def test_follow_knows_where_the_ball_will_land(numbers, seed):
    game = Pong(**numbers)
    params, follow, predicted = game.params(), Follow.of(game, 1.0), np.full(LANES, np.nan)
    for state, _, _, following in rally(game, seed):
        target = follow.target(game.observe(params, state, 0))
        landed = (state.dx < 0) & (following.now.x == -1)
        known = landed & ~np.isnan(predicted)
        np.testing.assert_allclose(following.now.y[known], predicted[known], atol=2e-4)
        predicted = np.where(landed | (state.dx >= 0), np.nan, np.where(np.isnan(predicted), target, predicted))


def test_attention_is_the_share_of_steps_that_are_not_random():
    seen = np.array([[0.0, 0.0, 0.5, 0.8, -0.4, 0.0, 0.0, 0.0]], np.float32)  # the ball comes, above
    np.testing.assert_allclose(Follow(0.0).probabilities(seen, None)[0], [[1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
    np.testing.assert_allclose(Follow(0.4).probabilities(seen, None)[0], [[0.2, 0.6, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(Follow(1.0).probabilities(seen, None)[0], [[0, 1, 0]], atol=1e-7)
    with pytest.raises(ValueError, match=r"skill must be a finite number of at least 0 and at most 1, got 1.1"):
        Follow(1.1)
    with pytest.raises(ValueError, match="pixels=False"):
        Follow.of(Pong(pixels=True))


def test_skill_pays():
    game = Pong(points=1, max_steps=200)
    against = [returns(Follow.of(game, skill), Follow.of(game, 0.5), game) for skill in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert (np.diff(against) > 0.1).all(), against


def test_the_default_opponent_beats_uniform_play_and_can_be_beaten():
    rally = Pong(points=1)
    follow = Follow.of(rally)
    assert returns(UNIFORM, follow, rally) < -0.6  # it wins less than one point in five
    assert returns(Follow.of(rally, 1.0), follow, rally) > 0.8
