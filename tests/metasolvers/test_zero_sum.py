"""Zero-sum Nash, any and the most mixed, against golden values; and what it refuses."""

import cvxpy
import numpy as np
import pytest
from scipy.stats import entropy

from metasolvers import (
    META_SOLVERS,
    expected_payoffs,
    exploitability,
    marginal,
    max_entropy_nash,
    nash_conv,
    zero_sum_nash,
)
from tests.golden_cases import numbers, select


def zero_sum(matrix):
    return np.stack([matrix, -np.asarray(matrix)])


both = pytest.mark.parametrize("solve", [zero_sum_nash, max_entropy_nash])


@both
@pytest.mark.parametrize("case", select("zero_sum_nash"))
def test_golden(case, solve):
    """The value always; strategies where unique, else their golden ranges; the equilibrium certifies itself."""
    matrix, expected, tolerance = numbers(case["input"]["A"]), case["expected"], case["tolerance"]
    payoffs = zero_sum(matrix)
    sigma = solve(payoffs)
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


@pytest.mark.parametrize("case", select("nash_averaging"))
def test_golden_nash_averaging(case):
    """Both sides of an antisymmetric game play the same p, unique even where equilibria are many."""
    sigma = max_entropy_nash(zero_sum(numbers(case["input"]["A"])))
    for player in (0, 1):
        np.testing.assert_allclose(marginal(sigma, player), numbers(case["expected"]["p"]), atol=case["tolerance"])


def test_the_most_mixed_equilibrium_where_a_convex_solver_finds_it():
    """Integer payoffs from few values, so that most games have many equilibria; CVXPY maximises each side's entropy."""
    for seed in range(12):
        matrix = np.random.default_rng(seed).integers(-1, 2, size=(4, 5)).astype(float)
        sigma = max_entropy_nash(zero_sum(matrix))
        for player, own in enumerate((matrix, -matrix.T)):
            value = (marginal(zero_sum_nash(zero_sum(matrix)), player) @ own).min()
            mass = cvxpy.Variable(len(own))
            limits = [mass >= 0, cvxpy.sum(mass) == 1, mass @ own >= value]
            most = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(mass))), limits).solve(cvxpy.CLARABEL)
            ours = marginal(sigma, player)
            assert entropy(ours) >= most - 1e-6  # CVXPY keeps its limits to about 1e-8
            np.testing.assert_allclose(ours, mass.value, atol=1e-4)  # and entropy is flat at its top


def test_mixing_the_most_does_not_depend_on_the_order_of_policies():
    """Tournaments with draws: ties everywhere, and answers exact to rounding."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        half = np.triu(rng.integers(-1, 2, size=(7, 7)), 1)
        payoffs, order = zero_sum(half - half.T), rng.permutation(7)
        sigma = max_entropy_nash(payoffs)
        moved = max_entropy_nash(payoffs[:, order][:, :, order])
        np.testing.assert_allclose(moved, sigma[order][:, order], atol=1e-11)
        np.testing.assert_allclose(sigma, sigma.T, atol=1e-11)


@both
def test_ties_of_float32_tables(solve):
    """Thirds that rounding keeps from being equal by 1e-8, near what solvers call zero."""
    certificate = META_SOLVERS["zero_sum_nash"].certificate
    for seed in range(20):
        rng = np.random.default_rng(seed)
        payoffs = zero_sum(rng.integers(-2, 3, size=(6, 9)) / 3 + 1e-8 * rng.normal(size=(6, 9)))
        assert certificate.measure(payoffs, solve(payoffs)) <= certificate.tolerance


@pytest.mark.parametrize("case", select("general_sum_nash"))
def test_general_sum_is_refused(case):
    """All of the golden bimatrix games but the one where nobody ever gets anything."""
    payoffs = np.stack([numbers(case["input"]["A"]), numbers(case["input"]["B"])])
    if np.ptp(payoffs.sum(axis=0)) == 0:
        assert zero_sum_nash(payoffs).sum() == pytest.approx(1)
        return
    with pytest.raises(ValueError, match="use logit_nash"):
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


@pytest.mark.parametrize("name", ["zero_sum_nash", "max_entropy_nash"])
@pytest.mark.parametrize("seed", range(10))
def test_win_rates_in_single_precision(name, seed):
    """They cancel to 1e-7 only; the answer is exact for the game that they are up to that."""
    row = np.random.default_rng(seed).uniform(size=(6, 6))
    payoffs = np.stack([row, 1 - row]).astype(np.float32)
    sigma = META_SOLVERS[name].solve(payoffs)
    assert META_SOLVERS[name].certificate.measure(payoffs, sigma) <= META_SOLVERS[name].certificate.tolerance
    assert nash_conv(payoffs, sigma) <= 4e-7
