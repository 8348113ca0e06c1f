"""How teams are scored: exactly where that can be told, else beside what is known exactly."""

from dataclasses import replace

import pytest

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.optimum import Plan, spread_crews
from games.bucket_brigade.scripted import policy
from papers.oracles import teams


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(teams, "EPISODES", 2000)
    teams.uniform_return.cache_clear()
    yield
    teams.uniform_return.cache_clear()


def test_a_teams_return_is_that_of_the_exact_plan():
    game = BucketBrigade("minimal_specialization")
    mean, error = teams.team_return(game, [policy("spread", game)] * 4, seed=1)
    assert mean == pytest.approx(Plan(game, spread_crews(4)).value, abs=4 * error)


def test_a_team_that_has_hardly_learnt_is_near_uniform_play():
    game = BucketBrigade("rest_trap")
    brief = replace(teams.TEAM, ppo=replace(teams.TEAM.ppo, steps=512, num_lanes=64, learning_rate=1e-6, greedy=False))
    measured = teams.brigade(game, brief, seed=10)
    error = measured.details["standard_error"] + measured.details["uniform_standard_error"] / 1200
    assert measured.score == pytest.approx(0, abs=4 * error)
    assert measured.details["optimum"] == pytest.approx(5205.9, abs=0.1)


def test_signals_are_scored_by_expectation():
    brief = replace(teams.SIGNALLING, ppo=replace(teams.SIGNALLING.ppo, steps=4096, num_lanes=256))
    severed = teams.signalling("severed", brief, seed=10)
    assert severed.score == pytest.approx(0.25)
    assert severed.details["optimum"] == pytest.approx(0.25)
    assert severed.curve[-1][0] == 4096
    assert teams.signalling("open", brief, seed=10).score in (0.25, 0.5, 0.75, 1.0)
