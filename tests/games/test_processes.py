"""Lanes whose environments live in worker processes."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.noise import Purpose
from games.policies import Uniform
from games.processes import WorkerDied, hosting
from games.stepping import SteppedLanes
from marl.workers import Processes as UnitWorkers
from marl.workers import Unit
from tests.games.walks import GRIEF, Lost, Walks, step
from tests.killed import ended_by, started

INTERRUPTIBLE = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # what runs in the background ignores it
LANES = 7
KINDS = ("pipe:", "socket:", "anon_inode:")

SCRIPT = """
import sys
from multiprocessing import active_children
from pathlib import Path

from games.processes import hosting
from games.stepping import SteppedLanes
from tests.games.walks import GRIEF, Walks, step

if __name__ == "__main__":
    lanes = SteppedLanes(Walks(grief=sys.argv[2]), 2, hosting(2))
    lanes.reset(0)
    Path(sys.argv[1]).write_text(" ".join(str(child.pid) for child in active_children()))
    step(lanes, GRIEF)
"""


def lanes_of(workers: int, timeout: float | None = None, num_lanes: int = LANES, **walks) -> SteppedLanes:
    return SteppedLanes(Walks(**walks), num_lanes, hosting(workers, timeout))


def children() -> list[int]:
    """Processes that this one has started, but for multiprocessing's own tracker."""
    own = f"/proc/{os.getpid()}/task"
    found = [int(pid) for task in os.listdir(own) for pid in Path(own, task, "children").read_text().split()]
    return [pid for pid in found if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def opened() -> set[tuple[str, str]]:
    """File descriptors of the kinds that lanes open, by number and what they are of: pipes, sockets, shared memory.

    Others come and go in a process of pytest, whatever lanes do.
    """
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return {(number, target) for number, target in found if target.startswith(KINDS) or "/pym" in target}


def alive(pid: int) -> bool:
    """Whether there is such a process, be it as the remains of one."""
    return Path(f"/proc/{pid}").exists()


def eventually(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.fixture(autouse=True)
def nothing_is_left(hosts) -> Iterator[None]:
    """No process, no file descriptor and no shared memory with a name."""
    before = set(children()), opened(), set(os.listdir("/dev/shm"))
    yield
    assert set(children()) <= before[0]
    assert len(opened()) <= len(before[1]) + 2  # multiprocessing's tracker and heap come to stay
    assert set(os.listdir("/dev/shm")) <= before[2]


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[SteppedLanes]]:
    """The same lanes in this process, and in one and three others."""
    made = [lanes_of(workers) for workers in (0, 1, 3)]
    yield made
    for lanes in made:
        lanes.close()


def shown(lanes: SteppedLanes, seed: int, units: tuple[str, ...], steps: int) -> list[np.ndarray]:
    """All that lanes show in random play."""
    lanes.reset(seed, *units)
    policies, seen = [Uniform.of(space) for space in lanes.action_spaces], []
    for _ in range(steps):
        views = [lanes.observe(0), lanes.observe(1), lanes.acting, lanes.alive, *lanes.legal(0)]
        noise = [lanes.noise(Purpose.SEAT + seat, policy.noise_size) for seat, policy in enumerate(policies)]
        actions = tuple(
            policy.act(views[seat], lanes.legal(seat), None, noise[seat])[0] for seat, policy in enumerate(policies)
        )
        seen += [*views, *lanes.step(actions), lanes.final_observations(0), lanes.final_observations(1)]
    return seen


@settings(max_examples=10)
@given(st.integers(0, 2**40), st.sampled_from([(), ("one",), tuple("abcdefg")]), st.integers(1, 12))
def test_play_does_not_depend_on_the_number_of_processes(hosts, seed, units, steps):
    here, *others = [shown(lanes, seed, units, steps) for lanes in hosts]
    for other in others:
        for mine, theirs in zip(here, other, strict=True):
            assert np.array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    assert any(part.any() for part in here)


def test_there_are_no_more_processes_than_lanes():
    before = len(children())
    lanes = lanes_of(3, num_lanes=1)
    assert len(children()) == before + 1
    lanes.close()


def come_to_grief(what: str, when: str, workers: int = 1, timeout: float | None = None) -> None:
    """Have something happen in the last worker."""
    lanes = lanes_of(workers, timeout, grief=what, when=when)
    lanes.reset(0)
    try:
        step(lanes, GRIEF)
    finally:
        with pytest.raises(ValueError, match="lanes are closed: make new ones"):
            lanes.reset(0)


@pytest.mark.parametrize(("when", "workers", "lanes"), [("make", 1, "0 to 6"), ("step", 2, "3 to 6")])
def test_an_error_keeps_its_type_and_traceback_and_tells_its_lanes(when, workers, lanes):
    with pytest.raises(Lost, match="no way out") as raised:
        come_to_grief("raise", when, workers)
    note = "\n".join(raised.value.__notes__)
    assert f"in the worker of lanes {lanes}, process" in note
    assert 'raise Lost("no way out")' in note


@pytest.mark.parametrize(
    ("grief", "error", "words"),
    [
        ("leave", RuntimeError, "SystemExit: 3"),
        ("exit", WorkerDied, "the worker of lanes 0 to 6 ended with exit code 3; these lanes are closed"),
        ("crash", WorkerDied, "the worker of lanes 0 to 6 was killed by SIGSEGV; these lanes are closed"),
        ("kill beside a child", WorkerDied, "the worker of lanes 0 to 6 was killed by SIGKILL"),
        ("hang", TimeoutError, "the worker of lanes 0 to 6 did not answer within 0.5 seconds"),
    ],
)
def test_whatever_a_worker_comes_to_is_told(grief, error, words):
    """As its next episode begins, which is in the step that ended the last one."""
    with pytest.raises(error, match=words):
        come_to_grief(grief, "begin", timeout=0.5 if grief == "hang" else None)


def test_what_cannot_be_sent_is_told_before_any_process_starts():
    class Local(Walks):
        pass

    before = children()
    with pytest.raises(ValueError, match=r"cannot be sent to worker processes: .*Local.*a function of a module"):
        SteppedLanes(Local(), 2, hosting(2))
    assert children() == before


@pytest.mark.parametrize(("workers", "timeout"), [(-1, None), (1, 0), (1, float("nan"))])
def test_numbers_of_workers_and_timeouts_are_positive(workers, timeout):
    with pytest.raises(ValueError, match="at least 1 worker, and a timeout is positive"):
        hosting(workers, timeout)(Walks(), 2)


def test_workers_for_units_of_work_have_none_for_lanes():
    with UnitWorkers(1) as workers, pytest.raises(ValueError, match=r"leave out workers= .* \(--workers 1\)"):
        dict(workers.run([Unit("lanes", partial(lanes_of, 2))]))


def test_environments_that_are_never_made_run_into_the_timeout():
    with pytest.raises(TimeoutError, match=r"the worker of lane 0 did not answer within 0.2 seconds"):
        hosting(1, 0.2)(Walks(grief="hang", when="make"), 1)


def test_a_source_that_workers_do_not_find_is_refused_with_what_to_do(monkeypatch):
    source = type("Unknown", (Walks,), {"__module__": __name__})
    monkeypatch.setattr(sys.modules[__name__], "Unknown", source, raising=False)
    with pytest.raises(ValueError, match=r"cannot be sent .*Can't get attribute 'Unknown'.* under if __name__"):
        hosting(1)(source(), 1)


def test_closed_lanes_have_closed_their_environments_and_say_so(tmp_path):
    lanes = lanes_of(0, closed=tmp_path)
    lanes.close()
    lanes.close()
    assert len(list(tmp_path.iterdir())) == LANES
    with pytest.raises(ValueError, match="lanes are closed: make new ones"):
        lanes.reset(0)


@pytest.mark.parametrize(
    ("signum", "grief"), [(signal.SIGKILL, "sleep in native code"), (signal.SIGINT, "hang in native code")]
)
def test_no_worker_outlives_the_process_that_started_it(signum, grief, tmp_path):
    """In a step that hangs in native code; Ctrl-C is sent to all of its group, as a terminal does."""
    with script(tmp_path, SCRIPT, grief) as process:
        pids = tmp_path / "pids"
        assert eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        workers = [int(pid) for pid in pids.read_text().split()]
        errors = ended_by(signum, process)
    assert errors.count("Traceback") == (signum == signal.SIGINT)  # its own, and none of the workers
    assert eventually(lambda: not any(alive(pid) for pid in workers))


def test_nothing_outlives_a_script_that_ends_without_closing_its_lanes(tmp_path):
    with script(tmp_path, SCRIPT, "") as process:
        assert (process.wait(30), process.stderr.read()) == (0, "")
    assert eventually(lambda: not any(alive(int(pid)) for pid in (tmp_path / "pids").read_text().split()))


def test_a_script_that_would_start_itself_again_is_told_so(tmp_path):
    with script(tmp_path, SCRIPT.replace('if __name__ == "__main__":', "if True:"), "") as process:
        assert process.wait(30) == 1
        assert "keep what it does under if __name__ == '__main__'" in process.stderr.read().splitlines()[-1]


def script(folder: Path, code: str, grief: str) -> subprocess.Popen:
    (folder / "script.py").write_text(code.replace("import sys\n", f"import signal, sys\n{INTERRUPTIBLE}\n"))
    return started([sys.executable, folder / "script.py", folder / "pids", grief])


@pytest.mark.parametrize("cycles", [2, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_left_of_lanes_that_are_closed_or_that_nobody_has_any_more(cycles, tmp_path):
    """No process and, after the first time, no file descriptor; no memory, but for what an allocator keeps.

    It looks at what these lanes have opened: lanes of other tests may be collected meanwhile.
    """
    used = []
    for cycle in range(1 + cycles):
        files, processes = opened(), set(children())
        lanes = lanes_of(1, num_lanes=1, closed=tmp_path)
        lanes.reset(cycle)
        step(lanes)
        files, processes = opened() - files, set(children()) - processes
        assert len(processes) == 1
        assert len(files) >= 3  # the connection, what tells of the worker's end, and what listens to both
        if cycle % 2:
            lanes.close()
        del lanes
        assert not processes & set(children())
        gc.collect()
        if cycle:  # multiprocessing's tracker and heap come to stay
            assert not files & opened()
        used.append(resident())
    assert len(list(tmp_path.iterdir())) == len(used)
    assert used[-1] < used[0] + 8_000_000


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
