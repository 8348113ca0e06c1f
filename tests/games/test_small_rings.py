"""Scripted teams on small rings: the committed table, and the command."""

from pathlib import Path

import pytest

from games.bucket_brigade.small_rings import COLUMNS, main, markdown_table, rows

COMMITTED = Path(__file__).parents[2] / "papers" / "bucket_brigade_2026" / "v2_minimal.md"


def lines_of(text: str) -> list[list[str]]:
    """The entries of a table's lines."""
    return [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines()]


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(("rules", "teams"), [("quiet", ("always_rest", "spread")), ("engine", ("specialist",))])
def test_the_committed_table_is_up_to_date(rules, teams):
    head, rule, *solved = markdown_table(list(rows("v2_minimal", rules, 1000, teams))).splitlines()
    committed = COMMITTED.read_text().splitlines()
    assert committed[:2] == [head, rule]
    assert [line for line in committed if line.startswith(tuple(f"| {rules} | {team} " for team in teams))] == solved


def test_the_columns_of_the_committed_table_agree():
    head, _, *lines = lines_of(COMMITTED.read_text())
    assert head == list(COLUMNS)
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert len(lines) == 10
    for _, team, returns, gains, nash_conv, total, closed in lines:
        assert float(total) == pytest.approx(sum(map(float, returns.split())), abs=0.003)
        assert float(nash_conv) == pytest.approx(sum(map(float, gains.split())), abs=0.003)
        assert (closed == "0.0%") == (team == "uniform")


def test_the_command_prints_and_writes_the_table(capsys, tmp_path):
    assert main("v2_minimal", "quiet", max_nights=2, markdown=tmp_path / "table.md") == 0
    printed, written = capsys.readouterr().out.splitlines(), lines_of((tmp_path / "table.md").read_text())
    assert len(printed) == 6
    assert [" ".join(words).split() for words in written[2:]] == [line.split() for line in printed[1:]]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"scenario": "rest_trap"}, "at most 10000000 chances of a night"),
        ({"scenario": "v2_minimum"}, "'v2_minimal'"),
        ({"rules": "quite"}, "'quiet'"),
        ({"markdown": Path("nowhere", "table.md")}, "make nowhere first"),
        ({"markdown": Path("tests")}, "wanted a file, got the folder tests"),
        ({"max_nights": 0}, "max_nights must be"),
    ],
)
def test_the_command_refuses_what_is_invalid(capsys, arguments, told):
    assert main(**arguments) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert (out, err.count("\n")) == ("", 1)
