"""Whole or absent, and equal when read back."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import games
from games.game import Policy
from games.policies import Uniform
from marl.atomic import BrokenCheckpoint, sweep, verify, whole_folder, write_atomic
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot, save_snapshot
from marl.exact import ExactTable, evaluate_exact
from marl.networks import policy_layers
from marl.policies import NeuralPolicy
from marl.population import PayoffTable, evaluate
from marl.psro import Snapshot
from marl.shared import SharedTable, evaluate_shared

GAME = games.make("matching_pennies")
SPACE = GAME.action_spaces[0]


def neural(seed: int) -> NeuralPolicy:
    features = GAME.observation_spaces[0].shape[0]
    return NeuralPolicy.of(policy_layers(features, (4,), (2,), np.random.default_rng(seed)), SPACE)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, PolicyStore, Snapshot]:
    """A snapshot with a scripted and a neural policy a player, saved under its tmp_path."""
    store = PolicyStore(tmp_path / "policies")
    units = [[f"initial/{player}", f"train/1/{player}"] for player in range(2)]
    for player, (first, second) in enumerate(units):
        store.save(first, Uniform.of(SPACE), [])
        store.save(second, neural(player), [{"steps": 8, "return": 0.1}])
    populations = [[store.load(unit).policy for unit in names] for names in units]
    snapshot = Snapshot(0, populations, evaluate(GAME, populations, 8, seed=0), np.full((2, 2), 0.25))
    save_snapshot(tmp_path / "snapshots", snapshot, units, store, {"more.txt": b"more"})
    return tmp_path, store, snapshot


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_atomic(file, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_atomic(file, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"old"


def test_a_folder_that_fails_half_way_is_absent(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "folder") as folder:  # noqa: PT012
        write_atomic(folder / "part", b"part")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_folder_never_replaces_another(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        try:
            with whole_folder(tmp_path / "folder") as folder:
                write_atomic(folder / "file", text)
        except OSError:
            assert text == b"second"
    assert (tmp_path / "folder" / "file").read_bytes() == b"first"
    verify(tmp_path / "folder")


def test_what_a_dead_process_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / "snapshots" / ".0001.99.tmp").mkdir(parents=True)
    (tmp_path / "snapshots" / ".0001.99.tmp" / "payoffs.npz").write_bytes(b"half")
    (tmp_path / ".metrics.jsonl.99.tmp").write_bytes(b"half")
    (tmp_path / "metrics.jsonl").write_bytes(b"whole")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["metrics.jsonl", "snapshots"]


def test_a_policy_plays_the_same_when_read_back(tmp_path: Path) -> None:
    store, policy = PolicyStore(tmp_path), neural(3)
    store.save("train/1/0", policy, [{"steps": 8, "return": 0.1}])
    assert "train/1/0" in store
    read = store.load("train/1/0")
    observation = np.random.default_rng(0).random((64, policy.features), np.float32)
    noise = np.random.default_rng(1).random((64, 1), np.float32)
    assert (read.policy.act(observation, None, None, noise)[0] == policy.act(observation, None, None, noise)[0]).all()
    assert read.curve == [{"steps": 8, "return": 0.1}]


def test_a_snapshot_is_equal_when_read_back(stored: tuple[Path, PolicyStore, Snapshot]) -> None:
    path, store, snapshot = stored
    assert finished_iterations(path / "snapshots") == 1
    read = load_snapshot(path / "snapshots", 0, store)
    for mine, theirs in zip((*read.payoffs, read.sigma), (*snapshot.payoffs, snapshot.sigma), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    again = evaluate(GAME, read.populations, 8, seed=0)
    np.testing.assert_array_equal(again.mean, snapshot.payoffs.mean)


def test_an_exact_snapshot_is_equal_when_read_back(tmp_path: Path) -> None:
    game, store = games.make("openspiel:kuhn_poker"), PolicyStore(tmp_path / "policies")
    store.save("initial", Uniform.of(game.action_spaces[0]), [])
    populations = [[store.load("initial").policy]] * 2
    snapshot = Snapshot(0, populations, evaluate_exact(game, populations), np.ones((1, 1)))
    save_snapshot(tmp_path / "snapshots", snapshot, [["initial"]] * 2, store, {})
    read = load_snapshot(tmp_path / "snapshots", 0, store)
    assert isinstance(read.payoffs, ExactTable)
    np.testing.assert_array_equal(read.payoffs.mean, snapshot.payoffs.mean)


def shared(populations: list[list[Policy]]) -> SharedTable:
    return evaluate_shared(games.make("rock_paper_scissors"), populations, [(0, 1)], 8, seed=0)


def played(populations: list[list[Policy]]) -> PayoffTable:
    return evaluate(games.make("rock_paper_scissors"), populations, 8, seed=0)


def exact(populations: list[list[Policy]]) -> ExactTable:
    return evaluate_exact(games.make("openspiel:matrix_rps"), populations)


@pytest.mark.parametrize(
    ("measure", "lost"),
    [
        *((shared, name) for name in SharedTable._fields),
        *((played, name) for name in PayoffTable._fields),
        *((exact, name) for name in ("mean", "episodes")),
        *((measure, "sigma") for measure in (shared, played, exact)),
    ],
)
def test_payoffs_that_lost_an_array_are_refused(measure: Callable, lost: str, tmp_path: Path) -> None:
    store = PolicyStore(tmp_path / "policies")
    store.save("initial", Uniform((3,), True), [])
    populations = [[store.load("initial").policy]] * 2
    save_snapshot(
        tmp_path, Snapshot(0, populations, measure(populations), np.ones((1, 1))), [["initial"]] * 2, store, {}
    )
    whole = load_snapshot(tmp_path, 0, store)
    assert type(whole.payoffs) is type(measure(populations))
    with whole_folder(tmp_path / "0001") as folder, np.load(tmp_path / "0000" / "payoffs.npz") as arrays:
        np.savez(folder / "payoffs.npz", **{name: array for name, array in arrays.items() if name != lost})
        shutil.copy(tmp_path / "0000" / "snapshot.json", folder)
    with pytest.raises(BrokenCheckpoint, match=r"0001 is not as this version writes it \(.*(lacks arrays|not a file)"):
        load_snapshot(tmp_path, 1, store)


def test_policies_other_than_the_measured_ones_are_refused(stored: tuple[Path, PolicyStore, Snapshot]) -> None:
    path, store, _ = stored
    other = PolicyStore(path / "other")
    other.save("train/1/0", neural(9), [])
    swapped = store.path("train/1/0")
    swapped.rename(path / "was")
    other.path("train/1/0").rename(swapped)
    verify(swapped)  # whole in itself, but not the policy that was measured
    with pytest.raises(BrokenCheckpoint, match="not the policy"):
        load_snapshot(path / "snapshots", 0, store)


def test_a_missing_iteration_is_told(stored: tuple[Path, PolicyStore, Snapshot]) -> None:
    path, _, _ = stored
    (path / "snapshots" / "0000").rename(path / "snapshots" / "0002")
    with pytest.raises(BrokenCheckpoint, match="should hold 0000"):
        finished_iterations(path / "snapshots")
