"""Play by table look-up: chance, values, and what is not a parameter."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.lanes import GameLanes
from games.openspiel import openspiel
from games.policies import Uniform
from games.tree import CHANCE, TERMINAL, Builder, Tree
from games.tree_game import Sight, TreeGame, alias_tables
from tests.games.spiel import REPLAYED

UNEVEN = "leduc_poker(suit_isomorphism=True)"


def lottery(chance: list[float]) -> Tree:
    """Chance draws what a single player is told; its one move ends the game, and pays the number drawn."""
    builder = Builder(1)
    builder.node(CHANCE, 0, len(chance))
    for number, share in enumerate(chance):
        builder.inform(builder.node(0, 1, 1, share), str(number), (0,))
        builder.pay(builder.node(TERMINAL, 2, 0), np.array([number]))
    return builder.tree()


def implied(tree: Tree) -> np.ndarray:
    """[n] probability with which the alias tables draw every node where chance moves to it; 1 elsewhere."""
    keep, alias = alias_tables(tree)
    drawn = np.bincount(alias, 1 - keep, tree.num_nodes) + keep
    siblings = np.diff(tree.nodes.first)[tree.parents]
    return np.where(moved_by_chance(tree), drawn / siblings, 1)


def moved_by_chance(tree: Tree) -> np.ndarray:
    moved = tree.nodes.player[tree.parents] == CHANCE
    moved[0] = False
    return moved


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_alias_tables_imply_any_chances(weights):
    tree = lottery((np.array(weights) / sum(weights)).tolist())
    np.testing.assert_allclose(implied(tree), tree.nodes.chance, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", REPLAYED)
def test_alias_tables_imply_the_chances_of_games(name):
    tree = openspiel(name).tree
    np.testing.assert_allclose(implied(tree), tree.nodes.chance, rtol=0, atol=1e-12)
    own = np.arange(tree.num_nodes)
    keep, alias = alias_tables(tree)
    assert (tree.parents[alias] == tree.parents).all()
    assert ((keep == 1) & (alias == own))[~moved_by_chance(tree)].all()


@pytest.mark.parametrize("name", ["kuhn_poker", UNEVEN])
def test_all_the_uniforms_there_are_start_as_often_as_they_should(name):
    """Noise is a multiple of 2^-23: every one of them once."""
    game = openspiel(name)
    params, counts = game.params(), np.zeros(game.tree.num_nodes)
    for block in np.arange(2**23).reshape(16, -1, 1):
        state = game.init(params, (block / np.float64(2**23)).astype(np.float32))
        counts += np.bincount(state.node, minlength=len(counts))
    starts = np.arange(*game.tree.nodes.first[:2])
    np.testing.assert_allclose(counts[starts] / 2**23, game.tree.nodes.chance[starts], rtol=0, atol=1e-6)
    assert counts.sum() == counts[starts].sum()


@pytest.mark.parametrize("name", [UNEVEN, "goofspiel(num_cards=3)"])
def test_chance_in_the_middle_is_drawn_as_often_as_it_should(name):
    """Within 4 standard errors, wherever play leads."""
    lanes = GameLanes(openspiel(name), 20_000)
    tree, players = lanes.game.tree, [Uniform.of(space) for space in lanes.action_spaces]
    lanes.reset(0)
    visits = np.zeros(tree.num_nodes)
    for _ in range(30):
        noise = [lanes.noise(16 + seat, 1) for seat in range(len(players))]
        masks = [lanes.legal(seat) for seat in range(len(players))]
        lanes.step(tuple(p.act(None, m, None, n)[0] for p, m, n in zip(players, masks, noise, strict=True)))
        visits += np.bincount(lanes.ended.node, minlength=len(visits))
    drawn = np.flatnonzero(moved_by_chance(tree) & (tree.parents > 0))
    total = np.bincount(tree.parents[drawn], visits[drawn], tree.num_nodes)[tree.parents[drawn]]
    assert (total > 0).mean() > 0.9
    chance = tree.nodes.chance[drawn]
    expected, error = total * chance, np.sqrt(total * chance * (1 - chance))
    assert (abs(visits[drawn] - expected) <= 4 * error + 1).all()


def test_the_largest_uniform_draws_one_of_the_outcomes(xp):
    """Times 2^24 + 1 it would round up to one more; times 3 it does in float32."""
    largest = np.array([[1 - 2**-24], [0.0]], np.float32)
    game = TreeGame(
        "lottery", lottery([0.2, 0.3, 0.5]), 1, lambda: Sight(np.zeros((1, 1), np.float32), np.zeros((1, 7), int)), str
    )
    params = xp.freeze(type(game.params())(*(xp.put(table) for table in game.params())))
    state = game.init(params, xp.put(largest))
    assert set(np.asarray(state.node).tolist()) <= {1, 2, 3}
    state = game.step(params, state, (xp.put(np.zeros(2, np.int64)),), xp.put(np.zeros((2, 0), np.float32)))
    assert np.asarray(game.terminated(params, state)).all()
    assert np.asarray(game.rewards(params, state))[1].tolist() == [0]


def test_games_are_values():
    one, same, other = openspiel("kuhn_poker"), openspiel("kuhn_poker(players=2)"), openspiel("leduc_poker")
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one == openspiel()
    assert one != other
    assert one != openspiel(observation="observation")
    assert same.tree.num_nodes == one.tree.num_nodes
    lanes, others = GameLanes(one, 50), GameLanes(copy, 50)
    for each in (lanes, others):
        each.reset(3)
    np.testing.assert_array_equal(lanes.observe(1), others.observe(1))


def test_a_tree_has_no_parameters():
    with pytest.raises(ValueError, match=r"unknown parameter of openspiel:kuhn_poker\(\) 'ante'"):
        openspiel().params(ante=2)


def test_games_of_one_name_are_equal_where_their_trees_are():
    def named(tree: Tree) -> TreeGame:
        return TreeGame(
            "lottery", tree, 1, lambda: Sight(np.zeros((1, 1), np.float32), np.zeros((1, 5), np.int32)), str
        )

    even, same, uneven = (named(lottery(chance)) for chance in ([0.5, 0.5], [0.5, 0.5], [0.1, 0.9]))
    assert even == same
    assert hash(even) == hash(same)
    assert even != uneven
