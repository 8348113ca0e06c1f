"""What papers/nfsp_2016 measures, and its page."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from analysis.lines import read
from games import make
from games.exact import nash_conv, profile, tabulate
from games.lanes import GameLanes
from marl.oracles import DQN, NFSP
from papers.nfsp_2016.reproduce import HERE, RESULTS, claim, main, of, page, published_claims
from papers.nfsp_2016.tasks import LOOKS, SEEDS, TASKS, poker
from tests.golden_cases import select

TINY = NFSP(dqn=DQN(steps=4096, num_lanes=32, gradient_steps=1, learning_starts=512, hidden=(8,)), hidden=(8,))


def test_what_is_measured_of_poker_is_the_gap_of_averages_and_of_responses():
    kuhn = make("openspiel:kuhn_poker")
    line = poker(replace(TASKS["kuhn"], oracle=TINY), 3, "openspiel:kuhn_poker")
    training = TINY.learner(GameLanes(kuhn, 32), (0, 1), 3)
    while not training.finished:
        training.update()
    for name, policies in (("average", training.policies), ("response", training.responses)):
        parts = [tabulate(kuhn, policies[seat], seat) for seat in (0, 1)]
        assert line["curve"][name][-1] == pytest.approx(nash_conv(kuhn.tree, profile(kuhn.tree, parts)) / 2, abs=1e-6)
    assert line["score"] == line["curve"]["average"][-1]
    assert len(line["curve"]["steps"]) <= LOOKS
    assert line["curve"]["steps"][-1] == TINY.total_steps
    assert np.all(np.diff(line["curve"]["cpu_seconds"]) >= 0)


def test_results_are_of_the_settings_that_the_tasks_have():
    lines = read(RESULTS)
    assert {(line["task"], line["seed"]) for line in lines} == {
        (name, seed) for name, task in TASKS.items() for seed in task.seeds
    }
    for line in lines:
        assert line["settings"] == repr(TASKS[line["task"]].oracle)
        assert line["steps"] == TASKS[line["task"]].oracle.total_steps


def test_the_page_is_that_of_the_results(tmp_path):
    page(read(RESULTS), tmp_path)
    assert (tmp_path / "README.md").read_text() == (HERE / "README.md").read_text()
    figures = {file.name for file in (HERE / "figures").iterdir()}
    assert {file.name for file in (tmp_path / "figures").iterdir()} == figures


def test_leduc_is_still_falling_when_it_ends():
    """The last fifth of the curve lies below the fifth before it."""
    for line in of(read(RESULTS), "leduc"):
        late, before = np.array(line["curve"]["average"])[-10:], np.array(line["curve"]["average"])[-20:-10]
        assert late.mean() < before.mean()


def test_what_is_missed_is_told(tmp_path, capsys):
    """Whether the long training ends within the range around the recalled value."""
    (published,) = (entry for entry in published_claims() if "value" in entry)
    lines = of(read(RESULTS), "leduc_long")
    within = all(published["least"] <= line["score"] <= published["most"] for line in lines)
    assert claim(published, lines)[-1] == ("ok" if within else "MISS")
    page(read(RESULTS), tmp_path)
    assert ("missed: leduc_long" in capsys.readouterr().out) == (not within)


def test_bars_that_are_missed_are_told(tmp_path, capsys):
    lines = read(RESULTS)
    worse = [line | {"score": 1.0} if line["task"] == "kuhn" else line for line in lines]
    assert page(worse, tmp_path) == 1
    assert "missed: kuhn" in capsys.readouterr().out
    assert "| missed |" in (tmp_path / "README.md").read_text()


def test_only_what_is_not_there_is_run(tmp_path, monkeypatch):
    ran = []

    def measured(task, seed):
        ran.append(seed)
        return {"score": 0.01, "cpu_seconds": 1.0, "curve": of(read(RESULTS), "kuhn")[0]["curve"]}

    monkeypatch.setitem(TASKS, "kuhn", replace(TASKS["kuhn"], measure=measured))
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"")
    for _ in range(2):
        main(("kuhn",), (0, 2), file, tmp_path)
    assert ran == [0, 2]


@pytest.mark.slow
def test_bucket_brigade_is_measured_against_the_best_scripted_team():
    oracle = NFSP(response="ppo", ppo=replace(TASKS["rest_trap"].oracle.ppo, steps=100_000, num_lanes=256))
    line = TASKS["rest_trap"].measure(replace(TASKS["rest_trap"], oracle=oracle), 0)
    assert line["scripted"] == "spread"
    assert line["uniform_loss"] == pytest.approx(np.log(40), rel=1e-5)
    assert line["loss"] < line["uniform_loss"]
    gap = line["scripted_return"] - line["uniform"]
    assert line["score"] == pytest.approx((line["team_return"] - line["uniform"]) / gap)


@pytest.mark.parametrize("case", select("nfsp"))
def test_the_long_training_ends_within_the_golden_range(case):
    """A claim recalled, not read: its range is wide."""
    least, most = case["expected"]["expect_range"]
    lines = of(read(RESULTS), "leduc_long")
    assert lines
    assert all(least <= line["score"] <= most for line in lines)


@pytest.mark.papers
@pytest.mark.parametrize("seed", SEEDS)
def test_kuhn_is_as_committed(seed):
    """The bar again, by a training of its own."""
    task = TASKS["kuhn"]
    assert task.reached(partial(poker, game="openspiel:kuhn_poker")(task, seed))
