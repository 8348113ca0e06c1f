"""Results as lines of JSON, one for every key, in a file that grows as they become known."""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analysis.files import write_whole

Line = dict[str, Any]


def read(results: Path, names: Sequence[str] = ()) -> list[Line]:
    """Lines of a file, all with these entries; none where there is no file.

    Raises ValueError, naming the line, for what is no JSON, and where an entry is missing.
    """
    found = []
    for number, line in enumerate(results.read_text().splitlines() if results.exists() else [], 1):
        try:
            entries = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"line {number} of {results} is no JSON ({_why(error)}): delete that line, or name another file"
            ) from None
        missing = [name for name in names if not isinstance(entries, dict) or name not in entries]
        if missing:
            raise ValueError(
                f"line {number} of {results} lacks {', '.join(missing)}: it is no line of these results; delete it, "
                "or name another file"
            )
        found.append(entries)
    return found


def _why(error: json.JSONDecodeError) -> str:
    return f"{error.msg}, at its character {error.pos + 1}"


def complete(
    results: Path,
    names: Sequence[str],
    keys: Iterable[tuple],
    run: Callable[..., Line],
    again: Callable[[Line], bool] = lambda line: False,
) -> None:
    """Add the lines that a file lacks, each made by `run(*key)` and written as soon as it is known.

    `names` are the entries of a line that make its key. A line that is there stays, unless it is to be made `again`:
    then the new one replaces it. Raises OSError, before anything is run, where the file cannot be written.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    with open(results, "ab"):
        pass
    if not os.access(results.parent, os.W_OK):  # where lines are replaced, by another file
        raise PermissionError(f"nothing can be written to {results.parent}")
    for key in keys:
        there = [line for line in read(results, names) if _key(line, names) == key]
        if not there or again(there[-1]):
            _write(results, names, run(*key))


def _write(results: Path, names: Sequence[str], line: Line) -> None:
    """The line, in place of whatever has its key by now."""
    with _alone(results.parent):
        there = read(results)
        kept = [old for old in there if _key(old, names) != _key(line, names)]
        if len(kept) < len(there):
            write_whole(results, b"".join(map(_bytes, [*kept, line])))
        else:
            text = results.read_bytes()
            ended = not text or text.endswith(b"\n")  # editors may leave the last line without
            with open(results, "ab", buffering=0) as file:
                file.write(_bytes(line) if ended else b"\n" + _bytes(line))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process writes results there: what one appends must not fall into what another rewrites."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _bytes(line: Line) -> bytes:
    return (json.dumps(line) + "\n").encode()


def _key(line: Line, names: Sequence[str]) -> tuple:
    return tuple(line[name] for name in names)
