"""Units of work in this process and in others."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.normal_form import battle_of_the_sexes
from marl.population import evaluate, full_gap
from marl.workers import Here, Processes, Unit, Workers, WorkersDied
from tests.killed import ROOT, ended_by, started
from tests.marl import work
from tests.marl.small_games import Fixed

ENDLESS = """
import signal
import sys
from functools import partial
from pathlib import Path
from marl.workers import Processes, Unit
from tests.marl import work

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background ignores it
    with Processes(2) as workers:
        print(dict(workers.run([Unit(str(i), partial(work.announced, Path(sys.argv[1]))) for i in range(2)])))
"""


@pytest.fixture(scope="module")
def two() -> Iterator[Processes]:
    with Processes(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def three() -> Iterator[Processes]:
    with Processes(3) as workers:
        yield workers


@pytest.fixture(params=["here", "two"])
def workers(request: pytest.FixtureRequest) -> Workers:
    return Here() if request.param == "here" else request.getfixturevalue(request.param)


def units(function: Callable, arguments: list, watched: bool = False) -> list[Unit]:
    return [Unit(f"unit {i}", partial(function, *argument), watched) for i, argument in enumerate(arguments)]


def alive(pid: int) -> bool:
    """Whether there is such a process, other than as the remains of one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_every_unit_brings_its_result(workers):
    assert dict(workers.run(units(work.double, [(1,), (2,), (3,)]))) == {"unit 0": 2, "unit 1": 4, "unit 2": 6}
    assert dict(workers.run([])) == {}


def test_progress_comes_with_the_name_of_the_unit(workers):
    told = []
    results = dict(workers.run(units(work.counted, [(2,), (3,)], watched=True), lambda *message: told.append(message)))
    assert results == {"unit 0": 2, "unit 1": 3}
    assert sorted(told) == [("unit 0", 0), ("unit 0", 1), ("unit 1", 0), ("unit 1", 1), ("unit 1", 2)]
    assert dict(workers.run(units(work.counted, [(2,)], watched=True))) == {"unit 0": 2}


def test_work_is_done_by_others_side_by_side(two):
    processes = {pid for pid, _ in dict(two.run(units(work.whoami, [(i,) for i in range(20)]))).values()}
    assert os.getpid() not in processes
    assert len(processes) == 2


def test_an_exception_keeps_its_type_traceback_and_the_name_of_its_unit(workers):
    with pytest.raises(ZeroDivisionError, match="division by zero") as raised:
        dict(workers.run(units(work.divide, [(1,), (0,)])))
    note = "\n".join(raised.value.__notes__)
    assert "in unit 1" in note
    assert "return 1 / number" in note
    assert dict(workers.run(units(work.double, [(1,)]))) == {"unit 0": 2}


def test_what_cannot_be_sent_is_told(two):
    with pytest.raises(RuntimeError, match="Awkward: this and that") as raised:
        dict(two.run(units(work.awkward, [()])))
    assert 'raise Awkward("this", "that")' in raised.value.__notes__[0]
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        dict(two.run(units(work.unpicklable, [()])))
    assert dict(two.run(units(work.double, [(1,)]))) == {"unit 0": 2}


@pytest.mark.parametrize(("failing", "words"), [(work.leave, "SystemExit: 3"), (work.hollow, "Hollow: and gone")])
def test_what_is_of_no_use_here_is_told_in_words(two, failing, words):
    with pytest.raises(RuntimeError, match=words) as raised:
        dict(two.run(units(failing, [()])))
    assert "in unit 0" in raised.value.__notes__[0]
    assert dict(two.run(units(work.double, [(1,)]))) == {"unit 0": 2}


def test_what_cannot_be_pickled_is_told_with_its_unit(two):
    with pytest.raises((AttributeError, TypeError), match="pickle") as raised:
        dict(two.run([Unit("of a lambda", lambda: 1)]))
    assert raised.value.__notes__ == ["of a lambda cannot be sent to a worker"]


def test_names_are_different(two):
    with pytest.raises(ValueError, match="names of their own"):
        dict(two.run([Unit("twin", work.unpicklable), Unit("twin", work.unpicklable)]))


def test_a_failing_preparation_is_told_once():
    with Processes(1, work.unwilling) as workers, pytest.raises(RuntimeError, match="not today") as raised:
        dict(workers.run(units(work.double, [(1,)])))
    assert "in a worker's preparation" in raised.value.__notes__[0]


def test_no_worker_hears_of_ctrl_c(tmp_path):
    with Processes(3) as workers:
        blocked = dict(workers.run(units(work.signals, [(tmp_path, 3)] * 3)))
    assert {int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in blocked.values()} == {1}


def test_a_death_is_noticed_whoever_holds_the_pipe(two):
    start = time.monotonic()
    with pytest.raises(WorkersDied, match="killed by SIGKILL"):
        dict(two.run(units(work.left_behind, [(60,)])))
    assert time.monotonic() - start < 50


@pytest.mark.parametrize("how", [["script.py"], ["-"]])
def test_a_script_that_would_start_itself_again_is_told_so(how, tmp_path):
    """Either it is run by every worker, or there is nothing for them to read."""
    code = ENDLESS.replace('if __name__ == "__main__":', "if True:").replace("sys.argv[1]", f"{str(tmp_path)!r}")
    (tmp_path / "script.py").write_text(code)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *how], input=code, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 1
    assert "keep what it does under if __name__ == '__main__'" in done.stderr.splitlines()[-1]


def test_a_killed_worker_costs_its_unit_only(two, tmp_path, caplog):
    log = tmp_path / "log"
    doomed = Unit("the doomed one", partial(work.killed_once, tmp_path / "flag"))
    others = units(work.logged, [(i, log) for i in range(10)])
    results = dict(two.run([others[0], doomed, *others[1:]]))
    assert results == {"the doomed one": "survived"} | {f"unit {i}": i for i in range(10)}
    assert sorted(log.read_text().split(), key=int) == [str(i) for i in range(10)]  # once each
    assert "the worker at the doomed one was killed by SIGKILL; it is begun again" in caplog.text


def test_a_unit_that_kills_every_worker_is_given_up(two):
    with pytest.raises(WorkersDied, match="3 workers died of unit 0; the last was killed by SIGKILL"):
        dict(two.run(units(work.killed, [()])))
    assert dict(two.run(units(work.double, [(1,)]))) == {"unit 0": 2}


def test_a_worker_that_dies_while_idle_is_replaced(two):
    for pid, _ in dict(two.run(units(work.whoami, [(i,) for i in range(8)]))).values():
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    assert dict(two.run(units(work.double, [(1,), (2,)]))) == {"unit 0": 2, "unit 1": 4}


def test_units_nobody_waits_for_are_given_up(tmp_path):
    with Processes(2) as workers:
        dict(workers.run(units(work.whoami, [(1,), (2,)])))  # both are ready now
        running = workers.run([*units(work.whoami, [(1,)]), Unit("long", partial(work.announced, tmp_path))])
        next(running)
        assert eventually(lambda: len(list(tmp_path.iterdir())) == 1)
        running.close()
        assert not alive(int(next(tmp_path.iterdir()).name))
        assert dict(workers.run(units(work.double, [(1,)]))) == {"unit 0": 2}


def test_there_must_be_a_worker():
    with pytest.raises(ValueError, match="at least 1 worker, got 0"):
        Processes(0)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_and_no_shared_memory_outlives_the_one_that_started_it(signum, tmp_path):
    """However it ends; Ctrl-C is sent to all of its group, as a terminal does."""
    script, busy, shared = tmp_path / "endless.py", tmp_path / "busy", Path("/dev/shm")
    script.write_text(ENDLESS)
    busy.mkdir()
    before = set(shared.iterdir())
    with started([sys.executable, script, busy]) as process:
        assert eventually(lambda: len(list(busy.iterdir())) == 2)
        errors = ended_by(signum, process)
    assert errors.count("Traceback") == (signum == signal.SIGINT)  # its own, and none of the workers
    assert eventually(lambda: not any(alive(int(file.name)) for file in busy.iterdir()))
    assert set(shared.iterdir()) <= before


@given(seed=st.integers(0, 2**32), sizes=st.tuples(st.integers(1, 3), st.integers(1, 3)), episodes=st.integers(2, 9000))
def test_tables_and_gaps_do_not_depend_on_the_number_of_workers(two, three, seed, sizes, episodes):
    game = battle_of_the_sexes()
    populations = [[Fixed((i / k, 1 - i / k)) for i in range(k)] for k in sizes]
    sigma = np.full(sizes, 1 / np.prod(sizes))
    responses = [[Fixed((1.0, 0.0))], [Fixed((0.5, 0.5))]]

    def measured(workers):
        table = evaluate(game, populations, episodes, seed, workers=workers)
        return table, full_gap(game, populations, sigma, responses, episodes, seed, "gap", workers)

    table, gap = measured(Here())
    for workers in (two, three):
        other, other_gap = measured(workers)
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(table, other, strict=True))
        assert other_gap == gap
