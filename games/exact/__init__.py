"""Exact values of finite games: returns, best responses, NashConv, equilibria, without sampling."""

from games.exact.policies import TabularPolicy, observations, tabulate
from games.exact.populations import (
    behaviour_of_mixture,
    mixture_gains,
    mixture_responses,
    payoff_table,
    sequence_payoffs,
)
from games.exact.regret import cfr, cfr_plus
from games.exact.strategies import (
    behaviour_of_plan,
    check_population,
    check_strategy,
    part_of_mixture,
    plans,
    profile,
    reach,
    uniform,
)
from games.exact.values import (
    Response,
    best_responses,
    deviation_gains,
    expected_returns,
    exploitability,
    nash_conv,
)
from games.exact.zero_sum import Equilibrium, check_zero_sum, zero_sum_equilibrium

__all__ = [
    "Equilibrium",
    "Response",
    "TabularPolicy",
    "behaviour_of_mixture",
    "behaviour_of_plan",
    "best_responses",
    "cfr",
    "cfr_plus",
    "check_population",
    "check_strategy",
    "check_zero_sum",
    "deviation_gains",
    "expected_returns",
    "exploitability",
    "mixture_gains",
    "mixture_responses",
    "nash_conv",
    "observations",
    "part_of_mixture",
    "payoff_table",
    "plans",
    "profile",
    "reach",
    "sequence_payoffs",
    "tabulate",
    "uniform",
    "zero_sum_equilibrium",
]
