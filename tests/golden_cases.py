"""The golden cases in tests/data/golden.json: independently verified numbers with their sources."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

CASES = json.loads((Path(__file__).parent / "data" / "golden.json").read_text())["cases"]
SELECTED: set[str] = set()
"""The cases that tests have asked for."""


def select(*topics, **fields):
    """pytest parameters, one per golden case of these topics whose entries include `fields`."""
    chosen = [
        pytest.param(case, id=case["id"])
        for case in CASES
        if case["topic"] in topics and all(case.get(name) == value for name, value in fields.items())
    ]
    assert chosen, f"no golden case of {topics} {fields}"
    SELECTED.update(case.id for case in chosen)
    return chosen


def numbers(values):
    """Nested lists of numbers and "p/q" strings as a float array."""
    if isinstance(values, list):
        return np.array([numbers(value) for value in values])
    return float(Fraction(values)) if isinstance(values, str) else float(values)
