"""Looking at the policies of a run."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image

from counterplay.main import main
from experiments.episode import episode
from games import make
from games.scripted import profile
from games.wrappers import time_limit
from tests.games.test_film import pictures_of


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["play", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_policies_asked_for_play_a_line_a_night(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, finished, "--profile", "0", "1", "0", "1", "--seed", "4")
    assert "agent_0 plays policy 0, the initial uniform policy" in out
    assert "agent_3 plays policy 1, the best response of iteration 1" in out
    assert "\x1b" not in out
    nights = int(re.search(r"returns after (\d+) nights", out)[1])  # type: ignore[index]
    lines = re.findall(r"^ +(\d+)  ((?:[■▲×] ){10})(.*)$", out, flags=re.MULTILINE)
    assert [int(number) for number, _, _ in lines] == list(range(nights + 1))
    earned = [float(reward) for _, _, deeds in lines for reward in re.findall(r" ([+-][\d.]+)", deeds)]
    team = float(re.search(r"team (-?[\d.]+)$", out, flags=re.MULTILINE)[1])  # type: ignore[index]
    assert sum(earned) == pytest.approx(team, abs=0.05 * len(earned) + 0.05)
    assert out == shown(capsys, finished, "--profile", "0", "1", "0", "1", "--seed", "4")


def test_a_profile_is_drawn_from_the_meta_strategy(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = shown(capsys, finished, "--iteration", "0", "--render", "none")
    assert first.count("plays policy 0") == 4
    assert "a profile of probability 1 in the meta-strategy of iteration 0" in first
    assert "■" not in first


def test_a_terminal_gets_colours(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert "\x1b[38;2;86;180;233m■" in shown(capsys, finished)


def test_films_show_every_night(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gif, mp4 = tmp_path / "episode.gif", tmp_path / "episode.mp4"
    out = shown(capsys, finished, "--render", "none", "--save", gif, "--fps", "10")
    assert f"saved {gif}" in out
    nights = int(re.search(r"returns after (\d+) nights", out)[1])  # type: ignore[index]
    with Image.open(gif) as film:
        assert (film.n_frames, film.size) == (nights + 1, (960, 640))
    shown(capsys, finished, "--render", "none", "--save", mp4, "--fps", "10")
    assert len(pictures_of(mp4, (640, 960, 3))) == nights + 20  # the last one stands for two seconds


def test_a_window_shows_the_episode(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("games.film.HOLD", 0.01)
    assert "returns after" in shown(capsys, finished, "--render", "human", "--fps", "100")
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert main(["play", str(finished), "--render", "human"]) == 2
    assert "pip install pygame-ce" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--profile 0 0 1", "one policy for each of 4 players"),
        ("--profile 0 0 1 2", "in 0..1 of the meta-strategy of iteration 1; got 0 0 1 2"),
        ("--iteration 2", "must lie in 0..1"),
        ("--iteration -1", "must lie in 0..1"),
        ("--save episode.png", "must end in .gif or .mp4"),
        ("--save no/such/folder/episode.gif", "no folder no/such/folder"),
    ],
)
def test_what_cannot_be_played_costs_one_line(
    finished: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(finished), *options.split()]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)


def test_there_must_be_a_run_with_an_iteration(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(tmp_path / "none")]) == 2
    assert "there is no run at" in capsys.readouterr().err
    young = Path(shutil.copytree(finished, tmp_path / "young"))
    shutil.rmtree(young / "snapshots")
    assert main(["play", str(young)]) == 2
    assert "has finished no iteration yet" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["--fps 0", "--seed -1", "--render film"])
def test_impossible_values_exit_with_2(finished: Path, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["play", str(finished), *options.split()])
    assert end.value.code == 2
    assert options.split()[0].strip("-") in capsys.readouterr().err


def test_boards_of_openspiel_are_shown_to_the_end() -> None:
    game = make("openspiel_stepped:tic_tac_toe")
    played = episode(game, profile("uniform", game), 0, "play", pictured=False)
    boards = [line.plain for line in played.lines if "\n" in line.plain]
    assert len(boards) == len(played.rewards) + 1
    marks = [len(re.findall("[xo]", board)) for board in boards]
    assert marks == list(range(len(boards)))  # the last one too, and not the next episode's start


def test_wrapped_games_are_shown_as_the_game_inside() -> None:
    game = make("bucket_brigade")
    shown = [
        [line.plain for line in episode(each, profile("specialist", each), 0, "play", pictured=False).lines]
        for each in (game, time_limit(game, 10_000))  # type: ignore[arg-type]
    ]
    assert shown[0] == shown[1]
