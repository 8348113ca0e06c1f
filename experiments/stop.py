"""How a command ends: signals, errors and exit codes."""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

REFUSED = 2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once() -> None:
    """While there is nothing to save, as during the first imports: let signals end the process, with no traceback."""

    def end(signum: int, frame: FrameType | None) -> None:
        os.write(2, f"stopped by {signal.Signals(signum).name}\n".encode())
        os._exit(128 + signum)

    for signum in SIGNALS:
        signal.signal(signum, end)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end. Raised wherever the main thread happens to be."""


class Stop:
    """Turns SIGINT and SIGTERM into `Stopped`, and remembers them.

    An exception raised by a signal handler can be lost where Python ignores exceptions (finalisers, callbacks from
    compiled code); `check`, called between units of work, raises it again.
    """

    signum: int | None = None
    patience = False
    """Whether the first signal is only remembered, for `check` to raise."""
    advice = "run the same command again"
    """What to do next, for whoever ended the command; it may say something better as it goes."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Receive both signals until the block ends."""
        before = {signum: signal.signal(signum, self._receive) for signum in SIGNALS}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Until the block ends, the first signal waits for `check`, so that things are whole; a second does not."""
        self.patience = True
        try:
            yield
        finally:
            self.patience = False

    def check(self) -> None:
        if self.signum is not None:
            raise Stopped

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        first, self.signum = self.signum is None, signum
        if first and self.patience:
            os.write(2, f"\n{signal.Signals(signum).name}: stops as soon as it can; once more stops at once\n".encode())
        elif first or self.patience:
            self.patience = False
            raise Stopped


def guarded(work: Callable[[Stop], int | None]) -> int:
    """Run `work` and return the exit code; what can be expected to go wrong costs one message, no traceback.

    What `work` returns, or 0: done. 128 + signal: stopped; the message ends with the stop's `advice`. 2: a value the
    user gave cannot work (ValueError), the system refused (OSError, MemoryError: full disk, no permission, workers that
    died), or the numbers did (ArithmeticError: training diverged, a meta-solver did not
    converge). Notes, such as where a unit of work failed, follow the message.
    """
    if sys.stdout is None:  # closed by whoever started this, as by `>&-`: libraries write to it all the same
        sys.stdout = open(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)  # noqa: SIM115 - open to the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an odd locale has no plus-minus sign, but the command should go on
    stop = Stop()
    with stop.listening():
        try:
            code = work(stop)
            sys.stdout.flush()  # where nobody reads on, that is found out here
            return code or 0
        except BrokenPipeError:  # nobody reads on, as after `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        except (ValueError, OSError, ArithmeticError, MemoryError) as error:
            if stop.signum is None:
                after = f"; once that is mended, {stop.advice}" if isinstance(error, OSError) else ""
                print("\n".join([f"error: {_told(error)}{after}", *getattr(error, "__notes__", [])]), file=sys.stderr)
                return REFUSED
        except BaseException:  # libraries may wrap what interrupted them into errors of their own
            if stop.signum is None:
                raise
        print(f"stopped by {signal.Signals(stop.signum).name}: {stop.advice}", file=sys.stderr)
        return 128 + stop.signum


def _told(error: Exception) -> str:
    """The error in words; of what the system refuses, its number tells nobody anything."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
