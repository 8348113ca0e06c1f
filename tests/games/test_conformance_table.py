"""Conformance of all games in one table."""

from pathlib import Path

import numpy as np
import pytest

import games
from counterplay.conform import main
from games.conformance import ConformanceError
from games.conformance.rules import Verdict
from games.conformance.table import SUITES, THIRD_PARTY, Entry, cell, complaints, ours, page, table

QUICK = Entry("sound", aec="tests.games.broken_envs:SoundAEC", episodes=1)


def fails(entry):
    yield Verdict("lives")
    yield Verdict("dies", ConformanceError("dies", "somebody does"))


def test_the_page_has_a_row_for_every_game():
    text = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    assert set(games.GAMES) | set(THIRD_PARTY) <= set(rows), "run make conformance"
    assert "BROKEN" not in text
    assert "cannot be played" not in text


def test_a_game_is_asked_everything(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    ((name, cells),) = table([ours("openspiel")])
    assert name == "openspiel"
    assert list(cells) == list(SUITES)
    assert all(found.sound and found.passed for found in cells.values()), cells


def test_any_function_from_entry_to_verdicts_is_a_suite():
    rows = list(table([QUICK, Entry("nothing")], {**SUITES, "other": fails}))
    text = page(rows, "a command")
    assert "| game | kernel | lanes | AEC | Parallel | faces agree | PettingZoo AEC |" in text
    assert "| sound |  |  | 25 |  |  |  |  |  | 1, BROKEN: dies |" in text
    assert "| nothing |  |  |  |  |  |  |  |  | 1, BROKEN: dies |" in text
    assert next(complaints(rows)) == "sound breaks `dies` (other): rule 'dies' is broken: somebody does"


def test_what_is_somebodys_own_fault_is_told_apart():
    entry = THIRD_PARTY["pettingzoo.classic.rps_v2"]
    found = cell(entry._replace(episodes=1), SUITES["AEC"])
    assert found.sound
    assert list(found.broken) == list(entry.faults) == ["state_space"]
    unknown = cell(entry._replace(episodes=1, faults={}), SUITES["AEC"])
    assert not unknown.sound
    assert "BROKEN: state_space" in str(unknown)


def test_what_cannot_be_played_is_said():
    (row,) = table([Entry("gone", aec="no.such.module:env")])
    assert not row[1]["AEC"].sound
    assert "cannot be played" in page([row], "a command")
    assert "no.such.module" in "".join(complaints([row]))


def test_kernels_are_asked_about_other_arrays_too():
    def rounded(array):
        return np.asarray(array) * (1 if array.dtype != np.float32 else np.float32(0.99))

    ((_, cells),) = table([ours("normal_form")], {"kernel": SUITES["kernel"]}, put=rounded)
    assert "arrays" in cells["kernel"].broken


@pytest.mark.slow
def test_everything_conforms_but_for_the_faults_that_are_known(monkeypatch):
    """And those are still there."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for name, cells in table():
        assert all(found.sound for found in cells.values()), (name, cells)
        told = {rule for found in cells.values() for rule in found.broken}
        assert told == set(THIRD_PARTY[name].faults if name in THIRD_PARTY else ())


def test_the_command_prints_either(capsys, monkeypatch):
    monkeypatch.setattr("counterplay.conform.table", lambda put: table([QUICK], {"AEC": SUITES["AEC"], "other": fails}))
    assert main(all=True) == 1
    told = capsys.readouterr()
    assert "sound" in told.out
    assert "sound breaks `dies`" in told.out
    assert told.err == "sound\n"
    assert main(all=True, markdown=True) == 1
    assert "| sound | 25 | 1, BROKEN: dies |" in capsys.readouterr().out
    assert main("tests.games.turns:Turns") == 0
    for wrong in ({}, {"markdown": True}, {"made_by": "games:env", "all": True}):
        with pytest.raises(ValueError, match="either a name"):
            main(**wrong)
