"""Where units of work run: in this process, or in worker processes of this machine.

A unit is a pure function call with a name (one best response, a block of profiles), so what it returns depends neither
on where it runs nor on what runs beside it: any number of workers gives the same results.
"""

import logging
import os
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from games.spawning import Spawned, portable, told

log = logging.getLogger(__name__)

MOST_DEATHS = 3
"""Workers that one unit may take with it before it is given up: more would hardly be chance."""

LOOK = 1.0
"""Seconds between looks at whether silent workers live."""

PATIENCE = 5.0
"""Seconds that idle workers have to end by themselves."""

Progress = Callable[[str, Any], None]


class WorkersDied(ChildProcessError):
    """Worker processes die, again and again, of the same unit of work, or before they are ready."""


class Unit(NamedTuple):
    """One call, such as a `functools.partial` of a module's function; it can be pickled."""

    name: str
    call: Callable[..., Any]
    watched: bool = False
    """Whether the call takes `progress`, a function that it calls with what to tell."""

    def run(self, progress: Callable[[Any], None]) -> Any:
        return self.call(progress=progress) if self.watched else self.call()


class Workers(Protocol):
    """Runs units of work; a context manager that lets go of what it holds."""

    def run(self, units: Sequence[Unit], progress: Progress | None = None) -> Iterator[tuple[str, Any]]:
        """(name, result) of every unit, as they finish; `progress` gets (name, message) from the watched ones.

        What a unit raises is raised here, with its name and traceback as a note.
        """

    def __enter__(self) -> "Workers": ...

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


@dataclass(frozen=True)
class Here:
    """This process: one unit after the other, in the order given."""

    def run(self, units: Sequence[Unit], progress: Progress | None = None) -> Iterator[tuple[str, Any]]:
        for unit in units:
            try:
                result = unit.run(_telling(progress, unit.name))
            except Exception as error:
                error.add_note(told(unit.name))
                raise
            yield unit.name, result

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class Processes:
    """`number` worker processes, each of which calls `prepare` first.

    A worker that dies (killed, out of memory) costs the unit it was at, which another one begins again; where one unit
    takes `MOST_DEATHS` workers with it, WorkersDied says so. Workers leave Ctrl-C to this process, and end with it,
    however it ends.

    Raises ValueError for fewer than 1.
    """

    def __init__(self, number: int, prepare: Callable[[], Any] | None = None):
        if number < 1:
            raise ValueError(f"there must be at least 1 worker, got {number}")
        self.number, self.prepare = number, prepare
        self._idle: list[Spawned] = []

    def __enter__(self) -> "Processes":
        return self  # workers start when there is something to do

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self._idle:
            worker.connection.close()
        for worker in self._idle:
            worker.end(PATIENCE if kind is None else 0)
        self._idle = []

    def run(self, units: Sequence[Unit], progress: Progress | None = None) -> Iterator[tuple[str, Any]]:
        if len({unit.name for unit in units}) < len(units):
            raise ValueError(f"units need names of their own, got {[unit.name for unit in units]}")
        waiting, deaths = deque(units), Counter[str]()
        busy: dict[Spawned, Unit] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.number:
                    worker = self._next_worker()
                    busy[worker] = waiting.popleft()
                    if worker.ready:
                        _send(worker, busy[worker])
                for worker in _with_news(busy):
                    unit = busy[worker]
                    kind, content = _receive(worker, unit)
                    if kind == "ready":
                        _send(worker, unit)
                    elif kind == "progress":
                        _telling(progress, unit.name)(content)
                    else:
                        del busy[worker]
                        if kind == "dead":
                            deaths[unit.name] += 1
                            _tell_death(unit, worker, deaths[unit.name])
                            waiting.appendleft(unit)
                            continue
                        self._idle.append(worker)
                        if kind == "failed":
                            raise content
                        yield unit.name, content
        finally:
            for worker in busy:
                worker.end(0)

    def _next_worker(self) -> Spawned:
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.end(0)
        return Spawned(_serve, pickle.dumps(self.prepare))  # unpickling it may import what takes seconds


def _send(worker: Spawned, unit: Unit) -> None:
    try:
        message = pickle.dumps(unit)
    except Exception as error:
        error.add_note(f"{unit.name} cannot be sent to a worker")
        raise
    with suppress(OSError):  # a worker that is dead tells so when it is listened to
        worker.connection.send_bytes(message)


def _receive(worker: Spawned, unit: Unit) -> tuple[str, Any]:
    """What it has to say of the unit: ready, progress, done, failed, or that it is dead."""
    try:
        message = worker.connection.recv_bytes() if worker.connection.poll() else b""
    except (EOFError, OSError):
        message = b""
    if not message:
        worker.end(PATIENCE)
        return "dead", None
    try:
        kind, content = pickle.loads(message)
    except Exception as error:
        error.add_note(f"what a worker sent of {unit.name} cannot be read")
        raise
    worker.ready = True
    return kind, content


def _with_news(workers: Iterable[Spawned]) -> list[Spawned]:
    """Those of the workers that have something to say, or have died, once there are any."""
    listened = {worker.connection: worker for worker in workers}
    while True:
        news = {listened[connection] for connection in wait(list(listened), LOOK) if isinstance(connection, Connection)}
        # A process that a dead worker has left behind may keep its end of the pipe: then nothing is heard of the death.
        found = [worker for worker in listened.values() if worker in news or not worker.process.is_alive()]
        if found:
            return found


def workers_of(number: int | None, most: int, prepare: Callable[[], Any]) -> Workers:
    """So many worker processes, or this process for 1; for None one a core, but no more than `most`."""
    wanted = number_of(number, most)
    return Here() if wanted == 1 else Processes(wanted, prepare)


def number_of(number: int | None, most: int) -> int:
    """How many worker processes there are by `workers_of`; 1 is this process."""
    return number or min(available_cores(), most)


def available_cores() -> int:
    """CPU cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _serve(connection: Connection, pickled: bytes) -> None:
    """A worker's life: it ends when nobody sends any more."""

    def tell(kind: str, content: Any) -> None:
        connection.send_bytes(pickle.dumps((kind, content)))

    name = "a worker's preparation"
    try:
        prepare = pickle.loads(pickled)
        if prepare is not None:
            prepare()
        tell("ready", None)
        while True:
            try:
                received = connection.recv_bytes()
            except EOFError:
                return
            name = "a unit of work"
            try:
                unit = pickle.loads(received)
                name = unit.name
                tell("done", unit.run(lambda message: tell("progress", message)))
            except BaseException as error:  # a unit that exits has failed; the worker has not
                tell("failed", portable(error, name))
    except BaseException as error:
        with suppress(OSError):  # nobody may be there to be told
            tell("failed", portable(error, name))


def _telling(progress: Progress | None, name: str) -> Callable[[Any], None]:
    return (lambda message: progress(name, message)) if progress is not None else lambda message: None


def _tell_death(unit: Unit, worker: Spawned, times: int) -> None:
    """Warn that the unit is begun again; raises WorkersDied where that would be of no use."""
    how = worker.ending
    if not worker.ready and not worker.killed:
        raise WorkersDied(f"a worker {how}")
    if times == MOST_DEATHS:
        raise WorkersDied(
            f"{times} workers died of {unit.name}; the last {how}: is there enough memory? fewer workers need less"
        )
    log.warning("note: the worker at %s %s; it is begun again", unit.name, how)
