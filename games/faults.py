"""What other people's environments may raise, and what is closed where they do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FAULTS = (Exception, SystemExit)
"""What an environment or a game may raise; sys.exit in one would end the whole run, and silently."""


@contextmanager
def closed_after_errors(close: Callable[[], Any]) -> Iterator[None]:
    """Call `close` if the block fails; where closing fails too, a note of the block's error says so."""
    try:
        yield
    except BaseException as error:
        try:
            close()
        except FAULTS as another:
            error.add_note(f"closing it afterwards raised {another!r}")
        raise
