"""Wrappers: all of them by the conformance suite, and each by what it is for."""

import pickle
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import games
from games.conformance import check, check_faces, check_game
from games.envs import AECFace, ParallelFace
from games.game import Pictured, Talking, feature_box
from games.lanes import GameLanes, to_numpy
from games.noise import Purpose
from games.play import play
from games.policies import Uniform
from games.wrappers import (
    WRAPPERS,
    Moments,
    agent_indicator,
    flickering,
    mixed_reward,
    moments,
    normalised,
    stacked,
    sticky_actions,
    time_limit,
)
from tests.games.turns import Bids, Turns

GAMES = {
    "bids": Bids(),
    "bucket_brigade": games.make("bucket_brigade", num_agents=2, num_houses=3, max_nights=4),
    "lqr": games.make("lqr", players=2, horizon=6),
}
ARGUMENTS = {
    "agent_indicator": [{}],
    "flickering": [{}],
    "mixed_reward": [{"share": 0.3}],
    "normalised": [{}, {"moments": True}],
    "stacked": [{"frames": 3}],
    "sticky_actions": [{"p": 0.5}],
    "time_limit": [{"steps": 3}, {"steps": 3, "aware": True}],
}
"""Wrapper -> arguments to try it with; moments are measured."""
CASES = [
    pytest.param(name, wrapper, arguments, id=f"{wrapper}-{index}-{name}")
    for name in GAMES
    for wrapper, cases in ARGUMENTS.items()
    for index, arguments in enumerate(cases)
]


def wrapped(name: str, wrapper: str, arguments: dict):
    game = GAMES[name]
    measured = {"moments": moments(game, 20)} if "moments" in arguments else {}
    return WRAPPERS[wrapper](game, **arguments | measured)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def test_every_wrapper_is_tried():
    assert set(ARGUMENTS) == set(WRAPPERS)


@pytest.mark.parametrize(("name", "wrapper", "arguments"), CASES)
def test_wrapped_games_keep_every_rule(name, wrapper, arguments):
    game = wrapped(name, wrapper, arguments)
    check_game(game, lanes=3, steps=9, put=tensor)
    check_faces(*(partial(face, game, "wrapped_v0") for face in (AECFace, ParallelFace)), episodes=2)


def test_faces_of_wrapped_games_keep_every_rule():
    game = sticky_actions(flickering(stacked(agent_indicator(Turns()), 2)))
    for face in (AECFace, ParallelFace):
        check(partial(face, game, "wrapped_v0"), 2, skip=["processes"], render_modes=["ansi"])


@pytest.mark.parametrize(("name", "wrapper", "arguments"), CASES)
def test_wrapped_games_are_values_and_show_the_game(name, wrapper, arguments):
    game, again = wrapped(name, wrapper, arguments), wrapped(name, wrapper, arguments)
    assert game == again == pickle.loads(pickle.dumps(game))
    assert len({game, again, GAMES[name]}) == 2
    assert game.agents == GAMES[name].agents
    params, noise = game.params(), np.full((2, game.noise_sizes[0]), 0.75, np.float32)
    state = game.init(params, noise)
    inner = GAMES[name].params(), GAMES[name].init(GAMES[name].params(), noise[:, : GAMES[name].noise_sizes[0]])
    assert game.describe(params, state, 1).startswith(GAMES[name].describe(*inner, 1))
    assert isinstance(game, Pictured) == isinstance(GAMES[name], Pictured)
    if isinstance(game, Pictured):
        np.testing.assert_array_equal(game.frame(params, state, 1), GAMES[name].frame(*inner, 1))


def shown(game, seed: int, steps: int = 10) -> list[np.ndarray]:
    """All that is seen and paid in uniform play."""
    lanes = GameLanes(game, 3)
    lanes.reset(seed)
    players, found = [Uniform.of(space) for space in game.action_spaces], []
    for _ in range(steps):
        found += [lanes.observe(seat) for seat in range(len(game.agents))]
        noise = [lanes.noise(Purpose.SEAT + seat, player.noise_size) for seat, player in enumerate(players)]
        seats = enumerate(zip(players, noise, strict=True))
        found += lanes.step(tuple(each.act(None, lanes.legal(seat), None, row)[0] for seat, (each, row) in seats))
    return found


HARMLESS = (
    partial(flickering, p=0.0),
    partial(mixed_reward, share=0.0),
    partial(stacked, frames=1),
    partial(sticky_actions, p=0.0),
    partial(time_limit, steps=1000),
)


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.sampled_from(list(GAMES)))
def test_wrapped_for_nothing_a_game_plays_bit_for_bit_as_before(seed, name):
    played = shown(GAMES[name], seed)
    for wrap in HARMLESS:
        for one, other in zip(played, shown(wrap(GAMES[name]), seed), strict=True):
            np.testing.assert_array_equal(one, other)


def test_wrappers_compose():
    inner = games.make("bucket_brigade", scenario="hard", max_nights=50)
    game = agent_indicator(stacked(flickering(sticky_actions(time_limit(inner, 4, aware=True))), 3))
    check_game(game, lanes=2, steps=6, put=tensor)
    assert game.noise_sizes == (inner.noise_sizes[0] + 4, inner.noise_sizes[1] + 4 + 4)
    width = inner.observation_spaces[0].shape[0]
    assert game.observation_spaces[0].shape == (3 * (width + 1) + 4,)
    found = play(game, [[Uniform.of(space) for space in game.action_spaces]], 10, 0, ["a"])
    assert (found.lengths == 4).all()


def test_channels_are_kept():
    game = time_limit(games.make("signaling"), 3)
    assert game.channels == games.make("signaling").channels
    assert stacked(game, 2).channels[0].columns == {1: {0: [(0, 3), (4, 7)]}}
    assert not isinstance(stacked(Turns()), Talking)


def test_parameters_reach_the_game():
    game = stacked(games.make("bandit", contexts=1, arms=2, means=[[0.0, 1.0]]))
    lanes = GameLanes(game, 2, game.params(means=[[[0.0, 1.0]], [[1.0, 0.0]]]))
    lanes.reset(0)
    assert lanes.step((np.array([1, 1]),)).rewards.tolist() == [[1], [0]]


def test_mixed_rewards_by_hand(xp):
    game = games.make("normal_form", payoffs=[[[3]], [[5]], [[-2]]][:2])
    for share, expected in ((0.0, [3, 5]), (0.25, [4.25, 5.75]), (1.0, [8, 8])):
        lanes = GameLanes(mixed_reward(game, share), 1, put=xp.put)
        lanes.reset(0)
        actions = (xp.put(np.zeros(1, np.int64)),) * 2
        np.testing.assert_allclose(to_numpy(lanes.step(actions).rewards), [expected])


def test_measured_moments_give_mean_0_and_deviation_1():
    game = games.make("lqr", players=2)
    found = GameLanes(normalised(game, moments(game, 500), clip=4.0), 500)
    found.reset(1)
    player, seen = Uniform.of(game.action_spaces[0]), []
    for _ in range(game.horizon):
        seen.append(found.observe(0))
        found.step(tuple(player.act(None, None, None, found.noise(Purpose.SEAT + seat, 1))[0] for seat in range(2)))
    rows = np.concatenate(seen)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(rows.std(axis=0), 1, atol=0.1)
    assert rows.max() == 4.0  # clipped
    assert found.observation_spaces[0].high.max() == 4.0


def test_moments_are_of_those_who_act_until_their_episode_ends():
    """`Turns` for two rounds: each seat acts in one of them, when nothing else than 0 was played."""
    measured = moments(Turns(rounds=2), episodes=50)
    assert measured == Moments(((0.0, 0.0), (0.5,)), ((0.0, 0.0), (0.0,)))
    assert moments(Turns(), 50, seed=3) == moments(Turns(), 50, seed=3) != moments(Turns(), 50, seed=4)


def test_bounds_scale_to_0_and_1():
    game = games.make("lqr")
    scaled = normalised(game)
    assert scaled.observation_spaces == (feature_box(3),)
    space, params = game.observation_spaces[0], scaled.params()
    for x, expected in ((space.low, 0.0), (space.high, 1.0), ((space.low + space.high) / 2, 0.5)):
        state = scaled.init(params, np.full((1, 2), 0.5, np.float32))
        inner = state.inner._replace(x=x[None, :2], steps=np.array([20 - round(20 * float(x[2]))]))
        np.testing.assert_allclose(scaled.observe(params, state._replace(inner=inner), 0), [[expected] * 3], atol=1e-6)


def test_the_newest_frame_comes_first(xp):
    game = Turns(rounds=4)
    lanes = GameLanes(stacked(game, 3), 2, put=xp.put)
    lanes.reset(0)
    assert to_numpy(lanes.observe(1))[0].tolist() == [0, 0, 0]
    for expected in ([0.25, 0, 0], [0.5, 0.25, 0], [0.75, 0.5, 0.25]):
        lanes.step((xp.put(np.zeros(2, np.int64)),) * 2)
        assert to_numpy(lanes.observe(1))[0].tolist() == expected
    assert to_numpy(lanes.observe(0))[0].tolist() == [0.75, 0, 0.5, 0, 0.25, 0]
    assert to_numpy(lanes.step((xp.put(np.zeros(2, np.int64)),) * 2).done).all()
    assert to_numpy(lanes.final_observations(1))[0].tolist() == [1, 0.75, 0.5]
    assert to_numpy(lanes.observe(1))[0].tolist() == [0, 0, 0]  # a new episode remembers nothing


@dataclass(frozen=True)
class Pictures(Turns):
    """The second player sees one channel, the first two; of brightnesses of at least a half."""

    @property
    def observation_spaces(self):
        return Box(0.5, 1, (2, 3, 2), np.float32), Box(0.5, 1, (3, 2), np.float32)

    def observe(self, params, state, seat):
        xp = array_namespace(state.rewards)
        bright = xp.astype(state.round, xp.float32) / (2 * self.rounds) + 0.5
        shape = self.observation_spaces[seat].shape
        return xp.broadcast_to(bright.reshape(-1, *(1,) * len(shape)), (bright.shape[0], *shape))


@pytest.mark.parametrize(
    ("wrapper", "shapes"),
    [
        (partial(stacked, frames=4), [(8, 3, 2), (4, 3, 2)]),
        (flickering, [(2, 3, 2), (3, 2)]),
        (normalised, [(2, 3, 2), (3, 2)]),
        (lambda game: normalised(game, moments(game, 3)), [(2, 3, 2), (3, 2)]),
    ],
    ids=["stacked", "flickering", "normalised", "moments"],
)
def test_pictures_can_be_wrapped(wrapper, shapes):
    game = wrapper(Pictures())
    assert [space.shape for space in game.observation_spaces] == shapes
    check_game(game, put=tensor)


def test_unlike_seats_see_alike_and_know_who_they_are():
    game = agent_indicator(Turns())
    one, other = game.observation_spaces
    assert one == other == feature_box(4)
    lanes = GameLanes(game, 1)
    lanes.reset(0)
    lanes.step((np.zeros(1, np.int64),) * 2)
    assert lanes.observe(0).tolist() == [[0.25, 0, 1, 0]]
    assert lanes.observe(1).tolist() == [[0.25, 0, 0, 1]]


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_observations_are_blank_as_often_as_they_should_be(p):
    lanes = GameLanes(flickering(games.make("t_maze", length=100), p), 3000)
    lanes.reset(0)
    blank = []
    for _ in range(5):
        seen = lanes.observe(0)
        assert set(seen.sum(axis=1).tolist()) <= {0.0, 1.0}
        blank.append(seen.sum(axis=1) == 0)
        lanes.step((np.zeros(3000, np.int64),))
    shares = np.mean(blank, axis=1)
    np.testing.assert_allclose(shares, p, atol=4 * np.sqrt(p * (1 - p) / 3000))
    both = (blank[0] & blank[1]).mean()
    assert abs(both - p**2) <= 4 * np.sqrt(p**2 * (1 - p**2) / 3000)


def test_who_is_blind_is_told():
    game = flickering(Turns(), 1.0)
    state = game.init(game.params(), np.zeros((1, 3), np.float32))
    assert game.describe(game.params(), state) == "round 0: 0\n(blank for player_0, player_1)"


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_actions_are_repeated_as_often_as_they_should_be(p):
    """Forward first, then back: who repeats is two cells from the start, and so on."""
    lanes = GameLanes(sticky_actions(games.make("t_maze", length=100), p), 4000)
    lanes.reset(0)
    lanes.step((np.full(4000, 0),))
    assert (lanes.ended.inner.position == 1).all()  # there was nothing to repeat
    lanes.step((np.full(4000, 1),))
    repeated = lanes.ended.inner.position == 2
    np.testing.assert_allclose(repeated.mean(), p, atol=4 * np.sqrt(p * (1 - p) / 4000))
    lanes.step((np.full(4000, 0),))  # what is repeated is what was played, not what was chosen
    further = lanes.ended.inner.position[~repeated] == 1
    assert p == 1 or abs(further.mean() - (1 - p)) <= 4 * np.sqrt(p * (1 - p) / len(further))
    assert (lanes.ended.inner.position[repeated] == 3).all()


@dataclass(frozen=True)
class Once(Turns):
    """1 is legal in the second and third round only."""

    def legal(self, params, state, seat):
        xp = array_namespace(state.round)
        acts = self.acting(params, state)[:, seat]
        return (xp.stack([acts, acts & (state.round > 0) & (state.round < 3)], axis=1),)


def test_what_is_illegal_by_now_is_not_repeated(xp):
    lanes = GameLanes(sticky_actions(Once(rounds=5), 1.0), 1, put=xp.put)
    lanes.reset(0)
    played = []
    for chosen in (0, 1, 1, 0):
        lanes.step((xp.put(np.array([chosen])),) * 2)
        played.append(int(lanes.ended.inner.action[0]))
    # The first player repeats its 0; the second must not repeat its 1.
    assert played == [0, 1, 0, 0]


def test_time_runs_out_and_can_be_seen():
    lanes = GameLanes(time_limit(games.make("t_maze"), 4, aware=True), 3)
    lanes.reset(0)
    for left in (1.0, 0.75, 0.5, 0.25):
        assert (lanes.observe(0)[:, 4] == left).all()
        outcome = lanes.step((np.array([0, 0, 0]),))
    assert outcome.truncated.all()
    assert (lanes.final_observations(0)[:, 4] == 0).all()
    lanes = GameLanes(time_limit(Turns(rounds=2), 2), 1)  # the rules come first
    lanes.reset(0)
    outcomes = [lanes.step((np.zeros(1, np.int64),) * 2) for _ in range(2)]
    assert (outcomes[1].terminated & ~outcomes[1].truncated).all()


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda: mixed_reward(Turns(), 1.5), "share must be a finite number of at least 0 and at most 1, got 1.5"),
        (lambda: flickering(Turns(), -0.1), "p must be a finite number of at least 0 and at most 1, got -0.1"),
        (
            lambda: sticky_actions(Turns(), float("nan")),
            "p must be a finite number of at least 0 .* got nan",
        ),
        (lambda: stacked(Turns(), 0), "frames must be a whole number of at least 1 and at most 1,024, got 0"),
        (lambda: time_limit(Turns(), True), "steps must be a whole number of at least 1, got True"),
        (lambda: flickering(Turns, 0.5), "only a games.game.Game can be wrapped"),
        (lambda: normalised(Turns(), Moments(((np.nan, 0.0), (0.0,)), ((1.0, 1.0), (1.0,)))), "must be finite"),
        (lambda: time_limit(Turns(), 2.5), "steps must be a whole number of at least 1, got 2.5"),
        (lambda: time_limit(Pictures(), 2, aware=True), r"the time is added to features .*player_0 .*\[2, 3, 2\]"),
        (lambda: agent_indicator(Pictures()), "the indicator is added to features"),
        (lambda: normalised(Turns(), clip=0), "clip must be a finite number of at least .*, got 0"),
        (lambda: normalised(Turns(), moments(games.make("lqr"), 2)), r"means must be of \[2, 1\] features, got \[3\]"),
        (lambda: normalised(Endless()), r"player_0 observes Box\(-inf.* without finite bounds .* give moments"),
        (lambda: moments(Endless(), 2), "2 episodes did not end within 50 steps: set a `time_limit`"),
        (lambda: moments(Turns(rounds=1), 2), "player_1 never acted"),
        (lambda: stacked(ParallelFace(Turns(), "turns_v0")), r"only a games\.game\.Game can be wrapped, got ParallelF"),
    ],
)
def test_mistakes_are_refused(wrap, message, monkeypatch):
    monkeypatch.setattr("games.wrappers.measured.MAX_STEPS", 50)
    with pytest.raises(ValueError, match=message):
        wrap()


@dataclass(frozen=True)
class Endless(Turns):
    rounds: int = 10**9

    @property
    def observation_spaces(self):
        return (Box(-np.inf, np.inf, (2,), np.float32), Box(-np.inf, np.inf, (1,), np.float32))

    @property
    def action_spaces(self):
        return Discrete(2), Discrete(2)
