"""What processes that a test started cost."""

import resource


def cpu_seconds() -> float:
    """Of those that have ended: whatever else runs on the machine hardly matters."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
