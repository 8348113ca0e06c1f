"""PSRO on any game, as a user meets it."""

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from analysis.load import load_run
from analysis.report import command, html
from counterplay.main import main as counterplay
from counterplay.show import main as show
from experiments.placement import settings
from experiments.psro import Config, main, parse, sharing, sides
from experiments.report import summary
from experiments.stop import Stop, guarded
from games.policies import Uniform
from games.processes import WorkerDied
from marl.atomic import digest
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from marl.policy_files import save_policy
from marl.population import evaluate
from marl.shared import evaluate_shared
from tests.experiments.test_run_folder import documented
from tests.experiments.tiny import ALONE, ROOT, contents

TINY = [
    *(
        "--iterations",
        "1",
        "--episodes",
        "4",
        "--gap-steps",
        "0",
        "--gap-episodes",
        "6",
        "--duel-episodes",
        "8",
        *ALONE,
    ),
    *("--ppo.steps", "64", "--ppo.num-lanes", "4", "--ppo.horizon", "16", "--ppo.hidden", "4"),
    *("--ppo.epochs", "1", "--ppo.minibatches", "1"),
]
KINDS = {
    "ours": [
        "--game",
        "pong(points=1,max_steps=60)",
        "--shared",
        "--initial",
        "follow",
        "--score-against",
        "uniform",
        "follow",
        "--gap-steps",
        "64",
    ],
    "environment": ["--game", "classic/tictactoe_v3"],
    "openspiel": ["--game", "openspiel:kuhn_poker(players=3)", "--teams", "0,2", "1", "--meta-solver", "hedge"],
    "shared": [
        "--game",
        "rock_paper_scissors",
        "--shared",
        "0,1",
        "--iterations",
        "2",
        "--meta-solver",
        "zero_sum_nash",
    ],
    "team": ["--game", "signaling", "--reward", "team", "--score-against"],
}


@pytest.fixture(autouse=True)
def quick(no_figures: None) -> None:
    """Figures take longer than the runs."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each kind of game."""
    folder = tmp_path_factory.mktemp("games")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.session.draw", lambda path: [])
        patch.setattr("experiments.session.write", lambda path: None)
        for name, options in KINDS.items():
            assert main([*TINY, *options, "--run-dir", str(folder / name)]) == 0
    return {name: folder / name for name in KINDS}


def of(run: Path) -> Config:
    return parse(["--run-dir", str(run), "--resume"])


@pytest.mark.parametrize("kind", KINDS)
def test_payoffs_are_those_of_the_stored_policies(kind: str, runs: dict[str, Path]) -> None:
    store, folder = PolicyStore(runs[kind] / "policies"), runs[kind] / "snapshots"
    last = load_snapshot(folder, finished_iterations(folder) - 1, store)
    game = of(runs[kind]).make_game()
    if kind == "shared":
        again = evaluate_shared(game, last.populations, [(0, 1)], 4, 0)
    else:
        again = evaluate(game, last.populations, 4, 0)
    np.testing.assert_array_equal(again.mean, last.payoffs.mean)


def test_players_who_share_a_population_have_one_that_learns(runs: dict[str, Path]) -> None:
    run = runs["shared"]
    assert {folder.name for folder in (run / "policies").iterdir()} == {"initial-0", "train-1-0", "train-2-0"}
    mine, yours = load_run(run).iterations[-1].policies
    assert mine == yours == ["initial/0", "train/1/0", "train/2/0"]
    assert {row["player"] for row in load_run(run).series("learner/return")} == {0}


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_are_as_documented(kind: str, runs: dict[str, Path]) -> None:
    found = {row["metric"]: row.get("unit", "") for row in load_run(runs[kind]).metrics}
    known = {name: unit for name, (unit, _) in documented("`metrics.jsonl`").items() if "night" not in name}
    further = {name: unit for name, (unit, _) in documented("Further metrics of `psro-game`").items()}
    assert found.items() <= (known | further).items()
    duels = {name for name in further if name.startswith("duel")}
    assert further.keys() - found.keys() == (duels if kind == "team" else set())


def test_duels_are_played_by_everyone_against_everyone_named(runs: dict[str, Path]) -> None:
    rows = load_run(runs["ours"]).series("duel_points")
    assert [(row["iteration"], row["against"], row["player"]) for row in rows] == [
        (iteration, against, player)
        for iteration in range(2)
        for against in ("uniform", "follow")
        for player in range(2)
    ]
    assert all(0 <= row["value"] <= 1 and row["standard_error"] > 0 for row in rows)
    teams = load_run(runs["openspiel"])
    assert [row["player"] for row in teams.series("duel_return") if row["iteration"] == 1] == [0, 2, 1]
    assert [row["player"] for row in teams.series("duel_wins") if row["iteration"] == 1] == [0, 1]
    assert summary(teams.metrics)["duels"] == [
        row for row in teams.metrics if row["metric"].startswith("duel") and row["iteration"] == 1
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_shown(kind: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert show([str(runs[kind])]) == 0
    out = capsys.readouterr().out
    assert "psro-game --run-dir" in out
    assert ("against scripted policies" in out) == (kind != "team")
    assert "night" not in out


def test_runs_are_reported(runs: dict[str, Path]) -> None:
    page = html(load_run(runs["environment"])).decode()
    assert "against scripted policies" in page
    assert "python -m experiments.psro --game classic/tictactoe_v3" in page
    assert "night" not in page


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_tells_the_command_that_makes_the_run_again(kind: str, runs: dict[str, Path]) -> None:
    words = shlex.split(command(load_run(runs[kind]).config).replace("\\\n", ""))
    assert settings(parse(words[3:])) == load_run(runs[kind]).config


@pytest.mark.parametrize(("kind", "write"), [("ours", 14), ("environment", 16), ("shared", 10)])
def test_a_stopped_run_resumes_to_the_same_bits(
    kind: str,
    write: int,
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, writes, replace = tmp_path / "run", iter(range(1, 10**6)), os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        if next(writes) == write:
            os.kill(os.getpid(), signal.SIGTERM)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_or_die)
        assert main([*TINY, *KINDS[kind], "--run-dir", str(run)]) == 128 + signal.SIGTERM
    assert contents(run) != contents(runs[kind])
    again = capsys.readouterr().err.split(" psro-game ")[1]
    assert main([*shlex.split(again), *ALONE]) == 0
    assert contents(run) == contents(runs[kind])


@pytest.mark.parametrize(
    "oracle",
    ["dqn", "exact", *(pytest.param(name, marks=pytest.mark.slow) for name in ("recurrent_ppo", "sac", "sb3"))],
)
def test_other_oracles_train_responses(oracle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--smoke", "--oracle", oracle, "--game", "openspiel:matrix_rps"]
    assert main([*given, "--iterations", "1"]) == 0
    run = load_run(next(Path("runs").iterdir()))
    assert run.path.name == f"openspiel-matrix_rps-{oracle}-0-smoke"
    assert run.config["oracle"] == oracle
    assert [row["responses"] for row in run.series("full_gap")] == ["fresh"] * 2
    words = shlex.split(command(run.config).replace("\\\n", ""))
    assert settings(parse(words[3:])) == run.config
    learned = run.series("learner/return")
    assert main(["--run-dir", str(run.path), "--resume", "--iterations", "2"]) == 0
    again = load_run(run.path)
    assert {row["responses"] for row in again.series("full_gap")} == {"fresh"} | (
        set() if oracle == "exact" else {"warm-started"}
    )
    assert again.series("learner/return")[: len(learned)] == learned


def test_runs_from_before_there_was_a_choice_are_of_ppo(runs: dict[str, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs["environment"], tmp_path / "run"))
    about = json.loads((run / "run.json").read_text())
    assert about["config"].pop("oracle") == "ppo"
    (run / "run.json").write_text(json.dumps(about))
    (run / "manifest.json").write_text(json.dumps({"run.json": digest(run / "run.json")}))
    assert of(run).oracle == "ppo"
    assert main(["--run-dir", str(run), "--resume", *ALONE]) == 0


@pytest.mark.slow
def test_workers_change_nothing(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main([*TINY, *KINDS["environment"], "--workers", "2", "--run-dir", str(run)]) == 0
    assert contents(run) == contents(runs["environment"])


def test_the_versions_of_an_environments_packages_are_kept(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = json.loads((runs["environment"] / "run.json").read_text())
    assert {"pettingzoo", "gymnasium"} <= about["versions"].keys()
    assert "pettingzoo" not in json.loads((runs["ours"] / "run.json").read_text())["versions"]
    run = Path(shutil.copytree(runs["environment"], tmp_path / "run"))
    monkeypatch.setattr(
        "experiments.run._version", lambda name: "9" if name == "pettingzoo" else about["versions"][name]
    )
    assert main(["--run-dir", str(run), "--resume", *ALONE]) == 0
    assert f"note: pettingzoo {about['versions']['pettingzoo']} -> 9 since the run" in capsys.readouterr().out


def test_defaults_depend_on_the_game() -> None:
    ours, theirs = parse(["--game", "matching_pennies(rounds=3)"]), parse(["--game", "mpe2.simple_tag_v3"])
    assert theirs.ppo.num_lanes < ours.ppo.num_lanes
    assert str(ours.folder) == "runs/matching_pennies-rounds-3-0"
    tiny = parse(["--smoke", "--game", "mpe2.simple_tag_v3", "--ppo.steps", "2048"])
    assert (tiny.ppo.steps, tiny.folder.name) == (2048, "mpe2.simple_tag_v3-0-smoke")
    assert tiny.teams == theirs.teams


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--game ponk", "'pong'"),
        ("--game pong(point=1)", "'points'"),
        ("--game pong(points", "written name(parameter=value"),
        ("--game pong(pixels=True) --oracle dqn", "DQN cannot train player_0 of pong(pixels=True): "),
        ("--game mpe2.simple_tga_v3", "'simple_tag_v3'"),
        (
            "--game mpe2.simple_tag_v3(continuous_actions=True) --oracle dqn",
            "; or give the environment bins, as in name(bins=5)",
        ),
        ("--initial follw", "'follow'"),
        ("--game signaling --initial babbling", "can save NeuralPolicy"),
        ("--score-against unifrm", "'uniform'"),
        ("--teams 0,1 1", "each at most once, as in --teams 0,2 1: of 0..1, got 0,1 1"),
        ("--teams left", "players"),
        ("--shared 0,1,2", "as in --shared 0,2 1: of 0..1, got 0,1,2"),
        ("--game classic/tictactoe_v3 --shared 0,1 --episodes 4", "are not exchangeable"),
        ("--game rock_paper_scissors --shared 0,1 --episodes 5", "use --episodes 6, got 5"),
        ("--meta-solver alpharank", "'alpha_rank'"),
        ("--iterations 400", "lower iterations"),
        ("--run-dir tests", "neither empty nor a run"),
        ("--game classic/tictactoe_v3(workers=1) --workers 2", "leave out workers= of the game, or use --workers 1"),
        ("--game lqr --oracle dqn", "DQN cannot train player_0 of lqr: "),
        ("--oracle dnq", "did you mean 'dqn'"),
        ("--game pong --oracle exact", "Exact cannot train player_0 of pong"),
    ],
)
def test_what_cannot_work_fails_at_once(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options.split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)


def test_a_worker_of_the_game_that_dies_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def work(stop: Stop) -> None:
        raise WorkerDied("the worker of lane 0 was killed by SIGKILL; these lanes are closed")

    assert guarded(work) == 2
    assert capsys.readouterr().err.startswith("error: the worker of lane 0 was killed by SIGKILL")


def test_nobody_plays_against_nobody() -> None:
    assert sides([], 3) == ((0,), (1,), (2,))
    assert sides([], 1) == sides(["0,1"], 2) == ()
    assert sharing([], 3) == ()
    assert sharing(["2,0"], 3) == ((0, 2), (1,))


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_can_be_looked_at(kind: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert counterplay(["play", str(runs[kind])]) == 0
    out = capsys.readouterr().out
    initial = "follow" if kind == "ours" else "uniform"
    assert f"the initial {initial} policy" in out or "the best response of iteration 1" in out
    assert out.splitlines()[-1].startswith("returns after")
    assert "\n    1" in out


@pytest.mark.parametrize("kind", ["ours", "environment"])
def test_films_show_every_step(
    kind: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "episode.gif"
    assert counterplay(["play", str(runs[kind]), "--render", "none", "--save", str(film)]) == 0
    steps = int(capsys.readouterr().out.split("returns after ")[1].split()[0])
    with Image.open(film) as pictures:
        assert 1 < pictures.n_frames <= steps + 1  # equal ones in a row are one that stands longer


def test_what_has_no_pictures_says_so(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main([*TINY, "--game", "tests.games.silent:parallel_env", "--iterations", "0", "--run-dir", str(run)]) == 0
    assert counterplay(["play", str(run), "--save", str(tmp_path / "film.gif")]) == 2
    assert "has no pictures" in capsys.readouterr().err
    assert counterplay(["play", str(run)]) == 0


def test_help_leaves_torch_and_environments_alone() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom experiments.psro import main\n"
        "try: main(['--game', 'connect_four_v3', '--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'pygame'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--score-against" in done.stdout


@pytest.mark.parametrize("named", ["policy/policy", ""])
def test_a_run_is_not_gone_on_with_by_another_expert(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named by its files, or by the folder of the training that made it."""
    training, run = tmp_path / "training", tmp_path / "run"
    expert = training / "policy" / "policy.json"
    expert.parent.mkdir(parents=True)
    (training / "run.json").write_text("{}")
    save_policy(Uniform((3,), flat=True), expert.with_suffix(""))
    cloning = ["--oracle", "behavioural_cloning", "--behavioural-cloning.expert", str(training / named)]
    given = ["--smoke", "--game", "rock_paper_scissors", *cloning, "--meta-solver", "uniform", "--run-dir", str(run)]
    assert main([*given, *ALONE]) == 0
    assert json.loads((run / "run.json").read_text())["files"] == {str(expert): digest(expert)}
    expert.write_text(expert.read_text() + " ")
    capsys.readouterr()
    assert main([*given, "--resume"]) == 2
    assert f"{expert} has changed since {run} was started" in capsys.readouterr().err
