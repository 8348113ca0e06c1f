"""Laws that hold for every registered meta-solver, on games drawn at random; a new entry is tested by being there."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metasolvers
from metasolvers import META_SOLVERS, meta_solver, nash_conv, uniform

TWO_PLAYER_ZERO_SUM_ONLY = {"zero_sum_nash"}
SELECTS_AMONG_SEVERAL_ANSWERS = {"zero_sum_nash"}
"""Where equilibria are not unique, which one is returned may change with the order of the policies."""
FIXED_UNDER_SHIFTS_AND_SCALES = {"alpha_rank", "zero_sum_nash", "uniform"}
EQUAL_MASS_TO_COPIES = {"alpha_rank", "uniform"}
NASH_EQUILIBRIA = {"zero_sum_nash"}


def every(names):
    """Run a law for each of these registered meta-solvers."""
    return pytest.mark.parametrize("name", sorted(names))


every_meta_solver = every(META_SOLVERS)
quick = settings(max_examples=25, deadline=None)


def shapes_for(name):
    policies = st.integers(1, 4)
    if name in TWO_PLAYER_ZERO_SUM_ONLY:
        return st.tuples(policies, policies)
    return st.lists(policies, min_size=1, max_size=4).map(tuple)


@st.composite
def games(draw, name, ties=True):
    """Payoffs [N, k_1, ..., k_N] that meta-solver `name` takes: normal or small integers (ties), at any scale."""
    shape = draw(shapes_for(name))
    payoffs = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(len(shape), *shape))
    if ties and draw(st.booleans()):
        payoffs = np.round(payoffs)
    if name in TWO_PLAYER_ZERO_SUM_ONLY:
        payoffs[1] = -payoffs[0]
    return payoffs * draw(st.sampled_from([1e-6, 1.0, 700.0]))


def generic(name):
    """Games without ties, whose answer is unique."""
    return games(name, ties=False)


@every_meta_solver
@quick
@given(data=st.data())
def test_a_joint_distribution_comes_back_and_inputs_stay(name, data):
    """Also from read-only arrays; warnings are errors."""
    payoffs = data.draw(games(name))
    before = payoffs.copy()
    payoffs.flags.writeable = False
    sigma = META_SOLVERS[name](payoffs)
    assert sigma.shape == payoffs.shape[1:]
    assert sigma.dtype == np.float64
    assert (sigma >= 0).all()
    assert abs(sigma.sum() - 1) <= 1e-12
    np.testing.assert_array_equal(payoffs, before)


@every_meta_solver
@quick
@given(data=st.data())
def test_permuting_policies_permutes_the_answer(name, data):
    payoffs = data.draw(generic(name) if name in SELECTS_AMONG_SEVERAL_ANSWERS else games(name))
    orders = [data.draw(st.permutations(range(policies))) for policies in payoffs.shape[1:]]
    chosen = np.ix_(*orders)
    moved = META_SOLVERS[name](payoffs[(slice(None), *chosen)])
    np.testing.assert_allclose(moved, META_SOLVERS[name](payoffs)[chosen], rtol=1e-6, atol=1e-9)


@every_meta_solver
@quick
@given(data=st.data())
def test_renaming_players_turns_the_answer(name, data):
    payoffs = data.draw(generic(name))
    seats = data.draw(st.permutations(range(len(payoffs))))
    turned = payoffs[seats].transpose(0, *(seat + 1 for seat in seats))
    expected = META_SOLVERS[name](payoffs).transpose(seats)
    np.testing.assert_allclose(META_SOLVERS[name](turned), expected, rtol=1e-6, atol=1e-9)


@every(FIXED_UNDER_SHIFTS_AND_SCALES)
@quick
@given(data=st.data(), scale=st.sampled_from([1e-6, 0.25, 8.0, 1e6]), shift=st.integers(-3, 3))
def test_units_and_offsets_do_not_matter(name, data, scale, shift):
    payoffs = data.draw(generic(name))
    spread = np.abs(payoffs).max()
    moved = scale * (payoffs + shift * spread)
    np.testing.assert_allclose(META_SOLVERS[name](moved), META_SOLVERS[name](payoffs), rtol=1e-6, atol=1e-9)


@every(EQUAL_MASS_TO_COPIES)
@quick
@given(data=st.data())
def test_copies_of_a_policy_get_the_same_mass(name, data):
    payoffs = data.draw(games(name))
    player = data.draw(st.integers(0, len(payoffs) - 1))
    sigma = META_SOLVERS[name](np.concatenate([payoffs, payoffs.take([0], axis=player + 1)], axis=player + 1))
    first, last = sigma.take(0, axis=player), sigma.take(-1, axis=player)
    np.testing.assert_allclose(first, last, rtol=1e-6, atol=1e-12)


@every(NASH_EQUILIBRIA)
@quick
@given(data=st.data())
def test_equilibria_certify_themselves(name, data):
    payoffs = data.draw(games(name))
    assert nash_conv(payoffs, META_SOLVERS[name](payoffs)) <= 1e-8 * np.abs(payoffs).max()


@every_meta_solver
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_a_player_without_a_choice(name, shape):
    """1x1 is the first tensor PSRO ever passes."""
    payoffs = np.arange(np.prod(shape), dtype=float).reshape(shape)
    sigma = META_SOLVERS[name](np.stack([payoffs, -payoffs]))
    assert sigma.shape == shape
    assert abs(sigma.sum() - 1) <= 1e-12


@every_meta_solver
def test_constant_payoffs(name):
    sigma = META_SOLVERS[name](np.stack([np.full((3, 2), 0.1), np.full((3, 2), -0.1)]))
    assert abs(sigma.sum() - 1) <= 1e-12


@every_meta_solver
def test_lists_integers_and_float32_are_taken(name):
    table = [[[2, -1], [-3, 1]], [[-2, 1], [3, -1]]]
    expected = META_SOLVERS[name](np.array(table, dtype=np.float64))
    np.testing.assert_array_equal(META_SOLVERS[name](table), expected)
    np.testing.assert_array_equal(META_SOLVERS[name](np.array(table, dtype=np.float32)), expected)


@every_meta_solver
@pytest.mark.parametrize(
    "bad", [[[[1, 2], [3]]] * 2, np.full((2, 2, 2), np.nan), np.zeros((2, 2)), np.zeros((2, 2, 0))]
)
def test_malformed_payoffs_are_refused(name, bad):
    with pytest.raises(ValueError, match="payoffs"):
        META_SOLVERS[name](bad)


def test_lookup():
    assert meta_solver("uniform") is uniform
    with pytest.raises(ValueError, match="did you mean 'alpha_rank'"):
        meta_solver("alpharank")
    with pytest.raises(ValueError, match="'alpha_rank' or 'uniform' or 'zero_sum_nash'"):
        meta_solver("???")


def test_the_package_stands_on_numpy_and_scipy_alone():
    allowed = sys.stdlib_module_names | {"numpy", "scipy", "networkx", "metasolvers"}
    for path in Path(metasolvers.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert {name.split(".")[0] for name in names} <= allowed, path
