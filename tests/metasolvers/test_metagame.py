"""Deviation gains, gaps and the input checks every meta-solver shares."""

import numpy as np
import pytest

from metasolvers import (
    cce_gap,
    ce_gap,
    check_payoffs,
    check_sigma,
    deviation_gains,
    expected_payoffs,
    exploitability,
    independent,
    is_product,
    marginal,
    nash_conv,
    product,
)
from metasolvers.contract import COARSE, CORRELATED, NASH
from metasolvers.metagame import in_units_of_gain, in_units_of_spread
from tests.golden_cases import numbers, select

PENNIES = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1.0]]])


@pytest.mark.parametrize("case", select("exploitability"))
def test_golden(case):
    given, expected, tolerance = case["input"], case["expected"], case["tolerance"]
    payoffs = np.stack([numbers(given["A"]), numbers(given["B"])])
    sigma = product([numbers(given["x"]), numbers(given["y"])])
    best = [gains.max() for gains in deviation_gains(payoffs, sigma)]
    np.testing.assert_allclose(best, numbers(expected["deviation_gains"]), atol=tolerance)
    assert nash_conv(payoffs, sigma) == pytest.approx(numbers(expected["nash_conv"]), abs=tolerance)
    assert exploitability(payoffs, sigma) == pytest.approx(numbers(expected["exploitability_half"]), abs=tolerance)


@pytest.mark.parametrize("case", select("n_player_nash", check="nplayer"))
def test_golden_equilibria_of_more_players_have_no_gap(case):
    payoffs = numbers(case["input"]["payoffs"])
    for equilibrium in case["expected"]["equilibria"]:
        assert nash_conv(payoffs, product(equilibrium)) <= case["tolerance"]


@pytest.mark.parametrize("case", select("general_sum_nash", check="bimatrix"))
def test_golden_equilibria_of_two_players_have_no_gap(case):
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    for equilibrium in case["expected"].get("equilibria", []):  # one case only counts its 75
        assert nash_conv(payoffs, product([numbers(strategy) for strategy in equilibrium])) <= case["tolerance"]


@pytest.mark.parametrize("case", select("correlated_equilibrium", check="ce"))
def test_golden_correlated_equilibria_have_no_gap(case):
    payoffs, expected = numbers(case["input"]["payoffs"]), case["expected"]
    for sigma in expected.get("ce_members", {}).values():  # some cases give bounds alone
        assert 0 <= cce_gap(payoffs, numbers(sigma)) <= ce_gap(payoffs, numbers(sigma)) <= case["tolerance"]
    for sigma in expected.get("cce_members", {}).values():
        assert cce_gap(payoffs, numbers(sigma)) <= case["tolerance"]
    for sigma in expected.get("ce_nonmembers", {}).values():
        assert ce_gap(payoffs, numbers(sigma)) > 0.1


def test_gains_by_enumeration():
    """E[u_i(a, s_-i)] - E[u_i(s)], summed profile by profile."""
    rng = np.random.default_rng(0)
    payoffs, sigma = rng.normal(size=(3, 2, 3, 4)), rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    for player, gains in enumerate(deviation_gains(payoffs, sigma)):
        for policy in range(sigma.shape[player]):
            total = 0.0
            for profile in np.ndindex(sigma.shape):
                deviated = (*profile[:player], policy, *profile[player + 1 :])
                total += sigma[profile] * (payoffs[(player, *deviated)] - payoffs[(player, *profile)])
            assert gains[policy] == pytest.approx(total, abs=1e-12)


def test_swaps_by_enumeration():
    """Each policy told is swapped for its best other one, summed profile by profile."""
    rng = np.random.default_rng(1)
    payoffs, sigma = rng.normal(size=(3, 2, 3, 4)), rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    gap = 0.0
    for player, told in ((i, a) for i in range(3) for a in range(sigma.shape[i])):
        gains = np.zeros(sigma.shape[player])
        for profile in np.ndindex(sigma.shape):
            if profile[player] == told:
                for policy in range(len(gains)):
                    swapped = (*profile[:player], policy, *profile[player + 1 :])
                    gains[policy] += sigma[profile] * (payoffs[(player, *swapped)] - payoffs[(player, *profile)])
        gap += gains.max()
    assert ce_gap(payoffs, sigma) == pytest.approx(gap, abs=1e-12)


def test_correlation_can_close_the_gap_where_a_product_cannot():
    """Chicken's traffic light [Aumann 1974]: no gap from the joint sigma, and nash_conv is not asked of it."""
    chicken = np.array([[[6, 2], [7, 0]], [[6, 7], [2, 0.0]]])
    light = np.array([[0, 0.5], [0.5, 0]])
    assert cce_gap(chicken, light) <= 0
    assert ce_gap(chicken, light) <= 0
    with pytest.raises(ValueError, match="use cce_gap"):
        nash_conv(chicken, light)
    assert cce_gap(chicken, product([marginal(light, 0), marginal(light, 1)])) > 0


def test_marginals_of_a_product_come_back():
    strategies = [np.array([0.2, 0.8]), np.array([1.0]), np.array([0.5, 0.25, 0.25])]
    sigma = product(strategies)
    assert sigma.shape == (2, 1, 3)
    for player, strategy in enumerate(strategies):
        np.testing.assert_allclose(marginal(sigma, player), strategy)


def test_products_are_told_from_correlated_distributions():
    assert is_product(product([[0.25, 0.75], [1.0], [0.5, 0.5]]))
    assert not is_product([[0.5, 0], [0, 0.5]])


def test_independent_players_keep_their_marginals():
    sigma = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)
    assert is_product(independent(sigma))
    for player in range(3):
        np.testing.assert_allclose(marginal(independent(sigma), player), marginal(sigma, player))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-310), (-1e6, -1e6 + 1), (-4e307, 4e307)])
def test_units_of_spread_reach_from_minus_to_plus_a_half(low, high):
    """And what differs by rounding alone is all the same."""
    payoffs = np.array([[[low, high]], [[0.1 + 0.2, 0.3]]])
    np.testing.assert_allclose(in_units_of_spread(payoffs), [[[-0.5, 0.5]], [[0, 0]]])


def test_expected_payoffs_of_a_sure_profile():
    sigma = product([[0, 1], [1, 0]])
    np.testing.assert_array_equal(expected_payoffs(PENNIES, sigma), PENNIES[:, 1, 0])


@pytest.mark.parametrize(
    ("payoffs", "message"),
    [
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], "ragged"),
        (np.zeros((2, 3)), "one axis of policies for each of the N players"),
        (np.zeros((3, 2, 2)), r"got shape \(3, 2, 2\)"),
        (np.zeros((2, 2, 2, 2)), "np.stack"),
        (3.0, "np.stack"),
        ([], "np.stack"),
        (np.zeros((2, 0, 3)), "at least one policy"),
        (np.array([[[1, np.nan]], [[0, 0]]]), r"got nan at \(0, 0, 1\)"),
        (np.array([[[1, 0]], [[-np.inf, 0]]]), r"got -inf at \(1, 0, 0\)"),
        (PENNIES.astype(complex), "dtype complex128"),
        (np.array([[["a"]], [["b"]]]), "real numbers"),
        (np.array([[[None]], [[1]]]), "dtype object"),
    ],
)
def test_malformed_payoffs(payoffs, message):
    with pytest.raises(ValueError, match=message):
        check_payoffs(payoffs)


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (np.full((2, 3), 1 / 6), r"shape \(2, 2\)"),
        ([[0.5, 0.6], [0, 0]], "sum to 1; got smallest entry 0.0 and sum 1.1"),
        (([0.5, 0.5], [0.4, 0.6]), r"join independent strategies with product\(strategies\)"),
        (([0.5, 0.5], [0.2, 0.3, 0.5]), r"join independent strategies with product\(strategies\)"),
        ([[1.5, -0.5], [0, 0]], "non-negative"),
        ([[np.nan, 0], [0, 1]], "finite"),
        ([[1], [0, 0]], "ragged"),
    ],
)
def test_malformed_sigma(sigma, message):
    with pytest.raises(ValueError, match=message):
        check_sigma(sigma, PENNIES)


@pytest.mark.parametrize(("call"), [lambda: product([]), lambda: product([[[0.5], [0.5]]])])
def test_products_need_one_vector_per_player(call):
    with pytest.raises(ValueError, match="one vector per player"):
        call()


def test_the_strategy_that_is_none_is_named():
    with pytest.raises(ValueError, match=r"marginals\[1\] must be non-negative and sum to 1; .* by their sum$"):
        product([[0.5, 0.5], [0.5, 0.6]])


def test_no_such_player():
    with pytest.raises(ValueError, match=r"player must be in 0\.\.1"):
        marginal(np.full((2, 2), 0.25), 2)


@pytest.mark.parametrize("scale", [1e-6, 700.0, 1e300])
def test_what_others_hand_a_player_hides_no_gain(scale):
    """A certificate of cooperation in the prisoner's dilemma, where each is also paid for what the other does."""
    dilemma = np.array([[[3, 0], [5, 1]], [[3, 5], [0, 1.0]]])
    handed = 1e6 * np.array([[[1, 0], [1, 0]], [[1, 1], [0, 0]]])
    paid = scale * (dilemma + handed)
    np.testing.assert_allclose(in_units_of_gain(paid), in_units_of_gain(dilemma), atol=1e-9)
    for certificate in (NASH, COARSE, CORRELATED):
        assert certificate.measure(paid, [[1, 0], [0, 0]]) == pytest.approx(2, abs=1e-8)
