"""Hodge decomposition and disc components: golden values, dense projections, and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasolvers.comparisons import check_antisymmetric
from metasolvers.hodge import disc_components, hodge
from tests.golden_cases import numbers, select

quick = settings(max_examples=40, deadline=None)
SCALES = st.sampled_from([1e-300, 1e-6, 1.0, 700.0, 1e200])


def antisymmetric(k, seed=0):
    entries = np.random.default_rng(seed).normal(size=(k, k))
    return entries - entries.T


@st.composite
def comparisons(draw):
    """An evaluation matrix and the weights of a connected graph of comparisons, holes and all."""
    k, seed = draw(st.integers(2, 9)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((k, k)) < draw(st.floats(0, 1)), 1) * 10 ** rng.uniform(-1, 1, size=(k, k))
    path = np.arange(1, k)
    weights[path - 1, path] = 1
    return antisymmetric(k, seed), weights + weights.T


@pytest.mark.parametrize("case", select("transitive_cyclic"))
def test_golden(case):
    matrix, expected, tolerance = numbers(case["input"]["A"]), case["expected"], case["tolerance"]
    found = hodge(matrix)
    np.testing.assert_allclose(found.ratings, expected["ratings"], atol=tolerance)
    for name in ("transitive_norm", "cyclic_norm"):
        if name in expected:
            assert getattr(found, name) == pytest.approx(expected[name], abs=tolerance)
    assert 2 * len(disc_components(matrix).sizes) == expected["rank"]


@quick
@given(k=st.integers(1, 8), seed=st.integers(0, 10**6), scale=SCALES)
def test_where_all_pairs_count_alike_ratings_are_mean_scores(k, seed, scale):
    matrix = scale * antisymmetric(k, seed)
    found = hodge(matrix)
    np.testing.assert_allclose(found.ratings / scale, matrix.mean(axis=1) / scale, atol=1e-12)
    np.testing.assert_array_equal(found.harmonic, 0)
    shares = found.transitive_share, found.cyclic_share
    assert sum(shares) == pytest.approx(1 if k > 1 else 0, abs=1e-12)
    total = np.hypot(found.transitive_norm / scale, found.cyclic_norm / scale)
    assert total == pytest.approx(np.linalg.norm(matrix / scale), rel=1e-12)


@quick
@given(comparisons(), SCALES)
def test_parts_are_the_projections(given_, scale):
    """Each part against a dense pseudo-inverse of what spans it: gradients, and flows around triangles."""
    matrix, weights = given_
    source, target = np.nonzero(np.triu(weights))
    root, k = np.sqrt(weights[source, target]), len(weights)
    gradients = (np.eye(k)[source] - np.eye(k)[target]) * root[:, None]
    edge = {(int(i), int(j)): number for number, (i, j) in enumerate(zip(source, target, strict=True))}
    cycles = np.zeros((len(edge), 0))
    for (i, j), l in ((pair, l) for pair in edge for l in range(pair[1] + 1, k)):
        if (i, l) in edge and (j, l) in edge:
            around = np.zeros(len(edge))
            around[[edge[i, j], edge[j, l], edge[i, l]]] = 1, 1, -1
            cycles = np.column_stack([cycles, around / root])
    found, flow = hodge(scale * matrix, weights), matrix[source, target] * root
    local = cycles @ (np.linalg.pinv(cycles) @ flow)
    transitive = gradients @ (np.linalg.pinv(gradients) @ flow)
    for part, expected in (
        (found.transitive, transitive),
        (found.curl, local),
        (found.harmonic, flow - transitive - local),
    ):
        np.testing.assert_allclose(part[source, target] / scale * root, expected, atol=1e-8)
        np.testing.assert_array_equal(part, -part.T)
        np.testing.assert_array_equal(part[weights == 0], 0)
    assert found.ratings.mean() / scale == pytest.approx(0, abs=1e-12)
    assert found.transitive_share + found.cyclic_share == pytest.approx(1)


@quick
@given(k=st.integers(2, 8), seed=st.integers(0, 10**6))
def test_listing_agents_in_another_order_moves_their_ratings_along(k, seed):
    matrix, order = antisymmetric(k, seed), np.random.default_rng(seed).permutation(k)
    moved, found = hodge(matrix[np.ix_(order, order)]), hodge(matrix)
    np.testing.assert_allclose(moved.ratings, found.ratings[order], atol=1e-12)
    np.testing.assert_allclose(moved.cyclic, found.cyclic[np.ix_(order, order)], atol=1e-12)


def test_a_cycle_around_a_hole_is_harmonic_and_one_around_a_triangle_is_not():
    """Five agents in a ring who met their neighbours alone [Jiang et al. 2011]; then a chord fills a part."""
    ring = np.roll(np.eye(5), 1, axis=1) - np.roll(np.eye(5), -1, axis=1)
    met = np.abs(ring)
    found = hodge(ring, met)
    np.testing.assert_allclose(found.harmonic, ring, atol=1e-12)
    np.testing.assert_allclose(found.ratings, 0, atol=1e-12)
    ring[0, 2], ring[2, 0], met[0, 2], met[2, 0] = -1, 1, 1, 1
    found = hodge(ring, met)
    assert found.curl[0, 1] == pytest.approx(found.curl[1, 2])
    assert np.abs(found.curl).max() > 0.5
    assert found.harmonic[0, 1] == pytest.approx(
        found.harmonic[3, 4] / 3
    )  # the short cut takes 2/3 of what goes around


def test_missing_comparisons_do_not_hide_transitive_strength():
    """Every spanning tree shows differences of ratings; pairs of weight 0 count for nothing."""
    ratings = np.array([3.0, -1, 0, -2])
    matrix, weights = ratings[:, None] - ratings, np.zeros((4, 4))
    for i, j in ((0, 1), (1, 2), (2, 3)):
        weights[i, j] = weights[j, i] = 10.0**i
    lost = matrix * (weights > 0)
    np.testing.assert_allclose(hodge(lost, weights).ratings, ratings, atol=1e-12)
    assert hodge(lost, weights).transitive_share == pytest.approx(1)
    assert hodge(lost).transitive_share < 0.9


def test_weights_count_like_repeated_comparisons():
    """Twice the weight pulls ratings as far as the normal equations say."""
    matrix, weights = antisymmetric(4), np.array([[0, 2, 1, 3], [2, 0, 1, 1], [1, 1, 0, 5], [3, 1, 5, 0]])
    found = hodge(matrix, weights)
    np.testing.assert_allclose((weights * found.cyclic).sum(axis=1), 0, atol=1e-12)
    assert (weights * found.transitive * found.cyclic).sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("zeros", [np.zeros((1, 1)), np.zeros((3, 3))])
def test_nobody_beats_anybody(zeros):
    found = hodge(zeros)
    np.testing.assert_array_equal(found.ratings, 0)
    assert (found.transitive_share, found.cyclic_share) == (0, 0)
    assert disc_components(zeros).points.shape == (0, len(zeros), 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0, 1, 1], [2, 0, 1], [1, 1, 0]], "weights must be symmetric"),
        ([[0, -1, 1], [-1, 0, 1], [1, 1, 0]], "smallest -1"),
        ([[0, 1], [1, 0]], r"of the matrix's shape \(3, 3\)"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], r"agents \[0, 1\] were never compared with agents \[2\]"),
        ([[0, 1, 1], [1, 0], [1]], "weights must be .* ragged"),
    ],
)
def test_malformed_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        hodge(np.zeros((3, 3)), weights)


@pytest.mark.parametrize("decompose", [hodge, disc_components])
def test_only_evaluation_matrices_are_decomposed(decompose):
    with pytest.raises(ValueError, match=r"got 2 at \(0, 1\) and 1 at \(1, 0\)"):
        decompose([[0, 2], [1, 0]])


@quick
@given(k=st.integers(1, 8), seed=st.integers(0, 10**6), scale=SCALES)
def test_disc_games_add_up_to_the_matrix(k, seed, scale):
    matrix = scale * antisymmetric(k, seed)
    sizes, points = disc_components(matrix)
    x, y = points[..., 0] / np.sqrt(scale), points[..., 1] / np.sqrt(scale)
    np.testing.assert_allclose(x.T @ y - y.T @ x, matrix / scale, atol=1e-12)
    singular = np.linalg.svd(matrix / scale, compute_uv=False)
    np.testing.assert_allclose(np.repeat(sizes / scale, 2), singular[: 2 * len(sizes)], rtol=1e-9)
    assert len(sizes) == k // 2
    if len(sizes):
        far = np.hypot(x, y).argmax(axis=1)
        np.testing.assert_allclose(y[np.arange(len(sizes)), far], 0, atol=1e-12)
        assert (x[np.arange(len(sizes)), far] > 0).all()


def test_equal_discs_are_told_apart():
    """Two games of rock, paper, scissors side by side have one singular value, four times."""
    cycle = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    sizes, points = disc_components(np.kron(np.eye(2), cycle))
    np.testing.assert_allclose(sizes, np.sqrt(3), rtol=1e-12)
    np.testing.assert_allclose(
        check_antisymmetric(sum(np.outer(x, y) - np.outer(y, x) for x, y in points.transpose(0, 2, 1))),
        np.kron(np.eye(2), cycle),
        atol=1e-12,
    )
