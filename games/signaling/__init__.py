"""Signalling games: the rules, exact values, and scripted speakers and listeners."""

from games.signaling.exact import (
    Optimum,
    babbling,
    deviation_gains,
    information,
    is_equilibrium,
    optimal_profiles,
    optimum,
    pooling,
    signalling_system,
    uniform_value,
    values,
)
from games.signaling.rules import Signaling, State
from games.signaling.scripted import policies, said

__all__ = [
    "Optimum",
    "Signaling",
    "State",
    "babbling",
    "deviation_gains",
    "information",
    "is_equilibrium",
    "optimal_profiles",
    "optimum",
    "policies",
    "pooling",
    "said",
    "signalling_system",
    "uniform_value",
    "values",
]
