"""The notebook runs from top to bottom on a stored run."""

import json
from pathlib import Path

import pytest

from analysis import notebook
from counterplay.main import main

JUPYTER = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Jupyter itself is made of


def executed(file: Path) -> list[dict]:
    """The outputs of all cells."""
    return [output for cell in json.loads(file.read_text())["cells"] for output in cell.get("outputs", [])]


def prose(outputs: list[dict]) -> str:
    return "".join(line for output in outputs for line in output.get("data", {}).get("text/markdown", []))


@pytest.mark.covered_elsewhere
@JUPYTER
def test_it_shows_every_figure(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", str(copy)]) == 0
    file = copy / "notebook.ipynb"
    assert capsys.readouterr().out == f"{file}\n"
    outputs = executed(file)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 5
    text = "".join(line for output in outputs for line in output.get("text", []))
    assert "run: 4 players, 2 of 2 iterations" in text
    assert text.count(" ± ") > 20
    assert "In the whole game they are lower bounds" in prose(outputs)
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.covered_elsewhere
@JUPYTER
def test_of_an_exact_run_it_says_that_gaps_are_exact(tmp_path: Path) -> None:
    assert main(["psro-openspiel", "--game", "matrix_rps", "--run-dir", str(tmp_path / "run")]) == 0
    outputs = executed(notebook.write(tmp_path / "run"))
    assert "computed exactly" in prose(outputs)
    assert "lower bound" not in prose(outputs)
    assert all(output.get("name") != "stderr" for output in outputs)


def test_without_the_extra_it_says_what_to_install(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "NEEDED", ("jupytext", "no_such_package", "nor_this"))
    with pytest.raises(ValueError, match="need no_such_package, nor_this: pip install no_such_package nor_this"):
        notebook.write(copy)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no run folder"):
        notebook.write(tmp_path)
