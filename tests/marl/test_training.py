"""Trainings that are stopped, killed, refused by the disk or blown up, and go on to the same bits."""

import functools
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games import make
from games.game import Policy
from games.lanes import GameLanes
from marl import failpoints
from marl.atomic import BrokenCheckpoint, read_json, to_json
from marl.oracles import ORACLES, PPO, Learner
from marl.policies import NeuralPolicy
from marl.state_files import load_state, save_state
from marl.training import Training
from tests.marl.small_games import Lock
from tests.marl.test_oracles import QUICK, chosen, learner
from tests.processes import ended

PPO_ = PPO(steps=1024, num_lanes=32, horizon=4, minibatches=2, hidden=(8,))  # 8 updates of 128 steps
ABOUT = {"oracle": repr(PPO_), "game": "lock", "seed": 3}


def begun(
    folder: Path | None, every: int = 256, about: dict[str, Any] = ABOUT, device: str = "cpu", **changes: Any
) -> Training:
    made = PPO_.learner(GameLanes(Lock(), 32), [0], 3, device)
    for name, value in changes.items():
        setattr(made, name, functools.partial(value, getattr(made, name)))
    return Training(made, folder, about, every)


def weights(policies: dict[int, Policy]) -> list[bytes]:
    policy = policies[0]
    assert isinstance(policy, NeuralPolicy)
    return [part.numpy().tobytes() for pair in policy.layers for part in pair]


@pytest.fixture(scope="module")
def straight() -> tuple[list[bytes], list[dict[str, float]]]:
    """What a training that nothing interrupts ends with, and what its learner reported."""
    training = begun(None)
    return weights(training.run()), training.curve


def names(folder: Path) -> list[int]:
    assert all(path.name.isdecimal() for path in folder.iterdir())
    return sorted(int(path.name) for path in folder.iterdir())


def stopping(update: int) -> Callable[[dict[str, float]], None]:
    def progress(report: dict[str, float]) -> None:
        if report["update"] == update:
            raise KeyboardInterrupt

    return progress


def test_the_last_two_checkpoints_are_kept(straight: tuple, tmp_path: Path) -> None:
    training, kept = begun(tmp_path), []
    assert names(tmp_path) == [0]
    found = training.run(lambda report: kept.append(names(tmp_path)))
    assert (weights(found), training.curve) == straight
    assert kept == [[0], [0], [0, 2], [0, 2], [2, 4], [2, 4], [4, 6], [4, 6]]
    assert names(tmp_path) == [6, 8]


@pytest.mark.parametrize("update", [1, 4, 8])
def test_a_training_that_is_stopped_goes_on_to_the_same_bits(update: int, straight: tuple, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path).run(stopping(update))
    again = begun(tmp_path)
    assert (again.update, again.steps, len(again.curve)) == (update, 128 * update, update)
    told: list[float] = []
    assert weights(again.run(lambda report: told.append(report["update"]))) == straight[0]
    assert again.curve == straight[1]
    assert told == list(range(update + 1, 9))
    assert weights(begun(tmp_path).run(stopping(0))) == straight[0]  # nothing is left


@pytest.mark.parametrize("name", ORACLES)
def test_every_oracle_goes_on_from_files(name: str, tmp_path: Path) -> None:
    def training() -> Training:
        return Training(learner(QUICK[name], 3), tmp_path, {"oracle": repr(QUICK[name].oracle)}, every=1)

    first = training()
    if not first.resumable:
        return
    first.learner.update()
    first.update = 1
    first.save()
    second = training()
    assert second.learner.finished == first.learner.finished
    np.testing.assert_equal(second.learner.update(), first.learner.update())
    policies = (second.learner.policies[0], first.learner.policies[0])
    assert np.array_equal(*(chosen(QUICK[name], policy)[0] for policy in policies))


def go_on(folder: Path, failpoint: str) -> None:
    os.environ[failpoints.VARIABLE] = failpoint
    failpoints.reached.clear()
    begun(folder).run()


@pytest.mark.parametrize(("moment", "count"), [("file written", 10), ("folder listed", 3), ("folder renamed", 4)])
def test_a_training_that_is_killed_goes_on_to_the_same_bits(
    moment: str, count: int, straight: tuple, tmp_path: Path
) -> None:
    assert ended(go_on, tmp_path, f"{moment}:{count}:kill") == -signal.SIGKILL
    again = begun(tmp_path)
    assert 0 < again.update < 8
    assert weights(again.run()) == straight[0]
    assert again.curve == straight[1]
    assert names(tmp_path) == [6, 8]


def test_a_full_disk_leaves_the_checkpoint_before(
    straight: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "")  # to have it restored
    with pytest.raises(OSError, match="No space left"):
        go_on(tmp_path, "folder filled:3:full")
    monkeypatch.undo()
    assert names(tmp_path) == [2]
    assert weights(begun(tmp_path).run()) == straight[0]


def exploding(update: Callable[[], dict[str, float]]) -> dict[str, float]:
    report = update()
    if report["update"] == 5:
        raise FloatingPointError("seat 0 diverged in update 5, step 640")
    return report


def test_a_training_that_explodes_keeps_its_last_good_state(straight: tuple, tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError, match="in update 5, step 640") as raised:
        begun(tmp_path, update=exploding).run()
    assert raised.value.__notes__ == [f"the last good state, after update 4, is kept in {tmp_path / '00000004'}"]
    assert begun(tmp_path).update == 4
    assert weights(begun(tmp_path).run()) == straight[0]


def test_of_a_damaged_checkpoint_the_one_before_takes_the_place(
    straight: tuple, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path).run(stopping(5))
    assert names(tmp_path) == [4, 5]
    file = tmp_path / "00000005" / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    again = begun(tmp_path)
    assert "00000005/state.safetensors is not as the run wrote it" in caplog.text
    assert f"going on from {tmp_path / '00000004'}, which was saved before" in caplog.text
    assert (again.update, names(tmp_path)) == (4, [4])
    assert weights(again.run()) == straight[0]


@pytest.mark.parametrize("file", ["state.json", "training.json", "manifest.json"])
def test_where_all_are_damaged_nothing_is_begun_anew(file: str, tmp_path: Path) -> None:
    begun(tmp_path)
    (tmp_path / "00000000" / file).unlink()
    with pytest.raises(BrokenCheckpoint, match=rf"00000000/{file} is missing.* or remove it to begin"):
        begun(tmp_path)
    assert names(tmp_path) == [0]
    shutil.rmtree(tmp_path)
    assert begun(tmp_path).update == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "is of another training: seed was 3, now 4; begin yours in another folder"),
        ({"oracle": "PPO(steps=9)"}, "oracle was"),
        ({"start": [1]}, r"start was None, now \[1\]"),
    ],
)
def test_another_training_is_not_gone_on_with(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(ValueError, match=message):
        begun(tmp_path, about=ABOUT | change)


def test_another_version_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path)
    monkeypatch.setattr("marl.training._version", lambda: "99.0")
    with pytest.raises(ValueError, match=r"version of counterplay was .*, now '99.0'"):
        begun(tmp_path)


def test_a_state_of_another_learner_is_told(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(BrokenCheckpoint, match="00000000 is no state of this learner"):
        Training(PPO_.learner(GameLanes(Lock(wheels=(7, 3)), 32), [0], 3), tmp_path, ABOUT, every=1)


def edited(checkpoint: Path, state: dict[str, Any], about: dict[str, Any]) -> None:
    """Change a checkpoint, and its manifest too."""
    kept, told = load_state(checkpoint), read_json(checkpoint / "training.json")
    shutil.rmtree(checkpoint)
    save_state(checkpoint, kept | state, {"training.json": to_json(told | about)})


@pytest.mark.parametrize(
    "state", [{"updates": "x"}, {"lanes": {"seed": 3, "units": ["train"], "steps": 0, "state": []}}]
)
def test_a_state_that_was_edited_is_told(state: dict[str, Any], tmp_path: Path) -> None:
    begun(tmp_path)
    edited(tmp_path / "00000000", state, {})
    with pytest.raises(BrokenCheckpoint, match="00000000 is no state of this learner"):
        begun(tmp_path)


@pytest.mark.parametrize(
    "about", [{"update": -1}, {"steps": 2.5}, {"curve": "x"}, {"curve": [1]}, {"curve": [{"update": 1, "steps": "x"}]}]
)
def test_a_progress_that_was_edited_is_told(about: dict[str, Any], tmp_path: Path) -> None:
    begun(tmp_path)
    edited(tmp_path / "00000000", {}, about)
    with pytest.raises(BrokenCheckpoint, match=r"training.json is not as a training writes it"):
        begun(tmp_path)


def test_environments_that_own_their_state_train_without_checkpoints(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    oracle = PPO(steps=32, num_lanes=2, horizon=8, minibatches=1, hidden=(4,))
    with_envs: Learner = oracle.learner(make("gymnasium:CartPole-v1").lanes(2), [0], 3)
    training = Training(with_envs, tmp_path, ABOUT, every=16)
    assert not training.resumable
    assert "note: no checkpoints are kept, for these environments own" in caplog.text
    training.run()
    assert [report["update"] for report in training.curve] == [1, 2]
    assert not list(tmp_path.iterdir())


def test_curves_are_thinned_and_plain(tmp_path: Path) -> None:
    training = begun(tmp_path)
    training.log_every = 300
    training.run()
    assert [report["steps"] for report in training.curve] == [128, 384, 640, 1024]
    about = json.loads((tmp_path / "00000008" / "training.json").read_text())
    assert about["curve"] == training.curve
    assert (about["update"], about["steps"], about["about"]) == (8, 1024, ABOUT)


@pytest.mark.gpu
def test_a_training_on_cuda_goes_on_from_files(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path, device="cuda").run(stopping(3))
    again = begun(tmp_path, device="cuda")
    assert (again.update, again.learner.policies[0].device.type) == (3, "cuda")
    assert [report["update"] for report in again.curve] == [1, 2, 3]
    again.run()
    assert again.curve[-1]["update"] == 8


def test_steps_between_checkpoints_are_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        begun(tmp_path, every=0)


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    training = begun(tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a"):
        training.run()
