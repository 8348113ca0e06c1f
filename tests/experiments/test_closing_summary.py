"""What a run says in the end, in words and numbers that can be told apart."""

import pytest

from experiments.ending import counted
from experiments.psro_openspiel import main
from experiments.report import _measured, _notes


def row(metric: str, value: float, **more: object) -> dict:
    return {"iteration": 2, "metric": metric, "value": value, "standard_error": 0.0, "kind": "exact", **more}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exact", "exact NashConv, return per episode"),
        ("lower bound", "lower bound on the NashConv, return per episode"),
        ("estimate", "estimate of the NashConv, return per episode"),
    ],
)
def test_gaps_say_of_which_concept_they_are_and_in_what(kind: str, words: str) -> None:
    told = _measured("full_gap", row("full_gap", 0.5, kind=kind, concept="NashConv", unit="return per episode"), [])
    assert told.startswith("  gap in the whole game")
    assert told.endswith(words)


def test_of_responses_that_gain_nothing_it_is_said_how_many_there_were() -> None:
    gains = [row("response_gain", value) for value in (0.0, 0.5, 0.0)]
    earlier = [entry | {"iteration": 1} for entry in gains]
    last = [*gains, row("non_improving", 2), row("duplicates", 1)]
    assert "2 of 3" in _measured("non_improving", last[3], [*earlier, *last])

    class Config:
        meta_solver = "zero_sum_nash"

    (told,) = _notes(Config(), [*earlier, *last])  # type: ignore[arg-type]
    assert told == "  in all iterations, 4 of 6 best responses gained nothing; 1 was there already"


def test_one_iteration_is_one(tmp_path, no_figures, capsys) -> None:
    assert (counted(1), counted(2)) == ("1 iteration", "2 iterations")
    assert main(["--iterations", "1", "--run-dir", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "ended: 1 iteration was asked for" in out
    assert "0.833333                exact NashConv, return per episode" in out
    assert "0 of 2                  exact, of the last iteration" in out
