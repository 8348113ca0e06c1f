"""PSRO on OpenSpiel's games, as a user meets it."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from analysis.load import load_run
from analysis.report import command, html
from analysis.runs import glance
from counterplay.main import main as counterplay
from counterplay.show import main as show
from experiments.placement import settings
from experiments.psro_bucket_brigade import main as bucket_brigade
from experiments.psro_openspiel import main, parse
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from marl.exact import evaluate_exact
from tests.experiments.tiny import ROOT, contents, interrupt_at

PPO = [
    *("--oracle", "ppo", "--iterations", "2", "--workers", "1", "--warm-start"),
    *("--ppo.steps", "128", "--ppo.num-lanes", "8", "--ppo.hidden", "8", "--ppo.epochs", "1", "--ppo.minibatches", "1"),
]
KINDS = {"exact": [], "ppo": PPO, "three": ["--game", "kuhn_poker(players=3)", "--meta-solver", "alpha_rank"]}
KINDS["three"] += ["--iterations", "3"]


@pytest.fixture(autouse=True)
def quick(no_figures: None) -> None:
    """Figures take longer than the runs; one test looks at them."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each kind."""
    folder = tmp_path_factory.mktemp("openspiel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.session.draw", lambda path: [])
        patch.setattr("experiments.session.write", lambda path: None)
        for name, options in KINDS.items():
            assert main([*options, "--run-dir", str(folder / name)]) == 0
    return {name: folder / name for name in KINDS}


def gaps(run: Path) -> list[dict]:
    return load_run(run).series("full_gap")


def test_the_double_oracle_solves_kuhn_poker_and_ends(runs: dict[str, Path]) -> None:
    """Kuhn (1950): -1/18 to the first player."""
    found = gaps(runs["exact"])
    assert [row["iteration"] for row in found] == list(range(len(found)))
    assert found[0]["value"] == pytest.approx(11 / 12)  # of uniform play, as OpenSpiel has it
    assert all(row["value"] > 1e-6 for row in found[:-1])
    assert found[-1]["value"] <= 1e-6
    value = next(row for row in reversed(load_run(runs["exact"]).series("return")) if row["player"] == 0)
    assert value["value"] == pytest.approx(-1 / 18, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_exact_but_what_learners_report(kind: str, runs: dict[str, Path]) -> None:
    run = load_run(runs[kind])
    rows = [row for row in run.metrics if not row["metric"].startswith("learner/")]
    assert {row["kind"] for row in rows} == {"exact"}
    assert {row["concept"] for row in gaps(runs[kind])} <= {"NashConv", "CCE gap"}
    assert bool(run.series("learner/return")) == (kind == "ppo")
    assert run.exact


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_policies_have_the_stored_payoffs(kind: str, runs: dict[str, Path]) -> None:
    store, folder = PolicyStore(runs[kind] / "policies"), runs[kind] / "snapshots"
    last = load_snapshot(folder, finished_iterations(folder) - 1, store)
    game = parse(KINDS[kind]).make_game()
    np.testing.assert_allclose(evaluate_exact(game, last.populations).mean, last.payoffs.mean, rtol=0, atol=1e-12)


def test_correlated_meta_strategies_have_cce_gaps(runs: dict[str, Path]) -> None:
    run = load_run(runs["three"])
    for iteration, row in zip(run.iterations, gaps(runs["three"]), strict=True):
        played = (iteration.sigma > 1e-9).sum()
        assert row["concept"] == "NashConv" or played > 1
    assert {row["concept"] for row in gaps(runs["three"])} == {"NashConv", "CCE gap"}


def one_moves(won: int) -> str:
    """A game in Gambit's format in which the first player chooses to lose 1 to the second, or to win."""
    ends = f't "" 1 "" {{ -1, 1 }}\nt "" 2 "" {{ {won}, -{won} }}\n'
    return 'EFG 2 R "one moves" { "first" "second" }\n\np "" 1 1 "" { "l" "r" } 0\n' + ends


@pytest.mark.parametrize(("kind", "write"), [("exact", 6), ("exact", 37), ("ppo", 20), ("three", 33)])
def test_a_stopped_run_resumes_to_the_same_bits(
    kind: str,
    write: int,
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(write, patch)
        assert main([*KINDS[kind], "--run-dir", str(run)]) == 128 + signal.SIGTERM
    assert contents(run) != contents(runs[kind])
    again = capsys.readouterr().err.split(" psro-openspiel ")[1]
    assert main([*shlex.split(again), "--workers", "1"]) == 0
    assert contents(run) == contents(runs[kind])


@pytest.mark.covered_elsewhere
def test_a_killed_process_leaves_a_run_that_resumes(runs: dict[str, Path], tmp_path: Path) -> None:
    """By SIGKILL, from the command line."""
    run = tmp_path / "run"
    words = [sys.executable, "-m", "counterplay.main", "psro-openspiel", "--run-dir", str(run)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (run / "policies" / "train-3-0").exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert main(["--run-dir", str(run), "--resume"]) == 0
    assert contents(run) == contents(runs["exact"])


def test_a_run_that_has_got_there_is_gone_on_with_when_asked_for_less(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["--stop-at", "0.2", "--run-dir", str(run)]) == 0
    capsys.readouterr()
    assert show([str(run)]) == 0
    shown = capsys.readouterr().out
    assert "ended: the gap in the whole game of iteration 3 is at most 0.2" in shown
    assert "--resume" not in shown  # it would end at once
    found = gaps(run)
    assert found[-1]["value"] <= 0.2 < found[-2]["value"]
    before = contents(run)
    assert main(["--run-dir", str(run), "--resume"]) == 0
    assert contents(run) == before
    assert main(["--run-dir", str(run), "--resume", "--stop-at", "1e-6"]) == 0
    assert gaps(run) == gaps(runs["exact"])


def test_every_iteration_is_a_line_and_the_end_says_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--game", "matrix_rps", "--run-dir", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    for words in (
        "iteration 0 | policies 1 | NashConv 0 | value of player 0 0 | CPU s ",
        "the oracle exact on matrix_rps",
    ):
        assert words in out
    assert "--iterations" not in out  # nothing is left to be gained
    assert main([*KINDS["three"], "--run-dir", str(tmp_path / "three")]) == 0
    out = capsys.readouterr().out
    assert " | CCE gap " in out
    assert "psro-openspiel --run-dir" in out


@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_listed_shown_and_reported_with_figures(
    kind: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs[kind]
    assert glance(run).state == "finished"
    assert glance(run).gap["kind"] == "exact"
    assert show([str(run)]) == 0
    out = capsys.readouterr().out
    assert ("psro-openspiel --run-dir" in out) == (kind != "exact")  # there nothing is left to be gained
    assert "responses" not in out
    assert "± 0" not in out
    page = html(load_run(run)).decode()
    for words in ("computed exactly", "game ", "python -m experiments.psro_openspiel", "convergence", "payoffs"):
        assert words in page
    assert ('alt="learning curves"' in page) == (kind == "ppo")
    assert ('alt="response graph"' in page) == (kind == "three")


def test_a_report_tells_the_command_that_makes_the_run_again() -> None:
    given = ["--game", "leduc_poker(players=3)", "--meta-solver", "uniform", "--oracle", "ppo", "--ppo.no-greedy"]
    config = parse(given)
    words = shlex.split(command(settings(config)).replace("\\\n", ""))
    assert words[:3] == ["python", "-m", "experiments.psro_openspiel"]
    assert settings(parse(words[3:])) == settings(config)


def test_smoke_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--smoke", "--oracle", "ppo", "--game", "kuhn_poker()"]) == 0
    assert load_run(tmp_path / "runs" / "kuhn_poker-ppo-0-smoke").asked == 2
    assert main(["--smoke", "--oracle", "ppo", "--game", "kuhn_poker()", "--resume"]) == 0


def test_any_oracle_s_responses_are_measured_exactly(tmp_path: Path, no_figures: None) -> None:
    run = tmp_path / "run"
    given = ["--smoke", "--oracle", "dqn", "--dqn.steps", "1024", "--run-dir", str(run)]
    assert main(given) == 0
    loaded = load_run(run)
    assert (loaded.config["oracle"], loaded.config["dqn"]["steps"], loaded.exact) == ("dqn", 1024, True)
    assert loaded.series("learner/return")[-1]["step"] == 1024
    words = shlex.split(command(loaded.config).replace("\\\n", ""))
    assert settings(parse(words[3:])) == loaded.config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--game kuhn_pokr", "'kuhn_poker'"),
        ("--game chess", "chess"),
        ("--oracle dnq", "did you mean 'dqn'"),
        ("--meta-solver anytim", "did you mean 'anytime'"),
        ("--oracle recurrent_ppo", "exact values are of policies without memory"),
        ("--game kuhn_poker(players=3)", "two players"),
        ("--game matrix_pd", "payoffs cancel"),
        (
            "--game nim(pile_sizes=1;2)",
            "player 0 is shown only 3 different observations in 4 information states: use --oracle",
        ),
        ("--game catch(rows=2,columns=2)", "zero_sum_nash needs two players; got 1"),
        ("--meta-solver alpharank", "'alpha_rank'"),
        ("--iterations 400", "lower iterations"),
        ("--device cud", "'cuda'"),
        ("--run-dir tests", "neither empty nor a run"),
    ],
)
def test_what_cannot_work_fails_at_once(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options.split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)


def test_payoffs_that_cancel_at_first_but_not_later_are_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rock-paper-scissors that pays the second player 0.1 more or less where neither plays rock: in Gambit's format."""
    pairs = "0 0  1 -1  -1 1   -1 1  0 .1  1 -1.1   1 -1  -1 .9  0 .1"  # the first player's choice varies first
    file = tmp_path / "game.nfg"
    file.write_text(f'NFG 1 R "odd" {{ "first" "second" }} {{ 3 3 }}\n\n{pairs}\n')
    run = tmp_path / "run"
    assert main(["--game", f"nfg_game(filename={file})", "--run-dir", str(run)]) == 2
    assert "pay both players between -0.1 and 0.1 together; use --meta-solver alpha_rank" in capsys.readouterr().err
    assert not run.exists()


@pytest.mark.parametrize("options", ["--stop-at -1", "--stop-at nan", "--iterations -1", "--name a/b"])
def test_impossible_values_exit_with_2(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(options.split())
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert options.split()[1] in err
    assert "1.79" not in err  # the largest of finite numbers is no bound that anybody wants told


def test_runs_of_another_command_are_refused(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    stored = ROOT / "tests" / "data" / "run"
    for resume, run, told in (
        (main, stored, "is a run of psro: this takes runs of psro-openspiel only, on games of OpenSpiel"),
        (bucket_brigade, runs["exact"], "is a run of psro-openspiel: this takes runs of psro only, on Bucket Brigade"),
    ):
        assert resume(["--run-dir", str(run), "--resume"]) == 2
        assert told in capsys.readouterr().err


def test_what_is_for_bucket_brigade_alone_says_so(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert counterplay(["responses", str(runs["exact"])]) == 2
    out, err = capsys.readouterr()
    assert "is a run of psro-openspiel: this takes runs of psro only, on Bucket Brigade" in err
    assert (out, err.count("\n")) == ("", 1)


def test_an_episode_of_a_run_can_be_looked_at(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert counterplay(["play", str(runs["exact"])]) == 0
    assert "returns after" in capsys.readouterr().out


@pytest.mark.parametrize("solver", ["uniform", "alpha_rank"])
@pytest.mark.parametrize("oracle", ["exact", "ppo"])
def test_one_player_games(solver: str, oracle: str, tmp_path: Path) -> None:
    """There is nobody to respond to, yet a best response is found."""
    run, options = tmp_path / "run", PPO if oracle == "ppo" else []
    options = [*options, "--game", "catch(rows=2,columns=2)", "--meta-solver", solver, "--iterations", "1"]
    assert main([*options, "--run-dir", str(run)]) == 0
    first, last = gaps(run)
    assert first["value"] > last["value"]


@pytest.mark.parametrize("oracle", ["exact", "ppo"])
def test_a_player_may_never_act(oracle: str, tmp_path: Path) -> None:
    file, run = tmp_path / "game.efg", tmp_path / "run"
    file.write_text(one_moves(1))
    options = PPO if oracle == "ppo" else []
    assert main([*options, "--game", f"efg_game(filename={file})", "--run-dir", str(run)]) == 0
    assert [row["value"] for row in gaps(run)] == [1, 0]  # uniform play wins as often as it loses


def test_a_run_is_not_gone_on_with_in_another_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = tmp_path / "game.efg", tmp_path / "run"
    file.write_text(one_moves(1))
    assert main(["--game", f"efg_game(filename={file})", "--iterations", "0", "--run-dir", str(run)]) == 0
    before, again = contents(run), ["--run-dir", str(run), "--resume", "--iterations", "2"]
    file.write_text(one_moves(2))
    capsys.readouterr()
    assert main(again) == 2
    assert f"{file} has changed since {run} was started" in capsys.readouterr().err
    assert contents(run) == before
    file.write_text(one_moves(1))
    assert main(again) == 0


def test_games_whose_states_look_alike_take_ppo(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main([*PPO, "--game", "nim(pile_sizes=1;2)", "--run-dir", str(run)]) == 0
    assert gaps(run)[-1]["value"] < gaps(run)[0]["value"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ppo_solves_kuhn_poker_within_minutes(seed: int, tmp_path: Path) -> None:
    """NashConv of at most 0.1 with the default settings, within 180 s of one core."""
    run = tmp_path / "run"
    options = ["--oracle", "ppo", "--stop-at", "0.1", "--seed", str(seed), "--workers", "1", "--run-dir", str(run)]
    done = subprocess.run([sys.executable, "-m", "counterplay.main", "psro-openspiel", *options], cwd=ROOT, check=False)
    assert done.returncode == 0
    assert gaps(run)[-1]["value"] <= 0.1
    assert json.loads((run / "timing.jsonl").read_text().splitlines()[-1])["cpu_seconds"] <= 180
