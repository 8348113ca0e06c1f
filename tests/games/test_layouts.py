"""What agents of Bucket Brigade see, in every layout and variant."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

import games
from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.layouts import LAYOUTS
from games.lanes import tree_map
from tests.games.nights import VARIANTS, play_night_by_night

OWN = {"own_gain": (1.0, 2.0, 3.0, 6.0), "other_loss": 0.5}


def seen_after(layout: str, nights: int = 3, **kwargs):
    """The game, and the first lane: its state and what every seat sees of it."""
    game = BucketBrigade("default", rho=0.3, observation=layout, **OWN, **kwargs)
    *_, (state, _, _) = play_night_by_night(game, game.params(), 1, nights, lanes=1)
    return state, [game.observe(game.params(), state, seat)[0].tolist() for seat in range(game.N)]


def side_by_side(*parts) -> list[float]:
    return [float(value) for row in zip(*parts, strict=True) for value in row]


def numbers(array) -> list[float]:
    return [float(value) for value in array[0]]


def rounded(values: list[float]) -> list[float]:
    return pytest.approx(values, rel=1e-6)


def test_the_trainer_sees_houses_agents_scenario_and_who_it_is():
    state, rows = seen_after("trainer")
    houses, signals, places, modes = map(numbers, (state.houses, state.signals, state.positions, state.modes))
    scenario = [0.25, 0.5, 0.3, 100, 100, 3.0, 0.0, 40.0, 0.5, 0.5, 12, 4]
    for seat, row in enumerate(rows):
        assert len(row) == 42
        who = [float(seat == other) for other in range(4)]
        assert row == rounded([*houses, *signals, *places, *side_by_side(places, modes), *scenario, *who])


def test_the_trainer_sees_announcements_before_who_it_is():
    state, rows = seen_after("trainer", two_phase=True)
    assert state.phases.second.tolist() == [1]
    assert len(rows[2]) == 46
    assert rows[2][38:] == [*numbers(state.phases.announced), 0, 0, 1, 0]


@pytest.mark.parametrize("two_phase", [False, True])
def test_thrust_sees_who_it_is_houses_agents_announcements_and_scenario(two_phase):
    state, rows = seen_after("thrust", two_phase=two_phase)
    houses, signals, places, modes = map(numbers, (state.houses, state.signals, state.positions, state.modes))
    announced = numbers(state.phases.announced) if two_phase else [0.0] * 4
    scenario = [0.25, 0.5, 100, 100, 0.5, 0.3, 12, 4, 3.0, 0.0, 40.0, 0.5]
    for seat, row in enumerate(rows):
        assert len(row) == 47
        last = side_by_side(places, modes, signals)
        assert row == rounded([seat / 3, *houses, *signals, *places, *last, *announced, *scenario])


def test_features_show_announcements_and_the_round():
    state, rows = seen_after("features", two_phase=True)
    assert len(rows[0]) == 67 + 5
    assert rows[0][67:] == [*numbers(state.phases.announced), 1.0]
    state, rows = seen_after("features", nights=4, two_phase=True)
    assert rows[0][67:] == [*numbers(state.phases.announced), 0.0]


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_spaces_contain_what_is_seen(variant, layout, xp):
    game = BucketBrigade(**VARIANTS[variant], observation=layout)
    params = game.params()
    for state, _, _ in play_night_by_night(game, params, 3, 8, xp.put, lanes=3):
        for seat, space in enumerate(game.observation_spaces):
            seen = np.asarray(game.observe(tree_map(xp.put, params), state, seat))
            assert seen.dtype == np.float32
            assert all(space.contains(np.ascontiguousarray(row)) for row in seen)


@pytest.mark.parametrize(("agents", "houses"), [(1, 2), (3, 5), (7, 4)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_widths_follow_the_size(layout, agents, houses):
    widths = {
        "features": 5 * houses + 4 * agents + 1,
        "trainer": houses + 5 * agents + 12,
        "thrust": houses + 6 * agents + 13,
    }
    game = BucketBrigade(num_agents=agents, num_houses=houses, observation=layout)
    state = game.init(game.params(), np.zeros((2, houses), np.float32))
    for seat, space in enumerate(game.observation_spaces):
        assert game.observe(game.params(), state, seat).shape == (2, *space.shape) == (2, widths[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_a_pettingzoo_environment(layout):
    env = games.parallel_env("bucket_brigade", observation=layout, two_phase=True, extinguish="continuous")
    parallel_api_test(env, num_cycles=40)


def test_unknown_layouts_are_refused():
    with pytest.raises(ValueError, match="did you mean 'trainer'"):
        BucketBrigade(observation="trainr")
