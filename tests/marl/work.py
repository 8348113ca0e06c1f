"""Units of work that worker processes can import, of every kind that may come."""

import os
import signal
import time
from pathlib import Path


def double(number):
    return 2 * number


def whoami(number):
    return os.getpid(), number


def counted(steps, progress):
    for step in range(steps):
        progress(step)
    return steps


def logged(number, log: Path):
    with open(log, "a") as file:
        file.write(f"{number}\n")
    return number


def killed_once(flag: Path):
    """Dies of kill -9 the first time."""
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def divide(number):
    return 1 / number


class Awkward(Exception):
    """Cannot be made again from what it keeps."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def awkward():
    raise Awkward("this", "that")


def unpicklable():
    return lambda: None


def announced(folder: Path):
    """Tell that it has begun, and work for longer than anybody waits."""
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def leave():
    raise SystemExit(3)


class Hollow(Exception):
    """Comes back from a pickle as something else."""

    def __reduce__(self):
        return int, (3,)


def hollow():
    raise Hollow("and gone")


def unwilling():
    raise RuntimeError("not today")


def signals(barrier: Path, number):
    """Signals this process blocks, in hexadecimal, once as many processes as that are here."""
    (barrier / str(os.getpid())).touch()
    while len(list(barrier.iterdir())) < number:
        time.sleep(0.01)
    return next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line[:6] == "SigBlk")


def left_behind(seconds):
    """Dies, but for a child that keeps its end of the pipe open."""
    if os.fork() == 0:
        time.sleep(seconds)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
