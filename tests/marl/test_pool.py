"""Pools of snapshots: results, ratings, ages, and who makes room."""

import numpy as np
import pytest

from games.policies import Uniform
from marl.pool import PRIOR, Pool


def pool_of(number, capacity=4, **options):
    """Snapshots taken after updates 0, 10, 20 ...; policies told apart by their number of choices."""
    pool = Pool(capacity, **options)
    for index in range(number):
        pool.add(Uniform((index + 1,), flat=True), 10 * index)
    return pool


def games(pool, opponent, won, lost):
    pool.record(np.full(won + lost, opponent), np.array([1.0] * won + [0.0] * lost))


def test_rates_are_shares_of_games_with_a_prior():
    pool = pool_of(2)
    games(pool, 0, won=30, lost=10)
    pool.record(np.array([1, 1]), np.array([0.5, 0.5]))
    assert pool.standing().win_rates == pytest.approx([(30 + PRIOR) / (40 + 2 * PRIOR), 0.5])
    np.testing.assert_array_equal(pool.wins, [[0, 30, 1], [10, 0, 0], [1, 0, 0]])


def test_before_any_game_all_are_even():
    standing = pool_of(3).standing()
    assert standing.win_rates.tolist() == [0.5] * 3
    np.testing.assert_allclose([standing.rating, *standing.ratings], 0, atol=1e-9)


def test_a_rating_is_what_rates_say():
    """Odds of 10 to 1 are 400 Elo points."""
    pool = pool_of(1)
    games(pool, 0, won=10_000, lost=1000)
    standing = pool.standing()
    assert standing.rating - standing.ratings[0] == pytest.approx(400, abs=1)


def test_a_snapshot_has_the_learners_results_and_none_against_the_learner():
    pool = pool_of(2, decay=0.5)
    games(pool, 0, won=8, lost=2)
    pool.add(Uniform((9,), flat=True), 25)
    np.testing.assert_array_equal(pool.wins[3], [0, 8, 0, 0])
    np.testing.assert_array_equal(pool.wins[:, 3], [0, 2, 0, 0])
    pool.age()
    np.testing.assert_array_equal(pool.wins[0], [0, 4, 0, 0])  # the learner moves on, the snapshot does not
    np.testing.assert_array_equal(pool.wins[3], [0, 8, 0, 0])
    assert pool.standing().turn == 1
    assert pool.ages(30).tolist() == [30, 20, 5]


def test_whoever_is_beaten_most_surely_makes_room():
    pool = pool_of(3, capacity=3)
    for opponent, won in enumerate((5, 9, 9)):
        games(pool, opponent, won, lost=10 - won)
    pool.add(Uniform((9,), flat=True), 33)
    assert [snapshot.number for snapshot in pool.snapshots] == [0, 2, 3]
    assert [snapshot.policy.choices for snapshot in pool.snapshots] == [(1,), (3,), (9,)]
    np.testing.assert_array_equal(pool.wins[0], [0, 5, 9, 0])
    np.testing.assert_array_equal(pool.wins[:, 0], [0, 5, 1, 0])
    np.testing.assert_array_equal(pool.wins[3], [0, 5, 9, 0])
    assert len(pool) == 3


def test_a_pool_goes_on_from_its_state():
    pool = pool_of(5)
    games(pool, 2, won=3, lost=1)
    pool.age()
    again = Pool(4)
    again.load_state_dict(pool.state_dict(), {snapshot.number: snapshot.policy for snapshot in pool.snapshots})
    for one in (pool, again):
        games(one, 1, won=1, lost=7)
        one.add(Uniform((9,), flat=True), 60)
    assert again.snapshots == pool.snapshots
    np.testing.assert_equal(again.standing(), pool.standing())


@pytest.mark.parametrize(("opponents", "scores", "complaint"), [([2], [1], "opponents"), ([0], [2], "scores")])
def test_games_that_cannot_be_are_refused(opponents, scores, complaint):
    with pytest.raises(ValueError, match=complaint):
        pool_of(2).record(np.array(opponents), np.array(scores))


@pytest.mark.parametrize("options", [{"capacity": 0}, {"decay": 1.5}])
def test_impossible_pools_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Pool(**options)
