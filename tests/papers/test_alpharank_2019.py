"""The published numbers of alpha-rank, and the command that computes them again."""

import json
import tomllib

import numpy as np
import pytest
from matplotlib.testing.compare import compare_images
from open_spiel.python.egt.examples.alpharank_example import get_kuhn_poker_data
from PIL import Image

from papers.alpharank_2019.figures import picture
from papers.alpharank_2019.quantities import QUANTITIES, Game
from papers.alpharank_2019.reproduce import HERE, main, rows
from papers.pictures import write
from tests.golden_cases import CASES, numbers

PUBLISHED = HERE / "published.toml"
DOCUMENT = tomllib.loads(PUBLISHED.read_text())
GAMES = {entry["name"]: Game.read(entry) for entry in DOCUMENT["game"]}
GOLDEN = {case["id"]: case for case in CASES}
RESULTS = [(GAMES[entry["name"]], result) for entry in DOCUMENT["game"] for result in entry["result"]]
OF_GOLDEN = [(game, result) for game, result in RESULTS if "golden" in result]
LARGEST = 120_000
"""Bytes of a figure."""


def named(pairs):
    return pytest.mark.parametrize(
        ("game", "result"), [pytest.param(*pair, id=f"{pair[0].name}-{pair[1]['quantity']}") for pair in pairs]
    )


@named(RESULTS)
def test_published_numbers(game, result):
    for row in rows(game, [result]):
        assert row.ok, f"{row.quantity}, {row.of}: published {row.published}, ours {row.ours} ({row.source})"


@named(RESULTS)
def test_numbers_that_are_a_little_off_are_missed(game, result):
    off = {of: value + 2.5 * (result["tolerance"] or 1) for of, value in result["expected"].items()}
    assert not any(row.ok for row in rows(game, [result | {"expected": off}]))


@named(OF_GOLDEN)
def test_published_numbers_are_those_of_the_golden_cases(game, result):
    case = GOLDEN[result["golden"]]
    given, expected = case["input"], case["expected"]
    assert result["tolerance"] <= case["tolerance"]
    for name, golden in {"alpha": "alpha", "population_size": "m", "eps": "eps", "selection": "selection"}.items():
        assert golden not in given or name not in result or result[name] == given[golden]
    if "M" in given:
        np.testing.assert_array_equal(game.payoffs[0], numbers(given["M"]))
    if "payoffs" in given:
        np.testing.assert_allclose(game.payoffs, numbers(given["payoffs"]), atol=4e-8)  # of single precision
    if result["quantity"] == "sink":
        sinks = expected["sink_sccs"]
        assert len({number for number in result["expected"].values() if number}) == len(sinks)
        assert sum(number > 0 for number in result["expected"].values()) == sum(map(len, sinks))
    elif "top" in expected:
        assert result["expected"] == {", ".join(map(str, profile)): score for profile, score in expected["top"]}
    else:
        pi = expected["pi"] if "pi" in expected else expected["alpharank_pi_alpha5_m20"]
        np.testing.assert_array_equal([*result["expected"].values()], numbers(pi))


def test_every_published_golden_case_is_here():
    published = {case["id"] for case in CASES if case["topic"] == "alpha_rank_published"}
    assert published <= {result["golden"] for _, result in OF_GOLDEN}


@pytest.mark.parametrize("players", [2, pytest.param(3, marks=pytest.mark.papers)])
def test_kuhn_poker_payoffs_are_open_spiels(players):
    expected = np.stack(get_kuhn_poker_data(players))
    np.testing.assert_array_equal(GAMES[f"kuhn_poker_{players}"].payoffs.astype(np.float32), expected)


def test_every_number_has_a_source_and_every_source_is_used():
    used = {result["source"] for _, result in RESULTS} | {game.source for game in GAMES.values()}
    assert used == set(DOCUMENT["sources"])
    assert {result["quantity"] for _, result in RESULTS} == set(QUANTITIES)


def test_the_page_shows_what_the_command_finds(tmp_path, capsys):
    assert main(folder=tmp_path, figures=False) == 0
    count = sum(len(result["expected"]) for _, result in RESULTS)
    assert f"{count} numbers" in capsys.readouterr().out
    assert (tmp_path / "README.md").read_text() == (HERE / "README.md").read_text()
    found, committed = (json.loads((folder / "results.json").read_text()) for folder in (tmp_path, HERE))
    assert found.keys() == committed.keys()
    for name, expected in committed.items():
        for row, ours in zip(expected, found[name], strict=True):
            assert ours.pop("ours") == pytest.approx(row.pop("ours"), rel=1e-6)
            assert ours == row


def test_the_command_fails_where_a_number_disagrees(tmp_path, capsys):
    wrong = PUBLISHED.read_text().replace('"2, 3, 3" = 0.22\n', '"2, 3, 3" = 0.23\n')
    (tmp_path / "published.toml").write_text(wrong)
    assert main(tmp_path / "published.toml", tmp_path, figures=False) == 1
    told = capsys.readouterr().out
    assert "1 missed" in told
    assert "MISS share, alpha 100, m 50, 2, 3, 3: published 0.23" in told
    assert "| 0.23 | 0.2244 | 0.0051 | MISS |" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"quantity": "shares"}, "did you mean 'share'"), ({"expected": {"scisors": 1 / 3}}, "did you mean 'scissors'")],
)
def test_misspelt_entries(change, message):
    game, result = next(pair for pair in RESULTS if pair[0].name == "rock_paper_scissors")
    with pytest.raises(ValueError, match=message):
        rows(game, [result | change])


def test_policies_must_name_the_payoffs():
    with pytest.raises(ValueError, match="do not name payoffs of shape"):
        Game.read(DOCUMENT["game"][0] | {"policies": ["A", "B"]})


@pytest.mark.parametrize(
    ("name", "graphs"), [("prisoners_dilemma", 1), pytest.param("commitment", 0, marks=pytest.mark.papers)]
)
def test_a_figure_shows_payoffs_response_graph_and_shares(name, graphs, tmp_path):
    results = [result for game, result in RESULTS if game.name == name]
    figure = picture(GAMES[name], results)
    titles = [axis.get_title().split(",")[0] for axis in figure.axes if axis.get_title()]
    assert titles == ["payoffs", *["response graph"] * graphs, "shares as selection grows"]  # none of global selection
    write(figure, tmp_path / "figures" / "one.png")
    with Image.open(tmp_path / "figures" / "one.png") as drawn:
        assert drawn.size == figure.canvas.get_width_height()
        assert len(drawn.convert("RGB").getcolors()) > 50


def test_every_game_has_a_figure():
    figures = [*(HERE / "figures").iterdir()]
    assert {figure.name for figure in figures} == {f"{name}.png" for name in GAMES}
    assert all(figure.stat().st_size <= LARGEST for figure in figures)


@pytest.mark.papers
def test_figures_show_what_the_command_draws(tmp_path):
    assert main(folder=tmp_path) == 0
    for figure in (HERE / "figures").iterdir():
        assert compare_images(figure, tmp_path / "figures" / figure.name, tol=5) is None
