"""The rules of Bucket Brigade: against an independent reference, and laws."""

import numpy as np
import pytest

from games.bucket_brigade import SCENARIOS, BucketBrigade
from games.bucket_brigade.observation import read
from games.bucket_brigade.rules import BURNING, DIALECTS, RUINED, SAFE, WORK
from games.bucket_brigade.scenarios import AMOUNTS, SEAT_AMOUNTS, SHAPING, highest
from games.lanes import GameLanes, tree_map
from tests.games.nights import play_night_by_night


def test_positions_modes_and_signals_are_last_nights_actions(xp):
    game = BucketBrigade()
    for state, actions, _ in play_night_by_night(game, game.params(), 0, 3, xp.put):
        if actions is not None:
            for part, leaf in enumerate((state.positions, state.modes, state.signals)):
                np.testing.assert_array_equal(np.asarray(leaf), np.stack([a[:, part] for a in actions], axis=1))


@pytest.mark.parametrize(("rules", "pays"), [("quiet", 0.0), ("engine", 50.0)])
def test_a_house_saved_on_the_first_night_pays_by_the_engines_rules_only(rules, pays):
    game = BucketBrigade("minimal_specialization", rules, kappa=1.0, team_gain=0.0, cost=0.0)
    params = game.params()
    start = game.init(params, np.array([[0.0] + [0.9] * 9], np.float32))
    everyone_to_0 = (np.array([[0, WORK, 1]]),) * 4
    saved = game.step(params, start, everyone_to_0, np.full((1, 20), 0.5, np.float32))
    assert saved.rewards.tolist() == [[pays, 0, 0, 0]]
    again = game.step(params, saved._replace(houses=start.houses), everyone_to_0, np.full((1, 20), 0.5, np.float32))
    assert again.rewards.tolist() == [[50.0, 0, 0, 0]]


def test_a_house_saved_tonight_may_catch_fire_tonight_and_is_not_paid_for():
    game = BucketBrigade("minimal_specialization", "engine", kappa=1.0, team_gain=0.0, cost=0.0)
    params = game.params()
    start = game.init(params, np.array([[0.0] + [0.9] * 9], np.float32))
    noise = np.array([[0.5] * 10 + [0.0] + [0.5] * 9], np.float32)
    state = game.step(params, start, (np.array([[0, WORK, 1]]),) * 4, noise)
    assert state.houses[0, 0] == BURNING
    assert state.rewards.tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("rules", DIALECTS)
def test_the_shortest_episode_lasts_one_night_more_than_the_minimum(rules):
    game = BucketBrigade("trivial_cooperation", rules)
    lanes = GameLanes(game, 3)
    lanes.reset(0)
    rest = (np.zeros((3, 3), np.int64),) * 4
    ends = [lanes.step(rest).done.all() for _ in range(13)]
    assert ends == [False] * 12 + [True]


def test_quiet_rules_end_when_nothing_burns_and_engine_rules_go_on():
    ruin = np.array([[RUINED] + [SAFE] * 9], np.int8)
    for rules, ends in (("quiet", True), ("engine", False)):
        game = BucketBrigade("rest_trap", rules)
        params = game.params()
        state = game.init(params, np.full((1, 10), 0.9, np.float32))
        state = state._replace(houses=ruin, night=np.array([13], np.int16))
        assert game.terminated(params, state)[0] == ends
        assert BucketBrigade("rest_trap", rules, ends_when_quiet=not ends).terminated(
            BucketBrigade("rest_trap", rules, ends_when_quiet=not ends).params(), state
        )[0] == (not ends)


def test_the_cap_truncates_and_is_not_a_termination():
    game = BucketBrigade("rest_trap", max_nights=5)
    lanes = GameLanes(game, 16)
    lanes.reset(0)
    outcomes = [lanes.step((np.zeros((16, 3), np.int64),) * 4) for _ in range(5)]
    assert outcomes[-1].truncated.all()
    assert not outcomes[-1].terminated.any()
    assert not any(outcome.done.any() for outcome in outcomes[:-1])


def test_observations_show_the_state(xp):
    game = BucketBrigade("hard")
    params = tree_map(xp.put, game.params())
    for state, _, _ in play_night_by_night(game, game.params(), 5, 20, xp.put):
        houses, night = np.asarray(state.houses), int(state.night[0])
        for seat in range(4):
            seen = read(np.asarray(game.observe(params, state, seat)), 4, 10)
            for shown, code in zip((seen.safe, seen.burning, seen.ruined), (SAFE, BURNING, RUINED), strict=True):
                np.testing.assert_array_equal(shown, houses == code)
            fires = houses == BURNING
            np.testing.assert_allclose(seen.place * 10, fires * np.cumsum(fires, axis=1), rtol=1e-6)
            assert seen.owned[0].tolist() == [float(h % 4 == seat) for h in range(10)]
            assert seen.asked[0].argmax() == seat
            np.testing.assert_array_equal(seen.signals, np.asarray(state.signals))
            np.testing.assert_array_equal(seen.modes, np.asarray(state.modes))
            np.testing.assert_allclose(seen.positions * 9, np.asarray(state.positions), rtol=1e-6)
            np.testing.assert_allclose(seen.night, min(night, 15) / 15, rtol=1e-6)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_plays(scenario):
    game = BucketBrigade(scenario)
    lanes = GameLanes(game, 4)
    lanes.reset(1)
    for _ in range(20):
        outcome = lanes.step(tuple(np.zeros((4, 3), np.int64) for _ in range(game.N)))
    assert np.isfinite(outcome.rewards).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scenario": "rest_trip"}, "did you mean 'rest_trap'"),
        ({"rules": "quit"}, "did you mean 'quiet'"),
        ({"kappa": 1.5}, r"kappa must be finite and lie in \[0, 1\]"),
        ({"rho": float("nan")}, "rho must be finite"),
        ({"cost": -1.0}, "cost must be finite"),
        ({"cost": 2e30}, r"cost must be finite and lie in \[0, 1e\+30\], got 2e\+30"),
        ({"own_gain": (1.0, 2.0)}, "one per seat"),
        ({"min_nights": 2.5}, "min_nights must be whole"),
        ({"num_agents": 0}, "num_agents must be a whole number"),
        ({"num_houses": 1}, "num_houses must be a whole number"),
        ({"max_nights": 0}, "max_nights must be a whole number from 1 to 30000, got 0"),
        ({"num_agents": True}, "num_agents must be a whole number from 1 to 100, got True"),
        ({"num_agents": float("inf")}, "num_agents must be a whole number from 1 to 100, got inf"),
        ({"num_houses": "ten"}, "num_houses must be a whole number from 2 to 100, got 'ten'"),
        ({"beta": [0.1, 0.2]}, r"beta of a game must be a number, got shape \(2,\); .* params\(\)"),
        ({"own_loss": [[1.0] * 4] * 2}, r"own_loss of a game must be a number or one per seat, got shape \(2, 4\)"),
        ({"two_phase": "x"}, "two_phase must be True or False, got 'x'"),
        ({"adjacent_only": None}, "adjacent_only must be True or False, got None"),
        ({"ends_when_quiet": float("nan")}, "ends_when_quiet must be True, False or None, got nan"),
        ({"extinguish": "continous"}, "did you mean 'continuous'"),
        ({"suppression": -0.5}, "suppression must be finite"),
        ({"potential_discount": 1.5}, r"potential_discount must be finite and lie in \[0, 1\]"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        BucketBrigade(**params)


def test_the_largest_amounts_pay_finite_rewards():
    amounts = {name: highest(name) for name in (*AMOUNTS, *SEAT_AMOUNTS, *SHAPING)}
    game = BucketBrigade("hard", "engine", num_agents=100, num_houses=100, max_nights=20, **amounts)
    lanes = GameLanes(game, 8)
    lanes.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = tuple(rng.integers(0, space.nvec, (8, 3)) for space in game.action_spaces)
        assert np.isfinite(lanes.step(actions).rewards).all()


def test_unknown_overrides_are_refused():
    with pytest.raises(ValueError, match="did you mean 'kappa'"):
        BucketBrigade().params(kapa=0.5)
    with pytest.raises(ValueError, match="one per lane"):
        BucketBrigade().params(kappa=[[0.5]])
    with pytest.raises(ValueError, match="equally many lanes, got 3 of beta, 2 of kappa"):
        BucketBrigade().params(beta=[0.1, 0.2, 0.3], kappa=[0.4, 0.5], rho=[0.6])


def test_homes_are_houses_of_the_ring_one_an_agent():
    assert BucketBrigade("v2_minimal", distance_cost=1.0).params().distance[0].tolist() == [[0, 1], [1, 0]] * 2
    for homes in ((0, 1), (0, 1, 2, 10), (0, 1, 2, -1)):
        with pytest.raises(ValueError, match="homes must be one house below 10 for each of 4 agents"):
            BucketBrigade(homes=homes)


def test_working_far_from_home_costs_more():
    game = BucketBrigade("trivial_cooperation", distance_cost=0.25, homes=(0, 0, 9, 5))
    params = game.params()
    state = game.init(params, np.zeros((1, game.noise_sizes[0]), np.float32))
    actions = tuple(np.array([[house, 1, 0]]) for house in (0, 7, 1, 0))
    after = game.step(params, state, actions, np.zeros((1, game.noise_sizes[1]), np.float32))
    wages = game.rewards(params, after)[0] - 100
    np.testing.assert_allclose(wages, [-0.5, -0.5 - 0.75, -0.5 - 0.5, -0.5 - 1.25], atol=1e-5)


def burning_ring(game: BucketBrigade, fires: list[int]):
    """The game's params and a lane where these houses burn."""
    params = game.params()
    houses = np.array([[BURNING if house in fires else SAFE for house in range(game.H)]], np.int8)
    return params, game.init(params, np.full((1, game.H), 0.9, np.float32))._replace(houses=houses)


@pytest.mark.parametrize(
    ("preset", "burning"), [("quiet", [0, 2, 3, 4, 5, 6, 7, 8, 9]), ("engine", [2, 3, 4])], ids=["quiet", "engine"]
)
def test_a_fire_runs_on_in_one_night_by_the_quiet_rules_only(preset, burning):
    # Houses have their turns from 0 to 9: the fire of 3 runs up to 9 and on to 0, and down to 2, whose turn is over.
    game = BucketBrigade("default_continuous", preset, beta=1.0, rho=0.0)
    rest = (np.array([[0, 0, 0]]),) * 4
    for one in (game, BucketBrigade("default_continuous", beta=1.0, rho=0.0, spreads_in_place=preset == "quiet")):
        params, state = burning_ring(one, [3])
        after = one.step(params, state, rest, np.full((1, 30), 0.5, np.float32))
        assert np.flatnonzero(after.houses[0] == BURNING).tolist() == burning


def test_suppression_adds_up_over_nights_until_the_fire_is_out():
    game = BucketBrigade("default_continuous", "engine", suppression=0.4, beta=0.0, rho=0.0)
    params, state = burning_ring(game, [3, 7])
    one_at_3_two_at_7 = tuple(np.array([[house, mode, 0]]) for house, mode in ((3, 1), (7, 1), (7, 1), (3, 0)))
    noise = np.full((1, 30), 0.5, np.float32)
    state = game.step(params, state, one_at_3_two_at_7, noise)
    np.testing.assert_allclose(state.meters[0, [3, 7]], [0.4, 0.8], rtol=1e-6)
    assert "suppression 0.40 at 3, 0.80 at 7" in game.describe(params, state)
    state = game.step(params, state, one_at_3_two_at_7, noise)
    assert state.houses[0, [3, 7]].tolist() == [BURNING, SAFE]
    np.testing.assert_allclose(state.meters[0, [3, 7]], [0.8, 0.0], rtol=1e-6)
    state = game.step(params, state, one_at_3_two_at_7, noise)
    assert (state.houses == SAFE).all()
    assert "suppression nowhere" in game.describe(params, state)


def test_agents_who_set_out_too_far_stay_at_home():
    game = BucketBrigade("positional_default", adjacent_only=True)
    params, state = burning_ring(game, [])
    actions = tuple(np.array([[house, 1, 1]]) for house in (9, 5, 6, 0))
    after = game.step(params, state, actions, np.full((1, 20), 0.5, np.float32))
    assert after.positions.tolist() == [[9, 3, 6, 8]]
    assert after.modes.tolist() == after.signals.tolist() == [[1] * 4]


def test_announcements_are_described_in_both_phases():
    game = BucketBrigade(two_phase=True, num_agents=2)
    params, state = burning_ring(game, [])
    noise = np.full((1, 20), 0.5, np.float32)
    talk = game.step(params, state, (np.array([[3, 1, 1]]), np.array([[4, 1, 0]])), noise)
    assert game.describe(params, talk).splitlines()[1:] == ["  agent_0 announced 1", "  agent_1 announced 0"]
    night = game.step(params, talk, (np.array([[5, 0, 0]]), np.array([[6, 1, 1]])), noise)
    assert game.describe(params, night).splitlines()[1:] == [
        "  agent_0 rested at 5, announced 1, signalled 0: +100.50",
        "  agent_1 worked at 6, announced 0, signalled 1: +99.80",
    ]


def test_an_episode_of_two_phases_a_night_takes_twice_the_steps():
    game = BucketBrigade("trivial_cooperation", two_phase=True)
    lanes = GameLanes(game, 3)
    lanes.reset(0)
    rest = (np.zeros((3, 3), np.int64),) * 4
    assert [lanes.step(rest).done.all() for _ in range(26)] == [False] * 25 + [True]


@pytest.mark.parametrize(
    ("game", "told"),
    [
        (BucketBrigade(), "BucketBrigade('rest_trap')"),
        (
            BucketBrigade("default", "engine", rho=0.1, homes=(0, 1, 2, 3)),
            "BucketBrigade('default', rules='engine', rho=0.1, homes=(0, 1, 2, 3))",
        ),
    ],
)
def test_a_game_is_told_by_what_it_differs_in(game, told):
    assert repr(game) == told
    assert eval(told) == game
