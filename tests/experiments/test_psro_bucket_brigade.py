"""The main command, as a user meets it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from analysis.runs import glance
from experiments import responses
from experiments.psro_bucket_brigade import Config, main
from experiments.run import RunFolder
from games.bucket_brigade import SCENARIOS
from marl.oracles import PPO
from tests.experiments.tiny import ALONE, ROOT, SCRIPT, TINY, contents
from tests.processes import cpu_seconds


@pytest.fixture
def copy(finished: Path, tmp_path: Path, no_figures: None) -> Path:
    """The finished run again, to be harmed."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_help_is_instant_and_leaves_torch_alone() -> None:
    code = (
        "import sys\nfrom experiments.psro_bucket_brigade import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "assert 'torch' not in sys.modules"
    )
    start = cpu_seconds()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in (
        "--scenario",
        "--ppo.steps",
        "--resume",
        "Intensity of selection",
        "Steps of the learner",
        *SCENARIOS,
    ):
        assert words in done.stdout
    assert cpu_seconds() - start < 5  # 1.2 s where nothing else runs


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(
    "command",
    [
        SCRIPT,
        [sys.executable, "-m", "experiments.psro_bucket_brigade"],
        [sys.executable, "-m", "counterplay.main", "psro"],
    ],
)
def test_the_ways_of_starting_it(command: list[str]) -> None:
    done = subprocess.run([*command, "--scenario", "rest_trp"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: unknown Bucket Brigade scenario 'rest_trp'; did you mean 'rest_trap'?\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--meta-solver alpharank", "'alpha_rank'"),
        ("--meta-solver zero_sum_nash", "two players"),
        ("--device cud", "'cuda'"),
        ("--device cuda:99", "CUDA devices"),
        ("--initial unifrm", "'uniform'"),
        ("--initial genome", "family"),
        ("--rules quite", "'quiet'"),
        ("--iterations 40", "lower iterations"),
        ("--alpha -1", "alpha"),
        ("--alpha 1e308", "alpha"),
        ("--population-size 1", "population_size"),
        ("--population-size 99999999999999999999999999", "population_size"),
        ("--run-dir /dev/null/run", "cannot make the run folder"),
        ("--run-dir tests", "neither empty nor a run"),
    ],
)
def test_what_cannot_work_fails_at_once(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options.split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)


@pytest.mark.parametrize(
    "options",
    [
        *(
            "--episodes 1",
            "--iterations -1",
            "--ppo.steps 10",
            "--gap-steps 5",
            "--reward tem",
            "--seed x",
            "--name a/b",
        ),
        *("--episodes 1000000000000", "--gap-episodes 100000000000000000000", "--threads 99999999999999"),
        *("--ppo.hidden 1000000000", "--ppo.learning-rate inf", "--ppo.clip nan", "--ppo.num-lanes 1000000000000"),
    ],
)
def test_impossible_values_exit_with_2(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(options.split())
    assert end.value.code == 2
    assert options.split()[1] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_full_disk_fails_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    assert main([*TINY, "--run-dir", str(tmp_path / "run")]) == 2
    assert "MiB free" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_folder_holds_what_it_promises(finished: Path) -> None:
    about = json.loads((finished / "run.json").read_text())
    assert about["config"]["seed"] == 0
    assert {"numpy", "torch", "python"} <= set(about["versions"])
    assert "commit" in about["git"]
    with np.load(finished / "snapshots" / "0001" / "payoffs.npz", allow_pickle=False) as arrays:
        assert arrays["mean"].shape == arrays["standard_error"].shape == (4, 2, 2, 2, 2)
        assert arrays["sigma"].sum() == pytest.approx(1)
    assert (finished / "policies" / "train-1-3" / "policy.safetensors").is_file()
    names = {file.stem for file in (finished / "figures").iterdir()}
    assert names == {"payoffs", "meta_strategy", "response_graph", "learning_curves", "convergence"}
    assert not list(finished.rglob("*.tmp"))


def test_every_metric_says_what_kind_of_number_it_is(finished: Path) -> None:
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert {row["kind"] for row in rows} == {"exact", "estimate", "lower bound"}
    for metric, first in (("restricted_gap", "exact"), ("full_gap", "lower bound")):
        gaps = [(row["iteration"], row["kind"]) for row in rows if row["metric"] == metric]
        assert gaps == [(0, first), (1, "lower bound")]
    for row in rows:
        assert "standard_error" in row or row["kind"] == "exact" or row["metric"].startswith("learner/")


def test_piped_output_is_plain_lines_and_a_summary(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--run-dir", str(copy), "--resume", *ALONE]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "iteration 1 | policies 2 | gap found" in out
    for words in ("lower bound", "± standard error", f"--run-dir {copy} --resume"):
        assert words in out


def interrupt_at(write: int, signum: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process receive a signal right before its n-th file becomes visible."""
    writes = iter(range(1, 10**6))
    replace = os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        if next(writes) == write:
            os.kill(os.getpid(), signum)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_die)


@pytest.mark.parametrize(("write", "signum"), [(5, signal.SIGTERM), (19, signal.SIGINT), (35, signal.SIGTERM)])
def test_a_stopped_run_resumes_to_the_same_bits(
    finished: Path,
    tmp_path: Path,
    write: int,
    signum: int,
    no_figures: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(write, signum, patch)
        assert main([*TINY, "--run-dir", str(run)]) == 128 + signum
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"--run-dir {run} --resume" in err
    assert contents(run) != contents(finished)
    assert main(["--run-dir", str(run), "--resume", *ALONE]) == 0
    assert contents(run) == contents(finished)


@pytest.mark.covered_elsewhere
def test_a_killed_process_leaves_a_run_that_resumes(finished: Path, tmp_path: Path, no_figures: None) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen([*SCRIPT, *TINY, "--run-dir", str(run)], cwd=ROOT, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (run / "policies" / "train-1-1").exists():
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert main(["--run-dir", str(run), "--resume", *ALONE]) == 0
    assert contents(run) == contents(finished)


@pytest.mark.covered_elsewhere
def test_more_iterations_continue_as_a_longer_run_would_have(finished: Path, copy: Path, tmp_path: Path) -> None:
    assert main(["--run-dir", str(copy), "--resume", *ALONE, "--iterations", "2"]) == 0
    longer = tmp_path / "longer"
    assert main([*TINY, "--iterations", "2", "--run-dir", str(longer)]) == 0
    mine, theirs = contents(copy), contents(longer)
    only_shorter = {name for name in mine if name.startswith(("policies/gap-1-", "gap/0001/"))}
    assert {name for name in mine.keys() | theirs if mine.get(name) != theirs.get(name)} == {
        *only_shorter,
        "run.json",  # the iterations first asked for
    }


def test_a_stopped_extension_goes_on_by_the_command_it_prints(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(3, signal.SIGTERM, patch)
        assert main(["--run-dir", str(copy), "--resume", *ALONE, "--iterations", "2"]) == 128 + signal.SIGTERM
    command = capsys.readouterr().err.split(" psro ")[1]
    assert main([*shlex.split(command), *ALONE]) == 0
    assert (copy / "snapshots" / "0002").exists()
    assert (
        main(["--run-dir", str(copy), "--resume", *ALONE]) == 0
    )  # nothing is left to do, whatever was asked for first
    assert "iteration 2 |" in capsys.readouterr().out


def test_the_last_gap_gets_the_budget_of_the_other_responses() -> None:
    ppo = PPO(steps=50_000)
    assert Config(ppo=ppo).gap_budget == 50_000
    assert Config(ppo=ppo, gap_steps=0).gap_budget == 0


def test_responses_are_judged_beside_scripted_players(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert responses.main(copy, episodes=50, workers=1) == 1  # these learned nothing to speak of
    out = capsys.readouterr().out
    assert out.count(" NO") == 4
    for words in ("best scripted reply", "team of", "specialist", "spread", "meta-strategy", "gap in the whole game"):
        assert words in out
    with pytest.raises(ValueError, match="no run"):
        responses.main(copy / "no-run")
    with pytest.raises(ValueError, match="at least 2"):
        responses.main(copy, episodes=1)


def emptied(file: Path) -> None:
    """A manifest that names nothing."""
    file.write_text("{}")


def listed(file: Path) -> None:
    """A manifest that is no table of names."""
    file.write_text("[]")


def joined(folder: Path) -> None:
    """A file that the run did not write."""
    (folder / "stranger.txt").write_text("")


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damaged", "damage"),
    [
        ("policies/train-1-2/policy.safetensors", flip),
        ("policies/initial-0/policy.json", flip),
        ("snapshots/0001/payoffs.npz", flip),
        ("snapshots/0000/metrics.jsonl", flip),
        ("gap/0001/metrics.jsonl", flip),
        ("run.json", flip),
        ("run.json", Path.unlink),
        ("manifest.json", Path.unlink),
        ("snapshots/0001/manifest.json", Path.unlink),
        ("snapshots/0000/manifest.json", emptied),
        ("snapshots/0000/manifest.json", listed),
        ("snapshots/0000", joined),
        ("policies/train-1-0", joined),
        ("gap/0001", joined),
        ("manifest.json", emptied),
        ("snapshots/0000", shutil.rmtree),
        ("policies/train-1-2", shutil.rmtree),
    ],
)
def test_a_damaged_run_is_listed_as_such_refused_and_left_as_it_is(
    copy: Path, damaged: str, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert glance(copy).state == "finished"
    damage(copy / damaged)
    before = contents(copy)
    if damaged != "run.json" or damage is not Path.unlink:  # without it, it is no run to be listed
        assert glance(copy).state == "damaged"
    assert main(["--run-dir", str(copy), "--resume", *ALONE]) == 2
    err = capsys.readouterr().err
    assert str(copy) in err
    assert "Traceback" not in err
    assert contents(copy) == before


def test_a_run_is_never_started_over(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(copy)
    assert main([*TINY, "--run-dir", str(copy)]) == 2
    assert f"--run-dir {copy} --resume" in capsys.readouterr().err
    assert contents(copy) == before


def test_another_configuration_is_refused_by_field(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--run-dir", str(copy), "--resume", *ALONE, "--seed", "3", "--ppo.clip", "0.3"]) == 2
    err = capsys.readouterr().err
    assert "seed was 0, now 3" in err
    assert "ppo.clip was 0.2, now 0.3" in err
    assert "alpha" not in err
    assert main(["--run-dir", str(copy), "--resume", *ALONE, "--iterations", "0"]) == 2
    assert "already has 1 iterations" in capsys.readouterr().err


@pytest.mark.covered_elsewhere
def test_a_run_goes_on_where_its_device_is_not(
    tmp_path: Path, no_figures: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(5, signal.SIGTERM, patch)
        patch.setattr("experiments.psro_bucket_brigade.checked_device", lambda name: "cpu")
        assert main([*TINY, "--run-dir", str(run), "--device", "cuda"]) == 128 + signal.SIGTERM
    capsys.readouterr()
    assert main(["--run-dir", str(run), "--resume", *ALONE]) == 2
    assert "use --device cpu" in capsys.readouterr().err
    assert main(["--run-dir", str(run), "--resume", *ALONE, "--device", "cpu"]) == 0
    assert "note: started on device cuda, going on on cpu" in capsys.readouterr().out


def test_there_must_be_a_run_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--run-dir", str(tmp_path / "none"), "--resume", *ALONE]) == 2
    assert "there is no run at" in capsys.readouterr().err


def test_two_processes_do_not_write_to_one_run(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunFolder(copy):
        assert main(["--run-dir", str(copy), "--resume", *ALONE]) == 2
    assert "another process" in capsys.readouterr().err
