"""What the README shows works as shown."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    return [code for named, code in found if named == language]


def commands(program: str) -> list[str]:
    """Lines of the plain code blocks that start with a program, without their comments."""
    lines = [line.split("  #")[0].strip() for block in blocks("") for line in block.splitlines()]
    return [line for line in lines if line.startswith(program + " ")]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", commands("python"))
def test_python_commands_explain_themselves(command):
    """Their budgets are a user's, so only their help is asked for here; tests/experiments runs them small."""
    words = re.sub(r" (runs/\S+|--.*)", "", command).split()[1:]
    shown = subprocess.run([sys.executable, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "usage:" in shown.stdout
    options = re.findall(r"(--[a-z-]+)", command)
    assert all(option in shown.stdout for option in options)


def test_make_targets_are_there():
    makefile = (ROOT / "Makefile").read_text()
    named = {line.split()[1] for line in commands("make")} | set(re.findall(r"`make ([a-z]+)", README))
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_linked_files_are_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
