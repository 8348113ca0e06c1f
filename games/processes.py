"""Episodes in worker processes of this machine, for environments that take their time."""

import math
import multiprocessing
import os
import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import Any

import numpy as np

from games.board import Board, blank_actions
from games.faults import closed_after_errors
from games.spawning import Spawned, portable
from games.stepping import CLOSED, Here, Host, Source

MAKE, STEP, DONE = b"make", b"step", b"done"
"""What is said; but a worker is sent the pickled arguments of a reset, and answers a pickled error."""

LOOK = 1.0
"""Seconds between looks at whether silent workers live."""

PATIENCE = 2.0
"""Seconds that workers have to finish what they are at, and to close their environments."""


class WorkerDied(ChildProcessError):
    """A worker process ended that should be playing."""


class Processes:
    """Episodes in `workers` processes, each of which plays consecutive lanes, as many as the others or one more.

    What the lanes show is the same for any number of workers, and in this process: see `Here`. The board and the
    actions are in shared memory that has no name, so that nothing is left of it however the processes end. Workers
    leave Ctrl-C to this process and end with it; without `close`, with the last reference to this. Implements `Host`.

    An error of an environment is raised here, its traceback as a note. A worker that dies raises WorkerDied; one that
    takes more than `timeout` seconds to make its environments, once it has started, or for a reset or a step of its
    lanes, raises TimeoutError (default: it may take forever). The lanes are closed then, and where this process is
    interrupted while it waits.

    Raises ValueError for fewer than 1 worker, a timeout that is not positive, a source that cannot be sent to workers,
    and within a worker process, which may have none of its own; what environments raise when they are made.
    """

    def __init__(self, source: Source, num_lanes: int, workers: int, timeout: float | None = None):
        if workers < 1 or (timeout is not None and not timeout > 0):
            raise ValueError(f"there must be at least 1 worker, and a timeout is positive; got {workers} and {timeout}")
        if multiprocessing.current_process().daemon:
            raise ValueError(
                "a worker process cannot have worker processes for its lanes: leave out workers= of the game, or "
                "have the units of work in one process (--workers 1)"
            )
        pickled = _pickled(source)
        self.timeout = timeout
        blocks: list[Any] = []
        zeros = partial(_shared_zeros, blocks)
        self.board = Board.of(source, num_lanes, zeros)
        self._actions = blank_actions(source, num_lanes, zeros)
        self._workers: list[Spawned] = []
        self._selector = DefaultSelector()
        self._end = weakref.finalize(self, _end, os.getpid(), self._workers, self._selector)
        count = min(workers, num_lanes)
        bounds = [num_lanes * i // count for i in range(count + 1)]
        self._blocks = [slice(*block) for block in pairwise(bounds)]
        with closed_after_errors(self.close):
            for index, lanes in enumerate(self._blocks):
                worker = Spawned(_serve, pickled, blocks, num_lanes, lanes.start, lanes.stop)
                self._workers.append(worker)
                self._selector.register(worker.connection, EVENT_READ, index)
            self._await_replies(None)  # processes start, and import what makes environments
            self._tell([MAKE] * count)

    def reset(self, seed: int, names: Sequence[str]) -> None:
        self._tell([pickle.dumps((seed, names[lanes])) for lanes in self._blocks])

    def step(self, actions: Sequence[np.ndarray]) -> None:
        for shared, action in zip(self._actions, actions, strict=True):
            shared[:] = action
        self._tell([STEP] * len(self._blocks))

    def close(self) -> None:
        self._end()

    def _tell(self, commands: list[bytes]) -> None:
        """Have every worker do something, and wait until all have."""
        if not self._end.alive:
            raise ValueError(CLOSED)
        with closed_after_errors(self.close):  # replies still on their way would be taken for the next ones
            for worker, command in zip(self._workers, commands, strict=True):
                with suppress(OSError):  # a worker that is dead tells so when it is listened to
                    worker.connection.send_bytes(command)
            self._await_replies(self.timeout)

    def _await_replies(self, timeout: float | None) -> None:
        """Wait for a reply of every worker. Raises what the first of them, in the order of lanes, failed with."""
        silent = set(range(len(self._workers)))
        failures: dict[int, Exception] = {}
        end = monotonic() + (math.inf if timeout is None else timeout)
        while silent and monotonic() < end:
            ready = [key.data for key, _ in self._selector.select(min(LOOK, max(0, end - monotonic())))]
            for index in ready:
                reply = self._receive(index)
                silent.discard(index)
                if reply != DONE:
                    failures[index] = pickle.loads(reply)
                    end = min(end, monotonic() + PATIENCE)
            # A process that a dead worker has left behind may keep its end of the pipe: nothing is heard of the death.
            for index in silent if not ready else ():
                if not self._workers[index].process.is_alive():
                    raise self._death(index)
        if failures:
            raise failures[min(failures)]
        if silent:
            lanes = _named(self._blocks[min(silent)])
            raise TimeoutError(
                f"the worker of {lanes} did not answer within {timeout:g} seconds: an environment hangs, or needs a "
                "longer timeout; these lanes are closed"
            )

    def _receive(self, index: int) -> bytes:
        worker = self._workers[index]
        try:
            reply = worker.connection.recv_bytes()
        except (EOFError, OSError):
            raise self._death(index) from None
        worker.ready = True
        return reply

    def _death(self, index: int) -> WorkerDied:
        worker, lanes = self._workers[index], _named(self._blocks[index])
        worker.end(PATIENCE)
        return WorkerDied(f"the worker of {lanes} {worker.ending}; these lanes are closed")


def hosting(workers: int, timeout: float | None = None) -> Callable[[Source, int], Host]:
    """Where the lanes of a source are played: in this process for 0 workers, else in so many processes."""
    return partial(Processes, workers=workers, timeout=timeout) if workers else Here


def _pickled(source: Source) -> bytes:
    try:
        return pickle.dumps(source)
    except Exception as error:
        raise _unsent(error) from error


def _unpickled(source: bytes) -> Source:
    try:
        return pickle.loads(source)
    except Exception as error:
        raise _unsent(error) from error


def _unsent(error: Exception) -> ValueError:
    return ValueError(
        f"what makes the environments cannot be sent to worker processes: {error}; use a name, or a factory that is a "
        "function of a module (not a lambda, a local function, or one under if __name__ == '__main__'), or workers=0"
    )


def _shared_zeros(blocks: list[Any], shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """In memory shared with the processes that are handed its block, which is put last."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    blocks.append(multiprocessing.get_context("spawn").RawArray("b", max(size, 1)))
    return np.ndarray(shape, dtype, blocks[-1])


def _end(owner: int, workers: list[Spawned], selector: DefaultSelector) -> None:
    """Have the workers close their environments and end; those that do not are killed."""
    if os.getpid() != owner:
        return  # a fork of the process whose workers they are
    selector.close()
    for worker in workers:
        worker.connection.close()
    end = monotonic() + PATIENCE
    for worker in workers:
        worker.end(max(0, end - monotonic()))
    workers.clear()


def _serve(connection: Connection, pickled: bytes, blocks: list[Any], num_lanes: int, start: int, stop: int) -> None:
    """A worker's life: it plays the lanes from `start` to before `stop` until nobody is there to be told."""
    where = f"the worker of {_named(slice(start, stop))}"
    with ExitStack() as stack, suppress(EOFError, OSError):
        with _told(connection, where):
            source = _unpickled(pickled)
        connection.recv_bytes()  # which is MAKE
        with _told(connection, where):
            host, actions = _host(source, blocks, num_lanes, slice(start, stop))
            stack.callback(host.close)
        while True:
            command = connection.recv_bytes()
            with _told(connection, where):
                if command == STEP:
                    host.step(actions)
                else:
                    host.reset(*pickle.loads(command))


def _host(source: Source, blocks: list[Any], num_lanes: int, lanes: slice) -> tuple[Here, list[np.ndarray]]:
    """The episodes of some lanes, and the actions they will get, in the memory that `Processes` shares."""
    shared = iter(blocks)

    def zeros(shape: tuple[int, ...], dtype: type) -> np.ndarray:
        return np.ndarray(shape, dtype, next(shared))

    board, actions = Board.of(source, num_lanes, zeros), blank_actions(source, num_lanes, zeros)
    return Here(source, lanes.stop - lanes.start, board.rows(lanes)), [action[lanes] for action in actions]


@contextmanager
def _told(connection: Connection, where: str) -> Iterator[None]:
    """Answer how it went, with the error if there was one."""
    answer = DONE
    try:
        yield
    except BaseException as error:  # an environment that exits has failed; the worker has not
        answer = pickle.dumps(portable(error, where))
    connection.send_bytes(answer)


def _named(lanes: slice) -> str:
    return f"lane {lanes.start}" if lanes.stop == lanes.start + 1 else f"lanes {lanes.start} to {lanes.stop - 1}"
