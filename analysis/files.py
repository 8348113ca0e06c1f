"""Files of a run folder: written in one step, and compared with their manifests."""

import hashlib
import json
import os
from pathlib import Path


def write_whole(file: Path, data: bytes) -> None:
    """Write under another name first, so that `file` is never half of anything."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def check_manifest(folder: Path) -> None:
    """Raises ValueError unless the files named in the folder's manifest.json have the sha256 it gives them."""
    try:
        manifest = dict(json.loads((folder / "manifest.json").read_bytes()))
        changed = [
            name
            for name, expected in manifest.items()
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected
        ]
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} cannot be compared with its manifest: {error}") from error
    if changed or not manifest:
        raise ValueError(f"{folder / (changed or ['manifest.json'])[0]} is not as the run wrote it")
