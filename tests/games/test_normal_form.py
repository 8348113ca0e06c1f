import numpy as np
import pytest

from games.lanes import GameLanes
from games.normal_form import NormalForm, battle_of_the_sexes, blotto, matching_pennies, rock_paper_scissors

RPS = [(0, 0, 0, 0), (1, 0, 1, -1), (0, 1, -1, 1), (2, 1, 1, -1), (0, 2, 1, -1), (2, 2, 0, 0)]
"""Actions (0 rock, 1 paper, 2 scissors) and rewards of both players [PettingZoo 1.27, classic/rps_v2]."""


@pytest.mark.parametrize(("row", "column", "mine", "yours"), RPS)
def test_rock_paper_scissors_pays_as_pettingzoo_does(row, column, mine, yours):
    assert rock_paper_scissors().payoffs[:, row, column].tolist() == [mine, yours]


def test_every_round_pays_and_is_seen(xp):
    game = NormalForm(np.arange(24).reshape(2, 3, 4), rounds=2)
    lanes = GameLanes(game, 12, put=xp.put)
    lanes.reset(0)
    row, column = (index.ravel() for index in np.indices((3, 4)))
    start = np.asarray(lanes.observe(0))
    assert (start == [0] * 7 + [1]).all()
    outcome = lanes.step((xp.put(row), xp.put(column)))
    np.testing.assert_array_equal(np.asarray(outcome.rewards).T, game.payoffs.reshape(2, 12))
    expected = np.hstack([np.eye(3)[row], np.eye(4)[column], np.full((12, 1), 0.5)])
    np.testing.assert_array_equal(np.asarray(lanes.observe(1)), expected)
    assert not np.asarray(outcome.done).any()
    outcome = lanes.step((xp.put(column % 3), xp.put(row)))
    assert np.asarray(outcome.terminated).all()
    assert not np.asarray(outcome.truncated).any()
    np.testing.assert_array_equal(np.asarray(lanes.observe(0)), start)


def test_a_batch_of_games_of_one_shape(xp):
    tables = np.random.default_rng(0).normal(size=(5, 2, 2, 2)).astype(np.float32)
    game = NormalForm(tables[0])
    lanes = GameLanes(game, 5, game.params(payoffs=tables), put=xp.put)
    lanes.reset(0)
    outcome = lanes.step((xp.put(np.ones(5, np.int64)), xp.put(np.zeros(5, np.int64))))
    np.testing.assert_array_equal(np.asarray(outcome.rewards), tables[:, :, 1, 0])


@pytest.mark.parametrize("players", [2, 3, 4])
def test_matching_pennies_has_no_pure_equilibrium(players):
    payoffs = matching_pennies(players).payoffs
    assert set(np.unique(payoffs)) == {-1, 1}
    best = [payoffs[player] == payoffs[player].max(axis=player, keepdims=True) for player in range(players)]
    assert not np.all(best, axis=0).any()
    np.testing.assert_allclose(payoffs.mean(axis=tuple(range(1, players + 1))), 0)


def test_battle_of_the_sexes_has_two_pure_equilibria():
    payoffs = battle_of_the_sexes().payoffs
    best = (payoffs[0] == payoffs[0].max(axis=0)) & (payoffs[1] == payoffs[1].max(axis=1, keepdims=True))
    assert best.tolist() == [[True, False], [False, True]]


def test_blotto_is_symmetric_zero_sum_and_names_its_plans():
    game = blotto(soldiers=5, fields=3)
    assert game.payoffs.shape == (2, 21, 21)
    np.testing.assert_array_equal(game.payoffs[0], -game.payoffs[1])
    np.testing.assert_array_equal(game.payoffs[0], game.payoffs[1].T)
    plan = game.labels.index
    assert game.payoffs[0, plan("2-2-1"), plan("5-0-0")] == 1
    assert game.payoffs[0, plan("2-2-1"), plan("3-1-1")] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NormalForm(np.zeros((3, 2, 2))), "for N players"),
        (lambda: NormalForm(np.full((2, 2, 2), np.inf)), "finite"),
        (lambda: NormalForm(rounds=0), "rounds must be a whole number of at least 1"),
        (lambda: NormalForm(rounds=2**31), "at most 2,147,483,646"),
        (lambda: NormalForm(rounds=float("inf")), "got inf"),
        (lambda: NormalForm().params(payoffs=np.full((5, 2, 2, 2), np.nan)), "finite"),
        (lambda: NormalForm().params(payoffs=np.full((2, 2, 2), 1e39)), "finite"),
        (lambda: NormalForm(labels=("a",)), "name all 2 actions"),
        (lambda: NormalForm().params(payoffs=np.zeros((2, 3, 3))), "keep the shape"),
        (lambda: NormalForm().params(payoff=1), "did you mean 'payoffs'"),
        (lambda: matching_pennies(1), "at least 2 players"),
        (lambda: blotto(soldiers=0), "needs soldiers"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
