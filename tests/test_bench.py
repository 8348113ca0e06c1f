"""The benchmark's rows, in windows too short to mean anything: that they are made, not what they say."""

import json
from dataclasses import replace

import pytest

from counterplay.bench import __main__ as command
from counterplay.bench import (
    buffers,
    exact,
    games,
    joint,
    metasolvers,
    openspiel,
    oracles,
    ppo,
    processes,
    runs,
    stepped,
    workers,
)
from marl.workers import Here


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(games, "WINDOWS", 1)
    monkeypatch.setattr(games, "SECONDS", 0.01)
    monkeypatch.setattr(openspiel, "GAMES", {"kuhn_poker": "kuhn_poker"})
    monkeypatch.setattr(openspiel, "LANES", 32)
    monkeypatch.setattr(openspiel, "ROUNDS", 1)
    monkeypatch.setattr(openspiel, "SECONDS", 0.01)
    monkeypatch.setattr(stepped, "GAMES", {"kuhn_poker": "", "go(board_size=5)": ""})
    monkeypatch.setattr(stepped, "LANES", 2)
    monkeypatch.setattr(stepped, "MOVES", 8)
    monkeypatch.setattr(ppo, "ROUNDS", 1)
    monkeypatch.setattr(joint, "ROUNDS", 1)
    monkeypatch.setattr(workers, "ROUNDS", 1)
    monkeypatch.setattr(processes, "ROUNDS", 1)
    monkeypatch.setattr(processes, "STEPS", 5)
    monkeypatch.setattr(exact, "GAME", "kuhn_poker")
    monkeypatch.setattr(exact, "REPEATS", 1)
    monkeypatch.setattr(exact, "PEER_NASH_CONV", 0.5)  # uniform play has 0.92
    monkeypatch.setattr(exact, "PEER_SECONDS", 1.0)
    monkeypatch.setattr(workers, "STEPS", workers.PPO().batch)
    monkeypatch.setattr(oracles, "OURS", replace(oracles.OURS, steps=256, num_lanes=8))
    monkeypatch.setattr(oracles, "SHAPES", ((2, 16),))
    monkeypatch.setattr(oracles, "EPISODES", 2)
    monkeypatch.setattr(oracles, "PEER_MINIBATCH", 16)
    monkeypatch.setattr(oracles, "TEAM", replace(oracles.TEAM, ppo=oracles.PPO(num_lanes=8, steps=64)))
    monkeypatch.setattr(oracles, "ROUNDS", 1)
    monkeypatch.setattr(buffers, "CAPACITY", 1000)
    monkeypatch.setattr(buffers, "ROUNDS", 1)


def test_the_command_prints_and_writes_the_table(capsys, tmp_path):
    file = tmp_path / "bench.json"
    assert command.main(["--only", "games", "ppo", "joint", "--json", str(file)]) == 0
    table = json.loads(file.read_text())
    assert "load_before" in table["machine"]
    assert len(table["rows"]) == 12
    assert all(row["ours"] > 0 for row in table["rows"])
    out = capsys.readouterr().out
    for words in ("lane-steps/s", "PettingZoo", "bare networks", "joint PPO", ">= 1.5M/s"):
        assert words in out


def test_alpha_rank_is_timed_beside_open_spiel():
    row = metasolvers._beside_open_spiel((3, 3), alpha=1.0, repeats=1)
    assert row.peer == "OpenSpiel"
    assert row.ratio == pytest.approx(row.peer_value / row.ours)
    residual, difference = row.note.split("; differs by ")
    assert float(residual.removeprefix("residual ")) <= 1e-10
    assert float(difference) <= 1e-8


def test_the_memory_of_the_largest_game_is_told(monkeypatch, capsys):
    monkeypatch.setattr(metasolvers, "LARGEST", (3, 3))
    metasolvers.solve_largest(1.0)
    seconds, peak, residual = capsys.readouterr().out.splitlines()
    assert float(seconds) > 0
    assert int(peak) > 2**20
    assert residual.startswith("residual ")


def test_the_linear_program_is_timed_beside_open_spiel(monkeypatch):
    monkeypatch.setattr(metasolvers, "ACTIONS", 5)
    row = metasolvers._linear_program()
    assert row.ratio == pytest.approx(row.peer_value / row.ours)
    ours, peers = row.note.removeprefix("NashConv ").split(", the peer's ")
    assert float(ours) <= 1e-12
    assert float(peers) <= 1e-6


def test_exact_values_are_those_of_open_spiel():
    values, averages = exact._nash_conv(), exact._cfr_plus()
    assert values.peer == averages.peer == "OpenSpiel (C++)"
    assert values.ratio == pytest.approx(values.peer_value / values.ours)
    assert float(values.note.removeprefix("differs by ")) < 1e-12
    assert averages.ours > 0
    assert "iterations, the peer" in averages.note


def test_the_double_oracle_is_timed_beside_psro_v2():
    row = exact._double_oracle()
    assert row.name == "double oracle on kuhn_poker to NashConv 0.5, peer to 0.5"
    assert (row.peer, row.ratio) == ("OpenSpiel psro_v2", row.peer_value / row.ours)
    ours, peer = (float(course.split(" ")[0]) for course in row.note.split("NashConv ")[1:])
    assert ours == pytest.approx(1 / 3, abs=1e-3)
    assert peer <= exact.PEER_NASH_CONV


def test_what_psro_v2_needs_is_said_where_it_is_not_there(monkeypatch):
    monkeypatch.setattr(exact, "NEEDED", ("no_such_solver",))
    row = exact._double_oracle()
    assert row.ours > 0
    assert (row.peer, row.peer_value, row.ratio) == ("", None, None)
    assert row.note.endswith("(0: 0.92); peer: pip install 'counterplay[bench]'")


def test_the_memory_of_the_double_oracle_is_told(capsys):
    exact.fill()
    whole, before = map(int, capsys.readouterr().out.split())
    assert whole >= before > 2**20


@pytest.mark.covered_elsewhere
def test_compiled_games_are_timed_beside_pgx_and_openspiel():
    pgx, environment = openspiel.rows()
    assert (pgx.peer, environment.peer) == ("PGX, as many", "rl_environment, one lane")
    for row in (pgx, environment):
        assert row.ratio == pytest.approx(row.ours / row.peer_value)
        assert "MiB" in row.note


def test_stepped_games_are_timed_beside_shimmy():
    for row in stepped.rows():
        assert row.peer == "Shimmy's OpenSpielCompatibilityV0"
        assert row.ratio == pytest.approx(row.ours / row.peer_value)


def test_oracles_are_timed_beside_their_peers_in_equal_trainings():
    sb3, rlox, bare, team = oracles.rows()
    assert (sb3.peer, rlox.peer) == ("Stable-Baselines3", "rlox")
    for row in (sb3, rlox):
        assert row.ratio == pytest.approx(row.ours / row.peer_value)
        assert "after 256 steps" in row.note
    shares = [int(part.rpartition(" ")[2].rstrip("%")) for part in bare.note.split(", ")]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert team.unit == "team steps/s"
    assert team.ours > 0


def test_advantages_and_replays_are_timed_beside_their_peers():
    *timed, memory = buffers.rows()
    assert {row.peer for row in timed} == {"Stable-Baselines3", "rlox"}
    for row in timed[:2]:
        assert float(row.note.rpartition(" ")[2]) < 1e-5
    assert all(row.ratio == pytest.approx(row.ours / row.peer_value) for row in timed)
    assert 0 < memory.ours < 2  # megabytes of a thousand rows


def test_the_peers_must_be_there(monkeypatch):
    lacks = {
        "pyspiel": "open_spiel",
        "pgx": "counterplay.bench",
        "pygame": "counterplay.bench",
        "rlox": "counterplay.bench",
        "shimmy": "counterplay",
    }
    for lacking, package in lacks.items():
        monkeypatch.setattr(command, "find_spec", lambda name, lacking=lacking: None if name == lacking else True)
        with pytest.raises(ValueError, match=f"pip install .?{package}"):
            command.main(["--only", "games", "openspiel", "oracles", "stepped"])


def test_unknown_parts_are_refused():
    with pytest.raises(ValueError, match="did you mean 'games'"):
        command.main(["--only", "game"])


def test_best_responses_are_timed():
    assert workers.seconds(Here(), 2, workers.STEPS) > 0


@pytest.mark.slow
def test_workers_are_timed_beside_fewer():
    double, alone = workers.rows()
    assert (double.peer, alone.peer) == ("1 worker", "no worker process")
    assert double.ratio == pytest.approx(double.peer_value / double.ours)


def test_process_lanes_are_timed_beside_fewer_workers():
    waiting, computing, quick = processes.rows()
    assert (waiting.peer, computing.peer, quick.peer) == ("1 worker", "1 worker", "no worker process")
    assert waiting.ratio == pytest.approx(waiting.ours / waiting.peer_value)
    assert computing.ours <= 2 * 1 / processes.TAKEN


def test_the_memory_of_many_policies_is_told(monkeypatch, capsys):
    monkeypatch.setattr(runs, "POLICIES", 2)
    runs.fill()
    assert int(capsys.readouterr().out) > 2**20
