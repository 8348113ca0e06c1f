"""Meta-solvers: functions from a payoff tensor [N, k_1, ..., k_N] to a joint meta-strategy [k_1, ..., k_N].

>>> from metasolvers import meta_solver
>>> meta_solver("zero_sum_nash")([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
array([[0.25, 0.25],
       [0.25, 0.25]])
"""

from difflib import get_close_matches

from metasolvers.alpharank import (
    STATIONARY,
    alpha_rank,
    fixation_edges,
    fixation_probability,
    log_fixation_probability,
    stationarity,
    transition_matrix,
)
from metasolvers.bimatrix import pure_equilibria, support_enumeration, vertex_enumeration
from metasolvers.contract import COARSE, CORRELATED, NASH, Certificate, Concept, Entry, Law, MetaSolver, NotConverged
from metasolvers.correlated import (
    max_entropy_cce,
    max_entropy_ce,
    max_gini_cce,
    max_gini_ce,
    max_welfare_cce,
    max_welfare_ce,
)
from metasolvers.elimination import iterated_elimination
from metasolvers.heuristics import latest, rectified_nash, softmax, uniform
from metasolvers.metagame import (
    cce_gap,
    ce_gap,
    check_payoffs,
    check_sigma,
    deviation_gains,
    expected_payoffs,
    exploitability,
    independent,
    is_product,
    marginal,
    nash_conv,
    payoff_spread,
    product,
)
from metasolvers.mixed_integer import mixed_integer_nash
from metasolvers.no_regret import SMALL_GAP, fictitious_play, hedge, regret_matching, regret_matching_plus
from metasolvers.quantal import logit_nash, logit_path, quantal_response
from metasolvers.replicator_dynamics import projected_replicator, replicator
from metasolvers.response_graphs import (
    alpha_limit,
    limit_stationarity,
    response_graph,
    response_stationarity,
    sink_components,
    sink_distributions,
)
from metasolvers.single_population import alpha_rank_single
from metasolvers.zero_sum import ZERO_SUM, max_entropy_nash, zero_sum_nash

INVARIANT = frozenset({Law.PERMUTES, Law.RENAMES, Law.SHIFTS, Law.SCALES})
"""Indifferent to how a game is written down."""
GAINS = INVARIANT | {Law.EQUIVALENT}
"""The same, and indifferent to all but what players gain by changing policy, in units of their own."""
VERTEX = frozenset({Law.PERMUTES_WHERE_UNIQUE, Law.RENAMES, Law.SHIFTS, Law.SCALES})
"""The same, but which of several answers is picked depends on the order of the policies."""
LEARNT = VERTEX | {Law.EQUIVALENT, Law.COPIES_ALIKE}
"""Rounding may take a learner off a path that symmetry holds it on."""
SELECTED = INVARIANT | {Law.COPIES_ALIKE, Law.UNDOMINATED, Law.CERTIFIED}
"""One equilibrium is picked by what it is, not by how it is found."""

META_SOLVERS: dict[str, Entry] = {
    "alpha_rank": Entry(alpha_rank, GAINS | {Law.COPIES_ALIKE, Law.CERTIFIED}, STATIONARY),
    "alpha_limit": Entry(
        alpha_limit,
        GAINS | {Law.COPIES_ALIKE},  # the certificate is necessary, but does not tell sink components apart
        Certificate("limit_stationarity", limit_stationarity, 1e-10, Concept.ALPHA_RANK),
    ),
    "response_graph": Entry(
        response_graph,
        GAINS | {Law.COPIES_ALIKE, Law.CERTIFIED},
        Certificate("response_stationarity", response_stationarity, 1e-10, Concept.ALPHA_RANK),
    ),
    "zero_sum_nash": Entry(
        zero_sum_nash, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED, Law.CERTIFIED}, ZERO_SUM, takes="zero_sum"
    ),
    "regret_matching": Entry(regret_matching, LEARNT | {Law.CERTIFIED}, SMALL_GAP),
    "regret_matching_plus": Entry(regret_matching_plus, LEARNT | {Law.CERTIFIED}, SMALL_GAP),
    "hedge": Entry(hedge, LEARNT | {Law.CERTIFIED}, SMALL_GAP),
    "fictitious_play": Entry(fictitious_play, GAINS | {Law.COPIES_ALIKE}, SMALL_GAP),
    "replicator": Entry(replicator, LEARNT, NASH),
    "projected_replicator": Entry(projected_replicator, LEARNT, NASH),
    "iterated_elimination": Entry(iterated_elimination, GAINS | {Law.COPIES_ALIKE, Law.UNDOMINATED}),
    "rectified_nash": Entry(rectified_nash, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED}, takes="zero_sum"),
    "softmax": Entry(softmax, INVARIANT | {Law.COPIES_ALIKE}),
    "latest": Entry(latest, frozenset({Law.RENAMES, Law.SHIFTS, Law.SCALES, Law.EQUIVALENT})),
    "mixed_integer_nash": Entry(
        mixed_integer_nash, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED, Law.CERTIFIED}, NASH, takes="two_player"
    ),
    "logit_nash": Entry(logit_nash, GAINS | {Law.COPIES_ALIKE, Law.UNDOMINATED, Law.CERTIFIED}, NASH),
    "max_entropy_nash": Entry(max_entropy_nash, SELECTED | {Law.COPIES_SHARE}, ZERO_SUM, takes="zero_sum"),
    "max_welfare_ce": Entry(max_welfare_ce, VERTEX | {Law.COPIES_SHARE, Law.UNDOMINATED, Law.CERTIFIED}, CORRELATED),
    "max_welfare_cce": Entry(max_welfare_cce, VERTEX | {Law.COPIES_SHARE, Law.CERTIFIED}, COARSE),
    "max_gini_ce": Entry(max_gini_ce, SELECTED | {Law.EQUIVALENT}, CORRELATED, accuracy=1e-6),
    "max_gini_cce": Entry(max_gini_cce, SELECTED - {Law.UNDOMINATED} | {Law.EQUIVALENT}, COARSE, accuracy=1e-6),
    "max_entropy_ce": Entry(max_entropy_ce, SELECTED | {Law.EQUIVALENT}, CORRELATED),
    "max_entropy_cce": Entry(max_entropy_cce, SELECTED - {Law.UNDOMINATED} | {Law.EQUIVALENT}, COARSE),
    "uniform": Entry(uniform, GAINS | {Law.COPIES_ALIKE}),
}
"""By name: what solves, the laws it obeys, and the certificate it offers."""


def meta_solver(name: str) -> MetaSolver:
    """The meta-solver of that name. Raises ValueError, with the nearest names, for one that is not registered."""
    if name not in META_SOLVERS:
        alike = [known for known in META_SOLVERS if name in known or known in name]
        near = alike or get_close_matches(name, META_SOLVERS) or sorted(META_SOLVERS)
        raise ValueError(f"no meta-solver {name!r}: did you mean {' or '.join(map(repr, near))}?")
    return META_SOLVERS[name].solve


__all__ = [
    "META_SOLVERS",
    "Certificate",
    "Concept",
    "Entry",
    "Law",
    "MetaSolver",
    "NotConverged",
    "alpha_limit",
    "alpha_rank",
    "alpha_rank_single",
    "cce_gap",
    "ce_gap",
    "check_payoffs",
    "check_sigma",
    "deviation_gains",
    "expected_payoffs",
    "exploitability",
    "fictitious_play",
    "fixation_edges",
    "fixation_probability",
    "hedge",
    "independent",
    "is_product",
    "iterated_elimination",
    "latest",
    "log_fixation_probability",
    "logit_nash",
    "logit_path",
    "marginal",
    "max_entropy_cce",
    "max_entropy_ce",
    "max_entropy_nash",
    "max_gini_cce",
    "max_gini_ce",
    "max_welfare_cce",
    "max_welfare_ce",
    "meta_solver",
    "mixed_integer_nash",
    "nash_conv",
    "payoff_spread",
    "product",
    "projected_replicator",
    "pure_equilibria",
    "quantal_response",
    "rectified_nash",
    "regret_matching",
    "regret_matching_plus",
    "replicator",
    "response_graph",
    "sink_components",
    "sink_distributions",
    "softmax",
    "stationarity",
    "support_enumeration",
    "transition_matrix",
    "uniform",
    "vertex_enumeration",
    "zero_sum_nash",
]
