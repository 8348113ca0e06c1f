"""Sweeps over the intensity of selection end at the limit, in any units, and not on a plateau before it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from open_spiel.python.egt.examples.alpharank_example import get_kuhn_poker_data

from metasolvers import NotConverged, alpha_limit, alpha_rank
from metasolvers.single_population import alpha_limit_single, alpha_rank_single
from metasolvers.sweep import suggest_alpha, suggest_alpha_single, sweep, sweep_single, total_variation
from tests.golden_cases import numbers, select
from tests.metasolvers.test_alpharank import majority, normal, potential

PLATEAU = np.stack([np.diag([1.0, 1.001])] * 2)
"""From alpha 0.5 to 5 both conventions have half the mass; in the end the second has it all."""
(SOCCER,) = (numbers(case.values[0]["input"]["M"]) for case in select("alpha_rank_published", id="ar-mujoco-soccer-10"))
GAMES = [
    pytest.param(normal((3, 4)), id="normal"),
    pytest.param(normal((6, 6, 6, 6)), id="a large sink"),
    pytest.param(majority(4, 3), id="deep wells"),
    pytest.param(potential((3, 3, 3)), id="many equilibria"),
    pytest.param(np.round(normal((4, 4))), id="ties"),
    pytest.param(PLATEAU, id="plateau"),
    pytest.param(np.stack(get_kuhn_poker_data(num_players=3)), id="kuhn"),
]


@pytest.mark.parametrize("payoffs", GAMES)
def test_the_suggested_intensity_ranks_as_the_limit(payoffs):
    """Stronger selection changes nothing any more, weaker selection does."""
    alpha = suggest_alpha(payoffs)
    limit = alpha_limit(payoffs)
    assert total_variation(alpha_rank(payoffs, alpha / 2), limit) > 0.01
    for factor in (1, 2, 10, 1000):
        assert total_variation(alpha_rank(payoffs, factor * alpha), limit) <= 0.01


def test_a_plateau_is_not_the_end():
    """Successive intensities agree to a thousandth long before the ranking has settled."""
    swept = sweep(PLATEAU)
    steps = [total_variation(*pair) for pair in zip(swept.pi[1:], swept.pi[:-1], strict=True)]
    rest = [alpha for alpha, step in zip(swept.alphas[1:], steps, strict=True) if step < 0.02 and alpha > 0.1]
    assert rest[0] < 1 < 50 < swept.settled
    np.testing.assert_allclose(np.diag(swept.pi[list(swept.alphas).index(rest[0])]), 0.5, atol=0.02)
    np.testing.assert_array_equal(swept.limit, [[0, 0], [0, 1]])


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    scale=st.sampled_from([1e-4, 1e-6, 700.0]),
    normalize=st.booleans(),
)
def test_units_do_not_matter(seed, shape, scale, normalize):
    assume(max(shape) > 1)
    payoffs = normal(tuple(shape), seed)
    swept, scaled = sweep(payoffs, normalize=normalize), sweep(scale * payoffs, normalize=normalize)
    np.testing.assert_allclose(scaled.pi, swept.pi, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(scaled.alphas * (1 if normalize else scale), swept.alphas, rtol=1e-12)
    assert (scaled.settled is None) == (swept.settled is None)


def test_chosen_intensities_are_all_tried():
    alphas = [0.01, 1, 10, 50]
    swept = sweep(normal((3, 4)), alphas)
    assert swept.alphas.tolist() == alphas
    assert swept.settled == 1
    np.testing.assert_array_equal(swept.pi, [alpha_rank(normal((3, 4)), alpha) for alpha in alphas])
    assert sweep(normal((3, 4)), [0.01, 0.1]).settled is None


@pytest.mark.parametrize("selection", ["local", "global"])
def test_single_population(selection):
    payoffs = np.stack([SOCCER, SOCCER.T])
    alpha = suggest_alpha_single(payoffs, selection=selection)
    limit = alpha_limit_single(payoffs, selection=selection)
    assert total_variation(alpha_rank_single(payoffs, alpha / 2, selection=selection), limit) > 0.01
    assert total_variation(alpha_rank_single(payoffs, alpha * 100, selection=selection), limit) <= 0.01
    unscaled = sweep_single(1e-4 * payoffs, normalize=False, selection=selection)
    largest = alpha / unscaled.settled
    np.testing.assert_allclose(unscaled.settled * largest, alpha, rtol=1e-9)
    np.testing.assert_allclose(unscaled.pi, sweep_single(payoffs, selection=selection).pi, rtol=1e-6, atol=1e-12)


def test_players_without_a_choice_have_settled_at_once():
    assert sweep(np.zeros((2, 1, 1))).distance.tolist() == [0, 0]
    assert sweep(np.full((2, 3, 2), 0.1)).settled == sweep(np.full((2, 3, 2), 0.1)).alphas[0]


def test_payoffs_that_hardly_differ_do_not_settle():
    payoffs = np.stack([np.diag([1.0, 1.0 + 1e-12])] * 2)
    with pytest.raises(NotConverged, match=r"total variation from the limit is 0.*alpha_limit itself") as raised:
        suggest_alpha(payoffs)
    assert raised.value.sigma.shape == (2, 2)
    assert raised.value.value > 0.4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphas": [1, 1]}, "alphas must be one ascending row"),
        ({"alphas": []}, "alphas must be"),
        ({"alphas": [[1, 2]]}, "alphas must be"),
        ({"alphas": [-1, 2]}, "alpha must be"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"tolerance": 1}, "tolerance must be"),
        ({"population_size": 1}, "population_size must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        sweep(normal((2, 2)), **arguments)
