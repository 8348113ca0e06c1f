"""Every registered meta-solver keeps the contract and the laws it declares; a new entry is tested by being there."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metasolvers
from metasolvers import META_SOLVERS, Law, NotConverged, cce_gap, ce_gap, check_sigma, meta_solver, nash_conv, uniform
from metasolvers.contract import Concept

pytestmark = pytest.mark.covered_elsewhere
every_meta_solver = pytest.mark.parametrize("name", sorted(META_SOLVERS))
quick = settings(max_examples=12, deadline=None, derandomize=True)
PLAYERS = {"any": (1, 4), "two_player": (2, 2), "zero_sum": (2, 2)}


def obeying(*laws):
    """Run a test for each meta-solver that declares one of these laws."""
    return pytest.mark.parametrize(
        "name", sorted(name for name, entry in META_SOLVERS.items() if entry.laws & set(laws))
    )


def solve(name, payoffs):
    return META_SOLVERS[name].solve(payoffs)


def same(name, found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=META_SOLVERS[name].accuracy)


@st.composite
def games(draw, name, ties=True):
    """Payoffs [N, k_1, ..., k_N] that meta-solver `name` takes: normal or small integers (ties), at any scale."""
    takes = META_SOLVERS[name].takes
    fewest, most = PLAYERS[takes]
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=fewest, max_size=most)))
    payoffs = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(len(shape), *shape))
    if ties and draw(st.booleans()):
        payoffs = np.round(payoffs)
    if takes == "zero_sum":
        payoffs[1] = -payoffs[0]
    return payoffs * draw(st.sampled_from([1e-6, 1.0, 700.0]))


def generic(name):
    """Games without ties."""
    return games(name, ties=False)


def with_copy(payoffs, player):
    """The game in which a player's first policy is there a second time, as the last."""
    return np.concatenate([payoffs, payoffs.take([0], axis=player + 1)], axis=player + 1)


@every_meta_solver
@quick
@given(data=st.data())
def test_a_joint_distribution_comes_back_and_inputs_stay(name, data):
    """Also from read-only arrays, and twice the same; warnings are errors."""
    payoffs = data.draw(games(name))
    before = payoffs.copy()
    payoffs.flags.writeable = False
    sigma = solve(name, payoffs)
    assert sigma.shape == payoffs.shape[1:]
    assert sigma.dtype == np.float64
    assert (sigma >= 0).all()
    assert abs(sigma.sum() - 1) <= 1e-12
    np.testing.assert_array_equal(payoffs, before)
    np.testing.assert_array_equal(solve(name, payoffs), sigma)


@obeying(Law.PERMUTES, Law.PERMUTES_WHERE_UNIQUE)
@quick
@given(data=st.data())
def test_permuting_policies_permutes_the_answer(name, data):
    payoffs = data.draw(games(name, ties=Law.PERMUTES in META_SOLVERS[name].laws))
    orders = [data.draw(st.permutations(range(policies))) for policies in payoffs.shape[1:]]
    chosen = np.ix_(*orders)
    same(name, solve(name, payoffs[(slice(None), *chosen)]), solve(name, payoffs)[chosen])


@obeying(Law.RENAMES)
@quick
@given(data=st.data())
def test_renaming_players_turns_the_answer(name, data):
    payoffs = data.draw(generic(name))
    seats = data.draw(st.permutations(range(len(payoffs))))
    turned = payoffs[seats].transpose(0, *(seat + 1 for seat in seats))
    same(name, solve(name, turned), solve(name, payoffs).transpose(seats))


@obeying(Law.SHIFTS)
@quick
@given(data=st.data(), far=st.sampled_from([1, 100, 1e5]))
def test_offsets_do_not_matter(name, data, far):
    payoffs = data.draw(generic(name))
    offsets = data.draw(st.lists(st.integers(-3, 3), min_size=len(payoffs), max_size=len(payoffs)))
    away = np.abs(payoffs).max() * far * np.reshape(offsets, (-1, *[1] * (payoffs.ndim - 1)))
    same(name, solve(name, payoffs + away), solve(name, payoffs))


@obeying(Law.SCALES)
@quick
@given(data=st.data(), scale=st.sampled_from([1e-6, 0.25, 8.0, 1e6]))
def test_units_do_not_matter(name, data, scale):
    payoffs = data.draw(generic(name))
    same(name, solve(name, scale * payoffs), solve(name, payoffs))


@obeying(Law.EQUIVALENT)
@quick
@given(data=st.data(), far=st.sampled_from([1, 1000]))
def test_strategically_equivalent_games_have_the_same_answer(name, data, far):
    """Every player in units of its own, and with what the others' policies hand it, which it has no influence on."""
    payoffs = data.draw(generic(name))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    moved = np.empty_like(payoffs)
    for player, own in enumerate(payoffs):
        handed = rng.normal(size=own.take([0], axis=player).shape)
        moved[player] = rng.choice([1e-3, 1.0, 100.0]) * (own + far * np.abs(payoffs).max() * handed)
    same(name, solve(name, moved), solve(name, payoffs))


@obeying(Law.COPIES_ALIKE)
@quick
@given(data=st.data())
def test_copies_of_a_policy_get_the_same_mass(name, data):
    payoffs = data.draw(games(name))
    player = data.draw(st.integers(0, len(payoffs) - 1))
    sigma = solve(name, with_copy(payoffs, player))
    same(name, sigma.take(0, axis=player), sigma.take(-1, axis=player))


@obeying(Law.COPIES_SHARE)
@quick
@given(data=st.data())
def test_copies_of_a_policy_share_its_mass(name, data):
    payoffs = data.draw(generic(name))
    player = data.draw(st.integers(0, len(payoffs) - 1))
    first, *others, copy = np.moveaxis(solve(name, with_copy(payoffs, player)), player, 0)
    same(name, np.moveaxis(np.array([first + copy, *others]), 0, player), solve(name, payoffs))


@obeying(Law.UNDOMINATED)
@quick
@given(data=st.data())
def test_dominated_policies_get_nothing(name, data):
    """A last policy that always earns less than the first, by a hundredth of the spread or by far."""
    payoffs = data.draw(games(name))
    player = data.draw(st.integers(0, len(payoffs) - 1))
    worse = with_copy(payoffs, player)
    last = [slice(None)] * worse.ndim
    last[player + 1] = -1
    less = data.draw(st.sampled_from([0.01, 1.0])) * max(np.ptp(payoffs), 1e-6)
    worse[(player, *last[1:])] -= less
    if META_SOLVERS[name].takes == "zero_sum":
        worse[1 - player] = -worse[player]
    assert solve(name, worse).take(-1, axis=player).sum() <= META_SOLVERS[name].accuracy


@obeying(Law.CERTIFIED)
@quick
@given(data=st.data())
def test_answers_certify_themselves(name, data):
    payoffs = data.draw(games(name))
    certificate = META_SOLVERS[name].certificate
    assert 0 <= certificate.measure(payoffs, solve(name, payoffs)) <= certificate.tolerance


@every_meta_solver
def test_certificates_tell_an_answer_from_none(name):
    """All mass on mutual cooperation in the prisoner's dilemma, or on one side of matching pennies, is no answer."""
    certificate = META_SOLVERS[name].certificate
    if certificate is None:
        assert Law.CERTIFIED not in META_SOLVERS[name].laws
        return
    payoffs = np.array([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])
    if META_SOLVERS[name].takes == "zero_sum":
        payoffs = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    assert certificate.measure(payoffs, [[1, 0], [0, 0]]) > 1e-3


GAPS = {Concept.NASH: nash_conv, Concept.CORRELATED: ce_gap, Concept.COARSE: cce_gap}
"""Of solutions of the concept these are 0, in units of payoff."""


@obeying(Law.CERTIFIED)
@quick
@given(data=st.data())
def test_answers_solve_their_concept(name, data):
    concept, payoffs = META_SOLVERS[name].concept, data.draw(games(name))
    if concept is not Concept.ALPHA_RANK:  # whose certificates tell
        close = META_SOLVERS[name].certificate.tolerance * 2 * np.abs(payoffs).max()  # a largest gain is no larger
        assert GAPS[concept](payoffs, solve(name, payoffs)) <= len(payoffs) * close


def test_heuristics_promise_no_concept():
    assert {name for name, entry in META_SOLVERS.items() if entry.concept is None} == {
        *("uniform", "latest", "softmax", "rectified_nash", "iterated_elimination")
    }


@every_meta_solver
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_a_player_without_a_choice(name, shape):
    """1x1 is the first tensor PSRO ever passes."""
    payoffs = np.arange(np.prod(shape), dtype=float).reshape(shape)
    sigma = solve(name, np.stack([payoffs, -payoffs]))
    assert sigma.shape == shape
    assert abs(sigma.sum() - 1) <= 1e-12


@every_meta_solver
def test_constant_payoffs(name):
    sigma = solve(name, np.stack([np.full((3, 2), 0.1), np.full((3, 2), -0.1)]))
    assert abs(sigma.sum() - 1) <= 1e-12


@every_meta_solver
def test_lists_integers_and_float32_are_taken(name):
    table = [[[2, -1], [-3, 1]], [[-2, 1], [3, -1]]]
    expected = solve(name, np.array(table, dtype=np.float64))
    np.testing.assert_array_equal(solve(name, table), expected)
    np.testing.assert_array_equal(solve(name, np.array(table, dtype=np.float32)), expected)


@every_meta_solver
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([[[1, 2], [3]]] * 2, id="ragged"),
        pytest.param(np.full((2, 2, 2), np.nan), id="nan"),
        pytest.param(np.zeros((2, 2)), id="wrong axes"),
        pytest.param(np.zeros((2, 2, 0)), id="empty"),
        pytest.param(np.zeros((2, 2, 2), complex), id="complex"),
    ],
)
def test_malformed_payoffs_are_refused(name, bad):
    with pytest.raises(ValueError, match="payoffs"):
        solve(name, bad)


@pytest.mark.parametrize("name", sorted(name for name, entry in META_SOLVERS.items() if entry.takes != "any"))
@pytest.mark.parametrize("players", [1, 3])
def test_games_of_other_sizes_are_refused(name, players):
    with pytest.raises(ValueError, match="two players"):
        solve(name, np.zeros((players, *[2] * players)))


@pytest.mark.parametrize("name", sorted(name for name, entry in META_SOLVERS.items() if entry.takes == "zero_sum"))
def test_payoffs_that_do_not_cancel_are_refused(name):
    with pytest.raises(ValueError, match="cancel"):
        solve(name, [[[3, 0], [5, 1]], [[3, 5], [0, 1]]])


def test_what_did_not_converge_says_so_with_its_certificate():
    certificate = META_SOLVERS["zero_sum_nash"].certificate
    pennies, pure = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]), np.array([[1.0, 0], [0, 0]])
    with pytest.raises(NotConverged, match=r"nash_conv / spread is 1, more than 1e-08: raise steps") as raised:
        metasolvers.contract.certified("fictitious_play", pennies, pure, certificate, "raise steps")
    assert (raised.value.certificate, raised.value.value) == ("nash_conv / spread", 1)
    np.testing.assert_array_equal(check_sigma(raised.value.sigma), pure)


def test_lookup():
    assert meta_solver("uniform") is uniform
    with pytest.raises(ValueError, match="did you mean 'alpha_rank'"):
        meta_solver("alpharank")
    with pytest.raises(ValueError, match=r"'alpha_rank' or .* or 'zero_sum_nash'"):
        meta_solver("???")
    with pytest.raises(ValueError, match=r"did you mean 'zero_sum_nash' or .* or 'max_entropy_nash'"):
        meta_solver("nash")


def test_the_package_stands_on_a_few_libraries_alone():
    """Others are extras, imported where they are used."""
    extras = {"gambit.py": {"pygambit"}, "ratings.py": {"openskill"}}
    allowed = sys.stdlib_module_names | {"numpy", "scipy", "networkx", "clarabel", "metasolvers"}
    for path in Path(metasolvers.__file__).parent.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert {name.split(".")[0] for name in names} <= allowed | extras.get(path.name, set()), path
