"""Runs that are killed, refused by the disk or mistaken about the time, and end as if nothing had been."""

import datetime
import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.psro_bucket_brigade import main
from experiments.stop import guarded
from marl import failpoints
from marl.workers import Here, Unit
from tests.experiments.tiny import ALONE, ROOT, SCRIPT, TINY, contents
from tests.processes import ended

KILLS = 50
PLACES = [("file written", 7), ("folder listed", 9), ("folder renamed", 4), ("unit finished", 3), ("run finished", 1)]
MORE_PLACES = [("file opened", 20), ("file synced", 33), ("file renamed", 3), ("folder made", 12), ("folder filled", 6)]


def resumed(run: Path) -> int:
    return main(["--run-dir", str(run), "--resume", *ALONE])


def started(run: Path, *more: str) -> subprocess.Popen:
    """A run, or what is left of it, in a process of its own, and of a group of its own."""
    command = [*SCRIPT, *(["--resume"] if (run / "run.json").exists() else TINY), "--run-dir", str(run), *more]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def killed_at(moment: str, count: int, run: Path) -> None:
    assert ended(doomed, f"{moment}:{count}:kill", run) == -signal.SIGKILL


def doomed(failpoint: str, run: Path) -> None:
    os.environ[failpoints.VARIABLE] = failpoint
    main([*TINY, "--run-dir", str(run)])


def test_a_run_comes_by_every_moment_that_has_a_name(
    tmp_path: Path, no_figures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    failpoints.reached.clear()
    assert main([*TINY, "--run-dir", str(tmp_path / "run")]) == 0
    assert set(failpoints.reached) == set(failpoints.MOMENTS)


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(
    ("moment", "count"), [*PLACES, *(pytest.param(*place, marks=pytest.mark.slow) for place in MORE_PLACES)]
)
def test_a_run_killed_while_it_writes_resumes_to_the_same_bits(
    moment: str, count: int, finished: Path, tmp_path: Path, no_figures: None
) -> None:
    run = tmp_path / "run"
    killed_at(moment, count, run)
    assert resumed(run) == 0
    assert contents(run) == contents(finished)
    assert not list(run.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("moment", "count", "refusal"),
    [
        ("file written", 7, "full"),
        ("folder renamed", 4, "read-only"),
        *(pytest.param(*place, "full", marks=pytest.mark.slow) for place in [*PLACES[1:], *MORE_PLACES]),
    ],
)
def test_a_disk_that_refuses_loses_nothing(
    moment: str,
    count: int,
    refusal: str,
    finished: Path,
    tmp_path: Path,
    no_figures: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        failpoints.reached.clear()
        patch.setenv(failpoints.VARIABLE, f"{moment}:{count}:{refusal}")
        assert main([*TINY, "--run-dir", str(run)]) == 2
    err = capsys.readouterr().err
    assert os.strerror(failpoints.REFUSALS[refusal]) in err
    assert f"--run-dir {run} --resume" in err
    assert "Traceback" not in err
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("workers", ["2", pytest.param("3", marks=pytest.mark.slow)])
def test_a_run_is_the_same_whoever_works(workers: str, finished: Path, tmp_path: Path, no_figures: None) -> None:
    run = tmp_path / "run"
    assert main([*TINY, "--run-dir", str(run), "--workers", workers]) == 0
    assert contents(run) == contents(finished)


def test_a_unit_that_fails_is_told_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    failing = Unit("train/2/0", lambda: [][0])
    with pytest.raises(IndexError) as raised:
        guarded(lambda stop: list(Here().run([failing])))
    assert "in train/2/0" in raised.value.__notes__[0]
    diverging = Unit("train/2/1", lambda: 1 / 0)
    assert guarded(lambda stop: list(Here().run([diverging]))) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: division by zero\nin train/2/1")
    assert "Traceback" in err


def test_a_clock_that_jumps_changes_nothing(
    finished: Path, tmp_path: Path, no_figures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = random.Random(0)
    real = time.time

    def jumping() -> float:
        return real() + jumps.choice([-1, 1]) * 86_400 * jumps.randrange(1, 1000)

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return cls.fromtimestamp(jumping(), tz)

    run = tmp_path / "run"
    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr("experiments.session.datetime", Jumping)
    assert main([*TINY, "--run-dir", str(run)]) == 0
    assert contents(run) == contents(finished)
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


@pytest.mark.slow
def test_a_second_process_is_refused_and_the_first_goes_on(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with started(run, *ALONE) as first:
        while not (run / "policies").exists():
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)  # so that it surely is not done before the second comes
        with started(run, *ALONE) as second:
            assert second.wait() == 2
            assert b"another process is writing to" in second.stderr.read()
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait() == 0
    assert contents(run) == contents(finished)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(KILLS))
def test_a_run_killed_at_any_time_resumes_to_the_same_bits(
    trial: int, finished: Path, how_long: float, tmp_path: Path, no_figures: None
) -> None:
    """Every other time, it is one of its workers that dies, and the run has to end well by itself."""
    chance, run = random.Random(trial), tmp_path / "run"
    with started(run, "--workers", "2") as process:
        time.sleep(chance.uniform(0, how_long))
        if trial % 2:
            doomed = workers_of(process.pid)
            if doomed:
                os.kill(chance.choice(doomed), signal.SIGKILL)
            assert process.wait() == 0, process.stderr.read()
        else:
            process.kill()
            assert process.wait() in (-signal.SIGKILL, 0)
            if not (run / "run.json").exists():  # it had not even begun
                assert not run.exists()
                assert main([*TINY, "--run-dir", str(run)]) == 0
            assert resumed(run) == 0
    assert contents(run) == contents(finished)


@pytest.fixture(scope="module")
def how_long(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds that a run with two workers takes in a process of its own."""
    start = time.monotonic()
    with started(tmp_path_factory.mktemp("timed") / "run", "--workers", "2") as process:
        assert process.wait() == 0
    return time.monotonic() - start


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if Path(f"/proc/{pid}").exists() else []
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 70 MiB, a little more than a run wants to find free."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=70m", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing(finished: Path, small_disk: Path, no_figures: None) -> None:
    """A real one; mounting it takes the rights to."""
    run, ballast = small_disk / "run", small_disk / "ballast"
    with started(run, *ALONE) as process:
        while not (run / "policies" / "train-1-1").exists():
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGSTOP)
        with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            file.writelines(itertools.repeat(bytes(4096)))
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait() == 2
        assert b"No space left" in process.stderr.read()
    ballast.unlink()
    assert resumed(run) == 0
    assert contents(run) == contents(finished)


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_is_refused_and_left_as_it_is(
    finished: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(finished, small_disk / "run"))
    before = contents(run)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert resumed(run) == 2
    assert "Read-only file system" in capsys.readouterr().err
    assert contents(run) == before


def test_what_the_system_refuses_is_told_without_its_number(tmp_path, capsys):
    assert guarded(lambda stop: (tmp_path / "none" / "file").read_text()) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/none/file: No such file or directory; once that is")
    assert guarded(lambda stop: (_ for _ in ()).throw(ChildProcessError("a worker died"))) == 2
    assert "error: a worker died; once" in capsys.readouterr().err
