"""Exact values of finite games: returns, best responses, NashConv, equilibria, without sampling."""

from games.exact.policies import TabularPolicy, observations, tabulate
from games.exact.populations import behavioural, mixture_gains, mixture_responses, payoff_table, sequence_payoffs
from games.exact.regret import cfr, cfr_plus
from games.exact.strategies import behaviour, check_strategy, mixed, plans, profile, reach, uniform
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
    "behaviour",
    "behavioural",
    "best_responses",
    "cfr",
    "cfr_plus",
    "check_strategy",
    "check_zero_sum",
    "deviation_gains",
    "expected_returns",
    "exploitability",
    "mixed",
    "mixture_gains",
    "mixture_responses",
    "nash_conv",
    "observations",
    "payoff_table",
    "plans",
    "profile",
    "reach",
    "sequence_payoffs",
    "tabulate",
    "uniform",
    "zero_sum_equilibrium",
]
