"""Laws of every game's kernel: same on all arrays, lane-wise, nothing written in place."""

import pickle

import numpy as np
import pytest

import games
from games.game import Game, factors
from games.lanes import tree_leaves, tree_map

STEPS = 18


def noise_of(rng: np.random.Generator, lanes: int, columns: int) -> np.ndarray:
    return rng.random((columns, lanes), np.float32).T


def actions_of(rng: np.random.Generator, game: Game, lanes: int) -> tuple[np.ndarray, ...]:
    drawn = (rng.integers(factors(space), size=(lanes, len(factors(space)))) for space in game.action_spaces)
    return tuple(rows if space.shape else rows[:, 0] for rows, space in zip(drawn, game.action_spaces, strict=True))


def history(game: Game, lanes: int, seed: int, put=np.asarray, freeze=lambda tree: tree, rows=slice(None)) -> list:
    """Everything a game shows over some steps, as NumPy arrays, playing on beyond the end of episodes."""
    rng = np.random.default_rng(seed)
    params = tree_map(put, game.params())
    state = game.init(params, put(noise_of(rng, lanes, game.noise_sizes[0])[rows]))
    shown = []
    for _ in range(STEPS):
        state = freeze(state)
        seats = range(len(game.agents))
        seen = [game.observe(params, state, seat) for seat in seats]
        functions = (game.rewards, game.terminated, game.truncated, game.acting)
        parts = (*tree_leaves(state), *seen, *(function(params, state) for function in functions))
        shown.append([np.asarray(part) for part in parts])
        actions = tuple(put(action[rows]) for action in actions_of(rng, game, lanes))
        state = game.step(params, state, actions, put(noise_of(rng, lanes, game.noise_sizes[1])[rows]))
    return shown


def assert_same(one: list, other: list, rows=slice(None)) -> None:
    for step, (a, b) in enumerate(zip(one, other, strict=True)):
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype, step
            np.testing.assert_array_equal(x[rows], y, err_msg=f"step {step}")


@pytest.mark.parametrize("name", games.GAMES)
def test_all_kinds_of_arrays_play_the_same(name, xp):
    game = games.make(name)
    assert_same(history(game, 64, 1), history(game, 64, 1, xp.put, xp.freeze))


@pytest.mark.parametrize("name", games.GAMES)
def test_a_batch_equals_its_lanes_alone(name):
    game = games.make(name)
    batch = history(game, 6, 2)
    for lane in range(6):
        rows = slice(lane, lane + 1)
        assert_same(batch, history(game, 6, 2, rows=rows), rows)


@pytest.mark.parametrize("name", games.GAMES)
def test_shapes_and_spaces(name):
    game = games.make(name)
    rng = np.random.default_rng(0)
    params = game.params()
    state = game.init(params, noise_of(rng, 5, game.noise_sizes[0]))
    assert (game.rewards(params, state) == 0).all()
    assert not game.terminated(params, state).any()
    for _ in range(STEPS):
        assert all(leaf.shape[0] == 5 for leaf in tree_leaves(state))
        assert game.rewards(params, state).shape == game.acting(params, state).shape == (5, len(game.agents))
        assert not (game.terminated(params, state) & game.truncated(params, state)).any()
        for seat, space in enumerate(game.observation_spaces):
            seen = game.observe(params, state, seat)
            assert seen.dtype == np.float32
            assert all(space.contains(np.ascontiguousarray(row)) for row in seen)
            legal = game.legal(params, state, seat)
            sizes = factors(game.action_spaces[seat])
            assert legal is None or tuple(mask.shape for mask in legal) == tuple((5, n) for n in sizes)
        if (game.terminated(params, state) | game.truncated(params, state)).any():
            break  # what finished lanes show is unspecified
        state = game.step(params, state, actions_of(rng, game, 5), noise_of(rng, 5, game.noise_sizes[1]))


@pytest.mark.parametrize("name", games.GAMES)
def test_games_compare_pickle_and_describe_their_states(name):
    game = games.make(name)
    assert game == games.make(name) == pickle.loads(pickle.dumps(game))
    assert hash(game) == hash(games.make(name))
    params = game.params()
    state = game.init(params, np.zeros((2, game.noise_sizes[0]), np.float32))
    assert game.describe(params, state, lane=1)
