"""How trainings are told to people."""

import pytest

from analysis.trainings import brief


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (999.4, "999"), (999.6, "1,000"), (1234.5, "1,234"), (-2500.0, "-2,500"), (3e7, "3e+07")],
)
def test_diagnostics_are_brief(value: float, text: str) -> None:
    assert brief(value) == text
