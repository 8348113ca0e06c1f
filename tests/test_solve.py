"""`counterplay solve`: tables from files and runs, every meta-solver, and what cannot be read."""

import json
from pathlib import Path

import numpy as np
import pytest

from counterplay.main import main
from metasolvers import META_SOLVERS

ROOT = Path(__file__).resolve().parents[1]
PENNIES = np.array([[[1.0, -1], [-1, 1]], [[-1, 1], [1, -1]]])


@pytest.fixture
def table(tmp_path: Path) -> str:
    np.save(tmp_path / "pennies.npy", PENNIES)
    return str(tmp_path / "pennies.npy")


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_it_lists_the_meta_solvers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve"]) == 0
    out = shown(capsys)
    assert all(name in out for name in META_SOLVERS)


@pytest.mark.parametrize("name", META_SOLVERS)
def test_every_meta_solver_solves(name: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", table, "--solver", name]) == 0
    out = shown(capsys)
    assert "player 1" in out
    assert "probability" in out
    certificate = META_SOLVERS[name].certificate
    assert certificate is None or certificate.name in out


@pytest.mark.parametrize("suffix", [".npy", ".json", ".csv"])
def test_the_same_table_from_any_file(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, sigma = tmp_path / f"table{suffix}", tmp_path / "sigma.npy"
    if suffix == ".npy":
        np.save(path, PENNIES)
    elif suffix == ".json":
        path.write_text(json.dumps(PENNIES.tolist()))
    else:
        np.savetxt(path, PENNIES[0], delimiter=",")
    assert main(["solve", str(path), "--solver", "zero_sum_nash", "--save", str(sigma)]) == 0
    np.testing.assert_allclose(np.load(sigma), 0.25)


def test_the_last_table_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(ROOT / "tests" / "data" / "run")]) == 0
    out = shown(capsys)
    assert "player 3" in out
    assert "payoffs are estimates" in out


def test_parameters_reach_the_meta_solver(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without selection all profiles are equally likely; the certificate is of the same chain."""
    np.save(tmp_path / "dilemma.npy", [[[3, 0], [5, 1]], [[3, 5], [0, 1]]])
    assert main(["solve", str(tmp_path / "dilemma.npy"), "--set", "alpha=0", "normalize=False"]) == 0
    out = shown(capsys)
    assert out.count("0.500000") == 4
    assert float(out.rpartition("stationarity: ")[2].partition(",")[0]) <= 1e-10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--solver", "alpharank"], "did you mean 'alpha_rank'"),
        (["--set", "alfa=1"], "did you mean 'alpha'"),
        (["--set", "alpha"], "name=value"),
        (["--set", "alpha=-1"], "alpha must be"),
        (["--set", "alpha=1,population_size=20"], "alpha is a number, got '1,population_size=20'"),
        (["--set", "normalize=no"], "normalize is true or false, got 'no'"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", table, *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("table.npy", "no array", "cannot be read"),
        ("table.json", "[[1, 2], [3]]", "ragged"),
        ("table.csv", "1,2\n3", "cannot be read"),
        ("table.txt", "1", "a run folder, .npy, .json or .csv"),
    ],
)
def test_files_that_hold_no_payoffs(
    name: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(content)
    assert main(["solve", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err
