"""The notebook runs from top to bottom on a stored run."""

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[2] / "analysis" / "notebooks" / "psro_run.py"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Jupyter itself is made of
def test_it_shows_every_figure(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN", str(copy))
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[2]))
    notebook = jupytext.read(NOTEBOOK)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(copy)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 5
    text = "".join(output.get("text", "") for output in outputs)
    assert "run: 4 players, 2 of 2 iterations" in text
    assert text.count(" ± ") > 20
    assert all(output.get("name") != "stderr" for output in outputs)
