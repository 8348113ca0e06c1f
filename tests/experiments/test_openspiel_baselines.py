"""The comparison with OpenSpiel: its rows, one process each, and how they are measured."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.comparison import SOLVED
from analysis.lines import read
from experiments import openspiel_baselines
from experiments.baselines.__main__ import measured, plain
from experiments.baselines.games import GAMES, random_payoffs
from experiments.baselines.measured import Measure, Tally, watch
from experiments.baselines.rows import OURS, PEER, RL_ORACLES, ROWS, SEEDS, Row
from experiments.openspiel_baselines import RESULTS, ROOT, alone, main, wanted
from games.exact import check_zero_sum, nash_conv, uniform
from marl.oracles import NFSP

SMALLEST = ("kuhn", "matching_pennies", "random")
QUICK = {name: row for name, row in ROWS.items() if row.modules != RL_ORACLES}
SLOW = tuple(name for name in ROWS if name not in QUICK)


def first_game(row: str) -> str:
    return next(game for game in SMALLEST if game in ROWS[row].games)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "comparison" / "results.jsonl"


@pytest.mark.parametrize("row", QUICK)
def test_every_row_runs(row: str) -> None:
    """In its smallest game, for a moment; what an algorithm begins with is measured, or its time was over before."""
    line = measured(first_game(row), row, 0, 0.2)
    assert "error" not in line, line
    assert line["cpu_seconds"] < 1
    assert all(value >= 0 for _, _, value in line["points"])
    assert [point[0] for point in line["points"]] == sorted(point[0] for point in line["points"])
    assert json.loads(json.dumps(line))["cpu_seconds"] == line["cpu_seconds"]


@pytest.mark.slow
@pytest.mark.parametrize("row", SLOW)
def test_oracles_that_openspiel_ships_run_or_tell_what_they_need(row: str) -> None:
    line = measured(first_game(row), row, 0, 60)
    assert line.get("needs") == "pip install 'counterplay[baselines]'" or line["points"]


def test_both_sides_come_to_the_same() -> None:
    """Uniform play, which CFR+ begins with, has one NashConv whoever measures it, and alpha-rank one answer."""
    ours, theirs = (measured("kuhn", f"{whose}_cfr_plus", 0, 0.2) for whose in ("ours", "openspiel"))
    assert ours["points"][0][2] == theirs["points"][0][2] == pytest.approx(11 / 12, rel=1e-4)
    assert max(ours["points"][-1][2], theirs["points"][-1][2]) < 0.01
    ours, theirs = (measured("random", f"{whose}_alpha_rank", 0, 10) for whose in ("ours", "openspiel"))
    assert ours["sigma"] == pytest.approx(theirs["sigma"], abs=1e-6)
    assert ours["points"][0][2] == pytest.approx(theirs["points"][0][2], rel=1e-3)


@pytest.mark.parametrize("name", GAMES)
def test_games_are_what_they_are_said_to_be(name: str) -> None:
    game = GAMES[name]
    tree = game.compiled().tree
    assert nash_conv(tree, uniform(tree)) == pytest.approx(BEGINNINGS[name], abs=1e-4)
    if game.zero_sum:
        check_zero_sum(tree)
    if game.normal_form:
        assert game.payoffs().shape[0] == 2


BEGINNINGS = {
    "matching_pennies": 0,
    "kuhn": 11 / 12,
    "kuhn_3": 2.0625,
    "leduc": 4.747222,
    "liars_dice": 1.310119,
    "blotto": 4 / 7,
    "random": 0.728585,
}
"""NashConv of uniform play; those of poker as OpenSpiel's tests have them."""


def test_the_random_game_is_read_as_it_was_written() -> None:
    payoffs = random_payoffs()
    np.testing.assert_allclose(GAMES["random"].payoffs(), payoffs)
    best = payoffs[0].mean(axis=1).max() + payoffs[1].mean(axis=0).max()
    assert best - payoffs.mean(axis=(1, 2)).sum() == pytest.approx(BEGINNINGS["random"])


def test_algorithms_are_paired() -> None:
    for row in ROWS.values():
        others = [other for other in ROWS.values() if other.algorithm == row.algorithm and other.whose != row.whose]
        assert others, row.algorithm
        if row.whose == PEER:
            assert set(row.games) <= {game for other in others for game in other.games}
    keys = wanted(GAMES, ROWS, ())
    assert len(keys) == len(set(keys))
    assert {seed for _, row, seed in keys if ROWS[row].learned} == set(SEEDS)


def test_measuring_takes_no_time_of_the_clock() -> None:
    def row(tally: Tally) -> Iterator[Measure]:
        tally.steps = 0
        while True:
            spend(0.01)
            tally.steps += 5
            yield partial(slow, 1.0)

    def slow(value: float) -> float:
        spend(0.03)
        return value

    tally = Tally()
    course = watch(row(tally), tally, 0.2)
    assert course.ended == "its time"
    assert 0.15 < course.seconds < 0.3
    assert course.measuring >= 0.03 * len(course.points)
    assert course.points[0][0] == pytest.approx(0.01, abs=0.01)
    assert [steps for _, steps, _ in course.points] == sorted(steps for _, steps, _ in course.points)
    gaps = np.diff([seconds for seconds, _, _ in course.points[:-1]])
    assert len(course.points) < 15
    assert gaps[-1] > gaps[0]


def test_what_takes_longer_than_its_time_is_interrupted() -> None:
    """In the middle of a step that would never end."""

    def row() -> Iterator[Measure]:
        yield lambda: 2.0
        spend(60)
        yield lambda: 1.0

    course = watch(row(), Tally(), 0.1)
    assert (course.ended, [point[2] for point in course.points]) == ("its time", [2.0])
    assert course.seconds < 1


def test_steps_too_short_for_a_timer_count_too() -> None:
    course = watch(iter(lambda: lambda: 1.0, None), Tally(), 0.05)
    assert course.ended == "its time"
    assert course.seconds == pytest.approx(0.05, abs=0.01)


def test_a_row_ends_when_there_is_nothing_left_to_gain() -> None:
    course = watch(iter([lambda: 1.0, lambda: SOLVED / 2, lambda: 0.0]), Tally(), 10)
    assert course.points[-1][2] <= SOLVED


def spend(seconds: float) -> None:
    """Keep a core busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_row_is_run_in_a_process_of_its_own() -> None:
    line = alone("matching_pennies", "ours_cfr_plus", 0, 0.2)
    assert (line["points"][0][2], line["ended"]) == (0, f"NashConv of {SOLVED:g}")


def test_a_broken_row_is_told_and_others_go_on(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a seed that NumPy refuses, which breaks OpenSpiel's row; run again, only that is tried."""
    monkeypatch.setattr(openspiel_baselines, "alone", measured)
    wrong = str(2**32)
    arguments = ["--games", "matching_pennies", "--rows", "openspiel_double_oracle", "ours_cfr_plus"]
    arguments += ["--seeds", wrong, "--budget", "0.2", "--results", str(results)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert f"openspiel_double_oracle seed {wrong}: cannot run: ValueError" in told
    broken, ran = read(results)
    assert broken["error"].startswith("ValueError: Seed must be")
    assert (ran["row"], ran["game"], ran["points"][0][2], ran["whose"]) == (
        "ours_cfr_plus",
        "matching_pennies",
        0,
        OURS,
    )
    page = results.with_suffix(".md")
    assert "openspiel_double_oracle on matching pennies: ValueError: Seed must be" in page.read_text()
    assert (results.parent / "results-matching_pennies.png").stat().st_size > 1000
    assert main(arguments) == 0
    assert "ours_cfr_plus seed" not in capsys.readouterr().out
    assert read(results)[0] == ran
    assert len(read(results)) == 2


def test_results_are_of_the_settings_that_rows_have() -> None:
    """And NFSP's of its defaults."""
    lines = read(ROOT / RESULTS)
    assert {line["row"] for line in lines} == set(ROWS)
    for line in lines:
        settings = {name: plain(value) for name, value in ROWS[line["row"]].settings.items()}
        if line["row"] == "ours_nfsp":
            settings["oracle"] = repr(NFSP())
        assert {name: line["settings"].get(name) for name in settings} == settings
        assert line["budget"] == ROWS[line["row"]].seconds(line["game"])


def test_lines_of_several_budgets_do_not_mix(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A median would be of neither; whole rows may be replaced."""
    monkeypatch.setattr(openspiel_baselines, "alone", measured)
    row = ["--games", "matching_pennies", "--rows", "openspiel_double_oracle", "--results", str(results)]
    assert main([*row, "--seeds", "0", "1", "--budget", "0.2"]) == 0
    before = results.read_text()
    for more in (["--seeds", "2", "--budget", "0.3"], ["--seeds", "1", "--budget", "0.3", "--again"], []):
        assert main([*row, *more]) == 2
        told = capsys.readouterr().err
        assert "seed 0, with a budget of 0.2 CPU seconds" in told
        assert "--results" in told
    assert results.read_text() == before
    assert main([*row, "--seeds", "2", "--budget", "0.2"]) == 0
    assert main([*row, "--seeds", "0", "1", "2", "--budget", "0.3", "--again"]) == 0
    assert [(line["seed"], line["budget"]) for line in read(results)] == [(0, 0.3), (1, 0.3), (2, 0.3)]
    capsys.readouterr()
    assert main([*row, "--budget", "0.3"]) == 0
    told = capsys.readouterr().out
    assert f"3 of these 3 lines are in {results} already" in told
    assert f"{len(wanted(GAMES, ROWS, ())) - 3} more lines belong to the whole comparison" in told


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And one that the page would be written over."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.jsonl").mkdir()
    for results in (tmp_path / "file" / "results.jsonl", tmp_path / "folder.jsonl", tmp_path / "x.md"):
        assert main(["--games", "kuhn", "--rows", "ours_cfr_plus", "--results", str(results)]) == 2
        assert "error: " in (told := capsys.readouterr()).err
        assert not told.out


def test_others_lines_are_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.parent.mkdir()
    results.write_text('{"x": 1}\n')
    assert main(["--games", "matching_pennies", "--rows", "ours_cfr_plus", "--results", str(results)]) == 2
    assert "line 1 of" in (told := capsys.readouterr().err)
    assert "lacks game, row, seed" in told
    assert results.read_text() == '{"x": 1}\n'


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_a_row_ends_with_the_command_that_is_killed(results: Path) -> None:
    """It would go on for its whole budget, beside the rows of the next command."""
    command = [sys.executable, "experiments/openspiel_baselines.py", "--games", "kuhn", "--rows", "ours_nfsp"]
    with subprocess.Popen(
        [*command, "--seeds", "0", "--budget", "1000", "--results", str(results)], cwd=ROOT
    ) as parent:
        child = until(lambda: children(parent.pid))
        parent.kill()
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in child))


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def until(found: Callable[[], Any], seconds: float = 60) -> Any:
    """What is found at last."""
    end = time.monotonic() + seconds
    while not (what := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return what


def test_a_process_that_dies_or_tells_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openspiel_baselines.sys, "executable", "/bin/false")
    assert alone("kuhn", "ours_cfr_plus", 0, 1) == {"error": "exit code 1: "}
    monkeypatch.setattr(openspiel_baselines.sys, "executable", "/bin/echo")
    assert alone("kuhn", "ours_cfr_plus", 0, 1)["error"].endswith("and not its line of results")


def test_what_a_row_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, advice in (("no_such_package", "pip install 'counterplay[baselines]'"), ("marl.no_such", None)):
        monkeypatch.setitem(ROWS, "ours_cfr_plus", Row("CFR+", OURS, iter, (module,)))
        line = measured("kuhn", "ours_cfr_plus", 0, 1)
        assert line["error"] == f"ModuleNotFoundError: No module named {module!r}"
        assert line.get("needs") == advice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--games", "khun"], "unknown game 'khun'; did you mean 'kuhn'"),
        (["--rows", "ours_nsfp"], "did you mean 'ours_nfsp'"),
        (["--budget", "0"], "budget must be a number of seconds, greater than 0"),
        (["--budget", "nan"], "budget must be a number of seconds"),
        (["--seeds", "-1"], "seeds must be at least 0, got -1"),
        (["--games", "leduc", "--rows", "ours_alpha_rank"], "none of the rows ours_alpha_rank is of leduc"),
    ],
)
def test_what_cannot_work_is_refused(
    arguments: list[str], message: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--results", str(results)]) == 2
    assert message in capsys.readouterr().err
    assert not results.exists()
