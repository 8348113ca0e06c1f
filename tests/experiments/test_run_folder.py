"""docs/run_folder.md names exactly what a run writes."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from analysis.load import FORMAT, READABLE, load_run
from analysis.report import STARTED_BY, command
from experiments.placement import settings as settings_of
from experiments.psro_bucket_brigade import main, parse
from experiments.report import summary
from marl.atomic import digest
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from tests.experiments.tiny import ROOT, TINY

DOCUMENT = (ROOT / "docs" / "run_folder.md").read_text()
STORED = ROOT / "tests" / "data" / "run"


def documented(section: str) -> dict[str, list[str]]:
    """The table of a section: what its first column names -> the other columns."""
    text = DOCUMENT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_files(copy: Path) -> None:
    for name in ("report.html", "notebook.ipynb"):  # they have tests of their own, and take seconds
        (copy / name).touch()
    patterns = {
        name: re.compile(
            re.escape(name)
            .replace("UNIT", "(initial|train-1|gap-1)-[0-3]")
            .replace("NNNN", "[0-9]{4}")
            .replace(r"\*", ".*")
        )
        for name in documented("Files")
    }
    found = [str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file()]
    unknown = [file for file in found if not any(pattern.fullmatch(file) for pattern in patterns.values())]
    unwritten = [name for name, pattern in patterns.items() if not any(map(pattern.fullmatch, found))]
    assert (unknown, unwritten) == ([], [])


def test_settings_and_times(finished: Path) -> None:
    settings = json.loads((finished / "run.json").read_text())
    assert list(settings) == list(documented("`run.json`"))
    assert settings["format"] == FORMAT == READABLE[-1]
    assert f"format {FORMAT}" in DOCUMENT.splitlines()[0]
    for line in (finished / "timing.jsonl").read_text().splitlines():
        assert list(json.loads(line)) == list(documented("`timing.jsonl`"))


@pytest.mark.parametrize("iteration", [0, 1])
def test_arrays(finished: Path, iteration: int) -> None:
    sizes = {"N": 4, "k_1, ..., k_N": ", ".join([str(iteration + 1)] * 4)}
    with np.load(finished / "snapshots" / f"{iteration:04d}" / "payoffs.npz", allow_pickle=False) as arrays:
        found = {name: (list(arrays[name].shape), str(arrays[name].dtype)) for name in arrays}
    expected = {}
    for name, (shape, dtype, *_) in documented("`payoffs.npz`").items():
        for symbol, size in reversed(sizes.items()):
            shape = shape.replace(symbol, str(size))
        expected[name] = (json.loads(shape), dtype)
    assert found == expected


def test_metrics(finished: Path) -> None:
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    units = {row["metric"]: row.get("unit", "") for row in rows}
    assert units == {name: unit for name, (unit, _) in documented("`metrics.jsonl`").items()}


def test_the_summary(finished: Path) -> None:
    found = json.loads((finished / "summary.json").read_text())
    assert list(found) == list(documented("`summary.json`"))
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["iteration"] == found["iteration"] == 1 and "player" not in row]
    assert found["measured"] == {row["metric"]: row for row in last}


def test_the_stored_runs_summary_is_as_a_run_writes_it() -> None:
    assert json.loads((STORED / "summary.json").read_text()) == summary(load_run(STORED).metrics)


def test_policies(finished: Path) -> None:
    folder = finished / "policies" / "train-1-2"
    about = json.loads((folder / "policy.json").read_text())
    weights = load_file(folder / "policy.safetensors")
    shapes = {}
    for layer, (size, after) in enumerate(zip(about["layers"], about["layers"][1:], strict=False)):
        shapes |= {f"{layer}.weight": (after, size), f"{layer}.bias": (after,)}
    assert {name: array.shape for name, array in weights.items()} == shapes
    assert {str(array.dtype) for array in weights.values()} == {"float32"}
    section = DOCUMENT.split("\n## `policy.json`")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for key in about)


def test_a_newer_format_is_refused_and_a_folder_without_one_goes_on(
    copy: Path, capsys: pytest.CaptureFixture[str], no_figures: None
) -> None:
    settings = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(settings | {"format": FORMAT + 1}))
    assert main(["--run-dir", str(copy), "--resume"]) == 2
    assert "is of run format 2; this version reads 1" in capsys.readouterr().err
    del settings["format"]
    (copy / "run.json").write_text(json.dumps(settings))
    (copy / "manifest.json").write_text(json.dumps({"run.json": digest(copy / "run.json")}))
    assert main(["--run-dir", str(copy), "--resume"]) == 0


def test_the_stored_run_can_be_gone_on_with() -> None:
    """Format 1 as it was written first is read to the last policy."""
    store = PolicyStore(STORED / "policies")
    assert finished_iterations(STORED / "snapshots") == 3
    last = load_snapshot(STORED / "snapshots", 2, store)
    assert [len(population) for population in last.populations] == [3] * 4


def test_a_report_tells_the_command_that_makes_the_run_again() -> None:
    given = [*TINY, "--scenario", "minimal_specialization", "--no-warm-start", "--ppo.no-greedy", "--reward", "team"]
    config = parse(given)
    words = shlex.split(command(settings_of(config)).replace("\\\n", ""))
    assert words[:3] == shlex.split(STARTED_BY["psro"])
    assert settings_of(parse(words[3:])) == settings_of(config)
