"""Run folders are read as they were written, or refused with a reason."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.load import Run, load_run, read_settings
from analysis.tables import (
    MEASURES,
    columns,
    learning_curves,
    measures,
    meta_strategies,
    payoff_table,
    policies,
    profile_table,
)
from tests.analysis.handmade import edit


def test_a_stored_run_is_read(stored: Run) -> None:
    assert (stored.players, len(stored.iterations), stored.asked) == (4, 3, 2)
    assert [iteration.sigma.shape for iteration in stored.iterations] == [(1,) * 4, (2,) * 4, (3,) * 4]
    assert stored.iterations[-1].policies[3] == ["initial/3", "train/1/3", "train/2/3"]
    assert [row["iteration"] for row in stored.timing] == [0, 1, 2]


def test_metrics_are_those_of_the_runs_own_file(stored: Run) -> None:
    lines = (stored.path / "metrics.jsonl").read_text().splitlines()
    assert stored.metrics == [json.loads(line) for line in lines]


@pytest.mark.parametrize(("format", "readable"), [(1, True), (None, True), (2, False), ("1", False)])
def test_a_newer_format_is_refused_and_a_missing_one_is_the_first(
    copy: Path, format: int | str | None, readable: bool
) -> None:
    edit(copy / "run.json", format=format)
    if readable:
        assert load_run(copy).players == 4
    else:
        with pytest.raises(ValueError, match=rf"is of run format {format!r}; this version reads 1: use"):
            load_run(copy)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', "null"])
def test_settings_that_are_none_are_damage(copy: Path, text: str) -> None:
    (copy / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"is damaged: run\.json"):
        read_settings(copy)


def test_columns_are_as_long_as_the_rows(stored: Run) -> None:
    table = columns(stored.metrics)
    assert {len(column) for column in table.values()} == {len(stored.metrics)}
    assert table["player"][0] is None
    assert columns([]) == {}


def test_measures_stand_with_the_meta_strategy_they_are_of(stored: Run) -> None:
    found = measures(stored)
    later = {"independent_gap", "non_improving", "duplicates"}  # this run is from before they were measured
    of_nights = set(MEASURES) - later - {"steps", "team_return_per_step"}  # as other games have it
    assert [set(rows) for rows in found] == [of_nights] * 3
    assert all(row["iteration"] == i for i, rows in enumerate(found) for row in rows.values())
    assert found[-1]["full_gap"]["responses"] == "fresh"


def test_the_payoff_table_lists_every_profile_likeliest_first(stored: Run) -> None:
    last, table = stored.iterations[-1], payoff_table(stored.iterations[-1])
    assert table["probability"].sum() == pytest.approx(1)
    assert (np.diff(table["probability"]) <= 0).all()
    assert sorted(map(tuple, table["profile"])) == list(np.ndindex(last.sigma.shape))
    for profile, episodes, mean, error in zip(
        *(table[name] for name in ("profile", "episodes", "mean", "standard_error")), strict=True
    ):
        assert mean.tolist() == last.mean[(slice(None), *profile)].tolist()
        assert error.tolist() == last.standard_error[(slice(None), *profile)].tolist()
        assert episodes == 64


def test_profiles_for_people_are_cut_by_number_and_by_probability(stored: Run) -> None:
    last = stored.iterations[-1]
    headers, rows = profile_table(last)
    assert headers == ("profile", "probability", "player 0", "player 1", "player 2", "player 3", "episodes")
    assert (len(rows), {len(row) for row in rows}) == (81, {7})
    assert profile_table(last, most=5)[1] == rows[:5]
    likely = int((last.sigma >= 1e-3).sum())
    assert profile_table(last, most=5, least=1e-3)[1] == rows[: min(likely, 5)]
    assert rows[0][0] == "-".join(map(str, payoff_table(last)["profile"][0]))
    assert all("±" in cell for cell in rows[0][2:6])


def test_marginals_sum_to_one_where_there_are_policies(stored: Run) -> None:
    for table in meta_strategies(stored):
        assert np.nansum(table, axis=0) == pytest.approx(np.ones(3))
        assert np.isnan(table).tolist() == [[False] * 3, [True, False, False], [True, True, False]]


def test_policies_are_named_by_what_made_them(stored: Run) -> None:
    table = policies(stored)
    assert table["unit"][:3] == ["initial/0", "train/1/0", "train/2/0"]
    assert sum(table["share"]) == pytest.approx(4)


def test_curves_come_by_player_and_iteration(stored: Run) -> None:
    curves = learning_curves(stored)
    assert [(curve.player, curve.iteration) for curve in curves] == [(p, i) for p in range(4) for i in (1, 2)]
    for curve in curves:
        assert curve.steps.shape == curve.value.shape
        assert (np.diff(curve.steps) > 0).all()
        assert curve.steps[-1] == 98304
