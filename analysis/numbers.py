"""Numbers for people: as many digits as their standard errors are worth."""

import math
from typing import Any

INTERVAL = 1.96
"""Standard errors either side of an estimate: 95 % of a normal distribution."""


def shown(row: dict[str, Any] | None) -> str:
    """A metric's row as `at least 12.3 ± 0.4`; empty for None."""
    if row is None:
        return ""
    prefix = "at least " if row["kind"] == "lower bound" else ""
    error = row.get("standard_error", 0)
    return prefix + plus_minus(row["value"], error)  # without an error, nobody found anything to gain, or it is exact


def rounded(value: float, error: float) -> tuple[str, str]:
    """Both with two digits of the standard error, as 12.34 and 0.56; a value known exactly as it is."""
    if not error:
        return exactly(value), "0"
    places = decimals(error)
    return f"{value:.{places}f}", f"{error:.{places}f}"


def plus_minus(value: float, error: float) -> str:
    """Both as 12.34 ± 0.56; a value known exactly alone."""
    return " ± ".join(rounded(value, error)) if error else exactly(value)


def exactly(value: float) -> str:
    """A value known exactly; what rounding left of zero is 0."""
    return f"{0.0 if abs(value) < 1e-12 else value:g}"


def interval(value: float, error: float) -> str:
    """The 95 % interval, as `11.3 to 13.5`; empty for what is known exactly."""
    if not error:
        return ""
    places = decimals(error)
    return f"{value - INTERVAL * error:.{places}f} to {value + INTERVAL * error:.{places}f}"


def decimals(error: float) -> int:
    """Decimals of a standard error > 0 that has two digits."""
    return max(0, 1 - math.floor(math.log10(error)))


def share(probability: float) -> str:
    """A probability as 54.3 %; `< 0.1 %` rather than 0 where it is not."""
    return "< 0.1 %" if 0 < probability < 0.0005 else f"{100 * probability:.1f} %"
