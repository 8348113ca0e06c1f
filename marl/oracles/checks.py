"""What all oracles refuse: settings that no machine could train with, and lanes that do not fit."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_origin

from games.game import Lanes
from games.numbers import real, whole
from marl.oracles.oracle import Oracle

MOST_ROWS = 2**24
"""Steps of a rollout; Bucket Brigade's take 5 GiB."""
MOST_TRANSITIONS = 2**27
"""Of a replay."""
MOST_UNITS = 2**14
KINDS = {bool: "True or False", str: "a name", tuple: "a tuple", dict: "a dictionary"}
LARGEST = 1e6
"""Of step sizes, coefficients and norms: more is a slip of the keyboard."""


def check_hidden(hidden: Sequence[int]) -> None:
    """Raises ValueError for hidden layers without units, or with too many."""
    for units in hidden:
        whole("the units of each of the hidden layers", units, most=MOST_UNITS)


def check_kinds(settings: Any) -> None:
    """Raises ValueError for settings that are not of their fields' kinds; numbers are left to `games.numbers`."""
    for entry in fields(settings):
        value, kind = getattr(settings, entry.name), get_origin(entry.type) or entry.type
        if kind in KINDS and not isinstance(value, kind):  # type: ignore[arg-type]
            raise ValueError(f"{entry.name} must be {KINDS[kind]}, got {value!r}")


def positive(name: str, value: float, most: float = LARGEST) -> None:
    """Raises ValueError for what is not greater than 0 and at most that."""
    try:
        within = real(name, value, 0, most) > 0
    except ValueError:  # which would tell of a range that 0 is in
        within = False
    if not within:
        raise ValueError(f"{name} must be greater than 0 and at most {most:g}, got {value!r}")


def check_lanes(oracle: Oracle, lanes: Lanes, seats: Sequence[int]) -> None:
    """Raises ValueError unless seats name each of the lanes', and lanes are as many as the oracle trains on."""
    if len(seats) != len(lanes.agents) or len(set(seats)) != len(seats):
        raise ValueError(f"seats must name each of the lanes' {len(lanes.agents)} seats once, got {tuple(seats)}")
    if lanes.num_lanes != oracle.num_lanes:
        raise ValueError(
            f"{type(oracle).__name__} was set to num_lanes={oracle.num_lanes}, got lanes of {lanes.num_lanes}"
        )
