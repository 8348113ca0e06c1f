"""Named parameter sets of Bucket Brigade, and what values a parameter may take."""

import json
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from games.spelling import unknown

SCENARIOS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("scenarios.json").read_text())["scenarios"]

PROBABILITIES = ("beta", "kappa", "rho")
"""beta: a fire spreads to a neighbour (dead in the Bernoulli mode: a fire lives one night); kappa: one worker saves a
burning house (dead in the continuous mode); rho: a safe house catches fire in a night."""

AMOUNTS = ("cost", "distance_cost", "rest_reward", "team_gain", "team_loss")
"""Paid to an agent per night: for working, and more per house on the way there from home; for resting; and for a ring
all safe or all ruined."""

SEAT_AMOUNTS = ("own_gain", "other_gain", "own_loss", "other_loss")
"""Paid to an agent per house saved and per house ruined, for houses it owns and for others; a number, or one a seat."""

SHAPING = ("progress_shaping", "rescue_shaping", "presence_shaping", "potential_shaping", "potential_discount")
"""Rewards beside the game's: `rewards.shaped`."""

CELL = (*PROBABILITIES, *AMOUNTS, *SEAT_AMOUNTS, *SHAPING, "suppression", "min_nights")
"""Parameters that may differ from lane to lane."""

HIGHEST = dict.fromkeys((*PROBABILITIES, "potential_discount"), 1.0) | {"potential_shaping": 1e3, "min_nights": 120}
"""Where a parameter ends below `LARGEST`; potential shaping multiplies amounts, nights fit a byte of an observation."""
LARGEST = 1e30
"""Of any parameter: sums of such amounts over a ring are still finite in float32, in which rewards are paid."""

EXTINGUISH = ("bernoulli", "continuous")

UNUSED: dict[str, Any] = {
    "distance_cost": 0.0,
    "homes": None,
    "extinguish": "bernoulli",
    "suppression": 0.5,
    **dict.fromkeys(SHAPING, 0.0),
    "potential_discount": 1.0,
}
"""What most scenarios do without, and therefore do not list."""


def scenario_values(scenario: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """The scenario's parameters with `overrides` that are not None in their place.

    Raises ValueError for an unknown scenario, several values where a game has one, or a value out of range.
    """
    if scenario not in SCENARIOS:
        raise unknown("Bucket Brigade scenario", scenario, SCENARIOS)
    values = UNUSED | SCENARIOS[scenario] | {name: value for name, value in overrides.items() if value is not None}
    for name, least in (("num_agents", 1), ("num_houses", 2)):
        values[name] = whole(name, values[name], least, 100)
    if values["extinguish"] not in EXTINGUISH:
        raise unknown("way to extinguish", values["extinguish"], EXTINGUISH)
    agents, houses = values["num_agents"], values["num_houses"]
    homes = [seat % houses for seat in range(agents)] if values["homes"] is None else list(values["homes"])
    if len(homes) != agents or not all(home in range(houses) for home in homes):
        raise ValueError(f"homes must be one house below {houses} for each of {agents} agents, got {homes}")
    values["homes"] = homes
    for name in CELL:
        if np.ndim(values[name]) > (name in SEAT_AMOUNTS):
            wanted = "a number or one per seat" if name in SEAT_AMOUNTS else "a number"
            got = f"shape {np.shape(values[name])}"
            raise ValueError(f"{name} of a game must be {wanted}, got {got}; values per lane go to the game's params()")
    return values | {name: checked(name, values[name], values["num_agents"]) for name in CELL}


def with_overrides(values: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """What `scenario_values` gave with parameters of `CELL` replaced, by numbers or one per lane.

    Raises ValueError for unknown names, values out of range, or for different numbers of lanes.
    """
    for name in overrides:
        if name not in CELL:
            raise unknown("Bucket Brigade parameter", name, CELL)
    cell = {name: checked(name, value, values["num_agents"]) for name, value in overrides.items()}
    lanes = {name: len(rows) for name, rows in cell.items() if len(rows) > 1}
    if len(set(lanes.values())) > 1:
        got = ", ".join(f"{number} of {name}" for name, number in lanes.items())
        raise ValueError(f"parameters must be numbers or one per lane of equally many lanes, got {got}")
    return values | cell


def whole(name: str, value: Any, least: int, most: int) -> int:
    """The number as an int. Raises ValueError for one that is not whole or out of range, and for anything else."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and least <= value <= most and value == int(value)):
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
    return int(value)


def checked(name: str, value: Any, seats: int) -> np.ndarray:
    """A parameter of `CELL` as float64 [1 or B], or [1 or B, seats] for a seat's amounts.

    A seat's amounts may come as a number, one per seat, or [B, 1 or seats]. Raises ValueError for another shape, or a
    value that is not finite or out of range.
    """
    array = np.asarray(value, np.float64)
    if name in SEAT_AMOUNTS:
        array = array[None] if array.ndim == 1 else array.reshape(-1, 1) if array.ndim == 0 else array
        if array.ndim != 2 or array.shape[1] not in (1, seats):
            raise ValueError(
                f"{name} must be a number, one per seat ({seats}) or [B, {seats}], got shape {array.shape}"
            )
        array = np.broadcast_to(array, (len(array), seats))
    else:
        array = np.atleast_1d(array)
        if array.ndim != 1:
            raise ValueError(f"{name} must be a number or one per lane, got shape {array.shape}")
    high = highest(name)
    if array.size == 0 or not (np.isfinite(array) & (array >= 0) & (array <= high)).all():
        raise ValueError(f"{name} must be finite and lie in [0, {high:g}], got {value}")
    if name == "min_nights" and not (array == np.floor(array)).all():
        raise ValueError(f"min_nights must be whole, got {value}")
    return array


def highest(name: str) -> float:
    """Largest value of a parameter of `CELL`."""
    return HIGHEST.get(name, LARGEST)
