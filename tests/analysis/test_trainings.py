"""How trainings are told to people."""

import pytest

from analysis.trainings import brief, evaluation_table


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (999.4, "999"), (999.6, "1,000"), (1234.5, "1,234"), (-2500.0, "-2,500"), (3e7, "3e+07")],
)
def test_diagnostics_are_brief(value: float, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize(("low", "high", "text"), [(686.2, 1163.8, "943 [686, 1164]"), (943.0, 943.0, "943")])
def test_intervals_stand_beside_the_interquartile_means_that_they_are_of(low: float, high: float, text: str) -> None:
    rows = [
        {"metric": f"evaluation/{name}", "play": "greedy", "value": value, "kind": "estimate"} | more
        for name, value, more in (
            ("return", 913.0, {"standard_error": 109.0}),
            ("interquartile_mean", 943.0, {"low": low, "high": high}),
            ("steps", 13.0, {}),
        )
    ]
    headers, (cells,) = evaluation_table(rows)
    found = dict(zip(headers, cells, strict=True))
    assert found == {"play": "greedy", "mean return": "913 ± 109", "interquartile mean": text, "steps": "13"}
