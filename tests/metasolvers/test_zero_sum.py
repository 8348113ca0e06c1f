"""Zero-sum Nash against golden values, and what it refuses."""

import numpy as np
import pytest

from metasolvers import expected_payoffs, exploitability, marginal, nash_conv, zero_sum_nash
from tests.golden_cases import numbers, select


def zero_sum(matrix):
    return np.stack([matrix, -np.asarray(matrix)])


@pytest.mark.parametrize("case", select("zero_sum_nash"))
def test_golden(case):
    """The value always; strategies where unique, else their golden ranges; the equilibrium certifies itself."""
    matrix, expected, tolerance = numbers(case["input"]["A"]), case["expected"], case["tolerance"]
    payoffs = zero_sum(matrix)
    sigma = zero_sum_nash(payoffs)
    value = numbers(expected["value"])
    scale = max(1.0, abs(value)) if case.get("relative") else 1.0
    assert abs(expected_payoffs(payoffs, sigma)[0] - value) <= tolerance * scale
    assert nash_conv(payoffs, sigma) <= tolerance * max(np.ptp(matrix), 1e-300) + 8 * np.spacing(np.abs(matrix).max())
    for player, side in enumerate(("row", "col")):
        strategy = marginal(sigma, player)
        if expected.get(f"{side}_unique"):
            assert np.abs(strategy - numbers(expected[f"{side}_strategy"])).max() <= tolerance
        if f"{side}_range" in expected:
            low, high = numbers(expected[f"{side}_range"]).T
            assert (strategy >= low - tolerance).all()
            assert (strategy <= high + tolerance).all()


@pytest.mark.parametrize("case", select("general_sum_nash"))
def test_general_sum_is_refused(case):
    """All of the golden bimatrix games but the one where nobody ever gets anything."""
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    if np.ptp(payoffs.sum(axis=0)) == 0:
        assert zero_sum_nash(payoffs).sum() == pytest.approx(1)
        return
    with pytest.raises(ValueError, match="use alpha_rank"):
        zero_sum_nash(payoffs)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1.0, 700.0, 1e9, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_any_scale_and_any_constant_sum(scale, offset):
    matrix = scale * (np.random.default_rng(0).normal(size=(20, 15)) + offset)
    payoffs = np.stack([matrix, 0.3 * scale - matrix])
    sigma = zero_sum_nash(payoffs)
    assert exploitability(payoffs / scale, sigma) <= 1e-9


def test_duplicated_and_dominated_policies():
    matrix = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0.0]])
    many = np.pad(np.repeat(np.repeat(matrix, 5, axis=0), 4, axis=1), ((0, 1), (0, 0)), constant_values=-2)
    sigma = zero_sum_nash(zero_sum(many))
    rows = marginal(sigma, 0)
    np.testing.assert_allclose([*rows[:-1].reshape(3, 5).sum(axis=1), rows[-1]], [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-9)


def test_players_are_named_in_the_error():
    with pytest.raises(ValueError, match=r"two players; got 3"):
        zero_sum_nash(np.zeros((3, 2, 2, 2)))


def test_the_entry_that_does_not_cancel_is_named():
    payoffs = zero_sum(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]))
    payoffs[1, 1, 0] += 0.5
    with pytest.raises(ValueError, match=r"at profile \(1, 0\) the players get 3.0 and -2.5"):
        zero_sum_nash(payoffs)


def test_float32_estimates_cancel_well_enough():
    row = np.random.default_rng(0).normal(size=(6, 6))
    payoffs = np.stack([row, 1 - row]).astype(np.float32)
    assert nash_conv(payoffs, zero_sum_nash(payoffs)) <= 1e-5
