"""Trees of tensors as bytes, to be kept or sent: safetensors with the trees' shapes in its head, no pickle.

Written and read piece by piece: what was put away in a file (`Spilled`) goes from there into the next without ever
being in memory as a whole.
"""

import json
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.tree import Tree

Reader = Callable[[int, int], bytes]
"""(offset, length) -> so many bytes from there."""

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""Kinds of numbers by the names that safetensors gives them."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Spilled:
    """A packed tree somewhere in a file; it takes no memory until it is loaded."""

    read: Reader
    offset: int
    length: int

    def content(self) -> bytes:
        """The packed tree."""
        return self.read(self.offset, self.length)

    def load(self, device: str = "cpu") -> Tree:
        """The tree."""
        return unpack(self.content(), device)[0]


Leaf = torch.Tensor | Spilled


def pack(tree: Tree, **notes: Any) -> bytes:
    """One tree, and what is noted beside it."""
    tensors: dict[str, Leaf] = {}
    code = encode(tree, tensors, {})
    return b"".join(chunks({"tree": code, **notes}, tensors))


def unpack(content: bytes, device: str = "cpu") -> tuple[Tree, dict[str, Any]]:
    """The tree again, and the notes."""
    head, tensors = parse(lambda offset, length: content[offset : offset + length], device)
    return decode(head.pop("tree"), tensors), head


def chunks(head: dict[str, Any], tensors: dict[str, Leaf]) -> Iterator[bytes]:
    """A whole file, piece by piece."""
    table: dict[str, Any] = {"__metadata__": {"fedcso": json.dumps(head)}}
    end = 0
    for name, leaf in tensors.items():
        parked = isinstance(leaf, Spilled)
        start, end = end, end + (leaf.length if isinstance(leaf, Spilled) else leaf.numel() * leaf.element_size())
        kind, shape = ("U8", [leaf.length]) if isinstance(leaf, Spilled) else (NAMES[leaf.dtype], list(leaf.shape))
        table[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        if parked:
            table["__metadata__"][name] = "parked"
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for leaf in tensors.values():
        yield leaf.content() if isinstance(leaf, Spilled) else _as_bytes(leaf)


def parse(read: Reader, device: str = "cpu") -> tuple[dict[str, Any], dict[str, Leaf]]:
    """The head and the tensors of such a file; what was parked stays in it."""
    length = int.from_bytes(read(0, 8), "little")
    table = json.loads(read(8, length))
    notes = table.pop("__metadata__")
    tensors: dict[str, Leaf] = {}
    for name, entry in table.items():
        start, end = entry["data_offsets"]
        if name in notes:
            tensors[name] = Spilled(read, 8 + length + start, end - start)
            continue
        content = bytearray(read(8 + length + start, end - start))
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"]).to(device)
    return json.loads(notes["fedcso"]), tensors


class OpenFile:
    """A file that stays open, even without a name, as long as something in it may be read."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes from there, fewer only at the end of the file."""
        parts = []
        while part := os.pread(self.descriptor, length, offset):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return b"".join(parts)


def encode(tree: Tree, tensors: dict[str, Leaf], seen: dict[int, str]) -> Any:
    """The tree as JSON with names at its leaves; each tensor goes once into `tensors`."""
    if isinstance(tree, torch.Tensor | Spilled):
        if id(tree) not in seen:
            seen[id(tree)] = name = str(len(tensors))
            tensors[name] = tree.detach() if isinstance(tree, torch.Tensor) else tree
        return seen[id(tree)]
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: encode(child, tensors, seen) for key, child in tree.items()}}
    if type(tree) in (tuple, list):
        return {type(tree).__name__: [encode(child, tensors, seen) for child in tree]}
    raise FedcsoError(
        f"a model of type {type(tree).__name__} can't be saved; build it of tensors in dicts, tuples, lists, "
        "with text for keys"
    )


def decode(code: Any, tensors: dict[str, Leaf]) -> Tree:
    """The tree again."""
    if isinstance(code, str):
        return tensors[code]
    ((kind, children),) = code.items()
    if kind == "dict":
        return {key: decode(child, tensors) for key, child in children.items()}
    return {"tuple": tuple, "list": list}[kind](decode(child, tensors) for child in children)


def _as_bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
