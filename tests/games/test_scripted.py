import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.rules import BURNING, REST, SAFE, WORK
from games.bucket_brigade.scripted import ARCHETYPES, POLICIES, Firefighter, Genome, policy
from games.game import Policy
from games.lanes import tree_map

GAME = BucketBrigade()
FIELDS = {"genome": {"honesty": 0.9, "work": 0.8, "own_priority": 0.7, "rest_bias": 0.1}}


def made(name: str) -> Policy:
    return policy(name, GAME, **FIELDS.get(name, {}))


def rings(burning: list[list[int]]) -> np.ndarray:
    """[B, 10] houses with the listed ones burning."""
    return np.array([[BURNING if house in fires else SAFE for house in range(10)] for fires in burning], np.int8)


def act(player: Policy, houses: np.ndarray, seat: int, put=np.asarray, seed: int = 0) -> np.ndarray:
    """[B, 3] actions where `houses` [B, 10] burn."""
    params = tree_map(put, GAME.params())
    rng = np.random.default_rng(seed)
    state = GAME.init(params, put(rng.random((len(houses), 10), np.float32)))
    state = state._replace(houses=put(np.asfortranarray(houses)))
    noise = put(rng.random((len(houses), player.noise_size), np.float32))
    return np.asarray(player.act(GAME.observe(params, state, seat), None, None, noise)[0])


@pytest.mark.parametrize("name", POLICIES)
def test_players_play_the_same_on_all_kinds_of_arrays(name, xp):
    houses = np.random.default_rng(1).integers(0, 3, (200, 10)).astype(np.int8)
    for seat in range(4):
        actions = act(made(name), houses, seat, xp.put)
        assert actions.dtype == np.int64
        np.testing.assert_array_equal(actions, act(made(name), houses, seat))
        assert all(GAME.action_spaces[seat].contains(row) for row in actions)


@pytest.mark.parametrize("name", POLICIES)
def test_players_are_plain_data(name):
    player = made(name)
    assert isinstance(player, Policy)
    assert pickle.loads(pickle.dumps(player)) == player
    fields = json.loads(json.dumps(asdict(player)))
    assert type(player)(**{key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}) == player


def test_specialists_mind_their_own_houses():
    houses = rings([[1, 4, 8], [1], [], [8]])
    specialist = policy("specialist", GAME)
    assert act(specialist, houses, 0).tolist() == [[4, 1, 1], [0, 0, 0], [0, 0, 0], [8, 1, 1]]
    assert act(specialist, houses, 1).tolist() == [[1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 0, 0]]


def test_firefighters_run_to_the_first_fire_in_scope():
    houses = rings([[3, 5], [4], []])
    assert act(Firefighter("any"), houses, 0).tolist() == [[3, 1, 1], [4, 1, 1], [0, 0, 0]]
    assert act(Firefighter("owned"), houses, 1).tolist() == [[5, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert act(Firefighter("any", p=0.0), houses, 0).tolist() == [[0, 0, 0]] * 3
    work = act(Firefighter("any", p=0.3), rings([[3]] * 20_000), 0)[:, 1].mean()
    assert abs(work - 0.3) < 4 * np.sqrt(0.21 / 20_000)


def test_a_spread_team_leaves_no_fire_alone():
    houses = rings([[2], [2, 7], [1, 5, 9], [0, 1, 2, 3, 4, 5], []])
    places = [act(policy("spread", GAME), houses, seat) for seat in range(4)]
    assert [p[0, 0] for p in places] == [2, 2, 2, 2]
    assert [p[1, 0] for p in places] == [2, 7, 2, 7]
    assert [p[2, 0] for p in places] == [1, 5, 9, 1]
    assert [p[3, 0] for p in places] == [0, 1, 2, 3]
    assert all((p[:, 1] == [WORK] * 4 + [REST]).all() for p in places)
    assert all(p[4].tolist() == [0, 0, 0] for p in places)


def test_genome_players_work_at_home_elsewhere_or_for_nothing():
    n = 20_000
    liar = ARCHETYPES["liar"]
    elsewhere = act(liar, rings([[3, 6]] * n), seat=1)
    works = elsewhere[:, 1] == WORK
    assert abs(works.mean() - 0.42) < 4 * np.sqrt(0.25 / n)
    assert (elsewhere[~works, 0] == 1).all()
    assert abs((elsewhere[works, 0] == 3).mean() - 0.5) < 4 * np.sqrt(0.25 / works.sum())
    assert set(elsewhere[works, 0].tolist()) == {3, 6}
    honest = elsewhere[:, 2] == elsewhere[:, 1]
    assert abs(honest.mean() - 0.1) < 4 * np.sqrt(0.09 / n)
    home = act(liar, rings([[1, 6]] * n), seat=1)
    at_home = (home[home[:, 1] == WORK, 0] == 1).mean()
    assert abs(at_home - (0.9 + 0.1 / 2)) < 0.02
    assert (act(ARCHETYPES["hero"], rings([[]] * 5), seat=2) == [2, 1, 1]).all()


@pytest.mark.parametrize("name", POLICIES)
def test_players_stay_on_a_ring_of_two_houses(name):
    game = BucketBrigade("v2_minimal")
    params = game.params()
    state = game.init(params, np.array([[0.0, 0.0], [0.9, 0.9]], np.float32))
    player = policy(name, game, **FIELDS.get(name, {}))
    noise = np.full((2, player.noise_size), 0.5, np.float32)
    for seat in range(4):
        for action in player.act(game.observe(params, state, seat), None, None, noise)[0]:
            assert game.action_spaces[seat].contains(action)


def test_mistakes_are_refused():
    with pytest.raises(ValueError, match="did you mean 'specialist'"):
        policy("specialst", GAME)
    with pytest.raises(ValueError, match="scope"):
        Firefighter("own")
    with pytest.raises(ValueError, match="p must be a probability"):
        Firefighter(p=1.1)
    with pytest.raises(ValueError, match="gene work"):
        Genome(1.0, 2.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="4 agents and 4 houses are seen as 37 or 42 columns, got 67"):
        act(policy("spread", BucketBrigade(num_agents=4, num_houses=4)), rings([[]]), 0)
