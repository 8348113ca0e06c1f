"""Nash averaging against golden values, OpenSpiel, and what the paper promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python.algorithms import nash_averaging as peer

from metasolvers.nash_averaging import nash_averaging, nash_averaging_tasks
from metasolvers.skill_games import FAMILIES, skill_game
from tests.golden_cases import numbers, select

quick = settings(max_examples=25, deadline=None)


@pytest.mark.parametrize("case", select("nash_averaging"))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 700.0])
def test_golden(case, scale):
    expected, tolerance = case["expected"], case["tolerance"]
    p, skill = nash_averaging(scale * numbers(case["input"]["A"]))
    np.testing.assert_allclose(p, numbers(expected["p"]), atol=tolerance)
    np.testing.assert_allclose(skill / scale, expected["skill"], atol=tolerance)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 6])
def test_agents_agree_with_open_spiel(seed):
    """Where its convex solver ends well: on seeds 2, 5 and 7 it fails."""
    matrix = skill_game("mixture", 8, seed)
    expected = peer._max_entropy_symmetric_nash(matrix).ravel()
    found = nash_averaging(matrix)
    np.testing.assert_allclose(found.p, expected, atol=1e-5)
    np.testing.assert_allclose(found.skill, matrix @ expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 2)])
def test_tasks_agree_with_open_spiel(shape):
    """OpenSpiel scales every task to [0, 1] first."""
    scores = np.random.default_rng(0).random(shape)
    scores = (scores - scores.min(axis=0)) / np.ptp(scores, axis=0)
    (agents, tasks), (skill, ease) = peer.nash_averaging_avt_matrix(scores)
    found = nash_averaging_tasks(scores)
    for mine, theirs in zip(found, (agents, tasks, skill, ease), strict=True):
        np.testing.assert_allclose(mine, theirs.ravel(), atol=1e-5)


@quick
@given(family=st.sampled_from(sorted(FAMILIES)), k=st.integers(3, 8), seed=st.integers(0, 10**6))
def test_nobody_earns_from_the_equilibrium_and_its_members_break_even(family, k, seed):
    matrix = skill_game(family, k, seed)
    p, skill = nash_averaging(matrix)
    spread = np.abs(matrix).max() or 1.0
    assert skill.max() <= 1e-7 * spread
    assert np.abs(skill[p > 1e-6]).max() <= 1e-7 * spread / p[p > 1e-6].min()
    assert p.sum() == pytest.approx(1)


@quick
@given(k=st.integers(3, 7), seed=st.integers(0, 10**6))
def test_copies_change_nobodys_skill(k, seed):
    """Invariance, the paper's first desideratum; Elo and mean scores lack it."""
    matrix = skill_game("mixture", k, seed)
    copied = np.append(np.arange(k), [0, 0])
    p, skill = nash_averaging(matrix)
    more = nash_averaging(matrix[np.ix_(copied, copied)])
    np.testing.assert_allclose(more.skill, skill[copied], atol=1e-6)
    np.testing.assert_allclose(more.p[[0, -2, -1]], p[0] / 3, atol=1e-6)


def test_tasks_that_everybody_passes_and_agents_who_are_worse_do_not_matter():
    scores = np.array([[0.9, 0.2], [0.5, 0.6]])
    more = np.pad(scores, ((0, 1), (0, 1)))
    more[:, 2], more[2] = 1.0, 0.1
    few, many = nash_averaging_tasks(scores), nash_averaging_tasks(more)
    np.testing.assert_allclose(many.skill, [*few.skill, 0.1], atol=1e-9)
    np.testing.assert_allclose(many.difficulty, [*few.difficulty, -1], atol=1e-9)
    np.testing.assert_allclose(few.difficulty, -0.55, atol=1e-9)


def test_one_agent_alone():
    assert nash_averaging([[0.0]]) == (1, 0)
    assert nash_averaging_tasks([[0.7]]) == (1, 1, 0.7, -0.7)


@pytest.mark.parametrize(
    ("average", "scores", "message"),
    [
        (nash_averaging, [[0, 2], [1, 0]], r"got 2 at \(0, 1\) and 1 at \(1, 0\)"),
        (nash_averaging, [[0, 1, 2], [1, 0, 2]], r"got shape \(2, 3\)"),
        (nash_averaging_tasks, [1, 2], r"scores must be \[m, n\]"),
        (nash_averaging_tasks, [[1, np.nan]], r"scores must be finite; got nan at \(0, 1\)"),
    ],
)
def test_malformed_scores(average, scores, message):
    with pytest.raises(ValueError, match=message):
        average(scores)
