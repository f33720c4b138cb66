"""Messages over Flower: all tensors of a tree as bytes (no pickle), and JSON beside them.

Flower stores, sends and fetches every record and every array of a message by itself, so a message is one record. Larger
tensors are one array beside it, which Flower divides.
"""

import hashlib
import json
import math
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedcso.core.errors import FedcsoError
from fedcso.core.packing import DTYPES, NAMES, Leaf, as_bytes, as_tensor, decode, encode
from fedcso.core.tree import Tree

SMALL = 1_000_000
"""Up to so many bytes, tensors are in the same record as the JSON."""

LONGEST_WORDS = 200
"""More characters of what a sender says are not shown."""


class Unreadable(FedcsoError):
    """A message that fedcso can't read."""


def pack(words: dict[str, Any], tree: Tree = ()) -> RecordDict:
    """Return the content of a message."""
    named: dict[str, Leaf] = {}
    structure = encode(tree, named, {})
    tensors = [leaf for leaf in named.values() if isinstance(leaf, torch.Tensor)]
    assert len(tensors) == len(named)  # spilled states are never sent
    kinds = [[NAMES[tensor.dtype], list(tensor.shape)] for tensor in tensors]
    content = b"".join(as_bytes(tensor) for tensor in tensors)
    text = json.dumps(words | {"tree": structure, "tensors": kinds})
    if len(content) <= SMALL:
        return RecordDict({"words": ConfigRecord({"json": text, "tensors": content})})
    array = Array(np.frombuffer(content, np.uint8))
    return RecordDict({"words": ConfigRecord({"json": text}), "arrays": ArrayRecord({"tensors": array})})


def unpack(content: RecordDict) -> tuple[dict[str, Any], Tree]:
    """Return the JSON values and the tree of a message; raise `Unreadable` for any malformed content."""
    try:
        words, sent = json.loads(str(content.config_records["words"]["json"])), _bytes_of(content)
        tensors: dict[str, Leaf] = {}
        begin = 0
        for kind, shape in words.pop("tensors"):  # one after the other: no byte is used twice
            end = begin + _length(DTYPES[kind], shape)
            tensors[str(len(tensors))] = as_tensor(sent[begin:end], DTYPES[kind], shape)
            begin = end
        if begin != len(sent):
            raise ValueError
        return words, decode(words.pop("tree"), tensors)
    except Exception as error:  # the sender may be anyone
        raise Unreadable(f"a message can't be read ({type(error).__name__})") from error


def _bytes_of(content: RecordDict) -> bytes:
    """Return the bytes of all tensors; raise if they are something else."""
    small = content.config_records["words"].get("tensors")
    if isinstance(small, bytes):
        return small
    array = content.array_records["arrays"]["tensors"].numpy()
    if array.dtype != np.uint8 or array.ndim != 1:
        raise TypeError
    return array.tobytes()


def in_a_line(said: Any) -> str:
    """Return a sender's words as they may be shown: a short text on one line, whatever was sent."""
    text = said if isinstance(said, str) else "(not a text)"
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * LONGEST_WORDS]).split())[:LONGEST_WORDS]


def _length(dtype: torch.dtype, shape: list[int]) -> int:
    """Return the number of bytes of a tensor."""
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError
    return math.prod(shape) * dtype.itemsize


def outline(content: RecordDict) -> dict[str, Any]:
    """Return what identifies the content of a packed message without showing it: shapes, bytes, and a digest."""
    text, sent = str(content.config_records["words"]["json"]).encode(), _bytes_of(content)
    shapes = [shape for _, shape in json.loads(text)["tensors"]]
    return {"shapes": shapes, "bytes": size(content), "digest": hashlib.sha256(text + b"\n" + sent).hexdigest()}


def size(content: RecordDict) -> int:
    """Return the bytes of arrays and JSON, before encryption."""
    arrays = sum(len(array.data) for record in content.array_records.values() for array in record.values())
    values = [value for record in content.config_records.values() for value in record.values()]
    return arrays + sum(len(value if isinstance(value, str | bytes) else str(value)) for value in values)
