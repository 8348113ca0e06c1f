"""Where units of work run: in this process, or in worker processes of this machine.

A unit is a pure function call with a name (one best response, a block of profiles), so what it returns depends neither
on where it runs nor on what runs beside it: any number of workers gives the same results.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, NamedTuple, Protocol

log = logging.getLogger(__name__)

MOST_DEATHS = 3
"""Workers that one unit may take with it before it is given up: more would hardly be chance."""

PATIENCE = 5.0
"""Seconds that idle workers have to end by themselves."""

Progress = Callable[[str, Any], None]


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
                error.add_note(_told(unit.name))
                raise
            yield unit.name, result

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class Processes:
    """`number` worker processes, each of which calls `prepare` first.

    A worker that dies (killed, out of memory) costs the unit it was at, which another one begins again; where one unit
    takes `MOST_DEATHS` workers with it, RuntimeError says so. Workers leave Ctrl-C to this process, and end with it,
    however it ends.

    Raises ValueError for fewer than 1.
    """

    def __init__(self, number: int, prepare: Callable[[], Any] | None = None):
        if number < 1:
            raise ValueError(f"there must be at least 1 worker, got {number}")
        self.number, self.prepare = number, prepare
        self._idle: list[_Worker] = []

    def __enter__(self) -> "Processes":
        return self  # workers start when there is something to do

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self._idle:
            worker.connection.close()
        for worker in self._idle:
            worker.end(PATIENCE if kind is None else 0)
        self._idle = []

    def run(self, units: Sequence[Unit], progress: Progress | None = None) -> Iterator[tuple[str, Any]]:
        waiting, deaths = deque(units), Counter[str]()
        busy: dict[Connection, tuple[_Worker, Unit]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.number:
                    worker, unit = self._next_worker(), waiting.popleft()
                    busy[worker.connection] = worker, unit
                    worker.send(unit)
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    worker, unit = busy[connection]
                    kind, content = worker.receive()
                    if kind == "progress":
                        _telling(progress, unit.name)(content)
                        continue
                    del busy[connection]
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
            for worker, _ in busy.values():
                worker.end(0)

    def _next_worker(self) -> "_Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.end(0)
        return _Worker(self.prepare)


class _Worker:
    """A process that runs units it is sent, one at a time."""

    def __init__(self, prepare: Callable[[], Any] | None):
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks, but not the threads
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, prepare), daemon=True)
        # Ctrl-C reaches every process of a terminal; the mask is inherited, so workers never notice.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def send(self, unit: Unit) -> None:
        with suppress(OSError):  # a worker that is dead tells so when it is listened to
            self.connection.send_bytes(pickle.dumps(unit))

    def receive(self) -> tuple[str, Any]:
        """What it has to say: progress, done, failed, or that it is dead."""
        try:
            return pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.end(PATIENCE)
            return "dead", None

    def end(self, patience: float) -> None:
        """Wait so many seconds for the process to end, then kill it."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def available_cores() -> int:
    """CPU cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _serve(connection: Connection, prepare: Callable[[], Any] | None) -> None:
    """A worker's life: it ends when nobody sends any more, or when its parent is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(kind: str, content: Any) -> None:
        connection.send_bytes(pickle.dumps((kind, content)))

    if prepare is not None:
        prepare()
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
        except Exception as error:
            tell("failed", _portable(error, name))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception, name: str) -> Exception:
    """The error with its traceback in words, or one that says the same where it cannot be pickled."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    copy.add_note(_told(name))
    return copy


def _told(name: str) -> str:
    """What has just been raised, in words."""
    return f"in {name}, process {os.getpid()}:\n{traceback.format_exc().rstrip()}"


def _telling(progress: Progress | None, name: str) -> Callable[[Any], None]:
    return (lambda message: progress(name, message)) if progress is not None else lambda message: None


def _tell_death(unit: Unit, worker: _Worker, times: int) -> None:
    """Warn that the unit is begun again; raises RuntimeError where that would be too often."""
    code = worker.process.exitcode or 0
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    if times == MOST_DEATHS:
        raise RuntimeError(
            f"{times} workers died of {unit.name}; the last {how}: is there enough memory? fewer workers need less"
        )
    log.warning("note: the worker at %s %s; it is begun again", unit.name, how)
