"""Training one best response, as a user meets it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.curves import learning_curve
from analysis.numbers import shown
from analysis.robust import iqm
from analysis.runs import glance
from analysis.trainings import load_training
from counterplay.main import main as counterplay
from experiments.opponents import load_opponents, met
from experiments.oracles import chosen
from experiments.placement import settings
from experiments.stop import Stop, Stopped
from experiments.train import began_as, main, parse
from experiments.training import ways
from games.exact import nash_conv, profile, tabulate
from games.lanes import GameLanes
from games.pong.scripted import Follow
from marl import failpoints
from marl.checkpoint import PolicyStore
from marl.networks import orthogonal_layers
from marl.oracles import ORACLES
from marl.oracles.behavioural_cloning_learner import CloningLearner
from marl.oracles.ppo_learner import PPOLearner
from marl.policies import NeuralPolicy
from marl.population import deviation_value
from marl.recurrent import RecurrentPolicy, recurrent_core
from tests.analysis.handmade import edit, seal
from tests.experiments.test_run_folder import documented
from tests.experiments.tiny import ROOT, contents
from tests.processes import ended

PONG = ("--game", "pong(points=1,max_steps=60)", "--seat", "1", "--against", "follow")
TINY = (
    *("--steps", "1024", "--num-lanes", "8", "--horizon", "16", "--epochs", "1", "--minibatches", "1"),
    *("--hidden", "4", "--checkpoint-every", "256", "--eval-episodes", "6"),
)
UPDATES = 8
SLOW = pytest.mark.slow
STORED = "tests/data/run/policies/train-1-0/policy"
"""Files of a policy for another game than is meant."""


@pytest.fixture(autouse=True)
def quick(no_figures: None) -> None:
    """Figures take longer than the trainings; that of the finished one is drawn."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing interrupted."""
    run = tmp_path_factory.mktemp("finished") / "run"
    assert main(["ppo", *TINY, *PONG, "--run-dir", str(run)]) == 0
    return run


def resumed(run: Path) -> int:
    return main(["--run-dir", str(run), "--resume"])


def test_the_folder_holds_what_is_documented(finished: Path) -> None:
    found = {str(file.relative_to(finished)) for file in finished.rglob("*") if file.is_file()}
    events = {name for name in found if name.startswith("events/")}
    others = {f"opponents/{name}" for name in ("0-0.json", "sigma.npy", "manifest.json")}
    expected = {
        name for name in documented("Trainings") if not name.startswith(("checkpoint/", "opponents/", "together/"))
    }
    assert found - events == expected - {"events/events.out.tfevents.*"} | others


def test_metrics_are_as_documented(finished: Path) -> None:
    trained = load_training(finished)
    assert trained.steps == trained.asked == 1024
    names = {row["metric"] for row in trained.metrics}
    assert {name for name in names if name.startswith("evaluation/")} == set(documented("Trainings: evaluation"))
    reports = [row["step"] for row in trained.metrics if row["metric"] == "learner/entropy"]
    assert reports == [128 * update for update in range(1, UPDATES + 1)]


def test_the_evaluation_is_of_the_stored_policies(finished: Path) -> None:
    config, policy = began_as(finished), PolicyStore(finished).load("policy").policy
    game = config.make_game()
    others, start = load_opponents(finished / "opponents", game, config.seat)
    assert isinstance(others.populations[0][0], Follow)
    assert start is None
    arrays = np.load(finished / "evaluation" / "returns.npz", allow_pickle=False)
    assert isinstance(policy, NeuralPolicy)
    for play, greedy in (("greedy", True), ("drawn", False)):
        player = NeuralPolicy(policy.layers, policy.choices, policy.flat, greedy)
        value = deviation_value(game, *others, (1, player), 6, 0, "evaluation")
        assert np.array_equal(arrays[play], value.returns[:, 1])
        rows = {row["metric"]: row for row in load_training(finished).evaluation if row["play"] == play}
        assert rows["evaluation/return"]["value"] == arrays[play].mean()
        middle = rows["evaluation/interquartile_mean"]
        assert middle["low"] <= middle["value"] == iqm(arrays[play]) <= middle["high"]


def test_the_summary_holds_the_evaluation(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary == {"steps": 1024, "evaluation": load_training(finished).evaluation}


@pytest.mark.parametrize("write", [9, 17])
def test_a_stopped_training_goes_on_to_the_same_bits(
    write: int, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run, writes, replace = tmp_path / "run", iter(range(1, 10**6)), os.replace

    def replace_and_stop(source: Path, target: Path) -> None:
        if next(writes) == write:
            os.kill(os.getpid(), signal.SIGTERM)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_and_stop)
        assert main(["ppo", *TINY, *PONG, "--run-dir", str(run)]) == 128 + signal.SIGTERM
    assert glance(run).state == "interrupted"
    assert list((run / "checkpoint").iterdir())
    err = capfd.readouterr().err
    assert "SIGTERM: stops as soon as it can" in err
    again = err.split("go on with ")[1].split(" train ")[1]
    assert main(shlex.split(again)) == 0
    assert contents(run) == contents(finished)


KILLS = [
    ("folder listed", 5),
    pytest.param("folder listed", 2, marks=SLOW),
    pytest.param("unit finished", 1, marks=SLOW),
]


def doomed(failpoint: str, run: Path) -> None:
    os.environ[failpoints.VARIABLE] = failpoint
    main(["ppo", *TINY, *PONG, "--run-dir", str(run)])


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(("moment", "count"), KILLS)
def test_a_training_that_is_killed_goes_on_to_the_same_bits(
    moment: str, count: int, finished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert ended(doomed, f"{moment}:{count}:kill", run) == -signal.SIGKILL
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


def test_a_full_disk_keeps_the_checkpoint_before(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        failpoints.reached.clear()
        patch.setenv(failpoints.VARIABLE, "folder filled:5:full")
        assert main(["ppo", *TINY, *PONG, "--run-dir", str(run)]) == 2
    err = capsys.readouterr().err
    assert "No space left" in err
    assert f"train --run-dir {run} --resume" in err
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


def test_a_training_that_explodes_says_where_its_last_good_state_is(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, update = tmp_path / "run", PPOLearner.update

    def exploding(learner: PPOLearner) -> dict[str, float]:
        report = update(learner)
        if report["update"] == 5:
            raise FloatingPointError("seat 1 diverged in update 5, after 640 steps")
        return report

    with monkeypatch.context() as patch:
        patch.setattr(PPOLearner, "update", exploding)
        assert main(["ppo", *TINY, *PONG, "--run-dir", str(run)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: seat 1 diverged in update 5, after 640 steps",
        f"the last good state, after update 4, is kept in {run}/checkpoint/00000004",
    ]
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


def test_checkpoints_decide_nothing(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(["ppo", *TINY, *PONG, "--checkpoint-every", "0", "--run-dir", str(run)]) == 0
    without = {"run.json", "manifest.json"}
    assert {k: v for k, v in contents(run).items() if k not in without} == {
        k: v for k, v in contents(finished).items() if k not in without
    }


def test_environments_that_own_their_state_say_before_that_they_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    run, save = tmp_path / "run", PolicyStore.save
    options = ["--game", "gymnasium:CartPole-v1", "--steps", "64", "--num-lanes", "2", "--horizon", "8"]

    def stopping(*given: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        save(*given)

    with monkeypatch.context() as patch:
        patch.setattr(PolicyStore, "save", stopping)
        code = main(["ppo", *options, "--eval-episodes", "2", "--hidden", "4", "--run-dir", str(run)])
    assert code == 128 + signal.SIGINT
    assert "no checkpoints are kept, for these environments own their state" in caplog.text
    assert "--resume; it begins again, for it has no checkpoints" in capfd.readouterr().err
    assert not (run / "checkpoint").exists()
    assert resumed(run) == 0
    assert glance(run).state == "finished"


EXTRA = {
    "behavioural_cloning": lambda run: ["--expert", str(run), *PONG],
    "exact": lambda run: ["--game", "openspiel:kuhn_poker", "--seat", "1"],
}
"""What an oracle wants besides."""


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_trains_and_is_looked_at(
    oracle: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stable_baselines3") if oracle == "sb3" else None
    run, options = tmp_path / "run", EXTRA.get(oracle, lambda run: ["--game", "rock_paper_scissors"])(finished)
    assert main([oracle, "--smoke", *options, "--run-dir", str(run)]) == 0
    assert f"{oracle} on " in capsys.readouterr().out
    assert settings(parse(["--run-dir", str(run), "--resume"])) == load_training(run).config
    assert (load_training(run).asked is None) == (oracle == "exact")
    for command in ("show", "play"):
        assert counterplay([command, str(run)]) == 0
    out = capsys.readouterr().out
    assert "return in fresh episodes" in out
    assert f"trained by {oracle}" in out


def test_the_exact_oracle_has_a_return_and_no_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["exact", "--game", "openspiel:kuhn_poker", "--eval-episodes", "2", "--run-dir", str(run)]) == 0
    assert counterplay(["show", str(run)]) == 0
    out = capsys.readouterr().out
    assert "return: the best response's, computed in the game's tree; exact\n" in out
    assert "\nexact return" in out
    assert not any(word in out for word in ("while it learns", "learning_curve.png"))
    assert learning_curve(load_training(run)) is None


def test_runs_are_listed_beside_those_of_psro(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert counterplay(["runs", str(finished.parent)]) == 0
    out = capsys.readouterr().out
    listed = glance(finished)
    assert (listed.state, listed.iterations, listed.asked, listed.unit) == ("finished", 1024, None, "steps")
    assert listed.team_return == load_training(finished).evaluation[0]
    assert listed.team_return["play"] == "greedy"
    _, row = (line for line in out.splitlines() if line.startswith("run "))  # the first is of headers
    assert shown(listed.team_return) in row
    assert "return is of greedy play" in out


def test_steps_are_of_a_budget_until_the_training_is_finished(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    edit(run / "run.json", config=load_training(run).config | {"ppo": {"steps": 1100}})
    seal(run, "run.json")
    for folder, header in ((run, "finished, 1,024 steps"), (tmp_path, "finished  1,024 steps")):
        assert counterplay(["show" if folder == run else "runs", str(folder)]) == 0
        assert header in capsys.readouterr().out
    (run / "summary.json").unlink()
    assert counterplay(["show", str(run)]) == 0
    assert "interrupted, 1,024 of 1,100 steps" in capsys.readouterr().out


def test_the_learning_curve_is_drawn_again(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    before = (run / "figures" / "learning_curve.png").read_bytes()
    shutil.rmtree(run / "figures")
    assert counterplay(["figures", str(run)]) == 0
    assert capsys.readouterr().out == f"{run}/figures/learning_curve.png\n"
    assert (run / "figures" / "learning_curve.png").read_bytes() == before
    figure = learning_curve(load_training(run))
    assert figure is not None
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["return per episode (dashed: in the end, greedy)", "explained variance", "entropy", "KL"]
    assert list(figure.axes[0].lines[0].get_xdata()) == [0.128 * update for update in range(1, UPDATES + 1)]


@pytest.mark.parametrize("command", ["report", "notebook"])
def test_what_is_of_psro_alone_says_so(command: str, finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert counterplay([command, str(finished)]) == 2
    assert "is a training, with no populations to look at" in capsys.readouterr().err


def test_others_may_be_a_training_a_policy_or_a_meta_strategy(finished: Path, tmp_path: Path) -> None:
    from experiments.psro import main as psro

    game = PONG[:2]
    tiny = ["--iterations", "1", "--episodes", "4", "--gap-steps", "0", "--gap-episodes", "4", "--duel-episodes", "4"]
    tiny += ["--ppo.steps", "128", "--ppo.num-lanes", "8", "--ppo.horizon", "16", "--ppo.hidden", "4"]
    assert psro([*tiny, *game, "--meta-solver", "uniform", "--workers", "1", "--run-dir", str(tmp_path / "psro")]) == 0
    policy = PolicyStore(finished).load("policy").policy
    assert isinstance(policy, NeuralPolicy)
    for against in (finished, finished / "policy" / "policy", tmp_path / "psro"):
        run = tmp_path / f"against-{against.name}"
        given = [*TINY, *game, "--against", str(against), "--start", str(finished), "--run-dir", str(run)]
        assert main(["ppo", *given]) == 0
        others, start = load_opponents(run / "opponents", began_as(run).make_game(), 0)
        assert isinstance(start, NeuralPolicy)
        assert start.layers[0][0].equal(policy.layers[0][0])
        assert others.sigma.shape == ((1, 2) if against.name == "psro" else (1, 1))
        assert counterplay(["play", str(run)]) == 0
    shutil.rmtree(tmp_path / "psro")
    assert counterplay(["play", str(run)]) == 0  # it needs no other folder


def test_the_start_is_where_learning_starts(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = ["ppo", *TINY, *PONG, "--start", str(finished), "--learning-rate", "1e-30", "--run-dir", str(run)]
    assert main(given) == 0
    old, new = (PolicyStore(path).load("policy").policy for path in (finished, run))
    assert isinstance(old, NeuralPolicy)
    assert isinstance(new, NeuralPolicy)
    assert new.layers[0][0].equal(old.layers[0][0])


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_clone_needs_its_experts_files_to_begin_with_alone(
    epochs: int, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the expert has played, and after that."""
    straight, run, update = tmp_path / "straight", tmp_path / "run", CloningLearner.update
    expert = Path(shutil.copytree(finished / "policy", tmp_path / "expert"))
    given = ["behavioural_cloning", "--smoke", *PONG, "--expert", str(expert / "policy"), "--run-dir"]

    def exploding(learner: CloningLearner) -> dict[str, float]:
        if learner.epochs == epochs:
            raise FloatingPointError
        return update(learner)

    assert main([*given, str(straight)]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(CloningLearner, "update", exploding)
        assert main([*given, str(run)]) == 2
    shutil.rmtree(expert)
    assert resumed(run) == 0
    assert contents(run) == contents(straight)


@pytest.mark.gpu
def test_networks_may_be_trained_on_cuda_and_their_training_gone_on_with(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(["ppo", *TINY, *PONG, "--device", "cuda", "--run-dir", str(run)]) == 0
    policy = PolicyStore(run).load("policy").policy
    assert isinstance(policy, NeuralPolicy)
    assert policy.device.type == "cpu"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("dnq", "did you mean 'dqn'"),
        ("ppo --game ponk", "'pong'"),
        ("ppo --game pong --against folow", "'follow'"),
        ("ppo --game pong --against runs/none", "there is no run, and no policy, at runs/none"),
        (f"ppo --game signaling --against {STORED}", "listener_0 observes 4 features, NeuralPolicy("),
        ("joint --game pong --learning-seats 5", "learning_seats must be among the players, 0..1, got (5,)"),
        ("joint --game pong --reward team --team-share 0.5", "would count the team's reward twice"),
        ("joint --game pong --learning-seats -1", "learning_seats must be a whole number of at least 0, got -1"),
        ("ppo --game pong --start runs/none", "there is no policy at runs/none"),
        ("ppo --steps 5", "steps=5 is less than one update"),
        ("ppo --seat 1", "seat must be one of 0..0"),
        ("ppo --device cuda:99", "cuda:99"),
        ("dqn --game pendulum", "DQN cannot train player_0 of pendulum"),
        ("exact --game pong", "Exact cannot train player_0 of pong"),
        ("behavioural_cloning", "BehaviouralCloning cannot train player_0 of cart_pole"),
        (
            "behavioural_cloning --expert nowhere",
            "'nowhere.json'): name those of a policy, without endings, by --expert",
        ),
        (f"behavioural_cloning --expert {STORED}", "the expert NeuralPolicy(features="),
        ("ppo --run-dir tests", "neither empty nor a run"),
        ("--resume --run-dir runs/none", "there is no run at runs/none"),
        ("--resume --run-dir tests/data/run", "is a run of psro: this takes runs of train only"),
    ],
)
def test_what_cannot_work_fails_before_anything_is_written(
    options: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    assert main(options.split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)
    assert [path.name for path in tmp_path.iterdir()] == ["tests"]


@pytest.mark.parametrize("option", ["--eval-episodes 1", "--seat -1", "--name a/b", "--no-such 3"])
def test_impossible_values_exit_with_2(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["ppo", *option.split()])
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("options", ["", "--game cart_pole"])
def test_who_names_no_oracle_is_told_where_it_stands(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(options.split())
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert f"error: name an oracle first ({', '.join(ORACLES)}), as in: counterplay train ppo --game cart_pole" in err


def test_another_training_is_not_gone_on_with(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--run-dir", str(finished)]
    for options, message in (
        (["ppo", *folder, "--resume", "--seed", "1"], "seed was 0, now 1"),
        (["dqn", *folder, "--resume"], "was trained by ppo, not by dqn"),
        (["--resume"], "name it by --name or --run-dir, or by its oracle and game"),
        (["ppo", *TINY, *PONG, *folder], "already holds a run; to go on with it: "),
    ):
        assert main(options) == 2
        assert message in capsys.readouterr().err


def test_opponents_that_were_changed_are_told(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "opponents" / "0-0.json").write_text("{}")
    assert resumed(run) == 2
    assert "0-0.json is not as the run wrote it" in capsys.readouterr().err
    assert glance(run).state == "damaged"


def test_defaults_depend_on_oracle_and_game() -> None:
    ours, theirs = (parse(["ppo", "--game", game]) for game in ("t_maze", "mpe2.simple_tag_v3"))
    assert ours.ppo.num_lanes > theirs.ppo.num_lanes  # type: ignore[attr-defined]
    assert str(ours.folder) == "runs/t_maze-ppo-0"
    tiny = parse(["sac", "--smoke", "--game", "pong", "--seat", "1", "--steps", "4096"])
    assert (tiny.sac.steps, tiny.folder.name) == (4096, "pong-seat_1-sac-0-smoke")  # type: ignore[attr-defined]


def test_help_leaves_torch_alone() -> None:
    code = (
        "import sys\nfrom experiments.train import main\n"
        "try: main(['recurrent-ppo', '--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--burn-in" in done.stdout


def test_policies_play_in_both_ways_where_their_oracle_has_a_choice() -> None:
    layers = orthogonal_layers((3, 4, 2), 1.0, np.random.default_rng(0))
    policy = NeuralPolicy(layers, (2,), flat=True, greedy=True)
    core = recurrent_core((3,), (), "gru", 4, 16, np.random.default_rng(0))
    cell = RecurrentPolicy(core, NeuralPolicy(layers[1:], (2,), flat=True))
    assert ways(ORACLES["dqn"](), policy) == {"as handed out": policy}
    assert [player.noise_size for player in ways(ORACLES["ppo"](), policy).values()] == [0, 1]
    assert [player.noise_size for player in ways(ORACLES["recurrent_ppo"](), cell).values()] == [0, 1]
    assert [player.noise_size for player in ways(ORACLES["joint"](), policy).values()] == [0, 1]


def test_a_second_signal_does_not_wait() -> None:
    stop = Stop()
    with stop.listening(), stop.patient():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped):
            stop.check()
        with pytest.raises(Stopped):
            os.kill(os.getpid(), signal.SIGINT)


JOINT = (
    *("--ppo.steps", "1024", "--ppo.num-lanes", "8", "--ppo.horizon", "16", "--ppo.epochs", "1"),
    *("--ppo.minibatches", "1", "--ppo.hidden", "4", "--checkpoint-every", "256", "--eval-episodes", "6"),
)


def test_in_joint_training_all_players_learn_and_are_measured_together(tmp_path: Path, capsys: Any) -> None:
    run = tmp_path / "run"
    assert main(["joint", *JOINT, "--game", "signaling", "--seat", "1", "--run-dir", str(run)]) == 0
    game = began_as(run).make_game()
    speaker = met(run, game, 1).populations[0][0]
    assert isinstance(speaker, NeuralPolicy)
    listener = PolicyStore(run).load("policy").policy
    assert (speaker.features, listener.features) == tuple(space.shape[0] for space in game.observation_spaces)
    value = deviation_value(game, *met(run, game, 1), (1, listener), 6, 0, "evaluation")
    with np.load(run / "evaluation" / "returns.npz") as returns:
        assert np.array_equal(returns["greedy"], value.returns[:, 1])
    capsys.readouterr()
    assert counterplay(["play", str(run)]) == 0
    assert capsys.readouterr().out.count("trained by joint") == 2


def test_gaps_of_joint_training_are_of_all_who_play_so(tmp_path: Path, capsys: Any) -> None:
    """Greedy or drawn, and not of one who is greedy among others who are not."""
    run = tmp_path / "run"
    assert main(["joint", *JOINT, "--game", "openspiel:kuhn_poker", "--run-dir", str(run)]) == 0
    game, out = began_as(run).make_game(), capsys.readouterr().out
    learned = PolicyStore(run).load("policy").policy, met(run, game, 0).populations[1][0]
    for row in load_training(run).metrics:
        if row["metric"] == "evaluation/nash_conv":
            playing = [ways(ORACLES["joint"](), policy)[row["play"]] for policy in learned]
            parts = [tabulate(game, policy, seat) for seat, policy in enumerate(playing)]
            assert row["value"] == pytest.approx(nash_conv(game.tree, profile(game.tree, parts)), rel=1e-9)
            assert f"NashConv, {row['play']}: {row['value']:.4g} (exact; return per episode)" in out


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ("1", ("what the team earns in 6 fresh", "the team’s return in fresh episodes")),
        (
            "0.25",
            ("what player_1 earns, 0.75 of it its own and 0.25 the team's", "return (0.75 own + 0.25 the team’s) in"),
        ),
    ],
)
def test_what_is_measured_is_what_joint_training_is_for(
    share: str, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, weight = tmp_path / "run", float(share)
    arguments = [*JOINT, "--game", "normal_form", "--seat", "1", "--team-share", share, "--run-dir", str(run)]
    assert main(["joint", *arguments]) == 0
    assert counterplay(["show", str(run)]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in words)
    game = began_as(run).make_game()
    player = ways(ORACLES["joint"](), PolicyStore(run).load("policy").policy)["drawn"]
    value = deviation_value(game, *met(run, game, 1), (1, player), 6, 0, "evaluation")
    with np.load(run / "evaluation" / "returns.npz") as returns:
        earned = (1 - weight) * value.returns[:, 1] + weight * value.returns.sum(axis=1)
        assert np.allclose(returns["drawn"], earned, rtol=1e-12)
        assert not np.allclose(returns["drawn"], value.returns[:, 1])


def test_players_who_do_not_learn_jointly_are_those_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ["joint", *JOINT, *PONG, "--learning-seats", "1", "--run-dir", str(run)]
    assert main(arguments) == 0
    assert isinstance(met(run, began_as(run).make_game(), 1).populations[0][0], Follow)


def test_self_play_is_shown_and_measured_against_those_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    arguments = ["joint", *JOINT, *PONG, "--learning-seats", "0", "--opponents", "pfsp_hard", "--run-dir", str(run)]
    assert main(arguments) == 0
    assert isinstance(met(run, began_as(run).make_game(), 1).populations[0][0], Follow)
    names = {row["metric"] for row in load_training(run).metrics}
    assert set(documented("Trainings: self-play")) <= names
    capsys.readouterr()
    assert counterplay(["show", str(run)]) == 0
    header = "steps return win rate rating staleness explained variance"
    assert header in [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


NFSP = (
    *("--dqn.steps", "2048", "--dqn.num-lanes", "16", "--dqn.learning-starts", "256", "--dqn.hidden", "8"),
    *("--hidden", "8", "--eval-episodes", "6"),
)


@pytest.fixture(scope="module")
def fictitious(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of all players, in a game with a tree."""
    run = tmp_path_factory.mktemp("fictitious") / "run"
    assert main(["nfsp", *NFSP, "--game", "openspiel:kuhn_poker", "--seat", "1", "--run-dir", str(run)]) == 0
    return run


def test_neural_fictitious_self_play_hands_out_averages_and_tells_their_gap(
    fictitious: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = began_as(fictitious).make_game()
    company = met(fictitious, game, 1).joined_by(1, PolicyStore(fictitious).load("policy").policy)
    assert not any(getattr(population[0], "greedy", True) for population in company.populations)
    parts = [tabulate(game, population[0], player) for player, population in enumerate(company.populations)]
    wanted = nash_conv(game.tree, profile(game.tree, parts))
    rows = load_training(fictitious).metrics
    (told,) = (row for row in rows if row["metric"] == "evaluation/nash_conv")
    while_it_learns = [row for row in rows if row["metric"] == "learner/nash_conv"]
    for row in (told, while_it_learns[-1]):
        assert (row["kind"], row["unit"]) == ("exact", "return per episode")
        assert row["value"] == pytest.approx(wanted, rel=1e-9)
    assert 20 <= len(while_it_learns) <= 21
    assert set(documented("Trainings: fictitious self-play")) <= {row["metric"] for row in rows}


def test_gaps_while_it_learns_are_of_the_averages_of_that_moment(fictitious: Path) -> None:
    config = began_as(fictitious)
    game, oracle = config.make_game(), chosen(config)
    learner = oracle.learner(GameLanes(game, oracle.num_lanes), (0, 1), config.seed)
    told = [row for row in load_training(fictitious).metrics if row["metric"] == "learner/nash_conv"]
    steps = 0
    while steps < told[3]["step"]:
        steps = learner.update()["steps"]
    parts = [tabulate(game, learner.policies[seat], seat) for seat in (0, 1)]
    assert told[3]["value"] == pytest.approx(nash_conv(game.tree, profile(game.tree, parts)), rel=1e-9)


@pytest.mark.gpu
def test_gaps_may_be_of_averages_on_cuda(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ["nfsp", *NFSP, "--game", "openspiel:kuhn_poker", "--device", "cuda", "--run-dir", str(run)]
    assert main(arguments) == 0
    told = [row for row in load_training(run).metrics if row["metric"] == "learner/nash_conv"]
    last = load_training(run).gap
    assert last is not None
    assert told[-1]["value"] == pytest.approx(last["value"], rel=1e-5)


def test_what_is_of_one_of_several_learners_names_the_player(fictitious: Path) -> None:
    rows = load_training(fictitious).metrics
    for name, players in (("return", [0, 1]), ("reservoir", [0, 1]), ("epsilon", [None]), ("nash_conv", [None])):
        last = [row for row in rows if row["metric"] == f"learner/{name}" and row["step"] == 2048]
        assert [row.get("player") for row in last] == players
        assert all(("standard_error" in row) == (name == "return") for row in last)
        assert all(row["kind"] == ("estimate" if name == "return" else "exact") for row in last)
    assert not [row for row in rows if "return_error" in row["metric"]]


def test_fictitious_play_that_is_stopped_goes_on_to_the_same_bits(
    fictitious: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps while it learns, which are in its metrics, included."""
    run, writes, replace = tmp_path / "run", iter(range(1, 10**6)), os.replace

    def replace_and_stop(source: Path, target: Path) -> None:
        if next(writes) == 9:
            os.kill(os.getpid(), signal.SIGTERM)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_and_stop)
        arguments = ["nfsp", *NFSP, "--game", "openspiel:kuhn_poker", "--seat", "1", "--run-dir", str(run)]
        assert main(arguments) == 128 + signal.SIGTERM
    assert list((run / "checkpoint").iterdir())
    assert resumed(run) == 0
    assert contents(run) == contents(fictitious)


def test_fictitious_play_is_shown_with_its_gap_and_without_what_decides_nothing(
    fictitious: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert counterplay(["show", str(fictitious)]) == 0
    out = capsys.readouterr().out
    last = load_training(fictitious).gap
    assert last is not None
    assert f"{last['value']:g}" in out
    assert "NashConv (exact)" in out
    header = "steps return NashConv average's loss uniform's loss"
    assert header in [" ".join(line.split()) for line in out.splitlines()]
    assert "nfsp.dqn.steps" in out
    assert "nfsp.ppo" not in out
    assert "against" not in out
    assert counterplay(["runs", str(fictitious.parent)]) == 0
    assert f"{last['value']:g}" in capsys.readouterr().out


def test_who_learned_beside_it_is_looked_at_too(fictitious: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(fictitious, run)
    assert glance(run).state == "finished"
    file = run / "together" / "0-0.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert glance(run).state == "damaged"


def test_equilibria_are_of_players_own_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those who learn for the team approach no equilibrium of the game."""
    run = tmp_path / "run"
    arguments = ["nfsp", *NFSP, "--game", "openspiel:kuhn_poker", "--reward", "team", "--run-dir", str(run)]
    assert main(arguments) == 0
    assert load_training(run).gap is None
    assert f"exploitability {run}" in capsys.readouterr().out


def test_fictitious_play_has_no_opponents_and_a_game_for_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nfsp", "--against", "rock", "--game", "rock_paper_scissors"]) == 2
    assert "leave out --against" in capsys.readouterr().err
    assert parse(["nfsp"]).game == "matching_pennies"
    assert parse(["nfsp", "--game", "cart_pole"]).game == parse(["ppo"]).game == "cart_pole"


def test_who_trains_all_seats_trains_no_best_response(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("joint", "nfsp"):
        assert counterplay(["psro-game", "--oracle", name]) == 2
        assert f"{name} trains all seats at once" in capsys.readouterr().err
