"""The best equilibrium by a linear objective, against all extreme equilibria: one of them always is as good."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers import (
    NotConverged,
    expected_payoffs,
    marginal,
    mixed_integer,
    mixed_integer_nash,
    nash_conv,
    product,
    vertex_enumeration,
)
from tests.golden_cases import select
from tests.metasolvers.test_bimatrix import bimatrix, bimatrix_games

quick = settings(max_examples=15, deadline=None, derandomize=True)


def best_and_found(payoffs, measure, objective):
    """The largest measure of an extreme equilibrium, and that of the equilibrium found."""
    sigma = mixed_integer_nash(payoffs, objective)
    assert nash_conv(payoffs, sigma) <= 1e-8 * np.ptp(payoffs)
    return max(measure(product(pair)) for pair in vertex_enumeration(payoffs)), measure(sigma)


def support(sigma):
    return sum(np.count_nonzero(marginal(sigma, player)) for player in range(2))


@pytest.mark.parametrize("case", select("general_sum_nash"))
def test_golden_games(case):
    payoffs = bimatrix(case)
    best, found = best_and_found(payoffs, lambda sigma: expected_payoffs(payoffs, sigma).sum(), "welfare")
    assert found == pytest.approx(best, abs=case["tolerance"] * np.ptp(payoffs))
    best, found = best_and_found(payoffs, lambda sigma: -support(sigma), "support")
    assert found == best


@pytest.mark.parametrize("values", [None, 2], ids=["generic", "ties"])
@quick
@given(data=st.data(), scale=st.sampled_from([1e-6, 1.0, 700.0]))
def test_no_extreme_equilibrium_is_better(values, data, scale):
    payoffs = scale * data.draw(bimatrix_games(values=values))
    best, found = best_and_found(payoffs, lambda sigma: expected_payoffs(payoffs, sigma).sum(), "welfare")
    assert found == pytest.approx(best, abs=1e-5 * np.ptp(payoffs))
    best, found = best_and_found(payoffs, lambda sigma: -support(sigma), "support")
    assert found == best


@quick
@given(payoffs=bimatrix_games(values=2), seed=st.integers(0, 99))
def test_weights_of_policies(payoffs, seed):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=policies) for policies in payoffs.shape[1:]]
    best, found = best_and_found(
        payoffs, lambda sigma: sum(w @ marginal(sigma, player) for player, w in enumerate(weights)), weights
    )
    assert found == pytest.approx(best, abs=1e-5)


@quick
@given(payoffs=bimatrix_games(values=2), tiny=st.sampled_from([1e-5, 1e-6, 1e-7]), seed=st.integers(0, 99))
def test_near_ties_below_the_tolerance_of_highs(payoffs, tiny, seed):
    """HiGHS takes 1e-6 for nothing; a policy that is worse by that much is no best response all the same."""
    payoffs = payoffs + tiny * np.random.default_rng(seed).integers(-3, 4, payoffs.shape)
    assert nash_conv(payoffs, mixed_integer_nash(payoffs, "any")) <= 1e-8 * np.ptp(payoffs)


def test_the_better_convention():
    """Stag hunt: both hunt the stag, though the hare is safer; the path of `logit_nash` ends elsewhere."""
    stag_hunt = np.array([[[4, 1], [3, 3]], [[4, 3], [1, 3]]])
    np.testing.assert_array_equal(mixed_integer_nash(stag_hunt), [[1, 0], [0, 0]])
    np.testing.assert_array_equal(mixed_integer_nash(stag_hunt, ([0, 1], [0, 1])), [[0, 0], [0, 1]])


def test_a_game_too_large_to_enumerate():
    """40 policies a player, who mostly want the same: the best profile is an equilibrium, nearly always."""
    rng = np.random.default_rng(0)
    payoffs = rng.normal(size=(40, 40)) + 0.3 * rng.normal(size=(2, 40, 40))
    sigma = mixed_integer_nash(payoffs)
    assert nash_conv(payoffs, sigma) <= 1e-8
    assert expected_payoffs(payoffs, sigma).sum() == pytest.approx(payoffs.sum(axis=0).max())


def test_too_little_time_is_said_with_the_certificate():
    payoffs = np.random.default_rng(0).normal(size=(2, 30, 30))
    with pytest.raises(NotConverged, match=r"nash_conv / largest gain is .* raise time_limit") as raised:
        mixed_integer_nash(payoffs, time_limit=1e-3)
    assert raised.value.value > raised.value.tolerance
    assert raised.value.sigma.shape == (30, 30)


def test_an_answer_that_may_not_be_the_best_is_said_to_be_one(monkeypatch):
    """It comes along, an equilibrium."""
    monkeypatch.setattr(mixed_integer, "GAP", -1.0)
    coordination = np.stack([np.diag([2.0, 1.0])] * 2)
    with pytest.raises(NotConverged, match="gap to the best objective is 0") as raised:
        mixed_integer_nash(coordination)
    np.testing.assert_array_equal(raised.value.sigma, [[1, 0], [0, 0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "wellfare"}, "one of welfare, support, any"),
        ({"objective": ([1, 2, 3], [1, 2])}, r"\(\[2\], \[2\]\) finite numbers.*\(3,\)"),
        ({"objective": ([1, np.nan], [1, 2])}, "finite"),
        ({"time_limit": 0}, "seconds > 0"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mixed_integer_nash(np.zeros((2, 2, 2)), **options)
