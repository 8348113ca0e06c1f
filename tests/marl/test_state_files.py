"""States read back are the states written, to the last bit and the last stride; what was harmed is told by its key."""

import json
import math
import os
import signal
import tracemalloc
import warnings
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from marl import failpoints
from marl.atomic import MANIFEST, BrokenCheckpoint, digest, sweep
from marl.state_files import load_state, save_state
from tests.processes import ended

TENSORS = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.float8_e4m3fn),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
    torch.bool,
]
ARRAYS = ["f8", ">f4", "f2", "c16", "g", "i8", "u8", ">i4", "u2", "i1", "?", "M8[ns]", "U5", "S3"]
numbers = st.one_of(st.integers(), st.integers(-(2**80), 2**80), st.floats(), st.booleans(), st.none(), st.text())
arrays = st.sampled_from(ARRAYS).flatmap(
    lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
tensors = st.sampled_from(TENSORS).flatmap(
    lambda kind: st.lists(st.integers(0, 3), max_size=3).map(lambda shape: (torch.rand(shape) * 9).to(kind))
)
keys = st.one_of(st.text(max_size=3), st.integers(), st.none(), st.tuples(st.integers(), st.text(max_size=2)))
states = st.recursive(
    st.one_of(numbers, arrays, tensors),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "a/b", "~", "~1", "", "0", "dict"]), inner, max_size=3),
    ),
    max_leaves=8,
)


def written_and_read(state: Any) -> Any:
    with TemporaryDirectory() as folder:
        save_state(Path(folder) / "state", state)
        return load_state(Path(folder) / "state")


def assert_same(read: Any, wrote: Any) -> None:
    assert type(read) is type(wrote)
    if isinstance(wrote, list | tuple):
        assert len(read) == len(wrote)
        for mine, theirs in zip(read, wrote, strict=True):
            assert_same(mine, theirs)
    elif isinstance(wrote, dict):
        assert_same(list(read), list(wrote))  # in this order
        assert_same(list(read.values()), list(wrote.values()))
    elif isinstance(wrote, torch.Tensor):
        assert (read.dtype, read.shape) == (wrote.dtype, wrote.shape)
        mine, theirs = (part.clone(memory_format=torch.contiguous_format).flatten() for part in (read, wrote))
        assert mine.view(torch.uint8).equal(theirs.view(torch.uint8))
    elif isinstance(wrote, np.ndarray | np.generic):
        assert (read.dtype, read.shape) == (wrote.dtype, wrote.shape)
        assert read.tobytes() == wrote.tobytes()
    elif isinstance(wrote, float):
        assert (math.copysign(1, read), str(read)) == (math.copysign(1, wrote), str(wrote))
    else:
        assert read == wrote


@given(states)
@example({"a": {"0": np.arange(2)}, "a/0": np.arange(3), "b": [torch.zeros(2, 0)], "": {"": (None,)}})
@example([-0.0, float("nan"), float("-inf"), 2**70, -(2**63), 2**63, "\ud800\x00", (), {}])
@example([np.float32(0.1), np.bool_(True), np.datetime64("2026-01-01"), np.str_("text"), np.array(3)])
def test_every_state_comes_back_as_it_was(state: Any) -> None:
    assert_same(written_and_read(state), state)


def test_a_nan_keeps_its_bits() -> None:
    odd = np.array([0xFFF8000000000001], np.uint64).view(np.float64)
    assert np.array(written_and_read(odd.tolist())).tobytes() == odd.tobytes()


class Named(NamedTuple):
    count: int


def test_what_containers_are_also_called_is_forgotten() -> None:
    assert_same(written_and_read([Named(1), OrderedDict(b=1, a=2)]), [(1,), {"b": 1, "a": 2}])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_arrays_lie_in_memory_as_they_did(kind: str) -> None:
    base = np.arange(24.0).reshape(2, 3, 4)
    given = [base.transpose(order) for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0))]
    given += [
        np.broadcast_to(base[0, 0, 0], (1,)),
        np.broadcast_to(base[:, :1], base.shape),
        base[:, ::-1],
        base[..., ::2],
        base[:1].transpose(2, 0, 1),
    ]
    given = [array.copy() if kind == "torch" and min(array.strides) < 0 else array for array in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather not have what is read-only
        state = [torch.from_numpy(array) if kind == "torch" else array for array in given]
    for read, wrote in zip(written_and_read(state), state, strict=True):
        assert_same(read, wrote)
    columns = written_and_read(torch.zeros(4, 3).t() if kind == "torch" else np.zeros((4, 3)).T)
    assert columns.T.is_contiguous() if kind == "torch" else columns.flags.f_contiguous


def test_a_tensor_is_of_no_graph_and_one_s_own() -> None:
    state = {"weight": torch.ones(3, requires_grad=True), "view": torch.arange(4)[1:3].conj()}
    read = written_and_read(state)
    assert not read["weight"].requires_grad
    read["view"] += 1
    assert state["view"].tolist() == [1, 2]


@pytest.mark.gpu
def test_what_is_on_a_gpu_comes_back_on_the_cpu() -> None:
    read = written_and_read({"weights": torch.arange(6.0, device="cuda").view(2, 3).t()})
    assert_same(read["weights"], torch.arange(6.0).view(2, 3).t())


def test_other_readers_of_safetensors_find_arrays_by_their_way_through_the_state(tmp_path: Path) -> None:
    save_state(tmp_path / "state", {"actor": [np.ones((2, 3), np.float32)], "a/b": np.array(7)}, {"more.txt": b"more"})
    found = load_file(tmp_path / "state" / "state.safetensors")
    assert {name: array.tolist() for name, array in found.items()} == {"/actor/0": [[1, 1, 1]] * 2, "/a~1b": 7}
    assert (tmp_path / "state" / "more.txt").read_bytes() == b"more"


def test_large_arrays_are_neither_copied_nor_read_before_they_are_used(tmp_path: Path) -> None:
    large = np.arange(2**22)  # 32 MiB, of which NumPy tells tracemalloc
    tracemalloc.start()
    save_state(tmp_path / "state", {"replay": large})
    read = load_state(tmp_path / "state")["replay"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22
    for file in (tmp_path / "state").iterdir():  # as rotating checkpoints does
        file.unlink()
    read[0] = 5
    assert (read[1:] == large[1:]).all()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"learner": [{"replay": {1, 2}}]}, "/learner/0/replay is a set, which cannot be saved"),
        ({"policy": np.array([None])}, "/policy is a ndarray of object"),
        ({"rows": np.zeros(2, [("a", "i4")])}, "/rows is a ndarray of"),
        ({"sparse": torch.zeros(2, 2).to_sparse()}, "/sparse is a Tensor of torch.float32"),
        (np.ma.masked_array([1, 2], [True, False]), "the state is a MaskedArray of int64"),
        ({7: lambda: 0}, "/0/1 is a function"),
        (b"bytes", "the state is a bytes"),
    ],
)
def test_what_is_no_plain_state_is_named_and_leaves_nothing(state: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        save_state(tmp_path / "state", state)
    assert not list(tmp_path.iterdir())


def reseal(folder: Path) -> None:
    files = [file for file in folder.iterdir() if file.name != MANIFEST]
    (folder / MANIFEST).write_text(json.dumps({file.name: digest(file) for file in files}))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("state.json", b'"tensor"', b'"tensr"', "/weights is no tensr as it is written"),
        ("state.json", b'{"array": "/rows"', b'{"array": "/rosw"', "/rows is no array as it is written"),
        ("state.json", b'"c16"', b'"c15"', "/rows is no array"),
        ("state.json", b'"0x', b'"zz', "/big is no int"),
        ("state.json", b'"format": 1', b'"format": 2', "state.json is no state of format 1"),
        ("state.json", b'{"format"', b'{"format', "state.json is not readable JSON"),
        ("state.safetensors", b'"F32"', b'"F33"', "state.safetensors is not readable safetensors"),
    ],
)
def test_a_bad_file_is_told_with_its_key(file: str, old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    save_state(tmp_path / "state", {"weights": torch.ones(2), "rows": np.ones(2, "<c16"), "big": 2**99})
    path = tmp_path / "state" / file
    before = path.read_bytes()
    assert old in before or b"<c16" in before
    path.write_bytes(before.replace(old if old in before else b'"<c16"', new, 1))
    with pytest.raises(BrokenCheckpoint, match=f"{file} is not as the run wrote it"):
        load_state(tmp_path / "state")
    reseal(tmp_path / "state")
    with pytest.raises(BrokenCheckpoint, match=message):
        load_state(tmp_path / "state")


def save_two(folder: Path, failpoint: str) -> None:
    save_state(folder / "1", {"count": 1})
    os.environ[failpoints.VARIABLE] = failpoint
    failpoints.reached.clear()
    save_state(folder / "2", {"count": 2, "rows": np.zeros(9)})


MOMENTS = [("file opened", 2), ("file written", 1), ("folder listed", 1)]


@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_the_state_before_stays_whatever_kills_the_writer(moment: str, count: int, tmp_path: Path) -> None:
    assert ended(save_two, tmp_path, f"{moment}:{count}:kill") == -signal.SIGKILL
    sweep(tmp_path)
    assert [folder.name for folder in tmp_path.iterdir()] == ["1"]
    assert load_state(tmp_path / "1") == {"count": 1}


@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_a_disk_that_fills_up_leaves_the_state_before(
    moment: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "")
    with pytest.raises(OSError, match="No space left"):
        save_two(tmp_path, f"{moment}:{count}:full")
    assert [folder.name for folder in tmp_path.iterdir()] == ["1"]
