import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.genomes import ARCHETYPES, GENES, FullGenome, Genome
from games.bucket_brigade.rules import BURNING, REST, RUINED, SAFE, WORK
from games.bucket_brigade.scripted import BLIND, POLICIES, Firefighter, policy
from games.game import Policy
from games.lanes import put_like, tree_map
from games.policies import joint_probabilities
from games.scripted import profile
from games.wrappers import flickering, stacked

GAME = BucketBrigade()
FIELDS = {
    "genome": {"honesty": 0.9, "work": 0.8, "own_priority": 0.7, "rest_bias": 0.1},
    "genome_full": dict.fromkeys(GENES, 0.4),
}


def made(name: str) -> Policy:
    return policy(name, GAME, **FIELDS.get(name, {}))


def rings(burning: list[list[int]]) -> np.ndarray:
    """[B, 10] houses with the listed ones burning."""
    return np.array([[BURNING if house in fires else SAFE for house in range(10)] for fires in burning], np.int8)


def act(scripted: Policy, houses: np.ndarray, seat: int, put=np.asarray, seed: int = 0) -> np.ndarray:
    """[B, 3] actions where `houses` [B, 10] burn."""
    params = tree_map(put, GAME.params())
    rng = np.random.default_rng(seed)
    state = GAME.init(params, put(rng.random((len(houses), 10), np.float32)))
    state = state._replace(houses=put(np.asfortranarray(houses)))
    noise = put(rng.random((len(houses), scripted.noise_size), np.float32))
    memory = put_like(scripted.start(len(houses)), noise)
    return np.asarray(scripted.act(GAME.observe(params, state, seat), None, memory, noise)[0])


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", POLICIES)
def test_policies_play_the_same_on_all_kinds_of_arrays(name, xp):
    houses = np.random.default_rng(1).integers(0, 3, (200, 10)).astype(np.int8)
    for seat in range(4):
        actions = act(made(name), houses, seat, xp.put)
        assert actions.dtype == np.int64
        np.testing.assert_array_equal(actions, act(made(name), houses, seat))
        assert all(GAME.action_spaces[seat].contains(row) for row in actions)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_plain_data(name):
    scripted = made(name)
    assert isinstance(scripted, Policy)
    assert pickle.loads(pickle.dumps(scripted)) == scripted
    fields = json.loads(json.dumps(asdict(scripted)))
    assert type(scripted)(**{key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}) == scripted


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


def test_genomes_work_at_home_elsewhere_or_for_nothing():
    n = 20_000
    liar = policy("genome liar", GAME)
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
    assert (act(policy("genome hero", GAME), rings([[]] * 5), seat=2) == [2, 1, 1]).all()


@pytest.mark.parametrize("name", [name for name in POLICIES if made(name).start(1) is None])
def test_policies_play_as_likely_as_they_tell(name, xp):
    n, cases = 4000, rings([[3, 6], [1, 6, 8], [9], []])
    params, scripted = GAME.params(), made(name) if name != "firefighter" else Firefighter("owned", p=0.3)
    state = GAME.init(params, np.zeros((len(cases), 10), np.float32))._replace(houses=cases)
    told = joint_probabilities(scripted, GAME.observe(params, state, 1), None, (10, 2, 2))
    np.testing.assert_allclose(told.sum(axis=1), 1)
    if hasattr(scripted, "joint"):
        np.testing.assert_allclose(scripted.joint(xp.put(GAME.observe(params, state, 1)), None), told, atol=1e-15)
    chosen = act(scripted, np.repeat(cases, n, axis=0), 1, seed=3) @ [4, 2, 1]
    share = np.stack([np.bincount(block, minlength=40) for block in chosen.reshape(-1, n)]) / n
    assert (np.abs(share - told) <= 4.5 * np.sqrt(told * (1 - told) / n)).all()


def full_genome(**genes: float) -> FullGenome:
    return FullGenome(**dict.fromkeys(GENES, 0.0) | genes)


def full_genome_by_hand(genes: dict[str, float], agent: int, ring: list[int], places: list[int], u, last):
    """(house, mode, signal) of the full genome, in plain loops: what the batched one must agree with."""
    size, own = len(ring), agent % len(ring)
    burns = [state == BURNING for state in ring]
    wish = genes["work"] + genes["risk_aversion"] * sum(burns) / size + 0.5 * genes["own_priority"] * burns[own]
    intent = min(max(wish * (1 - genes["rest_bias"]), 0), 1)
    signal = int(intent > 0.5) if u[0] < genes["honesty"] else int(intent <= 0.5)
    scores = []
    for house in range(size):
        beside = [(house - 1) % size, (house + 1) % size]
        score = 0.1 / (1 + min((house - own) % size, (own - house) % size))
        score += genes["own_priority"] * (house == own) + 0.5 * burns[house]
        score += 0.3 * genes["neighbor_help"] * any(burns[other] for other in beside)
        score += 0.1 * genes["coordination"] * places.count(house)
        score -= 0.2 * genes["risk_aversion"] * sum(burns[other] for other in beside)
        scores.append(max(score, 0.01))
    house = next(house for house in range(size) if u[1] * sum(scores) < sum(scores[: house + 1]))
    mode = int(u[2] < (genes["honesty"] if signal else intent * genes["altruism"]))
    if u[3] < genes["exploration"]:
        house, mode = int(u[4] * size), int(u[5] * 2)
    if last and u[6] < genes["fatigue"]:
        house, mode = last
    return house, mode, signal


gene = st.integers(0, 20).map(lambda n: n / 20 + 0.001 * (n < 20))  # no draw or intent lies on a gene's edge


@given(
    st.fixed_dictionaries(dict.fromkeys(GENES, gene)),
    st.integers(2, 8),
    st.integers(1, 5),
    st.integers(0, 99),
    st.booleans(),
)
def test_full_genomes_do_as_the_rules_say(genes, houses, agents, seed, played):
    game = BucketBrigade("hard", num_agents=agents, num_houses=houses)
    rng, params = np.random.default_rng(seed), game.params()
    state = game.init(params, rng.random((30, houses), np.float32))
    rings, places = rng.integers(0, 3, (30, houses)), rng.integers(0, houses, (30, agents))
    state = state._replace(houses=rings.astype(np.int8), positions=places.astype(np.int8))
    scripted = policy("genome_full", game, **genes)
    noise = rng.random((30, scripted.noise_size), np.float32)
    last = rng.integers(0, [houses, 2], (30, 2))
    for seat in range(agents):
        memory = (last[:, 0], last[:, 1]) if played else scripted.start(30)
        chosen, remembered = scripted.act(game.observe(params, state, seat), None, memory, noise)
        for row in range(30):
            before = tuple(last[row].tolist()) if played else None
            arguments = (genes, seat, rings[row].tolist(), places[row].tolist(), noise[row].tolist(), before)
            assert tuple(chosen[row].tolist()) == full_genome_by_hand(*arguments)
        np.testing.assert_array_equal(np.stack(remembered, axis=1), chosen[:, :2])


def test_tired_full_genomes_repeat_their_last_night_whatever_they_announced():
    game = BucketBrigade("hard", two_phase=True)
    params, rng = game.params(), np.random.default_rng(0)
    scripted = full_genome(work=1.0, honesty=1.0, fatigue=1.0, exploration=1.0)
    state, memory, nights = game.init(params, rng.random((50, 10), np.float32)), scripted.start(50), []
    for step in range(6):
        seen, noise = game.observe(params, state, 0), rng.random((50, scripted.noise_size), np.float32)
        action, memory = scripted.act(seen, None, memory, noise)
        state = game.step(params, state, (action,) * 4, rng.random((50, 20), np.float32))
        nights += [action[:, :2]] if step % 2 else []
    assert len(np.unique(nights[0], axis=0)) > 10
    np.testing.assert_array_equal(nights[1], nights[0])
    np.testing.assert_array_equal(nights[2], nights[0])


def test_archetypes_play_by_their_published_genes():
    assert policy("genome_full hero", GAME) == FullGenome(**ARCHETYPES["hero"])
    assert policy("genome liar", GAME) == Genome(honesty=0.1, work=0.7, own_priority=0.9, rest_bias=0.4)
    rests = act(policy("genome_full hero", GAME), np.full((50, 10), RUINED), 0)
    assert (rests[:, 1:] == 1).all()  # works for nothing


@pytest.mark.parametrize("layout", ["trainer", "thrust"])
@pytest.mark.parametrize("name", POLICIES)
def test_policies_refuse_layouts_that_they_cannot_read(name, layout):
    game = BucketBrigade(observation=layout)
    if name in BLIND:
        seen = game.observe(game.params(), game.init(game.params(), np.zeros((3, 10), np.float32)), 0)
        scripted = policy(name, game)
        actions, _ = scripted.act(seen, None, scripted.start(3), np.zeros((3, scripted.noise_size), np.float32))
        assert all(game.action_spaces[0].contains(action) for action in actions)
    else:
        with pytest.raises(ValueError, match=f"reads observation='features' only, got a game with '{layout}'"):
            policy(name, game, **FIELDS.get(name, {}))


def test_other_layouts_are_refused_when_seen():
    game = BucketBrigade(observation="trainer")
    seen = game.observe(game.params(), game.init(game.params(), np.zeros((3, 10), np.float32)), 0)
    with pytest.raises(ValueError, match=r"read the layout 'features': .* 67 or 72 columns, got 42"):
        policy("spread", GAME).act(seen, None, None, np.zeros((3, 0), np.float32))


@pytest.mark.parametrize("name", POLICIES)
def test_policies_stay_on_a_ring_of_two_houses(name):
    game = BucketBrigade("v2_minimal")
    params = game.params()
    state = game.init(params, np.array([[0.0, 0.0], [0.9, 0.9]], np.float32))
    scripted = policy(name, game, **FIELDS.get(name, {}))
    noise = np.full((2, scripted.noise_size), 0.5, np.float32)
    for seat in range(4):
        for action in scripted.act(game.observe(params, state, seat), None, scripted.start(2), noise)[0]:
            assert game.action_spaces[seat].contains(action)


def test_families_are_told_apart_by_their_fields():
    assert policy("firefighter", GAME, scope="owned") == Firefighter("owned")
    with pytest.raises(ValueError, match=r"Genome is a family of policies: .* or give its work, rest_bias"):
        policy("genome", GAME, honesty=1.0, own_priority=0.5)
    with pytest.raises(ValueError, match="unknown field of Firefighter 'scop'; did you mean 'scope'"):
        policy("firefighter", GAME, scop="owned")


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


def test_wrapped_games_have_the_policies_of_the_game_inside():
    wrapped = stacked(flickering(GAME), frames=2)
    assert profile("specialist", wrapped) == profile("specialist", GAME)
    assert profile("uniform", wrapped) == profile("uniform", GAME)
    with pytest.raises(ValueError, match="did you mean 'specialist'"):
        profile("specialst", wrapped)
