"""Meta-solvers: functions from a payoff tensor [N, k_1, ..., k_N] to a joint meta-strategy [k_1, ..., k_N].

>>> from metasolvers import meta_solver
>>> meta_solver("zero_sum_nash")([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
array([[0.25, 0.25],
       [0.25, 0.25]])
"""

from collections.abc import Callable
from difflib import get_close_matches

import numpy as np

from metasolvers.alpharank import (
    alpha_rank,
    fixation_edges,
    fixation_probability,
    log_fixation_probability,
    transition_matrix,
)
from metasolvers.metagame import (
    cce_gap,
    check_payoffs,
    check_sigma,
    deviation_gains,
    expected_payoffs,
    exploitability,
    is_product,
    marginal,
    nash_conv,
    product,
)
from metasolvers.uniform import uniform
from metasolvers.zero_sum import zero_sum_nash

MetaSolver = Callable[..., np.ndarray]

META_SOLVERS: dict[str, MetaSolver] = {
    "alpha_rank": alpha_rank,
    "zero_sum_nash": zero_sum_nash,
    "uniform": uniform,
}


def meta_solver(name: str) -> MetaSolver:
    """The meta-solver of that name. Raises ValueError, with the nearest names, for one that is not registered."""
    if name not in META_SOLVERS:
        near = get_close_matches(name, META_SOLVERS) or sorted(META_SOLVERS)
        raise ValueError(f"no meta-solver {name!r}: did you mean {' or '.join(map(repr, near))}?")
    return META_SOLVERS[name]


__all__ = [
    "META_SOLVERS",
    "MetaSolver",
    "alpha_rank",
    "cce_gap",
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
    "meta_solver",
    "nash_conv",
    "product",
    "transition_matrix",
    "uniform",
    "zero_sum_nash",
]
