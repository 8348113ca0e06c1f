"""One Nash equilibrium of a two-player game, the best by a linear objective, by mixed-integer programming."""

from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from metasolvers.bimatrix import two_players
from metasolvers.contract import NASH, Certificate, NotConverged, certified
from metasolvers.metagame import in_units_of_gain, product

GAP = 2e-6
"""How far from the best an objective may be, in units of the payoffs, policies or weights: HiGHS tells no finer."""
MOST_CUTS = 200
"""Choices of policies that are found wanting before it is given up."""
NEAR_TIES = "payoffs nearly tie: round them to what they tell"


class Program(NamedTuple):
    """Minimise cost @ z  s.t.  above @ z <= most, ones @ z = 1, where z = (x, y, u, v, s, t) with entries in [0, 1].

    x [m] and y [n] are the strategies, u and v what they earn, and s [m] and t [n] are 1 where a policy may be played.
    """

    cost: np.ndarray
    above: np.ndarray
    most: np.ndarray
    ones: np.ndarray


def mixed_integer_nash(
    payoffs: ArrayLike, objective: str | Sequence[ArrayLike] = "welfare", time_limit: float = 60.0
) -> np.ndarray:
    """Nash equilibrium of a two-player game, the best by a linear objective: payoffs [2, m, n] -> sigma [m, n].

    Every policy is unplayed or a best response: p_a <= s_a and u - (own @ q)_a <= M (1 - s_a) with s_a in {0, 1}
    [Sandholm, Gilpin & Conitzer 2005, Mixed-integer programming methods for finding Nash equilibria, formulation 1].
    `objective` is "welfare" (the largest sum of expected payoffs), "support" (the fewest policies played), "any", or
    weights ([m], [n]) of the policies, of which as much as possible is played. Objectives closer than `GAP` are equal.
    Raises ValueError for other than two players or another objective, and NotConverged, with the best answer so far,
    where `time_limit` seconds are not enough to find an equilibrium and to prove that it is the best.

    >>> mixed_integer_nash([[[3, 0], [0, 2]], [[3, 0], [0, 2]]])
    array([[1., 0.],
           [0., 0.]])
    """
    table = two_players(payoffs, "mixed_integer_nash")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be seconds > 0; got {time_limit}: float('inf') is for as long as it takes")
    program = _program(table, objective)
    z, bound, message = _solve(program, table.shape[1:], monotonic() + time_limit)
    advice = "raise time_limit, or use logit_nash"
    if z is None:
        sigma = np.full(table.shape[1:], 1 / table[0].size)
        raise NotConverged(
            "mixed_integer_nash", sigma, NASH, NASH.measure(table, sigma), f"no answer yet ({message}): {advice}"
        )
    rows, columns = table.shape[1:]
    strategies = [np.maximum(part, 0) for part in (z[:rows], z[rows : rows + columns])]
    sigma = product([strategy / strategy.sum() for strategy in strategies])
    best = Certificate("gap to the best objective", lambda *_: program.cost @ z - bound, GAP)
    certified("mixed_integer_nash", table, sigma, best, advice)
    return certified("mixed_integer_nash", table, sigma, NASH, advice)


def _program(table: np.ndarray, objective: str | Sequence[ArrayLike]) -> Program:
    shape = table.shape[1:]
    row, column = in_units_of_gain(table) + 0.5  # z is not negative
    sizes = [*shape, 1, 1, *shape]
    x, y, u, v, s, t = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1])  # each picks its part of z
    above, most = [], []
    for own, mine, other, earned, switch in ((row, x, y, u, s), (column.T, y, x, v, t)):
        regret = earned - own @ other
        largest = np.array([(own - policy).max() for policy in own])  # that regret can be, policy by policy: M
        above += [-regret, regret + largest[:, None] * switch, mine - switch]
        most += [np.zeros(len(own)), largest, np.zeros(len(own))]
    cost = _cost(table, objective, x, y, u, v, s, t)
    return Program(cost, np.vstack(above), np.concatenate(most), np.vstack([x.sum(axis=0), y.sum(axis=0)]))


def _cost(table: np.ndarray, objective: str | Sequence[ArrayLike], *parts: np.ndarray) -> np.ndarray:
    """What to minimise, in units of z: see `GAP`."""
    x, y, u, v, s, t = parts
    named = {
        "welfare": -_welfare(table, x, y, u, v),
        "support": s.sum(axis=0) + t.sum(axis=0),
        "any": np.zeros(x.shape[1]),
    }
    if isinstance(objective, str):
        if objective not in named:
            raise ValueError(f"objective must be one of {', '.join(named)}, or weights ([m], [n]); got {objective!r}")
        return named[objective]
    weights = [np.asarray(weight, dtype=np.float64) for weight in objective]
    if [weight.shape for weight in weights] != [(len(x),), (len(y),)] or not all(np.isfinite(w).all() for w in weights):
        raise ValueError(
            f"an objective of weights must be ([{len(x)}], [{len(y)}]) finite numbers, one for each policy of each "
            f"player; got shapes {[weight.shape for weight in weights]}"
        )
    largest = max(np.abs(weight).max() for weight in weights)
    return -(weights[0] @ x + weights[1] @ y) / (largest or 1.0)


def _welfare(table: np.ndarray, x: np.ndarray, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What both earn, per largest difference that a part of it makes: their gains, and what the other hands them."""
    parts = []
    for player, (earned, other) in enumerate(((u, y), (v, x))):
        low, high = table[player].min(axis=player), table[player].max(axis=player)
        handed = low / 2 + high / 2
        parts += [((high - low).max(), earned[0]), (np.ptp(handed), (handed - handed.min()) @ other)]
    largest = max(size for size, _ in parts) or 1.0
    gains = parts[0][0] * parts[0][1] + parts[2][0] * parts[2][1]
    return (gains + parts[1][1] + parts[3][1]) / largest


def _solve(program: Program, shape: tuple[int, ...], deadline: float) -> tuple[np.ndarray | None, float, str]:
    """The best z, a bound on every z's cost, and HiGHS's message.

    HiGHS takes 1e-6 for 0, so it may switch on policies that are no best responses; such a choice is then cut off.
    """
    switches = np.arange(len(program.cost)) >= sum(shape) + 2
    bounds = Bounds(0, 1)
    constraints = [LinearConstraint(program.above, -np.inf, program.most), LinearConstraint(program.ones, 1, 1)]
    for _ in range(MOST_CUTS):
        options: dict[str, Any] = {"mip_rel_gap": 0.0}
        if deadline < np.inf:
            options["time_limit"] = max(deadline - monotonic(), 0.0)
        found = milp(program.cost, integrality=switches, bounds=bounds, constraints=constraints, options=options)
        if found.x is None:
            return None, -np.inf, NEAR_TIES if len(constraints) > 2 else found.message
        chosen = np.round(found.x[switches])
        z = _polished(program, chosen)
        if z is not None:
            return z, found.mip_dual_bound, found.message
        differs = np.where(switches, 1.0, 0.0)
        differs[switches] -= 2 * chosen
        constraints.append(LinearConstraint(differs, 1 - chosen.sum(), np.inf))
    return None, -np.inf, NEAR_TIES


def _polished(program: Program, chosen: np.ndarray) -> np.ndarray | None:
    """The best z of these switches, a vertex, exact to rounding or as the certificate allows; None if there is none."""
    fixed = len(program.cost) - len(chosen)
    for exact in (1e-10, NASH.tolerance / 4):
        result = linprog(
            program.cost,
            A_ub=program.above,
            b_ub=program.most,
            A_eq=program.ones,
            b_eq=[1.0, 1.0],
            bounds=[(0, 1)] * fixed + [(switch, switch) for switch in chosen],
            method="highs-ds",
            options={"primal_feasibility_tolerance": exact, "dual_feasibility_tolerance": 1e-10},
        )
        if result.success:
            return result.x
    return None
