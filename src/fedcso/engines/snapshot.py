"""A run between two rounds, and its serialisation: safetensors with a JSON header, no pickle."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from fedcso.core import packing
from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError, LeftOut, NonFinite
from fedcso.core.packing import Leaf, Reader, decode, encode
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree


class Snapshot(NamedTuple):
    """A run between two rounds; continuing from it is bit-identical to not stopping."""

    done: int
    """Completed rounds."""
    state: dict[str, Tree]
    traces: list[Trace]


FAULTS: dict[str, type[NonFinite] | type[LeftOut]] = {kind.__name__: kind for kind in (NonFinite, LeftOut)}


def _fault_code(fault: Fault) -> list[Any]:
    """Return the type of a fault and its arguments."""
    kind, values = fault.__reduce__()
    return [kind.__name__, list(values)]


def _participation(code: list[Any]) -> Counter[int]:
    """Return the rounds of clients from pairs; earlier versions stored a number for each client."""
    pairs = code if code and isinstance(code[0], list) else enumerate(code)
    return Counter({client: rounds for client, rounds in pairs if rounds})


def _models(trace: Trace) -> dict[str, Tree]:
    """Return those models of a trace that exist."""
    models = {"last": trace.last, "best": trace.best, "output": trace.output, "shared": trace.shared or {}}
    return {name: model for name, model in models.items() if model is not None}


def chunks(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the content of a snapshot file in pieces."""
    tensors: dict[str, Leaf] = {}
    seen: dict[int, str] = {}
    head = {
        "done": snapshot.done,
        "state": encode(snapshot.state, tensors, seen),
        "traces": [
            {
                "rows": trace.rows,
                "output_row": trace.output_row,
                "models": encode(_models(trace), tensors, seen),
                "costs": asdict(trace.costs),
                "participation": list(trace.participation.items()),
                "dropped": [_fault_code(fault) for fault in trace.dropped],
                "failure": str(trace.failure) if trace.failure else None,
            }
            for trace in snapshot.traces
        ],
    }
    yield from packing.chunks(head, tensors)


def to_bytes(snapshot: Snapshot) -> bytes:
    """Return the content of a snapshot file."""
    return b"".join(chunks(snapshot))


def from_bytes(content: bytes, device: str = "cpu") -> Snapshot:
    """Return the snapshot in a file's content."""
    return read(lambda offset, length: content[offset : offset + length], device)


def read(source: Reader, device: str = "cpu") -> Snapshot:
    """Read a snapshot; spilled states stay in the file until they are needed."""
    head, tensors = packing.parse(source, device)
    traces = [
        Trace(
            rows=code["rows"],
            output_row=code.get("output_row", {}),  # earlier versions did not measure that model
            **decode(code["models"], tensors),
            costs=Costs(**code["costs"]),
            participation=_participation(code["participation"]),
            dropped=[FAULTS[kind](*values) for kind, values in code["dropped"]],
            failure=FedcsoError(code["failure"]) if code["failure"] else None,
        )
        for code in head["traces"]
    ]
    return Snapshot(head["done"], decode(head["state"], tensors), traces)
