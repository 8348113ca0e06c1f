"""Parameters of games that are numbers, checked, as Python's own: NumPy's would make float64 of float32 arrays."""

import operator
from math import inf
from typing import Any

MOST = 2**31 - 1
"""Of what is counted."""


def whole(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """A parameter that is counted, as an int. Raises ValueError for anything else, and out of [least, most]."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        bound = "" if most == MOST else f" and at most {most:,}"
        raise ValueError(f"{name} must be a whole number of at least {least}{bound}, got {value!r}")
    return number


def real(name: str, value: Any, least: float = -inf, most: float = inf, below: float = inf) -> float:
    """A parameter that is measured, as a finite float. Raises ValueError for anything else, and out of its range."""
    try:
        number = float(value) if not isinstance(value, str | bytes | bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not (least <= number <= most and number < below and abs(number) < inf):
        bounds = [f"of at least {least:g}"] * (least > -inf) + [f"at most {most:g}"] * (most < inf)
        bounds += [f"below {below:g}"] * (below < inf)
        raise ValueError(f"{name} must be a finite number {' and '.join(bounds)}".rstrip() + f", got {value!r}")
    return number


def keep(parameters: Any, **values: Any) -> None:
    """Put checked values into a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(parameters, name, value)
