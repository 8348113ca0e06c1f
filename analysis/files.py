"""Files of a run folder: written in one step, and compared with their manifests."""

import hashlib
import json
import os
from pathlib import Path

MANIFEST = "manifest.json"


def write_whole(file: Path, data: bytes) -> None:
    """Write under another name first, so that `file` is never half of anything."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def check_manifest(folder: Path, growing: bool = False) -> None:
    """Raises ValueError unless the files named in the folder's manifest.json have the sha256 it gives them.

    Only a `growing` folder may hold others.
    """
    try:
        manifest = dict(json.loads((folder / MANIFEST).read_bytes()))
        changed = [name for name, expected in manifest.items() if digest(folder / name) != expected]
        strangers = {file.name for file in folder.iterdir()} - set(manifest) - {MANIFEST}
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} cannot be compared with its manifest: {error}") from error
    if changed or not manifest:
        raise ValueError(f"{folder / (changed or [MANIFEST])[0]} is not as the run wrote it")
    if strangers and not growing:
        raise ValueError(f"{folder / min(strangers)} is not in {MANIFEST}: the run did not write it there")


def digest(file: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
