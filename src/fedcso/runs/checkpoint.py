"""Checkpoint files: snapshots in safetensors format with a JSON header, no pickle, with a digest in the file name.

A file whose content does not match its name was damaged; it is reported, and the one before it used.
"""

import hashlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from fedcso.core import atomic, packing
from fedcso.core.errors import FedcsoError
from fedcso.engines.snapshot import Snapshot, chunks, read

log = logging.getLogger("fedcso")

KEEP = 2
"""The number of checkpoints to keep: the newest and one to fall back on."""

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""Errors of files that hold something else than a checkpoint."""

CHUNK = 2**20
"""Bytes to read at a time."""


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write a checkpoint and remove the oldest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{snapshot.done:07d}-{_digest(chunks(snapshot))}.safetensors"
    atomic.write(folder / name, chunks(snapshot))
    for old in files(folder)[:-KEEP]:
        old.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    return sorted(folder.glob("*.safetensors")) if folder.is_dir() else []


def newest(folder: Path, device: str = "cpu") -> Snapshot | None:
    """Return the newest intact checkpoint, or None; log a warning for each damaged one."""
    for path in reversed(files(folder)):
        file = packing.OpenFile(os.open(path, os.O_RDONLY))
        pieces = (file.read(offset, CHUNK) for offset in range(0, path.stat().st_size, CHUNK))
        if _digest(pieces) == path.stem.partition("-")[2]:
            return _read(path, file, device)
        log.warning("checkpoint %s is damaged; trying the previous one", path)
    return None


def _read(path: Path, file: packing.OpenFile, device: str) -> Snapshot:
    """Read an undamaged file; raise `FedcsoError` if it holds no checkpoint all the same."""
    try:
        return read(file.read, device)
    except UNREADABLE as error:
        raise FedcsoError(
            f"checkpoint {path} is undamaged but can't be read ({type(error).__name__}): another program or version "
            "wrote it; remove it to go on from the one before"
        ) from error


def _digest(content: Iterable[bytes]) -> str:
    fingerprint = hashlib.sha256()
    for chunk in content:
        fingerprint.update(chunk)
    return fingerprint.hexdigest()[:16]
