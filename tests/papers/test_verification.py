"""The measured shortfall of verification oracles: its lines, and its page."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from experiments.shortfalls import RESULTS, known_shortfall, measured_oracles
from games.exact import deviation_gains, uniform
from marl.oracles import PPO
from papers.oracles.lines import read
from papers.verification import run, table
from papers.verification.tasks import SUBJECTS, TASKS

LINES = read(RESULTS)


def test_every_task_was_measured_as_it_is():
    assert {line["task"] for line in LINES} == set(TASKS)
    for line in LINES:
        task = TASKS[line["task"]]
        assert (line["settings"], line["steps"]) == (repr(task.settings), task.settings.total_steps)
        assert line["restarts"] == 3


def test_bounds_hold_in_95_of_100_cases():
    """At the level of one player's deviation, whose gain in truth is known."""
    held = table.bounds(LINES)
    assert len(held) > 40
    assert sum(held) >= binom.ppf(0.01, len(held), 0.95)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["task"])
def test_nothing_is_found_that_is_not_there(line):
    """No bound is above the exact gap by more than its error, and no deviation gains more than the best."""
    for row in (line, *line["players"]):
        assert row["gained"] <= row["exact"] + 1e-9
        assert abs(row["found"] - row["gained"]) <= 4 * row["standard_error"] + 1e-9
        assert row["at_least"] <= row["exact"] + 2 * row["standard_error"] + 1e-9
    for name in ("exact", "gained", "found"):
        assert line[name] == pytest.approx(sum(player[name] for player in line["players"]), abs=1e-9)


@pytest.mark.parametrize("subject", ["uniform", "psro"])
def test_exact_gaps_are_of_the_games_as_they_are(subject):
    """Of uniform play as a strategy's, and of meta-strategies as the stored ones."""
    for line in (line for line in LINES if line["subject"] == subject and line["game"].startswith("kuhn")):
        game = TASKS[line["task"]].make()
        if subject == "uniform":
            assert line["exact"] == pytest.approx(deviation_gains(game.tree, uniform(game.tree)).sum())
        else:
            _, sigma = SUBJECTS[subject](game)
            assert sigma.shape == (5,) * len(line["players"])


def test_a_line_is_measured_in_a_moment(monkeypatch, tmp_path, capsys):
    name = "ppo kuhn_poker uniform"
    little = PPO(steps=1024, num_lanes=128, minibatches=2, hidden=(8,))
    monkeypatch.setattr(run, "TASKS", {name: TASKS[name]._replace(settings=little)})
    results = tmp_path / "lines.jsonl"
    assert run.main((name,), results) == 0
    (line,) = read(results)
    assert line["exact"] == pytest.approx(11 / 12)
    assert line["gained"] <= line["exact"]
    assert line["steps"] == 1024
    assert run.main((name,), results) == 0
    assert read(results) == [line]
    assert "at least" in capsys.readouterr().out


def test_what_a_command_prints_is_of_these_lines():
    assert measured_oracles() == ["ppo", "dqn"]
    known = known_shortfall("ppo", repr(TASKS["ppo leduc_poker psro"].settings))
    assert known["same_settings"]
    rows = [line for line in LINES if line["oracle"] == "ppo" and line["game"] == "leduc_poker"]
    shares = [line["gained"] / line["exact"] for line in rows]
    assert known["games"]["leduc_poker"]["gained"] == [min(shares), max(shares)]
    assert known["games"]["leduc_poker"]["missed"] == max(line["exact"] - line["gained"] for line in rows)
    other = replace(TASKS["ppo leduc_poker psro"].settings, gamma=0.5)
    assert not known_shortfall("ppo", repr(other))["same_settings"]
    assert known_shortfall("sac", "") is None
    assert np.all(np.array(shares) > 0)


def test_the_page_is_what_the_command_writes(tmp_path):
    table.main(tmp_path)
    assert (tmp_path / "README.md").read_text() == (table.HERE / "README.md").read_text()
