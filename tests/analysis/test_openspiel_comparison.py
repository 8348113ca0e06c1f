"""The comparison with OpenSpiel is drawn and told from its lines of results."""

import json
import math
import threading
from pathlib import Path

import pytest

from analysis import notebook
from analysis.comparison import pair
from analysis.lines import Line, complete, read
from analysis.openspiel_comparison import TOGETHER, behind, days, failures, one_sided, ranked, write
from counterplay.main import main
from tests.analysis.test_notebook import JUPYTER, executed, prose


def line(whose: str, points: list, algorithm: str = "NFSP", game: str = "kuhn", seed: int = 0, **more: object) -> Line:
    """What the command writes of a row and seed."""
    row = f"{'ours' if whose == 'ours' else 'openspiel'}_{algorithm.lower().replace('-', '_')}"
    told = {"game": game, "title": game.title(), "row": row, "algorithm": algorithm, "whose": whose, "seed": seed}
    told |= {"day": "2026-01-01", "budget": 60.0}
    seconds, steps, _ = points[-1] if points else (1.0, 10, 0)
    return told | {"points": points, "cpu_seconds": seconds, "steps": steps, "import_seconds": 1.0} | more


LINES = [
    line("ours", [[0.1, 0, 1.0], [1.0, 2000, 0.5], [2.0, 4000, 0.1]]),
    line("ours", [[0.1, 0, 1.0], [1.5, 3000, 0.4], [2.0, 4000, 0.2]], seed=1),
    line("OpenSpiel", [[1.0, 0, 0.9], [50.0, 5000, 0.5], [60.0, 6000, 0.6]]),
    line("ours", [[2.0, None, 1.0], [4.0, None, 1e-9]], "CFR+"),
    line("OpenSpiel", [[0.5, None, 1.0], [1.0, None, 0.01]], "CFR+"),
    line("ours", [[0.1, 0, 4.0], [9.0, 10, 0.5]], game="leduc"),
    line("OpenSpiel", [[0.1, 0, 4.0], [9.0, 10, 6.0]], game="leduc"),
    line("ours", [[0.1, None, 0.0]], "double oracle", "pennies"),
    line("OpenSpiel", [[0.2, 1, 0.0]], "double oracle", "pennies"),
    line("ours", [[0.1, 1, 0.5]], "PSRO, DQN"),
    {**line("OpenSpiel", [], "PSRO, DQN"), "error": "ModuleNotFoundError: No module named 'chex'", "needs": "an extra"},
    line("ours", [[0.1, None, 0.2]], "alpha-rank", "pennies", sigma=[0.5, 0.5, 0, 0]),
    line("OpenSpiel", [[0.4, None, 0.2]], "alpha-rank", "pennies", sigma=[0.5, 0.4, 0.1, 0]),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    file = tmp_path / "comparison" / "results.jsonl"
    complete(file, ("game", "row", "seed"), [(each["game"], each["row"], each["seed"]) for each in LINES], find)
    return file


def find(game: str, row: str, seed: int) -> Line:
    return next(each for each in LINES if (each["game"], each["row"], each["seed"]) == (game, row, seed))


def test_where_one_side_begins_is_no_level() -> None:
    """A random network may be worse than uniform play, from which the other begins: nothing was learnt to get there."""
    lines = [line("ours", [[0.1, 0, 4.75], [60.0, 10, 1.0]]), line("OpenSpiel", [[0.1, 0, 6.8], [60.0, 10, 5.5]])]
    found = pair(lines, "kuhn", "NFSP")
    assert math.isnan(found.level)
    assert found.ahead == "ours"


@pytest.mark.parametrize(("theirs", "named"), [(0.2 * 4e-5, True), (0.2 * 0.996, True), (0.2 * 1.01, False)])
def test_alpha_rank_is_named_wherever_open_spiel_is_sooner(theirs: float, named: bool) -> None:
    lines = [
        line("ours", [[0.2, None, 0.2]], "alpha-rank", sigma=[1.0]),
        line("OpenSpiel", [[theirs, None, 0.2]], "alpha-rank", sigma=[1.0]),
    ]
    assert any("alpha-rank of Kuhn" in told for told in behind(lines)) == named


def test_both_are_asked_for_what_both_reach() -> None:
    """OpenSpiel's lowest, 0.5 after 50 s: ours is there after 1 s and 1.5 s."""
    found = pair(LINES, "kuhn", "NFSP")
    assert (found.level, found.our_seconds, found.their_seconds) == (0.5, 1.25, 50)
    assert (found.ratio, found.ahead) == (40, "ours")
    assert found.ours is not None
    assert (found.ours.seeds, found.ours.last, found.ours.rate) == (2, pytest.approx(0.15), 2000)


@pytest.mark.parametrize(
    ("game", "algorithm", "ahead", "ratio"),
    [
        ("kuhn", "CFR+", "OpenSpiel", 0.25),  # 1 s to 0.01 beside 4 s
        ("leduc", "NFSP", "ours", math.nan),  # theirs only rises
        ("pennies", "double oracle", "", math.nan),  # both begin at the equilibrium
        ("kuhn", "PSRO, DQN", "", math.nan),  # theirs cannot run
    ],
)
def test_who_is_ahead(game: str, algorithm: str, ahead: str, ratio: float) -> None:
    found = pair(LINES, game, algorithm)
    assert found.ahead == ahead
    assert found.ratio == pytest.approx(ratio, nan_ok=True)


@pytest.mark.parametrize("whose", ["ours", "OpenSpiel"])
def test_most_seeds_come_to_the_level(whose: str, results: Path) -> None:
    """Of two seeds both, and not the mean of what they come to; of seeds that could not run nothing is asked."""
    other = "OpenSpiel" if whose == "ours" else "ours"
    two = [line(whose, [[1, 0, 1.0], [2, 1, 0.1]]), line(whose, [[1, 0, 1.0], [3, 1, 0.2]], seed=1)]
    broken = {**line(whose, [], seed=2), "error": "ValueError: no"}
    found = pair([*two, broken, line(other, [[1, 0, 1.0], [8, 1, 0.05]])], "kuhn", "NFSP")
    assert found.level == 0.2
    assert (found.our_seconds, found.their_seconds) == ((2.5, 8) if whose == "ours" else (8, 2.5))


def test_seeds_of_several_budgets_are_named() -> None:
    lines = [LINES[0], {**LINES[1], "budget": 2.0}]
    assert failures(lines) == ["- ours_nfsp on Kuhn: medians are of seeds with several budgets, 60 s, 2 s"]


def test_times_of_alpha_rank_are_medians() -> None:
    mine = [line("ours", [[t, None, 0.0]], "alpha-rank", sigma=[1, 0], seed=i) for i, t in enumerate((1, 1, 9))]
    ((_, _, ours, theirs, ratio, _),) = ranked([*mine, line("OpenSpiel", [[2, None, 0.0]], "alpha-rank", sigma=[1, 0])])
    assert (ours, theirs, ratio) == (1, 2, 2)


def test_a_last_line_may_lack_its_end(tmp_path: Path) -> None:
    """As editors leave it: what follows is a line of its own."""
    file = tmp_path / "lines.jsonl"
    file.write_text('{"name": "a"}')
    complete(file, ("name",), [("b",)], lambda name: {"name": name})
    assert [each["name"] for each in read(file)] == ["a", "b"]


def test_who_has_learnt_nothing_in_its_time_is_behind() -> None:
    late = [line("ours", [[0.1, 1, 1.0], [1.0, 2, 0.5]]), line("OpenSpiel", [])]
    assert pair(late, "kuhn", "NFSP").ahead == "ours"


def test_every_row_where_openspiel_is_ahead_is_named() -> None:
    assert behind(LINES) == ["- CFR+ on Kuhn: 4 times sooner at NashConv 0.01"]
    assert behind([LINES[0], LINES[2]]) == ["Nowhere."]
    assert behind(LINES[:2]) == [TOGETHER]
    rising = [line("ours", [[1, 1, 2.0], [2, 2, 3.0]]), line("OpenSpiel", [[1, 1, 1.9], [2, 2, 1.5]])]
    assert behind(rising) == ["- NFSP on Kuhn: NashConv 1.5 beside 3 in the end, and no level"]
    both = [rising[0], line("OpenSpiel", [[1, 1, 1.9], [2, 2, 2.5]])]
    assert behind(both) == ["Nowhere."]
    slower = [
        line("ours", [[4, None, 0.0]], "alpha-rank", sigma=[1, 0]),
        line("OpenSpiel", [[1, None, 0.0]], "alpha-rank", sigma=[1, 0]),
    ]
    assert behind(slower) == ["- alpha-rank of Kuhn: 1 s beside 4 s"]


def test_what_cannot_run_says_why_and_what_it_needs() -> None:
    assert failures(LINES) == [
        "- openspiel_psro, dqn on Kuhn: ModuleNotFoundError: No module named 'chex' (an extra)",
    ]
    assert failures(LINES[:2]) == ["Everything that was tried has run."]


def test_who_begins_at_an_equilibrium_is_not_ahead() -> None:
    """As uniform play in matching pennies, where the other begins elsewhere, and has something to learn."""
    lines = [line("ours", [[0.1, 0, 0.0]]), line("OpenSpiel", [[0.1, 0, 1.0], [9.0, 10, 0.1]])]
    assert pair(lines, "kuhn", "NFSP").ahead == ""
    assert behind(lines) == ["Nowhere."]


def test_what_one_side_alone_has_is_told(results: Path) -> None:
    lines = [LINES[0], LINES[2], line("ours", [[0.1, 0, 4.0]], "PSRO, DQN", "leduc"), LINES[10]]
    assert one_sided(lines) == [
        ["Kuhn", "PSRO, DQN", "OpenSpiel", "", "cannot run", "", "–"],
        ["Leduc", "PSRO, DQN", "ours", "1", "4 (unchanged)", "0.1", "–"],
    ]
    assert "## On one side alone\n\nNothing." in write(results)[0].with_suffix(".md").read_text()


def test_rows_that_were_measured_on_other_days_are_told() -> None:
    later = [{**LINES[1], "day": "2026-01-02"}, {**LINES[5], "day": "2026-01-03"}]
    assert days([LINES[0], LINES[3], *later]) == [
        ["2026-01-01", "ours_nfsp (Kuhn), ours_cfr+"],
        ["2026-01-02", "ours_nfsp (Kuhn)"],
        ["2026-01-03", "ours_nfsp (Leduc)"],
    ]


def test_the_page_and_figures_are_made_of_the_lines_alone(results: Path) -> None:
    page, *figures = write(results)
    assert page == results.with_suffix(".md")
    assert {file.name for file in figures} == {f"results-{game}.png" for game in ("kuhn", "leduc", "pennies")}
    assert all(f"]({file.name})" in page.read_text() for file in figures)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in figures)
    text = page.read_text()
    assert "| Kuhn | NFSP | 2, 1 | 60 | 0.15 | 2 | 0.6 | 60 | 0.5 | 1.2 | 50 | 40 | 2,000 | 100 | 20 | ours |" in text
    assert "| Pennies | 4 | 0.1 | 0.4 | 4 | 0.1 |" in text
    assert "- CFR+ on Kuhn: 4 times sooner" in text
    before = {file: file.read_bytes() for file in (page, *figures)}
    write(results)
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.covered_elsewhere
@JUPYTER
def test_the_notebook_shows_the_same(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", str(results)]) == 0
    file = results.with_suffix(".ipynb")
    assert capsys.readouterr().out == f"{file}\n"
    outputs = executed(file)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert "CFR+ on Kuhn: 4 times sooner" in prose(outputs)
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize(("text", "told"), [("", "holds no results"), ('{"game"\n', "line 1 of .* is no JSON")])
def test_a_file_without_results_is_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text)
    for read_it in (write, notebook.write):
        with pytest.raises(ValueError, match=told):
            read_it(file)


def test_lines_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    file, asked = tmp_path / "deep" / "lines.jsonl", []

    def run(name: str, seed: int) -> Line:
        asked.append((name, seed))
        return {"name": name, "seed": seed, "broken": len(asked) == 1}

    keys = [("a", 0), ("b", 0)]
    complete(file, ("name", "seed"), keys, run)
    complete(file, ("name", "seed"), [*keys, ("a", 1)], run, again=lambda line: line["broken"])
    assert asked == [("a", 0), ("b", 0), ("a", 0), ("a", 1)]
    assert [(each["name"], each["seed"], each["broken"]) for each in read(file)] == [
        ("b", 0, False),
        ("a", 0, False),
        ("a", 1, False),
    ]
    assert [json.loads(text) for text in file.read_text().splitlines()] == read(file)


def test_several_processes_may_write_one_file(tmp_path: Path) -> None:
    """What one appends does not fall into what another rewrites, and a key that both made has one line."""
    file, both = tmp_path / "lines.jsonl", threading.Barrier(2, timeout=20)

    def work(name: str) -> None:
        def run(whose: str, seed: int) -> Line:
            both.wait()
            return {"whose": whose, "seed": seed, "by": name}

        for _ in range(3):  # from the second time on, lines are replaced
            keys = [("both", 0), *((name, seed) for seed in range(20))]
            complete(file, ("whose", "seed"), keys, run, again=lambda line: True)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [(each["whose"], each["seed"]) for each in read(file)]
    assert sorted(found) == sorted({("both", 0), *((name, seed) for name in "ab" for seed in range(20))})
