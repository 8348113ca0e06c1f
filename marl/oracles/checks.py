"""What all oracles refuse: settings that no machine could train with, and lanes that do not fit."""

from collections.abc import Sequence

from games.game import Lanes
from marl.oracles.oracle import Oracle

MOST_ROWS = 2**24
"""Steps of a rollout; Bucket Brigade's take 5 GiB."""
MOST_UNITS = 2**14
LARGEST = 1e6
"""Of step sizes, coefficients and norms: more is a slip of the keyboard."""


def check_hidden(hidden: Sequence[int]) -> None:
    """Raises ValueError for hidden layers without units, or with too many."""
    if not all(1 <= units <= MOST_UNITS for units in hidden):
        raise ValueError(f"hidden layers have 1 to {MOST_UNITS:,} units each, got {hidden}")


def check_lanes(oracle: Oracle, lanes: Lanes, seats: Sequence[int]) -> None:
    """Raises ValueError unless seats name each of the lanes', and lanes are as many as the oracle trains on."""
    if len(seats) != len(lanes.agents) or len(set(seats)) != len(seats):
        raise ValueError(f"seats must name each of the lanes' {len(lanes.agents)} seats once, got {tuple(seats)}")
    if lanes.num_lanes != oracle.num_lanes:
        raise ValueError(
            f"{type(oracle).__name__} was set to num_lanes={oracle.num_lanes}, got lanes of {lanes.num_lanes}"
        )
