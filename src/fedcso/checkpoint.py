"""A snapshot as one file: safetensors with a JSON head, no pickle, its digest in its name.

A file whose content does not match its name was damaged; it is reported, and the one before it used.
"""

import hashlib
import logging
from dataclasses import asdict
from pathlib import Path

from fedcso import atomic
from fedcso.costs import Costs
from fedcso.engine import Snapshot
from fedcso.errors import FedcsoError, NonFinite
from fedcso.packing import pack, unpack
from fedcso.trace import Trace

log = logging.getLogger("fedcso")

KEEP = 2
"""How many checkpoints of a run stay: the newest, and one to fall back on."""


def to_bytes(snapshot: Snapshot) -> bytes:
    """The snapshot as the content of a file."""
    models = [
        {"last": trace.last, "best": trace.best, "output": trace.output, "shared": trace.shared or {}}
        for trace in snapshot.traces
    ]
    notes = [
        {
            "rows": trace.rows,
            "costs": asdict(trace.costs),
            "participation": trace.participation,
            "dropped": [[d.quantity, d.client, d.round, d.step, d.seed] for d in trace.dropped],
            "failure": str(trace.failure) if trace.failure else None,
        }
        for trace in snapshot.traces
    ]
    return pack({"state": snapshot.state, "models": models}, done=snapshot.done, traces=notes)


def from_bytes(content: bytes, device: str = "cpu") -> Snapshot:
    """The snapshot in a file's content."""
    tree, notes = unpack(content, device)
    traces = [
        Trace(
            rows=code["rows"],
            **models,
            costs=Costs(**code["costs"]),
            participation=code["participation"],
            dropped=[NonFinite(*values) for values in code["dropped"]],
            failure=FedcsoError(code["failure"]) if code["failure"] else None,
        )
        for models, code in zip(tree["models"], notes["traces"], strict=True)
    ]
    return Snapshot(notes["done"], tree["state"], traces)


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write a checkpoint and remove those that are not needed any more."""
    folder.mkdir(parents=True, exist_ok=True)
    content = to_bytes(snapshot)
    name = f"{snapshot.done:07d}-{hashlib.sha256(content).hexdigest()[:16]}.safetensors"
    atomic.write(folder / name, content)
    for old in files(folder)[:-KEEP]:
        old.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return sorted(folder.glob("*.safetensors")) if folder.is_dir() else []


def newest(folder: Path, device: str = "cpu") -> Snapshot | None:
    """The newest checkpoint that is whole; damaged ones are reported and passed over."""
    for path in reversed(files(folder)):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest()[:16] == path.stem.partition("-")[2]:
            return from_bytes(content, device)
        log.warning("checkpoint %s is damaged and left out; going on from the one before it", path)
    return None
