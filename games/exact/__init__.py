"""Exact values of finite games: returns, best responses, NashConv, equilibria, without sampling."""

from games.exact.anytime import free_opponent, least_exploitable
from games.exact.policies import TabularPolicy, observations, tabulate
from games.exact.populations import (
    behaviour_of_mixture,
    mixture_gains,
    mixture_responses,
    payoff_table,
    sequence_payoffs,
)
from games.exact.preferences import Preferred, check_enumerable, count_pure, preference_response, pure_plans
from games.exact.recommendations import recommendation_gains, recommended_responses
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
    "Preferred",
    "Response",
    "TabularPolicy",
    "behaviour_of_mixture",
    "behaviour_of_plan",
    "best_responses",
    "cfr",
    "cfr_plus",
    "check_enumerable",
    "check_population",
    "check_strategy",
    "check_zero_sum",
    "count_pure",
    "deviation_gains",
    "expected_returns",
    "exploitability",
    "free_opponent",
    "least_exploitable",
    "mixture_gains",
    "mixture_responses",
    "nash_conv",
    "observations",
    "part_of_mixture",
    "payoff_table",
    "plans",
    "preference_response",
    "profile",
    "pure_plans",
    "reach",
    "recommendation_gains",
    "recommended_responses",
    "sequence_payoffs",
    "tabulate",
    "uniform",
    "zero_sum_equilibrium",
]
