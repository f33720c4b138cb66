"""Messages over Flower: a tree as one ArrayRecord (plain numeric arrays, no pickle), and JSON beside it.

Numbers of a type that numpy does not have (bfloat16) travel as whole numbers of the same bits, their type named beside.
"""

import hashlib
import json
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedcso.core.errors import FedcsoError
from fedcso.core.packing import DTYPES, NAMES, Leaf, decode, encode
from fedcso.core.tree import Tree

SAME_BITS = {torch.bfloat16: torch.int16}
"""Types that numpy lacks, and the types as which their bits are sent."""


LONGEST_WORDS = 200
"""More characters of what a sender says are not shown."""


class Unreadable(FedcsoError):
    """A message that fedcso can't read."""


def pack(words: dict[str, Any], tree: Tree = ()) -> RecordDict:
    """Return the content of a message."""
    tensors: dict[str, Leaf] = {}
    structure = encode(tree, tensors, {})
    arrays = ArrayRecord({name: Array(_numpy(leaf)) for name, leaf in tensors.items()})
    types = {name: NAMES[kind] for name, leaf in tensors.items() if (kind := _tensor(leaf).dtype) in SAME_BITS}
    text = json.dumps(words | {"tree": structure, "types": types})
    return RecordDict({"arrays": arrays, "words": ConfigRecord({"json": text})})


def unpack(content: RecordDict) -> tuple[dict[str, Any], Tree]:
    """Return the JSON values and the tree of a message; raise `Unreadable` for any malformed content."""
    try:
        words = json.loads(str(content.config_records["words"]["json"]))
        arrays = content.array_records["arrays"]
        types = words.pop("types")
        tensors: dict[str, Leaf] = {name: _leaf(array.numpy(), types.get(name)) for name, array in arrays.items()}
        return words, decode(words.pop("tree"), tensors)
    except Exception as error:  # the sender may be anyone
        raise Unreadable(f"a message can't be read ({type(error).__name__})") from error


def in_a_line(said: Any) -> str:
    """Return a sender's words as they may be shown: a short text on one line, whatever was sent."""
    text = said if isinstance(said, str) else "(not a text)"
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * LONGEST_WORDS]).split())[:LONGEST_WORDS]


def _numpy(leaf: Leaf) -> np.ndarray:
    tensor = _tensor(leaf).cpu().contiguous()
    return tensor.view(SAME_BITS.get(tensor.dtype, tensor.dtype)).numpy()


def _tensor(leaf: Leaf) -> torch.Tensor:
    assert isinstance(leaf, torch.Tensor)  # spilled states are never sent
    return leaf


def _leaf(array: np.ndarray, kind: str | None) -> torch.Tensor:
    tensor = torch.from_numpy(array.copy())
    return tensor if kind is None else tensor.view(DTYPES[kind])


def outline(content: RecordDict) -> dict[str, Any]:
    """Return what identifies the content of a message without showing it: shapes, bytes, and a digest."""
    arrays = {name: array for record in content.array_records.values() for name, array in record.items()}
    words = [str(value) for record in content.config_records.values() for value in record.values()]
    digest = hashlib.sha256(json.dumps(words).encode())
    for name, array in arrays.items():
        digest.update(json.dumps([name, array.dtype, list(array.shape), len(array.data)]).encode() + array.data)
    shapes = [list(array.shape) for array in arrays.values()]
    return {"shapes": shapes, "bytes": size(content), "digest": digest.hexdigest()}


def size(content: RecordDict) -> int:
    """Return the bytes of arrays and JSON, before encryption."""
    arrays = sum(len(array.data) for record in content.array_records.values() for array in record.values())
    words = sum(len(str(value)) for record in content.config_records.values() for value in record.values())
    return arrays + words
