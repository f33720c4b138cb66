"""A snapshot as one file: safetensors with a JSON head, no pickle, its digest in its name.

A file whose content does not match its name was damaged; it is reported, and the one before it used.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedcso import atomic, packing
from fedcso.costs import Costs
from fedcso.engine import Snapshot
from fedcso.errors import Fault, FedcsoError, LeftOut, NonFinite
from fedcso.packing import Leaf, Reader, decode, encode
from fedcso.trace import Trace

log = logging.getLogger("fedcso")

KEEP = 2
"""How many checkpoints of a run stay: the newest, and one to fall back on."""

CHUNK = 2**20
"""Bytes read at a time."""

FAULTS: dict[str, type[NonFinite] | type[LeftOut]] = {kind.__name__: kind for kind in (NonFinite, LeftOut)}


def _fault_code(fault: Fault) -> list[Any]:
    """Its kind and what it was made of."""
    kind, values = fault.__reduce__()
    return [kind.__name__, list(values)]


def chunks(snapshot: Snapshot) -> Iterator[bytes]:
    """The snapshot as the content of a file, piece by piece."""
    tensors: dict[str, Leaf] = {}
    seen: dict[int, str] = {}
    head = {
        "done": snapshot.done,
        "state": encode(snapshot.state, tensors, seen),
        "traces": [
            {
                "rows": trace.rows,
                "models": encode(
                    {"last": trace.last, "best": trace.best, "output": trace.output, "shared": trace.shared or {}},
                    tensors,
                    seen,
                ),
                "costs": asdict(trace.costs),
                "participation": trace.participation,
                "dropped": [_fault_code(fault) for fault in trace.dropped],
                "failure": str(trace.failure) if trace.failure else None,
            }
            for trace in snapshot.traces
        ],
    }
    yield from packing.chunks(head, tensors)


def to_bytes(snapshot: Snapshot) -> bytes:
    """The content of a file in one piece."""
    return b"".join(chunks(snapshot))


def from_bytes(content: bytes, device: str = "cpu") -> Snapshot:
    """The snapshot in a file's content."""
    return read(lambda offset, length: content[offset : offset + length], device)


def read(source: Reader, device: str = "cpu") -> Snapshot:
    """The snapshot in a file; clients' local states that were put away stay in it until they are needed."""
    head, tensors = packing.parse(source, device)
    traces = [
        Trace(
            rows=code["rows"],
            **decode(code["models"], tensors),
            costs=Costs(**code["costs"]),
            participation=code["participation"],
            dropped=[FAULTS[kind](*values) for kind, values in code["dropped"]],
            failure=FedcsoError(code["failure"]) if code["failure"] else None,
        )
        for code in head["traces"]
    ]
    return Snapshot(head["done"], decode(head["state"], tensors), traces)


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write a checkpoint and remove those that are not needed any more."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{snapshot.done:07d}-{_digest(chunks(snapshot))}.safetensors"
    atomic.write(folder / name, chunks(snapshot))
    for old in files(folder)[:-KEEP]:
        old.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return sorted(folder.glob("*.safetensors")) if folder.is_dir() else []


def newest(folder: Path, device: str = "cpu") -> Snapshot | None:
    """The newest checkpoint that is whole; damaged ones are reported and passed over."""
    for path in reversed(files(folder)):
        file = packing.OpenFile(os.open(path, os.O_RDONLY))
        pieces = (file.read(offset, CHUNK) for offset in range(0, path.stat().st_size, CHUNK))
        if _digest(pieces) == path.stem.partition("-")[2]:
            return read(file.read, device)
        log.warning("checkpoint %s is damaged and left out; going on from the one before it", path)
    return None


def _digest(content: Iterable[bytes]) -> str:
    fingerprint = hashlib.sha256()
    for chunk in content:
        fingerprint.update(chunk)
    return fingerprint.hexdigest()[:16]
