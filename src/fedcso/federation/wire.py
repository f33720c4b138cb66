"""What travels: a tree as ONE ArrayRecord (no pickle, only plain numeric arrays), and words about it as JSON."""

import json
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedcso.core.errors import FedcsoError
from fedcso.core.packing import Leaf, decode, encode
from fedcso.core.tree import Tree


class Unreadable(FedcsoError):
    """A message that is not as fedcso writes it."""


def pack(words: dict[str, Any], tree: Tree = ()) -> RecordDict:
    """The content of a message."""
    tensors: dict[str, Leaf] = {}
    structure = encode(tree, tensors, {})
    arrays = ArrayRecord({name: Array(_numpy(leaf)) for name, leaf in tensors.items()})
    text = json.dumps(words | {"tree": structure})
    return RecordDict({"arrays": arrays, "words": ConfigRecord({"json": text})})


def unpack(content: RecordDict) -> tuple[dict[str, Any], Tree]:
    """Words and tree; whatever another program may have sent, nothing but `Unreadable` is raised."""
    try:
        words = json.loads(str(content.config_records["words"]["json"]))
        arrays = content.array_records["arrays"]
        tensors: dict[str, Leaf] = {name: torch.from_numpy(array.numpy().copy()) for name, array in arrays.items()}
        return words, decode(words.pop("tree"), tensors)
    except Exception as error:  # who wrote it may have been anyone
        raise Unreadable(f"a message can't be read ({type(error).__name__})") from error


def _numpy(leaf: Leaf) -> np.ndarray:
    assert isinstance(leaf, torch.Tensor)  # nothing that is sent was put away
    return leaf.cpu().contiguous().numpy()


def size(content: RecordDict) -> int:
    """Bytes of arrays and words as they travel (before encryption)."""
    arrays = sum(len(array.data) for record in content.array_records.values() for array in record.values())
    words = sum(len(str(value)) for record in content.config_records.values() for value in record.values())
    return arrays + words
