"""What a meta-solver promises: the laws its answers obey, and the certificate that says how good one is.

Every meta-solver maps payoffs [N, k_1, ..., k_N] to one joint distribution [k_1, ..., k_N], the same for the same
payoffs, and leaves its input alone; an `Entry` of the registry says what else may be relied on, and the tests hold it
to exactly that.
"""

from collections.abc import Callable
from enum import Enum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.metagame import cce_gap, ce_gap, in_units_of_gain, nash_conv

MetaSolver = Callable[..., np.ndarray]


class Law(Enum):
    """What can be done to payoffs with a known effect on the answer."""

    PERMUTES = "policies listed in another order get the same mass, ties or not"
    PERMUTES_WHERE_UNIQUE = "policies listed in another order get the same mass in games without ties"
    RENAMES = "players listed in another order get the same strategies in games without ties"
    SHIFTS = "a constant added to all that a player earns changes nothing"
    SCALES = "another unit of payoff, the same for all players, changes nothing"
    COPIES_ALIKE = "a policy and its copy get the same mass"
    COPIES_SHARE = "a policy and its copy share the mass that one would get alone, in games without ties"
    EQUIVALENT = "units of each player's own, and payoffs that a player has no influence on, change nothing"
    UNDOMINATED = "a policy that is worse than another one whatever the others play gets no mass"
    CERTIFIED = "the certificate is within its tolerance, or NotConverged is raised; others go on for a fixed time"


class Concept(Enum):
    """What an answer may be a solution of."""

    NASH = "Nash equilibrium"
    CORRELATED = "correlated equilibrium"
    COARSE = "coarse correlated equilibrium"
    ALPHA_RANK = "alpha-rank"


class Certificate(NamedTuple):
    """A number that is 0 for a perfect answer, and can be found from payoffs and answer alone."""

    name: str
    measure: Callable[[ArrayLike, ArrayLike], float]
    """(payoffs, sigma) -> how far the answer is from perfect; gains count per largest gain of their player."""
    tolerance: float
    """Up to which an answer counts as converged."""
    concept: Concept | None = None
    """Whose solutions measure 0; None of what is no solution concept."""


class Entry(NamedTuple):
    """A registered meta-solver, and what may be relied on."""

    solve: MetaSolver
    laws: frozenset[Law]
    certificate: Certificate | None = None
    takes: Literal["any", "two_player", "zero_sum"] = "any"
    """Which games it solves; others are refused. Zero-sum ones have two players, and may sum to any constant."""
    accuracy: float = 1e-9
    """How far the answer's entries may be off, as the laws see it."""

    @property
    def concept(self) -> Concept | None:
        """What its answers are solutions of, or go towards where no `Law.CERTIFIED` promises them; None of heuristics.

        >>> from metasolvers import META_SOLVERS
        >>> META_SOLVERS["max_welfare_ce"].concept.value, META_SOLVERS["uniform"].concept
        ('correlated equilibrium', None)
        """
        return None if self.certificate is None else self.certificate.concept


class NotConverged(ArithmeticError):
    """The best answer that was found does not meet its certificate; both come along.

    Attributes: sigma (joint, [k_1, ..., k_N]), certificate (its name), value (what it measures), tolerance.
    """

    def __init__(self, solver: str, sigma: np.ndarray, certificate: Certificate, value: float, advice: str) -> None:
        super().__init__(
            f"{solver} did not converge: its {certificate.name} is {value:.3g}, more than {certificate.tolerance:.3g}: "
            f"{advice}"
        )
        self.sigma, self.certificate = sigma, certificate.name
        self.value, self.tolerance = value, certificate.tolerance


def certified(solver: str, payoffs: ArrayLike, sigma: np.ndarray, certificate: Certificate, advice: str) -> np.ndarray:
    """The sigma, once its certificate is known to be within the tolerance. Raises NotConverged where it is not."""
    value = certificate.measure(payoffs, sigma)
    if not value <= certificate.tolerance:
        raise NotConverged(solver, sigma, certificate, value, advice)
    return sigma


def per_gain(gap: Callable[[ArrayLike, ArrayLike], float]) -> Callable[[ArrayLike, ArrayLike], float]:
    """The gap where each player's gains are in units of the largest that it can make by changing policy alone.

    What others hand a player would make any gain look small, if it counted.
    """
    return lambda payoffs, sigma: gap(in_units_of_gain(payoffs), sigma)


NASH = Certificate("nash_conv / largest gain", per_gain(nash_conv), 1e-8, Concept.NASH)
"""Nash equilibrium: nobody gains by deviating from independent strategies."""
COARSE = Certificate("cce_gap / largest gain", per_gain(cce_gap), 1e-8, Concept.COARSE)
"""Coarse correlated equilibrium."""
CORRELATED = Certificate("ce_gap / largest gain", per_gain(ce_gap), 1e-8, Concept.CORRELATED)
"""Correlated equilibrium."""
