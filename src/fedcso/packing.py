"""A tree of tensors as bytes, to be kept or sent: safetensors with the tree's shape in its head, no pickle."""

import json
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from fedcso.errors import FedcsoError
from fedcso.tree import Tree


def pack(tree: Tree, **notes: Any) -> bytes:
    """The tree, and what is noted beside it, as bytes."""
    tensors: dict[str, torch.Tensor] = {}
    code = encode(tree, tensors, {})
    return save_tensors(tensors, metadata={"fedcso": json.dumps({"tree": code} | notes)})


def unpack(content: bytes, device: str = "cpu") -> tuple[Tree, dict[str, Any]]:
    """The tree again, and the notes."""
    length = int.from_bytes(content[:8], "little")
    head = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["fedcso"])
    tensors = {name: tensor.to(device) for name, tensor in load_tensors(content).items()}
    return decode(head.pop("tree"), tensors), head


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
