"""Meta-solvers: functions from a payoff tensor [N, k_1, ..., k_N] to a joint meta-strategy [k_1, ..., k_N].

>>> from metasolvers import meta_solver
>>> meta_solver("zero_sum_nash")([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
array([[0.25, 0.25],
       [0.25, 0.25]])
"""

from difflib import get_close_matches

from metasolvers.alpharank import (
    alpha_rank,
    fixation_edges,
    fixation_probability,
    log_fixation_probability,
    stationarity,
    transition_matrix,
)
from metasolvers.contract import COARSE, CORRELATED, NASH, Certificate, Entry, Law, MetaSolver, NotConverged
from metasolvers.correlated import (
    max_entropy_cce,
    max_entropy_ce,
    max_gini_cce,
    max_gini_ce,
    max_welfare_cce,
    max_welfare_ce,
)
from metasolvers.metagame import (
    cce_gap,
    ce_gap,
    check_payoffs,
    check_sigma,
    deviation_gains,
    expected_payoffs,
    exploitability,
    is_product,
    marginal,
    nash_conv,
    payoff_spread,
    product,
)
from metasolvers.uniform import uniform
from metasolvers.zero_sum import max_entropy_nash, zero_sum_nash

INVARIANT = frozenset({Law.PERMUTES, Law.RENAMES, Law.SHIFTS, Law.SCALES})
"""Indifferent to how a game is written down."""
VERTEX = frozenset({Law.PERMUTES_WHERE_UNIQUE, Law.RENAMES, Law.SHIFTS, Law.SCALES})
"""The same, but which of several answers is picked depends on the order of the policies."""
SELECTED = INVARIANT | {Law.COPIES_ALIKE, Law.UNDOMINATED, Law.CERTIFIED}
"""One equilibrium is picked by what it is, not by how it is found."""
STATIONARY = Certificate("stationarity", stationarity, 1e-10)

META_SOLVERS: dict[str, Entry] = {
    "alpha_rank": Entry(alpha_rank, INVARIANT | {Law.COPIES_ALIKE, Law.CERTIFIED}, STATIONARY),
    "zero_sum_nash": Entry(
        zero_sum_nash, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED, Law.CERTIFIED}, NASH, takes="zero_sum"
    ),
    "max_entropy_nash": Entry(max_entropy_nash, SELECTED | {Law.COPIES_SHARE}, NASH, takes="zero_sum"),
    "max_welfare_ce": Entry(max_welfare_ce, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED, Law.CERTIFIED}, CORRELATED),
    "max_welfare_cce": Entry(max_welfare_cce, VERTEX | {Law.COPIES_SHARE, Law.CERTIFIED}, COARSE),
    "max_gini_ce": Entry(max_gini_ce, SELECTED, CORRELATED, accuracy=1e-6),
    "max_gini_cce": Entry(max_gini_cce, SELECTED - {Law.UNDOMINATED}, COARSE, accuracy=1e-6),
    "max_entropy_ce": Entry(max_entropy_ce, SELECTED, CORRELATED),
    "max_entropy_cce": Entry(max_entropy_cce, SELECTED - {Law.UNDOMINATED}, COARSE),
    "uniform": Entry(uniform, INVARIANT | {Law.COPIES_ALIKE}),
}
"""By name: what solves, the laws it obeys, and the certificate it offers."""


def meta_solver(name: str) -> MetaSolver:
    """The meta-solver of that name. Raises ValueError, with the nearest names, for one that is not registered."""
    if name not in META_SOLVERS:
        near = get_close_matches(name, META_SOLVERS) or sorted(META_SOLVERS)
        raise ValueError(f"no meta-solver {name!r}: did you mean {' or '.join(map(repr, near))}?")
    return META_SOLVERS[name].solve


__all__ = [
    "META_SOLVERS",
    "Entry",
    "Law",
    "MetaSolver",
    "NotConverged",
    "alpha_rank",
    "cce_gap",
    "ce_gap",
    "check_payoffs",
    "check_sigma",
    "deviation_gains",
    "expected_payoffs",
    "exploitability",
    "fixation_edges",
    "fixation_probability",
    "is_product",
    "log_fixation_probability",
    "marginal",
    "max_entropy_cce",
    "max_entropy_ce",
    "max_entropy_nash",
    "max_gini_cce",
    "max_gini_ce",
    "max_welfare_cce",
    "max_welfare_ce",
    "meta_solver",
    "nash_conv",
    "payoff_spread",
    "product",
    "stationarity",
    "transition_matrix",
    "uniform",
    "zero_sum_nash",
]
