"""Runs whose files are whole, but hold what no run writes, are told from good ones before anything is made of them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.figures import convergence
from analysis.load import load_run
from analysis.runs import glance, list_runs
from experiments.run import read_settings
from tests.analysis.handmade import seal

CONFIG = {"iterations": 2, "meta_solver": "alpha_rank", "alpha": 10.0, "population_size": 50, "reward": "own"}
WRONG_SETTINGS = [
    ("iterations must be a whole number", {"config": CONFIG | {"iterations": value}})
    for value in ("2", None, 1.5, True, -1, [])
] + [
    ("config in run.json", {"config": {}}),
    ("alpha must be a number", {"config": CONFIG | {"alpha": "10"}}),
    ("alpha must be a number", {"config": CONFIG | {"alpha": 10**400}}),
    ("population_size must be", {"config": CONFIG | {"population_size": None}}),
    ("config must be an object", {"config": "x"}),
    ("versions must be an object", {"versions": []}),
    ("machine must be an object", {"machine": None}),
    ("git must be an object", {"git": None}),
    ("git must be an object", {"git": "x"}),
    ("commit must be text", {"git": {"commit": 1, "changed_files": 0}}),
    ("it has no changed_files", {"git": {"commit": ""}}),
    ("run format True", {"format": True}),
    ("run format 1.0", {"format": 1.0}),
]
ROW = {"iteration": 1, "metric": "full_gap", "value": 1.0, "standard_error": 0.5, "kind": "estimate"}
LEARNT = ROW | {"metric": "learner/return", "player": 0, "step": 1}
WRONG_ROWS = [
    ("it is no object but []", []),
    ("it is no object but None", None),
    ("it is no object but 'x'", "x"),
    ("it has no metric", {}),
    ("metric must be text", ROW | {"metric": 1}),
    ("iteration must be a whole number", ROW | {"iteration": "1"}),
    ("value must be a number", ROW | {"value": None}),
    ("value must be a number", ROW | {"value": float("nan")}),
    ("value must be a number", ROW | {"value": float("inf")}),
    ("kind must be text", ROW | {"kind": None}),
    ("standard_error must be a number of at least 0", ROW | {"standard_error": -1.0}),
    ("it has no player", ROW | {"metric": "learner/return", "step": 1}),
    ("step must be a number", LEARNT | {"step": "1"}),
    ("player is 4 of 4", LEARNT | {"player": 4}),
]


def change_settings(run: Path, changes: dict[str, Any]) -> None:
    """With a manifest as if the run had written it."""
    settings = json.loads((run / "run.json").read_text()) | changes
    (run / "run.json").write_text(json.dumps(settings))
    seal(run, "run.json")


@pytest.mark.parametrize(("message", "changes"), WRONG_SETTINGS)
def test_odd_settings_are_damage_to_every_reader(copy: Path, message: str, changes: dict[str, Any]) -> None:
    change_settings(copy, changes)
    assert message in glance(copy).problem
    for read in (load_run, read_settings):
        with pytest.raises(ValueError, match=r"^[^\n]*run\.json|run format") as error:
            read(copy)
        assert message in str(error.value)


@pytest.mark.parametrize(("message", "row"), WRONG_ROWS)
def test_odd_metrics_are_damage(copy: Path, message: str, row: Any) -> None:
    folder = copy / "snapshots" / "0001"
    with open(folder / "metrics.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")
    seal(folder)
    assert message in glance(copy).problem
    with pytest.raises(ValueError, match=r"is damaged: 0001/metrics\.jsonl is not as a run writes it") as error:
        load_run(copy)
    assert message in str(error.value)


@pytest.mark.parametrize("line", ["null", "[]", '{"iteration": 0, "steps_seconds": null}', "{"])
def test_odd_times_are_damage(copy: Path, line: str) -> None:
    (copy / "timing.jsonl").write_text(line)
    with pytest.raises(ValueError, match=r"is damaged: run/timing\.jsonl is no"):
        load_run(copy)


def test_an_odd_run_is_listed_beside_the_others(copy: Path) -> None:
    shutil.copytree(copy, copy.with_name("whole"))
    change_settings(copy, {"versions": []})
    assert {run.path.name: run.state for run in list_runs(copy.parent)} == {"run": "damaged", "whole": "finished"}


def test_what_is_known_exactly_has_no_error(copy: Path) -> None:
    folder = copy / "snapshots" / "0001"
    with open(folder / "metrics.jsonl", "a") as file:
        file.write(json.dumps({key: value for key, value in ROW.items() if key != "standard_error"}) + "\n")
    seal(folder)
    assert glance(copy).state == "finished"
    assert convergence(load_run(copy)) is not None
