"""Effective diversity, expected cardinality and relative population performance: closed forms and the papers' laws."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers.diversity import effective_diversity, expected_cardinality, relative_population_performance
from metasolvers.skill_games import rock_paper_scissors, skill_game

quick = settings(max_examples=25, deadline=None)
SEEDS = st.integers(0, 10**6)


def normal(shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


def test_a_dominating_agent_leaves_no_diversity():
    assert effective_diversity([[0, -1, -1], [1, 0, -1], [1, 1, 0]]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("k", [3, 5, 7])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 700.0])
def test_diversity_of_cycles_has_a_closed_form(k, scale):
    """All are played equally, and all pairs but an agent and itself are worth 1: (k - 1) / 2k."""
    assert effective_diversity(scale * rock_paper_scissors(k)) / scale == pytest.approx((k - 1) / (2 * k), abs=1e-9)


@quick
@given(k=st.integers(3, 7), seed=SEEDS)
def test_diversity_is_half_the_absolute_game_and_blind_to_copies(k, seed):
    matrix, p = skill_game("mixture", k, seed), np.random.default_rng(seed).dirichlet(np.ones(k))
    assert effective_diversity(matrix, p) == pytest.approx(p @ np.abs(matrix) @ p / 2)
    copied = np.append(np.arange(k), 0)
    assert effective_diversity(matrix[np.ix_(copied, copied)]) == pytest.approx(effective_diversity(matrix), abs=1e-6)


@quick
@given(shape=st.tuples(st.integers(1, 5), st.integers(1, 5)), seed=SEEDS)
def test_cardinality_is_the_mean_size_of_a_determinantal_sample(shape, seed):
    """By the definition: subsets Y with probability det(L_Y) / det(L + I), and by the paper's trace."""
    payoffs = normal(shape, seed)
    kernel, k = payoffs @ payoffs.T, len(payoffs)
    subsets = [list(chosen) for size in range(k + 1) for chosen in combinations(range(k), size)]
    weights = [np.linalg.det(kernel[np.ix_(chosen, chosen)]) for chosen in subsets]
    expected = np.dot(weights, [len(chosen) for chosen in subsets]) / np.linalg.det(kernel + np.eye(k))
    assert expected_cardinality(payoffs) == pytest.approx(expected, abs=1e-8)
    trace = np.trace(np.eye(k) - np.linalg.inv(kernel + np.eye(k)))
    assert expected_cardinality(payoffs) == pytest.approx(trace, abs=1e-9)


@quick
@given(k=st.integers(1, 5), seed=SEEDS)
def test_cardinality_grows_with_policies_up_to_the_rank(k, seed):
    payoffs = normal((k, 4), seed)
    larger = np.vstack([payoffs, normal((1, 4), seed + 1)])
    assert expected_cardinality(larger) >= expected_cardinality(payoffs) - 1e-12
    assert expected_cardinality(1e6 * larger) == pytest.approx(np.linalg.matrix_rank(larger), abs=1e-4)


def test_copies_count_once_and_nothing_counts_for_nothing():
    """k copies of a row of length s are one policy of length s sqrt(k)."""
    row = np.array([[3.0, 4.0]])
    for copies in (1, 2, 100):
        size = 25 * copies
        assert expected_cardinality(np.repeat(row, copies, axis=0)) == pytest.approx(size / (1 + size), rel=1e-12)
    assert expected_cardinality(np.zeros((3, 2))) == 0
    assert expected_cardinality(np.full((2, 2), 1e300)) == 1


@quick
@given(shape=st.tuples(st.integers(1, 6), st.integers(1, 6)), seed=SEEDS, scale=st.sampled_from([1e-6, 1.0, 700.0]))
def test_performance_changes_sides_and_never_suffers_from_more_policies(shape, seed, scale):
    """Balduzzi et al. 2019: antisymmetric, and monotone in either population."""
    matrix = scale * normal(shape, seed)
    value = relative_population_performance(matrix)
    assert relative_population_performance(-matrix.T) / scale == pytest.approx(-value / scale, abs=1e-8)
    assert relative_population_performance(matrix[:-1] if shape[0] > 1 else matrix) <= value + 1e-8 * scale
    assert relative_population_performance(matrix[:, :-1] if shape[1] > 1 else matrix) >= value - 1e-8 * scale


def test_performance_of_known_games():
    assert relative_population_performance(rock_paper_scissors(3)) == pytest.approx(0, abs=1e-12)
    assert relative_population_performance(rock_paper_scissors(3)[:2]) == pytest.approx(-1 / 3)  # no scissors
    assert relative_population_performance([[2.5]]) == 2.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: effective_diversity([[0, 2], [1, 0]]), r"got 2 at \(0, 1\)"),
        (lambda: effective_diversity(np.zeros((2, 2)), [1.0]), r"over the 2 agents"),
        (lambda: effective_diversity(np.zeros((2, 2)), [0.5, 0.6]), "p must be .* sum to 1"),
        (lambda: expected_cardinality([1, 2]), r"\[m, n\]"),
        (lambda: expected_cardinality([[1, np.inf]]), "finite"),
        (lambda: relative_population_performance(np.zeros((0, 2))), "at least one row"),
        (lambda: relative_population_performance([[1j]]), "complex"),
    ],
)
def test_malformed_tables(call, message):
    with pytest.raises(ValueError, match=message):
        call()
