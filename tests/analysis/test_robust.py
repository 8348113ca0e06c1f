"""The interquartile mean and its bootstrap, against SciPy and a loop over resamples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from analysis.robust import interval, iqm

SCORES = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20)


@given(SCORES)
def test_the_interquartile_mean_is_scipys_trimmed_mean(scores):
    assert iqm(scores) == pytest.approx(trim_mean(scores, 0.25), rel=1e-9, abs=1e-9)


@given(SCORES, st.floats(-10, 10), st.floats(0.1, 10))
def test_intervals_hold_their_mean_and_move_with_the_scores(scores, shift, scale):
    found = interval(scores, resamples=200)
    tolerance = 1e-6 * (1 + max(map(abs, scores)))
    assert min(scores) - tolerance <= found.low <= found.high <= max(scores) + tolerance
    moved = interval(np.array(scores) * scale + shift, resamples=200)
    np.testing.assert_allclose(moved, np.array(found) * scale + shift, atol=1e-5 * (1 + max(map(abs, scores))))


def test_the_bootstrap_redraws_runs_within_each_task():
    """Against a loop over resamples: two tasks of unlike scores, whose runs must not mix."""
    scores, rng = np.array([[0.0, 100.0], [1.0, 101.0], [5.0, 140.0]]), np.random.default_rng(5)
    means = []
    for _ in range(2000):
        drawn = [scores[rng.integers(3, size=3), task] for task in range(2)]
        means.append(sorted(np.concatenate(drawn).tolist())[1:-1])  # of six, one is left out at either end
    found = interval(scores)
    assert found.iqm == pytest.approx(trim_mean(scores.ravel(), 0.25))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(np.mean(means, axis=1), [0.025, 0.975])), abs=2)


def test_equal_scores_have_no_interval_and_no_scores_no_mean():
    assert interval([3.0] * 5) == (3.0, 3.0, 3.0)
    with pytest.raises(ValueError, match="at least one score"):
        iqm([])
