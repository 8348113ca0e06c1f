"""The linear-quadratic regulator against its exact values, and SciPy's."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import games
from games.lanes import GameLanes, to_numpy
from games.lqr import LQR
from games.play import play, play_mixture

GAMES = {
    "one": games.make("lqr"),
    "three": games.make("lqr", players=3),
    "unlike": LQR(
        A=[[0.9, 0.3, 0.0], [-0.2, 0.8, 0.1], [0.0, 0.0, 1.0]],
        B=[[[0.1, 0.0], [0.3, 0.0], [0.0, 0.2]], [[0.0, 0.0], [0.0, 0.4], [0.5, 0.1]]],
        Q=[np.diag([1.0, 0.0, 0.2]), [[0.5, 0.1, 0.0], [0.1, 0.5, 0.0], [0.0, 0.0, 0.0]]],
        R=[[[2.0, 0.5], [0.5, 1.0]], np.eye(2)],
        horizon=7,
        start=0.5,
    ),
}


@pytest.fixture(params=GAMES)
def game(request):
    return GAMES[request.param]


def test_a_long_horizon_begins_with_the_stationary_gains():
    """SciPy's solution of the discrete algebraic Riccati equation."""
    game = replace(GAMES["one"], horizon=200)
    riccati = solve_discrete_are(game.A, game.B[0], game.Q[0], game.R[0])
    pull = game.B[0].T @ riccati
    stationary = np.linalg.solve(game.R[0] + pull @ game.B[0], pull @ game.A)
    np.testing.assert_allclose(game.gains[0, 0], stationary, rtol=1e-9)


def test_play_earns_the_exact_values(game):
    profile = [game.policy(seat) for seat in range(len(game.agents))]
    found = play(game, [profile], 8000, 0, ["a"]).returns[0]
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - game.values(game.gains)) < 4 * error).all()


def test_mixtures_of_continuous_policies_are_played():
    """Half of the time the second player plays nothing."""
    game = games.make("lqr", players=2)
    idle = np.stack([game.gains[0], np.zeros_like(game.gains[1])])
    populations = [[game.policy(0)], [game.policy(1), game.policy(1, idle[1])]]
    found = play_mixture(game, populations, [[0.5, 0.5]], 8000, 0, "mixture").returns
    exact = (game.values(game.gains) + game.values(idle)) / 2
    assert (np.abs(found.mean(axis=0) - exact) < 4 * found.std(axis=0) / np.sqrt(len(found))).all()


def test_nobody_gains_by_other_gains(game):
    """For one player: nothing linear beats the optimum."""
    generator, best = np.random.default_rng(0), game.values(game.gains)
    for seat in range(len(game.agents)):
        for scale in (1e-3, 0.1, 1.0):
            for _ in range(20):
                gains = game.gains.copy()
                gains[seat] += scale * generator.normal(size=gains[seat].shape)
                assert game.values(gains)[seat] < best[seat]


def test_played_gains_lose_what_they_should():
    game = GAMES["one"]
    gains = [game.gains[0], 0.7 * game.gains[0], game.gains[0] + [[0.2, 0.0]]]
    found = play(game, [[game.policy(0, each)] for each in gains], 8000, 0, ["a", "b", "c"]).returns[:, :, 0]
    error = found.std(axis=1) / np.sqrt(found.shape[1])
    exact = [game.values([each])[0] for each in gains]
    assert (np.abs(found.mean(axis=1) - exact) < 4 * error).all()
    assert max(exact) == exact[0]


def test_pushing_together_costs_less_than_everyone_pushing_for_himself():
    """Of three players each pays for its own force alone, so all hope for the others'."""
    three = GAMES["three"]
    team = LQR(three.A, [np.concatenate(three.B, axis=1)], [three.Q.sum(axis=0)], [5 * np.eye(3)])
    assert team.values(team.gains)[0] > three.values(three.gains).sum() + 0.1


@pytest.mark.parametrize("players", [1, 2, 5])
def test_the_optimum_of_the_default_is_never_clipped(players):
    """Not even from the worst start, under the worst noise."""
    game = games.make("lqr", players=players)
    worst = [game.start * np.eye(2)]  # what the start, and each step's noise, have become by now
    for step in range(game.horizon):
        controls = [sum(np.abs(gain @ part).sum() for part in worst) for gain in game.gains[:, step]]
        assert max(controls) < game.limit
        closed = game.A - (game.B @ game.gains[:, step]).sum(axis=0)
        worst = [closed @ part for part in worst] + [game.noise * np.eye(2)]


def test_a_step_is_the_textbooks(xp):
    game = GAMES["unlike"]
    lanes = GameLanes(game, 50, put=xp.put)
    lanes.reset(seed=1)
    generator, before = np.random.default_rng(2), to_numpy(lanes.observe(0))[:, :3].astype(np.float64)
    assert (np.abs(before) <= 0.5).all()
    controls = generator.uniform(-1, 1, (2, 50, 2)).astype(np.float32)
    outcome = lanes.step(tuple(xp.put(control) for control in controls))
    after = to_numpy(lanes.observe(1))[:, :3].astype(np.float64)
    pushed = before @ game.A.T + sum(u @ b.T for u, b in zip(controls, game.B, strict=True))
    noise = after - pushed
    assert (np.abs(noise) <= game.noise + 1e-6).all()
    assert noise.std() > 0.4 * game.noise
    for seat in range(2):
        cost = np.einsum("bi,ij,bj->b", after, game.Q[seat], after)
        cost += np.einsum("bi,ij,bj->b", controls[seat], game.R[seat], controls[seat])
        np.testing.assert_allclose(to_numpy(outcome.rewards)[:, seat], -cost, rtol=1e-5)
    np.testing.assert_allclose(to_numpy(lanes.observe(0))[:, 3], 6 / 7)


def test_linear_policies_play_alike_on_all_arrays_and_stay_within_their_limit(xp):
    policy = replace(GAMES["one"], limit=0.3).policy(0)
    observation = np.random.default_rng(0).uniform(-1, 1, (100, 3)).astype(np.float32)
    observation[:, 2] = np.arange(100) % 20 / 20 + 0.05
    actions, _ = policy.act(xp.put(observation), None, None, xp.put(np.zeros((100, 0), np.float32)))
    expected, _ = policy.act(observation, None, None, np.zeros((100, 0), np.float32))
    np.testing.assert_array_equal(to_numpy(actions), expected)
    assert expected.dtype == np.float32
    assert np.abs(expected).max() == np.float32(0.3)


def test_no_play_leaves_the_observation_space():
    game = replace(GAMES["unlike"], noise=0.5)
    for push in (-1, 1):
        lanes = GameLanes(game, 200)
        lanes.reset(0)
        for _ in range(game.horizon):
            lanes.step((np.full((200, 2), push, np.float32),) * 2)
            assert all(map(game.observation_spaces[0].contains, lanes.final_observations(0)))


def test_pictures_and_texts_show_states_and_controls():
    game = GAMES["three"]
    params = game.params()
    start = game.init(params, np.full((1, 2), 0.75, np.float32))
    actions = tuple(np.full((1, 1), push, np.float32) for push in (0.5, -0.25, 0))
    after = game.step(params, start, actions, np.full((1, 2), 0.5, np.float32))
    assert game.describe(params, start) == "step 0 of 20: x +0.500 +0.500"
    assert (
        game.describe(params, after).splitlines()[1] == "  player_0 u +0.500, reward -1.670"
    )  # 0.615^2 + 0.1 0.65^2 + 5 0.5^2
    pictures = [game.frame(params, state) for state in (start, after)]
    assert [picture.shape for picture in pictures] == [(600, 960, 3)] * 2
    assert (pictures[0] != pictures[1]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"noise": -0.1}, "noise must be a finite number of at least 0 and at most .*, got -0.1"),
        ({"limit": 0.0}, "limit must be a finite number"),
        ({"B": [[1.0], [0.0]]}, r"B must be \[N, d, m\] for N players, got \(2, 1\)"),
        ({"A": np.eye(3)}, r"matrices must be \{'A': \(2, 2\)"),
        ({"A": [[np.nan, 0], [0, 1]]}, "A must be finite"),
        ({"A": 1e9 * np.eye(2)}, "outgrow float32"),
        ({"Q": [[[1, 0.5], [0, 1]]]}, "Q must be symmetric"),
        ({"Q": [[[1, 0], [0, -1]]]}, "positive semi-definite and R positive definite"),
        ({"R": [[[0.0]]]}, "R positive definite"),
    ],
)
def test_mistakes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(GAMES["one"], **change)


def test_other_mistakes_are_refused():
    with pytest.raises(ValueError, match="players must be a whole number of at least 1 and at most 1,000, got 0"):
        games.make("lqr", players=0)
    with pytest.raises(ValueError, match=r"gains must be \(1, 20, 1, 2\), got \(2,\)"):
        GAMES["one"].values([1.0, 2.0])
