"""Compiled games on disk: whole or not at all, of one origin, and never needed."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from games import tree_files
from games.openspiel import openspiel
from games.tree_files import cached_tree, folder

NAME = "kuhn_poker(players=3)"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("COUNTERPLAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refuse():
    raise AssertionError("compiled again")


def tree_file(cache: Path) -> Path:
    (file,) = cache.glob("*.safetensors")
    return file


def assert_same_trees(one, other) -> None:
    assert one.keys == other.keys
    for part, same in ((one.nodes, other.nodes), (one.information, other.information)):
        for a, b in zip(part, same, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_what_was_compiled_once_is_read(cache):
    tree = openspiel(NAME).tree
    assert_same_trees(cached_tree(origin(), refuse), tree)
    assert all(np.equal(*pair).all() for pair in zip(openspiel(NAME).sight, openspiel(NAME).sight, strict=True))
    assert len(list(cache.iterdir())) == 2


def origin() -> str:
    return f"OpenSpiel {version('open_spiel')}: {NAME}"


def test_names_of_all_kinds_survive():
    tree = openspiel(NAME).tree
    keys = ["", "a\0b\n", "ä€𝄞", *tree.keys[3:]]
    named = type(tree)(tree.nodes, tree.information, keys)
    cached_tree("here", lambda: named)
    assert cached_tree("here", refuse).keys == tuple(keys)


BROKEN = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "a byte short": lambda data: data[:-1],
    "cut in its header": lambda data: data[:20],
    "garbage": lambda data: bytes(range(256)) * 9,
    "a pickle": lambda data: b"cos\nsystem\n(S'false'\ntR.",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_written_again(kind, cache):
    tree = openspiel(NAME).tree
    whole = tree_file(cache).read_bytes()
    tree_file(cache).write_bytes(BROKEN[kind](whole))
    assert_same_trees(openspiel(NAME).tree, tree)
    assert tree_file(cache).read_bytes() == whole


@pytest.mark.parametrize("lacking", ["name", "Nodes.player"])
def test_foreign_files_are_written_again(lacking, cache):
    openspiel(NAME)
    whole, arrays = tree_file(cache).read_bytes(), load_file(tree_file(cache))
    arrays.pop(lacking, None)
    name = "another" if lacking == "name" else f"tree, format {tree_files.FORMAT}. {origin()}"
    save_file(arrays, tree_file(cache), {"name": tree_files._sealed(name, arrays)})
    openspiel(NAME)
    assert tree_file(cache).read_bytes() == whole


def test_damage_to_a_file_never_changes_a_value(cache):
    """One bit, anywhere: what is read is the tree, or it is compiled again."""
    tree, generator = openspiel(NAME).tree, np.random.default_rng(0)
    whole = tree_file(cache).read_bytes()
    for place in generator.integers(len(whole), size=60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(generator.integers(8))
        tree_file(cache).write_bytes(damaged)
        assert_same_trees(openspiel(NAME).tree, tree)


def test_another_version_or_format_is_another_file(cache, monkeypatch):
    openspiel(NAME)
    monkeypatch.setattr("games.openspiel.version", lambda _: "0.0")
    openspiel(NAME)
    monkeypatch.setattr("games.tree_files.FORMAT", tree_files.FORMAT + 1)
    openspiel(NAME)
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("where", ["a file", "below a file", "/proc"])
def test_where_nothing_can_be_kept_a_warning_says_so(where, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    place = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "cache"}.get(where, where)
    monkeypatch.setenv("COUNTERPLAY_CACHE", str(place))
    with pytest.warns(UserWarning, match="could not be kept .*set COUNTERPLAY_CACHE to a folder"):
        game = openspiel(NAME)
    assert game.tree.num_nodes == 601
    assert (tmp_path / "file").read_text() == "mine"


def test_folders_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("COUNTERPLAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert folder() == Path("/somewhere/counterplay")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert folder() == Path("/home/me/.cache/counterplay")


COMPILE = "from games.openspiel import openspiel; openspiel('leduc_poker')"


def test_processes_that_write_at_once_leave_one_whole_file(cache):
    processes = [subprocess.Popen([sys.executable, "-c", COMPILE], stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[1] for process in processes] == [b"", b""]
    assert tree_file(cache) == next(cache.iterdir())
    assert openspiel("leduc_poker").tree.num_nodes == 9451


def test_a_kill_before_the_file_is_whole_leaves_nothing_that_is_read(cache):
    killed = f"import os; os.replace = lambda *paths: os.kill(os.getpid(), 9); {COMPILE}"
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    (left,) = cache.iterdir()
    assert left.suffix != ".safetensors"
    assert openspiel("leduc_poker").tree.num_nodes == 9451
    assert tree_file(cache).exists()


def test_a_game_made_from_a_file_changes_with_it(tmp_path):
    path = tmp_path / "game.efg"
    for payoff in (1, 7):
        path.write_text(
            'EFG 2 R "choice" { "first" "second" } ""\n\np "" 1 1 "" { "a" "b" } 0\n'
            f't "" 1 "a" {{ {payoff} 0 }}\nt "" 2 "b" {{ 0 0 }}\n'
        )
        tree = openspiel(f"efg_game(filename={path})").tree
        assert tree.nodes.rewards[:, 0].max() == payoff
