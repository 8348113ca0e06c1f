"""Laws of Bucket Brigade's rules that hold for every variant, size and parameter."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.rules import BURNING, RUINED, SAFE, WORK
from games.conformance import check_game
from games.lanes import tree_leaves, tree_map
from tests.games.nights import VARIANTS, cell_of, draws, games_of_all_kinds, play_night_by_night, reference_of

CODES = {SAFE: "safe", BURNING: "burning", RUINED: "ruined"}
seeds = st.integers(0, 99)


@pytest.mark.covered_elsewhere
@given(games_of_all_kinds(), seeds)
@example({"scenario": "rest_trap"}, 0)
@example({"scenario": "positional_default", "rules": "engine"}, 0)
@example({"scenario": "default_continuous"}, 0)
@example({"scenario": "default_continuous", "rules": "engine"}, 0)
@example({"scenario": "v2_minimal", "extinguish": "continuous", "rho": 0.4}, 0)
def test_the_kernel_agrees_with_the_reference_night_by_night(kwargs, seed):
    game = BucketBrigade(**kwargs)
    params, lanes = game.params(), [reference_of(game) for _ in range(6)]
    for state, actions, noise in play_night_by_night(game, params, seed, nights=10, lanes=6):
        terminated = game.terminated(params, state)
        for lane, reference in enumerate(lanes):
            uniforms = noise[lane].tolist()
            if actions is None:
                reference.start(uniforms)
            else:
                chosen = [tuple(action[lane].tolist()) for action in actions]
                expected = reference.night(chosen, uniforms)
                np.testing.assert_allclose(state.rewards[lane], expected, rtol=1e-5, atol=1e-4)
                assert terminated[lane] == reference.over()
                leaves = (state.positions, state.modes, state.signals)
                assert list(zip(*(leaf[lane].tolist() for leaf in leaves), strict=True)) == reference.actions
            assert [CODES[code] for code in state.houses[lane].tolist()] == reference.houses
            if state.meters is not None:
                np.testing.assert_allclose(state.meters[lane], reference.meters, rtol=1e-5)


def rewards_between(game: BucketBrigade, agent: int) -> tuple[float, float]:
    """Least and most that an agent can be paid for a night: each house does its worst or best, and so does it."""
    cell, H = cell_of(game), game.H
    changes = {(SAFE, SAFE), (SAFE, BURNING), (BURNING, SAFE), (BURNING, BURNING), (RUINED, RUINED)}
    if cell["extinguish"] == "bernoulli":
        changes |= {(BURNING, RUINED)} | ({(SAFE, RUINED)} if game.rules == "quiet" else set())
    else:
        changes -= {(RUINED, RUINED)}  # where nothing is ruined, nothing stays so
    welfare = {SAFE: cell["team_gain"] / H, BURNING: -cell["team_loss"] / 2 / H, RUINED: -cell["team_loss"] / H}

    def worth(house: int, before: int, after: int, over: bool) -> float:
        whose = "own" if house % game.N == agent else "other"
        gain, loss = (np.broadcast_to(cell[f"{whose}_{kind}"], game.N)[agent] for kind in ("gain", "loss"))
        saved = gain if (before, after) == (BURNING, SAFE) else 0
        team = {SAFE: cell["team_gain"] / H, BURNING: 0, RUINED: -cell["team_loss"] / H - loss}[after]
        drift = cell["potential_discount"] * welfare[after] * (not over) - welfare[before]
        progress = cell["progress_shaping"] * ((after == SAFE) - (before == SAFE))
        return saved + team + progress + cell["potential_shaping"] * drift

    houses = {
        over: [[worth(house, *change, over) for change in changes] for house in range(H)] for over in (False, True)
    }
    steps = 1 if game.adjacent_only else H // 2
    work = -cell["cost"] - cell["distance_cost"] * steps
    credit = max(cell["rescue_shaping"], cell["presence_shaping"])
    low = min(sum(map(min, worths)) for worths in houses.values()) + min(work, cell["rest_reward"])
    high = max(sum(map(max, worths)) for worths in houses.values()) + max(credit - cell["cost"], cell["rest_reward"])
    return low, high


@given(games_of_all_kinds(), seeds)
def test_ruined_houses_stay_ruined_and_rewards_stay_within_their_bounds(kwargs, seed):
    game = BucketBrigade(**kwargs)
    low, high = zip(*(rewards_between(game, agent) for agent in range(game.N)), strict=True)
    ruined = np.zeros((8, game.H), bool)
    for state, actions, _ in play_night_by_night(game, game.params(), seed, 12):
        assert (state.houses[ruined] == RUINED).all()
        ruined = state.houses == RUINED
        if actions is not None:
            assert ((state.rewards >= np.array(low) - 1e-3) & (state.rewards <= np.array(high) + 1e-3)).all()


@pytest.mark.parametrize(
    ("bound", "shaping", "houses", "actions"),
    [
        (0, {}, [RUINED, RUINED], ([1, WORK, 0], [0, WORK, 0])),
        (1, {}, [BURNING, BURNING], ([0, WORK, 0], [1, WORK, 0])),
        (1, {"progress_shaping": 2.0, "potential_shaping": 0.5}, [BURNING, BURNING], ([0, WORK, 0], [1, WORK, 0])),
        (1, {"rescue_shaping": 4.0}, [BURNING, BURNING], ([0, WORK, 0], [1, WORK, 0])),
    ],
    ids=["lowest", "highest", "highest with progress and welfare", "highest with a rescue"],
)
def test_the_bounds_of_rewards_are_reached(bound, shaping, houses, actions):
    cell = {"rho": 0.0, "kappa": 1.0, "cost": 0.0, "rest_reward": 0.0, "distance_cost": 0.5}
    game = BucketBrigade("v2_minimal", "engine", num_agents=2, **cell, **shaping)
    params = game.params()
    start = game.init(params, np.zeros((1, 2), np.float32))._replace(houses=np.array([houses], np.int8))
    noise = np.full((1, 4), 0.5, np.float32)
    paid = game.step(params, start, tuple(np.array([action]) for action in actions), noise).rewards[0, 0]
    assert paid == pytest.approx(rewards_between(game, 0)[bound])


@given(games_of_all_kinds(extinguish=st.just("bernoulli")), st.floats(0, 1), seeds)
def test_spread_changes_nothing_where_fires_live_one_night(kwargs, beta, seed):
    game, other = BucketBrigade(**kwargs), BucketBrigade(**kwargs | {"beta": beta})
    runs = [play_night_by_night(one, one.params(), seed, 8) for one in (game, other)]
    for (a, *_), (b, *_) in zip(*runs, strict=True):
        for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True):
            np.testing.assert_array_equal(x, y)


@given(games_of_all_kinds(even=True, rules=st.just("engine")), seeds, st.data())
def test_turning_or_mirroring_the_ring_turns_or_mirrors_the_agents(kwargs, seed, data):
    """Where N divides H, house h -> s h + r and agent i -> s i + r is the same game; not if fires spread in turn."""
    N, H = kwargs["num_agents"], kwargs["num_houses"]
    sign, shift = data.draw(st.sampled_from([1, -1])), data.draw(st.integers(0, H - 1))
    house, agent = (sign * np.arange(H) + shift) % H, (sign * np.arange(N) + shift) % N
    game = BucketBrigade(**kwargs)
    homes = np.array(kwargs["homes"] or [i % H for i in range(N)])
    moved = {"homes": _sent(agent, house[homes])}
    for name in ("own_gain", "other_gain", "own_loss", "other_loss"):
        moved[name] = _sent(agent, np.broadcast_to(kwargs[name], N))
    other = BucketBrigade(**kwargs | moved)
    rng = np.random.default_rng(seed)
    noise = rng.random((8, H), np.float32)
    params = game.params(), other.params()
    a, b = game.init(params[0], noise), other.init(params[1], noise[:, np.argsort(house)])
    for _ in range(8):
        actions, noise = draws(rng, game, 8)
        a = game.step(params[0], a, actions, noise)
        turned = [np.stack([house[act[:, 0]], act[:, 1], act[:, 2]], axis=1) for act in actions]
        b = other.step(params[1], b, tuple(turned[i] for i in np.argsort(agent)), _turned(noise, house, sign))
        np.testing.assert_array_equal(b.houses[:, house], a.houses)
        np.testing.assert_array_equal(b.rewards[:, agent], a.rewards)


def _sent(agent: np.ndarray, values: np.ndarray) -> tuple:
    """The values of the agents once agent i is called agent[i]."""
    return tuple(np.asarray(values)[np.argsort(agent)].tolist())


def _turned(noise: np.ndarray, house: np.ndarray, sign: int) -> np.ndarray:
    """Every house's uniforms where the house went; a mirror makes left right."""
    blocks = np.split(noise, noise.shape[1] // len(house), axis=1)
    if sign < 0 and len(blocks) == 3:
        blocks = [blocks[1], blocks[0], blocks[2]]
    return np.hstack([block[:, np.argsort(house)] for block in blocks])


@given(games_of_all_kinds(), seeds)
def test_a_night_of_two_phases_is_a_night_after_an_announcement(kwargs, seed):
    plain, game = BucketBrigade(**kwargs), BucketBrigade(**kwargs, two_phase=True)
    params, rng = game.params(), np.random.default_rng(seed)
    state = before = game.init(params, np.full((5, game.H), 0.1, np.float32))
    expected = plain.init(plain.params(), np.full((5, game.H), 0.1, np.float32))
    for _ in range(6):
        (talk, noise), (actions, uniforms) = draws(rng, game, 5), draws(rng, game, 5)
        state = game.step(params, before, talk, noise)
        said = np.stack([action[:, 2] for action in talk], axis=1)
        np.testing.assert_array_equal(state.phases.announced, said)
        assert (state.phases.second == 1).all()
        assert (state.rewards == 0).all()
        unheard = state._replace(phases=before.phases, rewards=before.rewards)
        for x, y in zip(tree_leaves(unheard), tree_leaves(before), strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(game.terminated(params, state), game.terminated(params, before))
        before = game.step(params, state, actions, uniforms)
        expected = plain.step(plain.params(), expected, actions, uniforms)
        np.testing.assert_array_equal(before.phases.announced, said)
        assert (before.phases.second == 0).all()
        for x, y in zip(tree_leaves(before._replace(phases=None)), tree_leaves(expected), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_conforms(variant):
    """The same on NumPy's arrays, read-only ones and torch's, lane by lane, and all else that a game owes."""
    check_game(BucketBrigade(**VARIANTS[variant]), lanes=8, seed=1, put=lambda array: torch.from_numpy(np.array(array)))


SWEEP = {
    "kappa": [0.1, 0.5, 0.9, 1.0],
    "beta": [0.0, 0.2, 0.5, 1.0],
    "cost": [0.5, 0.5, 1.0, 2.0],
    "min_nights": [3, 12, 0, 7],
    "own_gain": np.arange(16.0).reshape(4, 4),
    "suppression": [0.25, 0.3, 0.5, 1.0],
    "distance_cost": [0.0, 0.1, 0.2, 0.0],
    "progress_shaping": [0.0, 1.0, 2.0, 0.0],
    "rescue_shaping": [0.0, 0.0, 2.0, 0.5],
    "presence_shaping": [0.0, 0.3, 0.0, 0.5],
    "potential_shaping": [0.0, 0.5, 0.0, 1.0],
    "potential_discount": [1.0, 0.9, 0.5, 1.0],
}


@pytest.mark.parametrize("layout", ["features", "trainer", "thrust"])
@pytest.mark.parametrize("scenario", ["minimal_specialization", "default_continuous"])
def test_a_sweep_in_one_batch_equals_its_cells_alone(scenario, layout, xp):
    game = BucketBrigade(scenario, rho=0.1, observation=layout)
    sweep = game.params(**SWEEP)
    together = list(play_night_by_night(game, sweep, 3, 10, xp.put, lanes=4))
    for lane in range(4):
        alone = game.params(**{name: values[lane] for name, values in SWEEP.items()})
        run = play_night_by_night(game, alone, 3, 10, lanes=4)
        for (a, *_), (b, *_) in zip(together, run, strict=True):
            for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True):
                np.testing.assert_array_equal(np.asarray(x)[lane], y[lane])
            seen = game.observe(tree_map(xp.put, sweep), a, 1), game.observe(alone, b, 1)
            np.testing.assert_array_equal(np.asarray(seen[0])[lane], seen[1][lane])


def test_every_size_plays():
    for agents, houses in product((1, 2, 7, 100), (2, 3, 10, 100)):
        game = BucketBrigade(num_agents=agents, num_houses=houses, rho=0.3)
        for state, actions, _ in play_night_by_night(game, game.params(), 0, 3, lanes=2):
            if actions is not None:
                assert np.isfinite(state.rewards).all()
            assert all(game.observe(game.params(), state, seat).max() <= 1 for seat in range(min(agents, 3)))
