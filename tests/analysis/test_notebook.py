"""The notebook runs from top to bottom on a stored run."""

import json
from pathlib import Path

import pytest

from analysis import notebook
from counterplay.main import main


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Jupyter itself is made of
def test_it_shows_every_figure(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", str(copy)]) == 0
    file = copy / "notebook.ipynb"
    assert capsys.readouterr().out == f"{file}\n"
    cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 5
    text = "".join(line for output in outputs for line in output.get("text", []))
    assert "run: 4 players, 2 of 2 iterations" in text
    assert text.count(" ± ") > 20
    assert all(output.get("name") != "stderr" for output in outputs)


def test_without_the_extra_it_says_what_to_install(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "NEEDED", ("jupytext", "no_such_package", "nor_this"))
    with pytest.raises(ValueError, match="need no_such_package, nor_this: pip install no_such_package nor_this"):
        notebook.write(copy)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no run folder"):
        notebook.write(tmp_path)
