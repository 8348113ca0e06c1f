"""One distribution out of the many that linear constraints allow: the most even one, or the best for some objective.

The constraints are `rows` [m, K], sparse: a distribution x [K] is allowed where rows @ x >= 0. Equilibria are written
like this: a row is what obeying earns more than one way of deviating. Each row may be in a unit of its own; the answer
keeps it to about 1e-10 of its largest entry or better.
"""

from typing import Any

import clarabel
import numpy as np
from scipy.linalg import solve
from scipy.optimize import linprog
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, hstack, vstack
from scipy.special import logsumexp

NEGLIGIBLE = 1e-6
"""Entries and rows that are below this in every allowed distribution count as 0, relative to those that are not."""
CONVERGED = 1e-12
"""How far Newton's method may be off a constraint; its last step usually takes it to rounding."""
NEWTON_STEPS = 100
"""A dozen are usual."""


class IllConditioned(ArithmeticError):
    """Rounding decides what the constraints allow: some differ by so little that they are neither equal nor apart."""


def max_entropy(rows: csr_array) -> np.ndarray:
    """The allowed x [K] of the largest entropy - sum x log x; there is only one."""
    try:
        return max_entropy_inside(rows, *interior(rows))
    except IllConditioned:
        return max_entropy_conic(rows)


def max_entropy_inside(rows: csr_array, positive: np.ndarray, loose: np.ndarray) -> np.ndarray:
    """`max_entropy`, to rounding, once it is known what can be positive: which entries [K] and which rows [m].

    The others are 0. Then x is proportional to exp(u @ rows), with u >= 0 that minimises log sum exp(u @ rows), its
    signs free where rows are 0 [Boyd & Vandenberghe 2004, section 5.2.4]. Raises IllConditioned.
    """
    x = np.zeros(rows.shape[1])
    x[positive] = _exponential(_without_rounding(_unit_rows(rows)[:, np.flatnonzero(positive)]), loose)
    return x


def max_entropy_conic(rows: csr_array) -> np.ndarray:
    """`max_entropy` to about 1e-6, and slowly, but from any constraints: sum t <= entropy in exponential cones."""
    rows = _unit_rows(rows)
    count, size = rows.shape
    one, nothing = np.ones((1, size)), np.zeros((1, size))
    entry = np.arange(size)
    cones = csr_array(  # (t, x, 1) with x exp(t / x) <= 1, that is t <= - x log x
        (-np.ones(2 * size), (np.concatenate([3 * entry, 3 * entry + 1]), np.concatenate([size + entry, entry]))),
        shape=(3 * size, 2 * size),
    )
    limits = vstack([np.hstack([one, nothing]), hstack([-rows, csr_array(rows.shape)]), cones])
    bounds = np.concatenate([[1.0], np.zeros(count), np.tile([0.0, 0.0, 1.0], size)])
    kinds = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)] + [clarabel.ExponentialConeT()] * size
    cost = np.concatenate([np.zeros(size), -np.ones(size)])
    return _distribution(_conic_program(csc_array((2 * size, 2 * size)), cost, limits, bounds, kinds, 1e-12)[:size])


def max_gini(rows: csr_array) -> np.ndarray:
    """The allowed x [K] of the largest Gini impurity 1 - sum x^2; there is only one. By quadratic programming."""
    rows = _unit_rows(rows)
    x = np.full(rows.shape[1], 1 / rows.shape[1])
    chosen = np.zeros(rows.shape[0], dtype=bool)
    while True:  # only what is broken matters; the other rows, often most of them, would cost time
        broken = ~chosen & (rows @ x < -CONVERGED)
        if not broken.any():
            return x
        chosen |= broken
        x = _flattest(csr_array(rows[np.flatnonzero(chosen)]))


def max_linear(rows: csr_array, objective: np.ndarray) -> np.ndarray:
    """An allowed x [K] of the largest objective @ x: a vertex, where there are several. Raises IllConditioned."""
    rows = _unit_rows(rows)
    size = rows.shape[1]
    scaled = (objective - objective.min()) / (np.ptp(objective) or 1.0)
    limits = {"A_ub": -rows, "b_ub": np.zeros(rows.shape[0]), "A_eq": np.ones((1, size)), "b_eq": [1.0]}
    try:
        return _distribution(_linear_program(-scaled, 1e-10, **limits))
    except IllConditioned:
        return _distribution(_linear_program(-scaled, 1e-7, **limits))


def interior(rows: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Which entries [K] and which rows [m] are positive in some allowed distribution.

    One linear program finds them all: unless held to sum to 1, whatever can be positive can be at least 1, all at once
    [Freund, Roundy & Todd 1985, MIT Sloan working paper 1674-85]. Here x = some + more and rows @ x >= slack.
    Raises IllConditioned.
    """
    rows = _unit_rows(rows)
    count, size = rows.shape
    found = _linear_program(
        np.concatenate([-np.ones(size), np.zeros(size), -np.ones(count)]),
        tolerance=1e-7,  # of weights of 1 and more
        A_ub=hstack([-rows, -rows, eye_array(count)], format="csc"),
        b_ub=np.full(count, 1e-9),  # rounding of the rows must not leave 0 alone
        bounds=[(0, 1)] * size + [(0, 1 / NEGLIGIBLE)] * size + [(0, 1)] * count,
    )
    some, slack = found[:size], found[2 * size :]
    if some.max() < 0.5:
        raise IllConditioned("equilibria exist, and fulfil the linear constraints; but no entry can be positive")
    return some > 0.5, slack > 0.5


def _unit_rows(rows: csr_array) -> csr_array:
    """Every row divided by its largest entry."""
    largest = abs(rows).max(axis=1).toarray().ravel() if rows.nnz else np.zeros(rows.shape[0])
    return csr_array(diags_array(1 / np.where(largest > 0, largest, 1.0)) @ rows)


def _flattest(rows: csr_array) -> np.ndarray:
    """The allowed x [K] of the smallest sum x^2: the allowed weights nearest to all ones, divided by their sum."""
    size = rows.shape[1]
    limits = vstack([-rows, -eye_array(size)])
    bounds = np.zeros(limits.shape[0])
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    return _distribution(_conic_program(csc_array(eye_array(size)), -np.ones(size), limits, bounds, cones, 1e-14))


def _without_rounding(rows: csr_array) -> csr_array:
    """Rows whose largest entry was 1, without what is left of entries that cancelled."""
    kept = rows.copy()
    kept.data[np.abs(kept.data) <= CONVERGED] = 0
    return kept


def _distribution(x: np.ndarray) -> np.ndarray:
    weights = np.maximum(x, 0)
    return weights / weights.sum()


def _linear_program(cost: np.ndarray, tolerance: float, A_ub: csr_array, **constraints: Any) -> np.ndarray:
    """The x >= 0 of the lowest cost @ x, by the simplex method, with constraints kept to the tolerance."""
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "maxiter": 20 * sum(A_ub.shape),  # near ties can make it cycle
    }
    result = linprog(cost, A_ub, method="highs-ds", options=options, **constraints)
    if not result.success:
        raise IllConditioned(f"equilibria exist, and fulfil the linear constraints; but HiGHS says: {result.message}")
    return result.x


def _conic_program(
    square: csc_array, cost: np.ndarray, limits: csr_array, bounds: np.ndarray, cones: list, tolerance: float
) -> np.ndarray:
    """The x with bounds - limits @ x in the cones of the lowest x @ square @ x / 2 + cost @ x, or nearly so."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tolerance
    return np.array(clarabel.DefaultSolver(square, cost, csc_array(limits), bounds, cones, settings).solve().x)


def _exponential(rows: csr_array, loose: np.ndarray) -> np.ndarray:
    """x [K] proportional to exp(u @ rows), with rows @ x = 0 except where rows are loose: u >= 0 and, if u > 0, = 0.

    Minimises log sum exp(u @ rows) by Newton steps among the u that are not held at 0, projected to u >= 0 [Bertsekas
    1982, SIAM J. Control Optim. 20:221], and damped by the distance left, as redundant rows make curvature singular.
    """
    u = np.zeros(rows.shape[0])
    for _ in range(NEWTON_STEPS):
        logits = u @ rows
        value = logsumexp(logits)
        x = np.exp(logits - value)
        gradient = rows @ x
        off = np.abs(np.where(loose, np.minimum(u, gradient), gradient)).max(initial=0)
        if off <= CONVERGED:
            break
        held = loose & (u <= min(off, 1e-3)) & (gradient > 0)
        step = _newton_step(rows, x, gradient, held, damping=max(1e-2 * off, 1e-14))
        for size in 0.5 ** np.arange(40):
            moved = u + size * step
            moved[loose] = np.maximum(moved[loose], 0)
            # Rounding of the value must not stop the last steps.
            if logsumexp(moved @ rows) <= value + 1e-4 * gradient @ (moved - u) + 1e-14:
                break
        u = moved
    if off > 1e-9:
        raise IllConditioned(f"the distribution of the largest entropy still misses its conditions by {off:.3g}")
    return x


def _newton_step(rows: csr_array, x: np.ndarray, gradient: np.ndarray, held: np.ndarray, damping: float) -> np.ndarray:
    """[m] the damped Newton step of those u that are not held, and the gradient's for the others."""
    step = -gradient
    moving = np.flatnonzero(~held)
    if len(moving):
        chosen = rows[moving]
        curvature = (chosen @ diags_array(x) @ chosen.T).toarray() - np.outer(gradient[moving], gradient[moving])
        curvature[np.diag_indices(len(moving))] += damping
        step[moving] = solve(curvature, -gradient[moving], assume_a="pos")
    return step
