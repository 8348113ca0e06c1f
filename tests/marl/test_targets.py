"""Whom best responses are trained against, and how the outer loop takes what they find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.normal_form import rock_paper_scissors
from marl.population import PayoffTable
from marl.psro import from_payoffs, psro
from marl.targets import TARGETS, mixture, recommendations, rectified, targets
from metasolvers import ce_gap, deviation_gains, marginal, product, uniform, zero_sum_nash

PAYOFFS = rock_paper_scissors().payoffs


@st.composite
def joints(draw):
    """Payoffs and a joint distribution of up to three players, some policies of which are never played."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.random(sizes) * (rng.random(sizes) < 0.7)
    weights.flat[0] += 0.1
    return rng.normal(size=(len(sizes), *sizes)), weights / weights.sum()


@given(joints())
def test_recommendations_make_up_the_meta_strategy(joint):
    payoffs, sigma = joint
    for player in range(sigma.ndim):
        shares, told = marginal(sigma, player), recommendations(payoffs, sigma, player)
        assert [target.own for target in told] == np.flatnonzero(shares).tolist()
        np.testing.assert_allclose(sum(shares[target.own] * target.sigma for target in told), sigma, atol=1e-12)


@given(joints())
def test_what_recommendations_gain_adds_up_to_the_ce_gap(joint):
    payoffs, sigma = joint
    gap = sum(
        marginal(sigma, player)[target.own] * max(deviation_gains(payoffs, target.sigma)[player].max(), 0)
        for player in range(sigma.ndim)
        for target in recommendations(payoffs, sigma, player)
    )
    assert gap == pytest.approx(ce_gap(payoffs, sigma), abs=1e-9)


@given(joints())
def test_every_target_is_a_distribution_that_leaves_its_input_alone(joint):
    payoffs, sigma = joint
    before = payoffs.copy(), sigma.copy()
    for find in (mixture, recommendations):
        for player in range(sigma.ndim):
            for target in find(payoffs, sigma, player):
                assert target.sigma.shape == sigma.shape
                assert target.sigma.sum() == pytest.approx(1)
    assert np.array_equal(payoffs, before[0])
    assert np.array_equal(sigma, before[1])


def test_rectified_policies_meet_whom_they_do_not_lose_to():
    """Balduzzi et al. (2019): of rock, paper and scissors each meets itself and what it beats."""
    for player in range(2):
        found = rectified(PAYOFFS, zero_sum_nash(PAYOFFS), player)
        assert [target.own for target in found] == [0, 1, 2]
        for target in found:
            met = np.moveaxis(target.sigma, player, 0)[target.own]
            assert met == pytest.approx([0.5 if own >= 0 else 0 for own in PAYOFFS[0][target.own]])
            assert target.sigma.sum() == pytest.approx(1)


def test_rectified_is_for_zero_sum_games_of_two():
    with pytest.raises(ValueError, match="two players"):
        rectified(np.zeros((3, 2, 2, 2)), np.full((2, 2, 2), 1 / 8), 0)
    with pytest.raises(ValueError, match="cancel"):
        rectified(np.stack([PAYOFFS[0], PAYOFFS[0]]), np.full((3, 3), 1 / 9), 0)


def test_names_are_near_ones_or_known_ones():
    assert targets("rectified").find is TARGETS["rectified"].find
    with pytest.raises(ValueError, match="did you mean 'recommendations'"):
        targets("recommendation")


def test_players_may_find_several_policies_or_none():
    """Rock finds paper; against paper and rock, alike, the first player alone finds scissors, and paper once more."""
    found = iter([[[1], [1]], [[2, 1], []], [[], []]])

    def evaluate(populations, known):
        assert known is None or all(old <= len(new) for old, new in zip(known.episodes.shape, populations, strict=True))
        means = PAYOFFS[:, populations[0]][:, :, populations[1]]
        return PayoffTable(means, np.zeros((2, 2, *means.shape[1:])), np.full(means.shape[1:], 2))

    snapshots = list(psro([[0], [0]], lambda before: next(found), evaluate, from_payoffs(uniform), 3))
    assert [snapshot.sigma.shape for snapshot in snapshots] == [(1, 1), (2, 2), (4, 2), (4, 2)]
    assert snapshots[-1].populations == [[0, 1, 2, 1], [0, 1]]
    assert np.array_equal(snapshots[-1].payoffs.mean, snapshots[-2].payoffs.mean)


def test_the_meta_strategy_may_depend_on_the_policies():
    def newest(populations, payoffs):
        return product([np.eye(len(mine))[mine.index(max(mine))] for mine in populations])

    def evaluate(populations, known):
        means = PAYOFFS[:, populations[0]][:, :, populations[1]]
        return PayoffTable(means, np.zeros((2, 2, *means.shape[1:])), np.full(means.shape[1:], 2))

    *_, last = psro([[2], [0]], lambda before: [[0], [1]], evaluate, newest, 1)
    assert last.sigma.tolist() == [[0, 1], [0, 0]]
