"""Files and folders that are whole or absent, and sha256 manifests that tell what was changed since.

Whatever moment a process dies at, a name in a run folder is either missing or complete: everything is written under
another name beside it, flushed, and renamed. Every folder carries a manifest of its files' sha256, so that what was
changed or cut short afterwards is told, not used.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marl.failpoints import failpoint

MANIFEST = "manifest.json"


class BrokenCheckpoint(ValueError):
    """Files of a run that are missing, cut short, or not as they were written."""


def write_atomic(path: Path, data: bytes) -> None:
    """Replace the file `path` in one step: a reader sees the old bytes or the new ones, never a part of them."""
    write_parts(path, [data])


def write_parts(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """As `write_atomic`, the file's bytes in parts, which are not put together in memory first."""
    temporary = _temporary(path)
    try:
        with open(temporary, "wb") as file:
            failpoint("file opened")
            file.writelines(parts)
            file.flush()
            failpoint("file written")
            os.fsync(file.fileno())
        failpoint("file synced")
        os.replace(temporary, path)
        failpoint("file renamed")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `path` when the block ends well and vanishes when it does not.

    Its manifest is added last. Raises OSError where `path` already holds something: nothing is overwritten.
    """
    temporary = _temporary(path)
    try:
        temporary.mkdir(parents=True)
        failpoint("folder made")
        yield temporary
        failpoint("folder filled")
        write_atomic(temporary / MANIFEST, to_json({file.name: digest(file) for file in sorted(temporary.iterdir())}))
        failpoint("folder listed")
        for file in temporary.iterdir():
            _sync(file)
        _sync(temporary)
        os.rename(temporary, path)
        failpoint("folder renamed")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(path.parent)


def remove(folder: Path) -> None:
    """Take a whole folder away; whatever moment the process dies at, it is whole, or has lost its name."""
    doomed = _temporary(folder)
    os.rename(folder, doomed)
    shutil.rmtree(doomed)


def verify(folder: Path, growing: bool = False) -> None:
    """Compare a folder's files with its manifest; only a `growing` folder may hold others.

    Raises BrokenCheckpoint for files that differ, are missing, or are not in the manifest.
    """
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict):
        raise BrokenCheckpoint(f"{folder / MANIFEST} is not as the run wrote it: it names no files")
    for name, expected in manifest.items():
        file = folder / name
        if not file.is_file():
            raise BrokenCheckpoint(f"{file} is missing: restore it from a copy of the run, or start a new run")
        if digest(file) != expected:
            raise BrokenCheckpoint(f"{file} is not as the run wrote it (its sha256 differs from {MANIFEST})")
    strangers = {file.name for file in folder.iterdir()} - set(manifest) - {MANIFEST}
    if strangers and not growing:
        raise BrokenCheckpoint(f"{folder / min(strangers)} is not in {MANIFEST}: the run did not write it there")


def sweep(folder: Path) -> None:
    """Remove what a process that died left half-written anywhere in `folder`."""
    for leftover in sorted(folder.rglob(".*.tmp")):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)


def digest(file: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def to_json(value: Any) -> bytes:
    """Readable JSON, the same bytes for equal values. Raises ValueError for NaN and infinities."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> Any:
    """Parsed JSON. Raises BrokenCheckpoint where the file is missing or no JSON."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BrokenCheckpoint(f"{path} is missing: this folder was not written to its end") from None
    except ValueError as error:
        raise BrokenCheckpoint(f"{path} is not readable JSON ({error})") from None


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
