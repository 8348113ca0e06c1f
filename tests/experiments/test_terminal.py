"""What a run shows while it goes."""

import io

from rich.console import Console

from analysis.numbers import shown
from experiments.terminal import Forecast, LiveTable, clock, played


def test_the_live_table_shows_rows_and_what_is_being_worked_on() -> None:
    screen = io.StringIO()
    with LiveTable(Console(file=screen, force_terminal=True, width=120), played("night")) as table:
        table.working("iteration 1: player 0, 40%")
        table.row({"iteration": "0", "gap found": "3.1 ± 0.2", "team return": "4005 ± 14"})
        table.live.refresh()
    text = screen.getvalue()
    for words in ("iteration 1: player 0, 40%", "3.1 ± 0.2", "4005 ± 14", "left"):
        assert words in text


def test_an_ordinary_row_fits_80_columns() -> None:
    screen = io.StringIO()
    cells = {
        "iteration": "1",
        "policies": "2",
        "gap found": "at least -2.2 ± 2.7",
        "gap, whole game (previous)": "at least 15.8 ± 3.0",
        "team return": "5194.6 ± 2.4",
        "per night": "392.686 ± 0.098",
        "steps/s": "85,937",
        "time left": "2:03",
    }
    with LiveTable(Console(file=screen, force_terminal=True, width=80), played("night")) as table:
        table.row(cells)
    text = screen.getvalue()
    for cell in cells.values():
        assert cell.replace("at least ", "≥") in text
    assert tuple(cells) == played("night").columns
    for header in ("iter", "policies", "gap found", "gap, whole", "(previous)", "team return", "per night", "steps/s"):
        assert header in text
    assert "…" not in text


def test_the_forecast_learns_speeds_and_counts_what_is_left() -> None:
    forecast = Forecast(steps=1000, profiles=21)
    assert str(forecast) == "?"
    forecast.spent("steps", 400, seconds=4.0)
    forecast.spent("profiles", 1, seconds=0.2)
    assert str(forecast) == "?"  # one profile says nothing
    forecast.spent("profiles", 15, seconds=3.0)
    forecast.skipped("steps", 100)
    assert forecast.speed("steps") == 100
    assert str(forecast) == "0:06"


def test_seconds_become_a_clock() -> None:
    assert [clock(seconds) for seconds in (0, 65, 3723)] == ["0:00", "1:05", "1:02:03"]


def test_a_metric_is_shown_with_the_digits_its_error_is_worth() -> None:
    row = {"value": 1234.5678, "standard_error": 0.0712, "kind": "estimate"}
    assert shown(row) == "1234.568 ± 0.071"
    assert shown(row | {"standard_error": 123.4, "kind": "lower bound"}) == "at least 1235 ± 123"
    assert shown({"value": 16, "kind": "exact"}) == "16"
    assert shown(None) == ""
