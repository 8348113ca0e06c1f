"""The notebook of a run, executed: `counterplay notebook runs/<name>` writes its notebook.ipynb.

Its source is analysis/notebooks/psro_run.py, text that jupytext turns into cells; open it in Jupyter to go further.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from analysis.files import write_whole
from analysis.load import load_run

SOURCE = Path(__file__).with_name("notebooks") / "psro_run.py"
ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("jupytext", "nbclient", "ipykernel")
SECONDS = 300
"""For one cell."""


def write(path: Path) -> Path:
    """Execute the notebook on the run at `path`, and write it into its folder.

    Raises ValueError for a folder that is no run or has nothing to show yet, and where the extra is not installed.
    """
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise ValueError(f"notebooks need {', '.join(missing)}: pip install {' '.join(missing)}")
    load_run(path)  # says better than a cell what is wrong with it
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(SOURCE)
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"COUNTERPLAY_RUN": str(path.resolve()), "PYTHONPATH": paths}
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    client.create_kernel_manager().transport = "ipc"  # a socket that others on the machine cannot listen to
    client.execute(env=environment)
    file = path / "notebook.ipynb"
    write_whole(file, jupytext.writes(notebook, "ipynb").encode())
    return file
