"""Worker processes of this one: how they start, what they tell of errors, and how they end, at the latest with it."""

import ctypes
import fcntl
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal to get when the parent ends."""

GUARD = "a script that starts workers must be a file, and keep what it does under if __name__ == '__main__'"


class Spawned:
    """A process that runs `serve(connection, *arguments)`, a module's function, and this end of its connection.

    It leaves Ctrl-C to this process, and ends with it, however that ends. Arguments are unpickled before it watches its
    parent: what may take long, or fail, is better sent as bytes. Who listens to it sets `ready` at its first word.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any):
        self.ready = False
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks, but not the threads
        self.connection, theirs = context.Pipe()
        # Linux ends a process with the thread that started it: that must be the one this process ends with.
        lasting = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=_live, args=(lasting, serve, theirs, *arguments), daemon=True)
        # Ctrl-C reaches every process of a terminal; the mask is inherited, so workers never notice. The tracker, which
        # the first process of this kind brings along, would undo it.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def end(self, patience: float) -> None:
        """Hang up, wait so many seconds for the process to end, then kill it."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    @property
    def killed(self) -> bool:
        """Whether a signal ended it."""
        return (self.process.exitcode or 0) < 0

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self.process.exitcode or 0
        if self.killed:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}" + ("" if self.ready else f" before it was ready: {GUARD}")


def _live(lasting: bool, serve: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    if lasting:
        assert parent.pid is not None
        end_with(parent.pid)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    # Native code that hangs keeps threads waiting, but not SIGIO, which ends a process where nobody handles it.
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, fcntl.fcntl(parent.sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    serve(connection, *arguments)


def end_with(parent: int) -> None:
    """On Linux, let this process be killed when its parent, of that number, ends; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


def portable(error: BaseException, where: str) -> Exception:
    """The error with its traceback in words, or one that says the same where it is of no use to another process."""
    try:
        copy = pickle.loads(pickle.dumps(error))
        usable = isinstance(copy, Exception)
    except Exception:
        usable = False
    if not usable:
        copy = RuntimeError(traceback.format_exception_only(error)[-1].strip())
    copy.add_note(told(where))
    return copy


def told(where: str) -> str:
    """What has just been raised, in words."""
    return f"in {where}, process {os.getpid()}:\n{traceback.format_exc().rstrip()}"
