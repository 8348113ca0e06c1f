"""Replicator dynamics against golden cases, OpenSpiel and conserved quantities."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms.projected_replicator_dynamics import projected_replicator_dynamics as peer_projected
from open_spiel.python.egt import dynamics as peer
from scipy.optimize import minimize

from metasolvers import marginal, nash_conv, projected_replicator, replicator
from metasolvers.metagame import in_units_of_gain
from metasolvers.replicator_dynamics import (
    project_simplex,
    projected_replicator_steps,
    replicator_field,
    replicator_field_single,
    replicator_path,
    replicator_path_single,
)
from tests.golden_cases import numbers, select

ROCK_PAPER_SCISSORS = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
LATE = 120.0
"""When all golden limits have been reached."""


def normal(shape, seed=0):
    return np.random.default_rng(seed).normal(size=(len(shape), *shape))


def random_strategies(shape, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.dirichlet(np.ones(policies)) for policies in shape]


@pytest.mark.parametrize("case", select("replicator", check="rd"))
def test_golden_field_of_one_population(case):
    field = replicator_field_single(numbers(case["input"]["A"]), case["input"]["x"])
    np.testing.assert_allclose(field, case["expected"]["dxdt"], atol=case["tolerance"])


@pytest.mark.parametrize("case", select("replicator", check="rd2"))
def test_golden_field_of_two_populations(case):
    given = case["input"]
    field = replicator_field(np.stack([numbers(given["A"]), numbers(given["B"])]), [given["x"], given["y"]])
    np.testing.assert_allclose(np.concatenate(field), case["expected"]["dxdt"], atol=case["tolerance"])


@pytest.mark.parametrize("case", select("replicator", check="fixedpts"))
def test_golden_rest_points_and_limits(case):
    matrix, expected = numbers(case["input"]["A"]), case["expected"]
    for point in numbers(expected["rest_points"]):
        np.testing.assert_allclose(replicator_field_single(matrix, point), 0, atol=case["tolerance"])
    for point in expected.get("not_rest_points", []):
        assert np.abs(replicator_field_single(matrix, numbers(point))).max() > 1e-3
    for entry in expected["limits"]:
        (limit,) = replicator_path_single(matrix, [LATE], entry["x0"])
        np.testing.assert_allclose(limit, numbers(entry["limit"]), atol=case["tolerance"])


@pytest.mark.parametrize("case", select("prd", check="proj"))
def test_golden_projection(case):
    for entry in case["input"]["cases"]:
        found = project_simplex(entry["v"], entry["gamma"])
        np.testing.assert_allclose(found, entry["expected"], atol=case["tolerance"])


@pytest.mark.parametrize("case", select("prd", check="prd"))
def test_golden_projected_replicator(case):
    given = case["input"]
    play = projected_replicator_steps(numbers(given["payoffs"]), given["dt"], given["gamma"], given.get("x0"))
    final = next(islice(play, given["steps"], None))
    for strategy, expected in zip(final, case["expected"]["final"], strict=True):
        np.testing.assert_allclose(strategy, expected, atol=case["tolerance"])


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 3, 2), (2, 2, 1, 3)])
def test_field_agrees_with_open_spiel(shape):
    payoffs, strategies = normal(shape), random_strategies(shape)
    expected = peer.MultiPopulationDynamics(payoffs, peer.replicator)(np.concatenate(strategies))
    np.testing.assert_allclose(np.concatenate(replicator_field(payoffs, strategies)), expected, atol=1e-14)


def test_field_of_one_population_agrees_with_open_spiel():
    matrix, (strategy,) = normal((4, 4))[0], random_strategies((4,))
    expected = peer.SinglePopulationDynamics(np.stack([matrix, matrix.T]), peer.replicator)(strategy)
    np.testing.assert_allclose(replicator_field_single(matrix, strategy), expected, atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2)])
@pytest.mark.parametrize("gamma", [1e-6, 0.05])
def test_projected_replicator_agrees_with_open_spiel(shape, gamma):
    """The average of the start and 400 steps, in units of each player's largest gain."""
    payoffs = in_units_of_gain(normal(shape))
    expected = peer_projected(list(payoffs), prd_iterations=400, prd_dt=0.2, prd_gamma=gamma)
    sigma = projected_replicator(7 * payoffs + 3, dt=0.2, gamma=gamma, steps=401)
    for player, strategy in enumerate(expected):
        np.testing.assert_allclose(marginal(sigma, player), strategy, atol=1e-10)


@given(
    values=st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    share=st.floats(0, 1),
)
def test_nothing_in_the_simplex_is_nearer_than_the_projection(values, share):
    """p is the projection of v exactly if (v - p) . (q - p) <= 0 for every q, or for every corner, of the set."""
    floor = share / len(values)
    projected = project_simplex(values, floor)
    assert projected.min() >= floor
    assert projected.sum() == pytest.approx(1, abs=1e-12)
    corners = floor + (1 - len(values) * floor) * np.eye(len(values))
    assert ((corners - projected) @ (np.array(values) - projected)).max() <= 1e-12


def test_projection_agrees_with_a_general_optimizer():
    vector, floor = np.array([0.9, -0.4, 0.3, 0.1]), 0.05
    found = minimize(
        lambda p: np.sum((p - vector) ** 2),
        np.full(4, 0.25),
        bounds=[(floor, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
    ).x
    np.testing.assert_allclose(project_simplex(vector, floor), found, atol=1e-6)


def test_logistic_growth_has_a_closed_form():
    """One policy is better by 1: its odds grow as e^t, to 1 - 1e-26 and beyond."""
    times = [0, 0.5, 3, 60]
    path = replicator_path(np.array([[[1.0], [0.0]], [[0.0], [0.0]]]), times, [[0.2, 0.8], [1.0]])
    for time, (strategy, alone) in zip(times, path, strict=True):
        odds = 0.25 * np.exp(time)
        np.testing.assert_allclose(strategy, [odds / (1 + odds), 1 / (1 + odds)], rtol=1e-8)
        np.testing.assert_array_equal(alone, [1])


def test_zero_sum_orbits_conserve_relative_entropy():
    """sum_i KL(equilibrium || x_i) is constant [Hofbauer 1996]: nothing spirals in or out for twenty rounds."""
    payoffs = np.stack([ROCK_PAPER_SCISSORS, -ROCK_PAPER_SCISSORS])
    path = replicator_path(payoffs, np.linspace(0, 200, 21), [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    entropy = [-np.log(x).mean() - np.log(y).mean() for x, y in path]
    np.testing.assert_allclose(entropy, entropy[0], atol=1e-7)


def test_one_population_is_the_diagonal_of_two():
    matrix, start, times = normal((3, 3))[0], [0.2, 0.5, 0.3], [1, 4]
    single = list(replicator_path_single(matrix, times, start))
    double = list(replicator_path(np.stack([matrix, matrix.T]), times, [start, start]))
    for one, (x, y) in zip(single, double, strict=True):
        np.testing.assert_allclose([x, y], [one, one], atol=1e-9)


def test_what_is_absent_stays_absent():
    """Though it would be the best answer to what is played, and with no warning."""
    for x, _ in replicator_path(1e3 * np.array([np.eye(3)] * 2), [0.1, 5], [[0.5, 0.5, 0], [0, 0, 1]]):
        assert x[2] == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 700.0])
def test_replicator_comes_to_rest_in_a_nash_equilibrium(scale):
    """Chicken has a mixed one, but two populations part to a pure one once they differ."""
    chicken = scale * np.array([[[0, 7], [2, 6]], [[0.0, 2], [6.9, 6]]])
    sigma = replicator(chicken, time=400)
    assert nash_conv(chicken, sigma) <= 1e-6 * scale
    assert sigma.max() == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replicator(np.zeros((2, 2, 2)), time=-1), "times must be"),
        (lambda: replicator(np.zeros((2, 2, 2)), time=np.inf), "times must be"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), [1, 0.5]), "times must be"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), 1.0), "times must be"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), [1], [[1, 0]]), "start must hold"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), [1], [0.5, 0.5]), "start must hold .* one vector"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), [1], [[[1], [0, 1]], [1, 0]]), r"start\[0\] must .* ragged"),
        (lambda: replicator_path(np.zeros((2, 2, 2)), [1], [[1, 0], [1, 1]]), r"start\[1\] must .* sum to 1"),
        (lambda: replicator_path_single(np.zeros((2, 2)), [1], [1, 1]), "start must .* sum to 1"),
        (lambda: replicator_field(np.zeros((2, 2, 2)), [[1, 0]]), "strategies must hold"),
        (lambda: replicator_field(np.zeros((2, 2, 2)), [[0.5, 0.6], [1, 0]]), r"strategies\[0\] must .* sum to 1"),
        (lambda: replicator_field_single(np.zeros((2, 3)), [0.5, 0.5]), "needs a matrix"),
        (lambda: replicator_field_single(np.zeros((2, 2)), [0.5, 0.6]), "strategy must .* sum to 1"),
        (lambda: replicator_field_single([[0, np.nan], [0, 0]], [0.5, 0.5]), "matrix must be finite"),
        (lambda: projected_replicator(np.zeros((2, 2, 2)), dt=0), "dt must be"),
        (lambda: projected_replicator(np.zeros((2, 2, 2)), gamma=0.6), "smallest probability must be"),
        (lambda: projected_replicator(np.zeros((2, 2, 2)), steps=0), "steps must be"),
        (lambda: project_simplex([[0.5, 0.5]]), "a finite vector"),
        (lambda: project_simplex([np.nan, 0.5]), "a finite vector"),
        (lambda: project_simplex([0.5, 0.5], -0.1), "smallest probability must be"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("size", [1e16, 1e150, 1e300])
def test_projections_of_large_vectors(size):
    np.testing.assert_array_equal(project_simplex([size, 0, 0]), [1, 0, 0])
