"""The page that a run becomes."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from analysis.figures import FIGURES
from analysis.files import write_whole
from analysis.load import Run, load_run
from analysis.markup import Html, element, folded, table
from analysis.numbers import interval, rounded, share
from analysis.report import html, write
from counterplay.main import main
from tests.analysis.handmade import write_run

NASTY = "<script>alert('&\"')</script>"
VOID = {"meta", "img"}


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def source(stored: Run) -> bytes:
    return html(stored)


@pytest.fixture(scope="module")
def page(source: bytes) -> Page:
    return Page(source.decode())


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and are no different on pages that are."""
    monkeypatch.setattr("analysis.report.FIGURES", {})


def test_it_needs_nothing_but_itself(page: Page) -> None:
    assert not {"script", "link", "iframe", "object", "embed"} & set(page.tags)
    for name, value in page.attributes:
        assert name != "src" or value.startswith("data:image/svg+xml;base64,")
        assert name != "href" or value.startswith("#")
        assert not name.startswith("on")
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_it_shows_every_figure_with_a_caption(page: Page) -> None:
    assert page.tags.count("img") == page.tags.count("figcaption") == 5


def test_links_lead_to_sections(page: Page) -> None:
    ids = {value for name, value in page.attributes if name == "id"}
    links = {value.removeprefix("#") for name, value in page.attributes if name == "href"}
    assert links == ids


def test_it_says_what_was_measured_and_how(page: Page, stored: Run) -> None:
    gap = stored.series("full_gap")[-1]
    for words in (
        f"at least {gap['value']:.1f} ± {gap['standard_error']:.1f}",
        "lower bound",
        "95 % interval",
        "alpha_rank",
        "--ppo.hidden 16",
        stored.settings["git"]["commit"],
        stored.settings["versions"]["torch"],
        "train/2/3",
        "of their own training episodes; means ± standard error",
    ):
        assert words in page.text
    assert "not got as far" not in page.text


def test_every_profile_is_listed_with_its_errors(page: Page) -> None:
    assert "81 joint profiles" in page.text
    assert "the 80 others share" in page.text
    assert page.text.count(" ± ") > 81 * 4


def test_what_a_folder_holds_is_text_and_never_markup(tmp_path: Path, no_figures: None) -> None:
    path = write_run(tmp_path / f"run {NASTY.replace('/', '')}", players=2, iterations=1)
    settings = json.loads((path / "run.json").read_text())
    settings["config"] |= {"scenario": NASTY, NASTY: NASTY}
    settings |= {
        "versions": {NASTY: NASTY},
        "machine": {NASTY: NASTY},
        "git": {"commit": NASTY, "changed_files": 1},
    }
    (path / "run.json").write_text(json.dumps(settings))
    snapshot = path / "snapshots" / "0001" / "snapshot.json"
    snapshot.write_text(snapshot.read_text().replace("train/1/0", NASTY.replace('"', "")))
    rows = [json.dumps({"iteration": 0, "finished": NASTY})]
    (path / "timing.jsonl").write_text("\n".join(rows))
    page = Page(html(load_run(path)).decode())
    assert "script" not in page.tags
    assert page.text.count(NASTY) >= 6


def test_an_unfinished_run_says_so_and_one_without_responses_too(tmp_path: Path, no_figures: None) -> None:
    path = write_run(tmp_path / "run", players=2, iterations=0)
    settings = json.loads((path / "run.json").read_text())
    settings["config"]["iterations"] = 3
    (path / "run.json").write_text(json.dumps(settings))
    text = Page(html(load_run(path)).decode()).text
    assert "not got as far" in text
    assert "No best response is trained yet" in text


def test_long_tables_are_cut_and_say_so(tmp_path: Path, no_figures: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.report.MOST_PROFILES", 5)
    text = Page(html(load_run(write_run(tmp_path / "run", players=2, iterations=2))).decode()).text
    assert "The first 5 of 9" in text


def test_markup_is_escaped_once() -> None:
    assert element("p", "a < b", element("b", "&")) == "<p>a &lt; b<b>&amp;</b></p>"
    assert element("p", class_='"') == '<p class="&quot;"></p>'
    assert folded("more", Html("<p></p>"), fold=False) == "<p></p>"
    assert "<td>&lt;</td>" in table(("a",), [("<",)])


def test_the_command_writes_the_same_page_every_time(
    copy: Path, stored: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: FIGURES[name] for name in ("convergence", "learning_curves")}  # with markers and clip paths
    monkeypatch.setattr("analysis.report.FIGURES", few)
    assert main(["report", str(copy)]) == 0
    assert capsys.readouterr().out == f"{copy / 'report.html'}\n"
    assert (copy / "report.html").read_bytes() == html(stored)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no run folder"):
        write(tmp_path)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    write_whole(file, b"old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_whole(file, b"new")
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    assert file.read_bytes() == b"old"


def test_numbers_have_the_digits_their_errors_are_worth() -> None:
    assert rounded(1234.5678, 0.0712) == ("1234.568", "0.071")
    assert rounded(3.0, 0.0) == ("3", "0")
    assert rounded(np.float64(51), 12.0) == ("51", "12")
    assert interval(10.0, 1.0) == "8.0 to 12.0"
    assert interval(10.0, 0.0) == ""
    assert [share(p) for p in (0.0, 1e-5, 0.5)] == ["0.0 %", "< 0.1 %", "50.0 %"]
