"""A snapshot as one file: safetensors with a JSON head, no pickle, its digest in its name.

A file whose content does not match its name was damaged; it is reported, and the one before it used.
"""

import hashlib
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from fedcso import atomic
from fedcso.costs import Costs
from fedcso.engine import Snapshot
from fedcso.errors import Fault, FedcsoError, LeftOut, NonFinite
from fedcso.trace import Trace
from fedcso.tree import Tree

log = logging.getLogger("fedcso")

KEEP = 2
"""How many checkpoints of a run stay: the newest, and one to fall back on."""


FAULTS: dict[str, type[NonFinite] | type[LeftOut]] = {kind.__name__: kind for kind in (NonFinite, LeftOut)}


def _fault_code(fault: Fault) -> list[Any]:
    """Its kind and what it was made of."""
    kind, values = fault.__reduce__()
    return [kind.__name__, list(values)]


def encode(tree: Tree, tensors: dict[str, torch.Tensor], seen: dict[int, str]) -> Any:
    """The tree as JSON with names at its leaves; each tensor goes once into `tensors`."""
    if isinstance(tree, torch.Tensor):
        if id(tree) not in seen:
            seen[id(tree)] = name = str(len(tensors))
            tensors[name] = tree.detach().cpu().contiguous().clone()
        return seen[id(tree)]
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: encode(child, tensors, seen) for key, child in tree.items()}}
    if type(tree) in (tuple, list):
        return {type(tree).__name__: [encode(child, tensors, seen) for child in tree]}
    raise FedcsoError(
        f"a model of type {type(tree).__name__} can't be saved; build it of tensors in dicts, tuples, lists, "
        "with text for keys"
    )


def decode(code: Any, tensors: dict[str, torch.Tensor]) -> Tree:
    """The tree again."""
    if isinstance(code, str):
        return tensors[code]
    ((kind, children),) = code.items()
    if kind == "dict":
        return {key: decode(child, tensors) for key, child in children.items()}
    return {"tuple": tuple, "list": list}[kind](decode(child, tensors) for child in children)


def to_bytes(snapshot: Snapshot) -> bytes:
    """The snapshot as the content of a file."""
    tensors: dict[str, torch.Tensor] = {}
    seen: dict[int, str] = {}
    head = {
        "done": snapshot.done,
        "state": encode(snapshot.state, tensors, seen),
        "traces": [
            {
                "rows": trace.rows,
                "models": encode(
                    {
                        "last": trace.last,
                        "best": trace.best,
                        "output": trace.output,
                        "shared": trace.shared or {},
                    },
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
    return _file(head, tensors)


def _file(head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> bytes:
    return save_tensors(tensors, metadata={"fedcso": json.dumps(head)})


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    length = int.from_bytes(content[:8], "little")
    head = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["fedcso"])
    return dict(head), load_tensors(content)


def tree_to_bytes(tree: Tree) -> bytes:
    """A tree by itself as the content of a file."""
    tensors: dict[str, torch.Tensor] = {}
    return _file({"tree": encode(tree, tensors, {})}, tensors)


def tree_from_bytes(content: bytes) -> Tree:
    """The tree in a file's content."""
    head, tensors = _parts(content)
    return decode(head["tree"], tensors)


def from_bytes(content: bytes, device: str = "cpu") -> Snapshot:
    """The snapshot in a file's content."""
    head, tensors = _parts(content)
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
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
