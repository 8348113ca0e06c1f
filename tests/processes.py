"""Processes that a test starts, and what they cost."""

import multiprocessing
import resource
from collections.abc import Callable
from typing import Any


def cpu_seconds() -> float:
    """Of those that have ended: whatever else runs on the machine hardly matters."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ended(function: Callable[..., Any], *arguments: Any) -> int | None:
    """Exit code of a process of its own that calls a module's function, minus the signal where one killed it.

    It is forked from a process that has imported what takes its time.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["experiments.psro_bucket_brigade", "experiments.psro", "experiments.training"])
    process = forks.Process(target=function, args=arguments)
    process.start()
    process.join()
    return process.exitcode
