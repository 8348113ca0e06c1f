"""Exact values of finite games: returns, best responses, NashConv, equilibria, without sampling."""

from games.exact.strategies import behaviour, check_strategy, mixed, plans, profile, reach, uniform
from games.exact.values import (
    Response,
    best_responses,
    deviation_gains,
    expected_returns,
    exploitability,
    nash_conv,
)

__all__ = [
    "Response",
    "behaviour",
    "best_responses",
    "check_strategy",
    "deviation_gains",
    "expected_returns",
    "exploitability",
    "mixed",
    "nash_conv",
    "plans",
    "profile",
    "reach",
    "uniform",
]
