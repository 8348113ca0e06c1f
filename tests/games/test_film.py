"""Single episodes as sequences of states, and their films."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

import games
from games import film
from games.bucket_brigade.scripted import policy
from games.play import play, states
from games.policies import Uniform

SHAPE = (48, 64, 3)


def pictures(number: int = 5) -> list[np.ndarray]:
    """A bright block that moves over a dark ground."""
    frames = [np.full(SHAPE, 20, np.uint8) for _ in range(number)]
    for step, frame in enumerate(frames):
        frame[8:40, 10 * step : 10 * step + 16] = (230, 159, 0)
    return frames


def pictures_of(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """[T, height, width, 3] uint8 of an .mp4."""
    command = [get_ffmpeg_exe(), "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(data, np.uint8).reshape(-1, *shape)


def uniform(game) -> list:
    return [Uniform.of(space) for space in game.action_spaces]


def team(game) -> list:
    return [policy(name, game) for name in ("spread", "specialist", "genome liar", "uniform")]


@pytest.mark.parametrize(
    ("name", "players"), [("bucket_brigade", uniform), ("bucket_brigade", team), ("matching_pennies", uniform)]
)
@pytest.mark.parametrize("seed", [0, 9])
def test_states_are_those_of_the_episode_that_play_plays(name, players, seed):
    game = games.make(name)
    shown = list(states(game, players(game), seed, "film"))
    played = play(game, [players(game)], 1, seed, ["film"])
    assert len(shown) == played.lengths.item() + 1
    returns = sum(game.rewards(params, state)[0].astype(np.float64) for params, state in shown)
    np.testing.assert_array_equal(returns, played.returns[0, 0])
    ends = [bool(game.terminated(params, state)[0] | game.truncated(params, state)[0]) for params, state in shown]
    assert ends == [False] * (len(shown) - 1) + [True]


def test_states_refuses_what_play_would():
    game = games.make("bucket_brigade")
    with pytest.raises(ValueError, match="one policy for each of 4 seats, got 2"):
        next(states(game, uniform(game)[:2], 0, "film"))
    with pytest.raises(ValueError, match="did not end within 3 steps"):
        list(states(game, uniform(game), 0, "film", max_steps=3))


def test_a_gif_loops_and_holds_its_last_picture(tmp_path):
    frames = pictures()
    film.save(iter(frames), tmp_path / "film.gif", fps=4)
    with Image.open(tmp_path / "film.gif") as gif:
        assert (gif.n_frames, gif.info["loop"]) == (5, 0)
        for index, frame in enumerate(frames):
            gif.seek(index)
            assert gif.info["duration"] == (2000 if index == 4 else 250)
            assert np.abs(np.asarray(gif.convert("RGB"), int) - frame).max() <= 4


def test_an_mp4_shows_the_pictures_in_order(tmp_path):
    frames = pictures()
    film.save(iter(frames), tmp_path / "film.mp4", fps=5)
    read = pictures_of(tmp_path / "film.mp4", SHAPE)
    assert len(read) == 4 + 2 * 5
    for frame, back in zip([*frames, *[frames[-1]] * 9], read, strict=True):
        assert np.abs(back.astype(int) - frame).mean() < 6


def test_odd_sides_are_padded_for_players(tmp_path):
    film.save([picture[:-1, :-1] for picture in pictures()], tmp_path / "film.mp4")
    assert (
        np.abs(pictures_of(tmp_path / "film.mp4", SHAPE)[0, :-1, :-1].astype(int) - pictures()[0][:-1, :-1]).mean() < 6
    )


def test_what_ffmpeg_complains_of_is_told(tmp_path):
    flat = [np.zeros((0, 4, 3), np.uint8)]
    with pytest.raises(OSError, match="ffmpeg could not write"):
        film.save(flat, tmp_path / "flat.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", film.WRITERS)
@pytest.mark.parametrize("number", [1, 2])
def test_one_picture_is_a_film_too(tmp_path, suffix, number):
    film.save(pictures(number), tmp_path / f"film{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"film{suffix}"]


@pytest.mark.parametrize("suffix", film.WRITERS)
def test_a_failed_film_leaves_the_old_one_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"film{suffix}"
    path.write_bytes(b"old")

    def broken():
        yield from pictures(3)
        raise RuntimeError("the projector broke")

    with pytest.raises(RuntimeError, match="projector"):
        film.save(broken(), path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


def test_impossible_films_are_refused_by_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.gif or \.mp4, got 'film.avi'"):
        film.save(pictures(), tmp_path / "film.avi")
    with pytest.raises(ValueError, match="at least one picture"):
        film.save([], tmp_path / "film.gif")
    with pytest.raises(ValueError, match="fps must lie in"):
        film.save(pictures(), tmp_path / "film.gif", fps=0)
    with pytest.raises(ValueError, match=r"fps must lie in \[0\.1, 100\], got 0\.001"):
        film.save(pictures(), tmp_path / "film.gif", fps=0.001)
    with pytest.raises(FileNotFoundError, match="no folder"):
        film.save(pictures(), tmp_path / "none" / "film.gif")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", film.WRITERS)
def test_pictures_are_bytes_of_one_size(tmp_path, suffix):
    first = pictures(1)[0]
    with pytest.raises(ValueError, match=r"of one size, got \[48, 64, 3\] and \[24, 64, 3\]"):
        film.save([first, first[:24]], tmp_path / f"film{suffix}")
    with pytest.raises(ValueError, match=r"must be uint8 \[height, width, 3\], got float64 \[48, 64, 3\]"):
        film.save([first / 255], tmp_path / f"film{suffix}")
    with pytest.raises(ValueError, match=r"must be uint8 \[height, width, 3\], got uint8 \[48, 64\]"):
        film.save([first, first[:, :, 0]], tmp_path / f"film{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", film.WRITERS)
def test_where_nothing_can_be_written_is_told_before_there_are_pictures(tmp_path, suffix):
    taken = tmp_path / f"film{suffix}"
    taken.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        film.writer_for(taken)
    with pytest.raises(OSError, match="/proc"):  # where not even root can make files
        film.writer_for(Path(f"/proc/film{suffix}"))


def test_without_ffmpeg_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(DependencyNotInstalled, match="pip install imageio-ffmpeg"):
        film.save(pictures(), tmp_path / "film.mp4")
