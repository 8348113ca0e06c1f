"""What README and CONTRIBUTING show works as shown."""

import re
import subprocess
import sys
import textwrap
import types
from functools import partial
from pathlib import Path

import pytest

from counterplay.main import COMMANDS
from games import conformance
from games.envs import AECFace, ParallelFace

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))


def blocks(language: str, text: str = README) -> list[str]:
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, named, code in found if named == language]


def commands(program: str) -> list[str]:
    """Lines of the plain code blocks that start with a program, without their comments."""
    lines = [line.split("  #")[0].strip() for block in blocks("") for line in block.splitlines()]
    return [line for line in lines if line.startswith(program + " ")]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("command", commands("python"))
def test_python_commands_explain_themselves(command):
    """Their budgets are a user's, so only their help is asked for here; tests/experiments runs them small."""
    words = re.sub(r" (runs/\S+|--.*)", "", command).split()[1:]
    shown = subprocess.run([sys.executable, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "usage:" in shown.stdout
    options = re.findall(r"(--[a-z-]+)", command)
    assert all(option in shown.stdout for option in options)


@pytest.mark.parametrize("command", commands("counterplay"))
def test_counterplay_commands_are_there(command):
    assert command.split()[1] in COMMANDS


def test_make_targets_are_there():
    makefile = (ROOT / "Makefile").read_text()
    named = {line.split()[1] for line in commands("make")} | set(re.findall(r"`make ([a-z]+)", README + CONTRIBUTING))
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_linked_files_are_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README + CONTRIBUTING):
        assert (ROOT / target).exists(), target


def test_named_files_and_folders_are_there():
    floors = "games|marl|metasolvers|experiments|analysis|counterplay|papers|tests|docs"
    for name in re.findall(rf"`((?:{floors})/[\w./]*)`", README + CONTRIBUTING):
        assert (ROOT / name).exists() or "tug_of_war" in name, name


def test_the_game_that_contributing_shows_conforms_and_passes_its_test(monkeypatch):
    code, test = blocks("python", CONTRIBUTING)
    module = types.ModuleType("games.tug_of_war")
    monkeypatch.setitem(sys.modules, "games.tug_of_war", module)  # where dataclasses, pickle and the test look for it
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))
    names: dict = {}
    exec(compile(test, "CONTRIBUTING.md", "exec"), names)
    names["test_pulling_alone_wins_in_as_many_turns_as_the_rope_has_steps"]()
    conformance.check_game(module.TugOfWar())
    faces = [partial(face, module.TugOfWar(), "tug_of_war") for face in (AECFace, ParallelFace)]
    conformance.check_faces(*faces)
