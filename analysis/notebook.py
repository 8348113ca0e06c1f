"""The notebook of a run, executed: `counterplay notebook runs/<name>` writes its notebook.ipynb.

Its source is analysis/notebooks/psro_run.py, text that jupytext turns into cells; open it in Jupyter to go further. The
comparison with OpenSpiel, a file of results, has another: analysis/notebooks/openspiel_comparison.py.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from analysis.files import write_whole
from analysis.load import load_run
from analysis.openspiel_comparison import checked

SOURCES = Path(__file__).with_name("notebooks")
ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("jupytext", "nbclient", "ipykernel")
SECONDS = 300
"""For one cell."""


def write(path: Path) -> Path:
    """Execute the notebook on the run at `path`, and write it into its folder; beside it for a file of results.

    Raises ValueError for a folder that is no run or has nothing to show yet, a file without results, and where the
    extra is not installed.
    """
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise ValueError(f"notebooks need {', '.join(missing)}: pip install {' '.join(missing)}")
    if path.suffix == ".jsonl":
        checked(path)  # says better than a cell what is wrong with it
        return _executed("openspiel_comparison", "COUNTERPLAY_RESULTS", path, path.with_suffix(".ipynb"))
    load_run(path)
    return _executed("psro_run", "COUNTERPLAY_RUN", path, path / "notebook.ipynb")


def _executed(source: str, variable: str, path: Path, file: Path) -> Path:
    """The notebook of that source, told by an environment variable what to read, as a file."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(SOURCES / f"{source}.py")
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {variable: str(path.resolve()), "PYTHONPATH": paths}
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    client.create_kernel_manager().transport = "ipc"  # a socket that others on the machine cannot listen to
    client.execute(env=environment)
    write_whole(file, jupytext.writes(notebook, "ipynb").encode())
    return file
