"""Pack trees of tensors into bytes to save or send: safetensors with the trees' structure in the header, no pickle.

Files are written and read in pieces: what was spilled to disk (`Spilled`) is copied from one file into the next without
ever being in memory as a whole.
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
"""(offset, length) → that many bytes from that offset."""

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
"""dtypes by their names in safetensors."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Spilled:
    """A packed tree inside a file; it takes no memory until it is loaded."""

    read: Reader
    offset: int
    length: int

    def content(self) -> bytes:
        """Return the packed tree."""
        return self.read(self.offset, self.length)

    def load(self, device: str = "cpu") -> Tree:
        """Return the tree."""
        return unpack(self.content(), device)[0]


Leaf = torch.Tensor | Spilled


def pack(tree: Tree, **notes: Any) -> bytes:
    """Pack a tree, and notes that can be written as JSON."""
    tensors: dict[str, Leaf] = {}
    code = encode(tree, tensors, {})
    return b"".join(chunks({"tree": code, **notes}, tensors))


def unpack(content: bytes, device: str = "cpu") -> tuple[Tree, dict[str, Any]]:
    """Return the tree and the notes that `pack` was given."""
    head, tensors = parse(lambda offset, length: content[offset : offset + length], device)
    return decode(head.pop("tree"), tensors), head


def chunks(head: dict[str, Any], tensors: dict[str, Leaf]) -> Iterator[bytes]:
    """Yield the content of a file, piece by piece."""
    table: dict[str, Any] = {"__metadata__": {"fedcso": json.dumps(head)}}
    end = 0
    for name, leaf in tensors.items():
        start, end = end, end + (leaf.length if isinstance(leaf, Spilled) else leaf.numel() * leaf.element_size())
        kind, shape = ("U8", [leaf.length]) if isinstance(leaf, Spilled) else (NAMES[leaf.dtype], list(leaf.shape))
        table[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        if isinstance(leaf, Spilled):
            table["__metadata__"][name] = "parked"
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for leaf in tensors.values():
        yield leaf.content() if isinstance(leaf, Spilled) else as_bytes(leaf)


def parse(read: Reader, device: str = "cpu") -> tuple[dict[str, Any], dict[str, Leaf]]:
    """Return the header and the tensors of such a file; spilled trees stay in the file."""
    length = int.from_bytes(read(0, 8), "little")
    table = json.loads(read(8, length))
    notes = table.pop("__metadata__")
    tensors: dict[str, Leaf] = {}
    for name, entry in table.items():
        start, end = entry["data_offsets"]
        if name in notes:
            tensors[name] = Spilled(read, 8 + length + start, end - start)
            continue
        content = read(8 + length + start, end - start)
        tensors[name] = as_tensor(content, DTYPES[entry["dtype"]], entry["shape"]).to(device)
    return json.loads(notes["fedcso"]), tensors


class OpenFile:
    """A file that stays open for as long as this object is referenced, even after its name is removed."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, fewer only at the end of the file."""
        parts = []
        while part := os.pread(self.descriptor, length, offset):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return b"".join(parts)


def encode(tree: Tree, tensors: dict[str, Leaf], seen: dict[int, str]) -> Any:
    """Return the structure of a tree as JSON with names for its leaves; add each tensor once to `tensors`."""
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
        f"a model of type {type(tree).__name__} can't be saved: use tensors in dicts (with str keys), tuples and lists"
    )


def decode(code: Any, tensors: dict[str, Leaf]) -> Tree:
    """Return the tree that `encode` was given."""
    if isinstance(code, str):
        return tensors[code]
    ((kind, children),) = code.items()
    if kind == "dict":
        return {key: decode(child, tensors) for key, child in children.items()}
    return {"tuple": tuple, "list": list}[kind](decode(child, tensors) for child in children)


def as_bytes(tensor: torch.Tensor) -> bytes:
    """Return the numbers of a tensor."""
    flat = tensor.cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def as_tensor(content: bytes, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """Return the tensor with these numbers."""
    flat = torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)
