"""Scripts that are ended from outside, and what they leave."""

import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def started(command: list) -> subprocess.Popen:
    """A Python script in a group of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True, env=environment)


def ended_by(signum: int, process: subprocess.Popen) -> str:
    """What it wrote to stderr until a signal ended it; Ctrl-C is sent to all of its group, as a terminal does."""
    if signum == signal.SIGINT:
        os.killpg(process.pid, signum)
    else:
        process.send_signal(signum)
    try:
        process.wait(30)
    finally:
        process.kill()
    assert process.stderr is not None
    return process.stderr.read()
