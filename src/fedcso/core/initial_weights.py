"""Weights that are given to start from, instead of a problem's own x_0."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.tree import Tree, is_finite, named_leaves, unflatten_like, without

Leaves = Mapping[str, torch.Tensor]
"""Tensors by their paths in a tree; the path of a bare tensor is `x`."""


@dataclass(frozen=True)
class InitialWeights:
    """The leaves to start from, by path.

    They are a complete x_0 if the problem's x has the same paths. Otherwise the network's weights are taken from them,
    and all else of x_0 (the dual variable of `auroc`, for example) is as the problem says: a run of one problem can
    start from a network that another problem has trained.
    """

    leaves: Leaves
    weights_at: str = ""
    """The path of the network's weights among the leaves (`Problem.weights_at` of the problem that made them)."""
    fresh_last_layer: bool = False
    """True to take the last layer of the network from the problem's x_0, which depends on the seed."""

    def __post_init__(self) -> None:
        for path, leaf in self.leaves.items():
            if not is_finite(leaf.detach()):
                raise FedcsoError(f"init: the leaf {path!r} is not finite: start from a model that has not diverged")

    @classmethod
    def of(cls, given: "InitialWeights | nn.Module | Tree", fresh_last_layer: bool = False) -> "InitialWeights":
        """Return the weights of a module, or the leaves of a tree."""
        if isinstance(given, InitialWeights):
            return replace(given, fresh_last_layer=fresh_last_layer or given.fresh_last_layer)
        tree = dict(given.named_parameters()) if isinstance(given, nn.Module) else given
        leaves = {path: leaf.detach().clone() for path, leaf in leaves_by_path(tree).items()}
        return cls(leaves, fresh_last_layer=fresh_last_layer)

    def put_into(self, x: Tree, weights_at: str = "") -> Tree:
        """Return x_0 with these weights; raise `FedcsoError`, naming the leaf, if they do not fit.

        `weights_at` is the path of the network's weights in x.
        """
        own = leaves_by_path(x)
        given, wanted = dict(self.leaves), own
        if own.keys() != given.keys():
            given = _below(weights_at, _part(given, self.weights_at))
            wanted = _below(weights_at, _part(own, weights_at))
        if self.fresh_last_layer:
            for path in _below(weights_at, last_layer(_part(own, weights_at))):
                given, wanted = without(given, path), without(wanted, path)
        _require_fit(given, wanted)
        return unflatten_like(x, (given[path].to(leaf) if path in given else leaf for path, leaf in own.items()))

    def to_bytes(self) -> bytes:
        """Return the content of a safetensors file."""
        about = as_metadata(weights_at=self.weights_at, fresh_last_layer=self.fresh_last_layer)
        return save({path: leaf.cpu().contiguous() for path, leaf in self.leaves.items()}, about)

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the file") -> "InitialWeights":
        """Read a safetensors file, ours or another's; raise `FedcsoError` if it is none."""
        try:
            leaves, about = load(content), _metadata(content)
        except (SafetensorError, ValueError) as error:
            raise FedcsoError(f"init: {name} is not a safetensors file ({error})") from error
        return cls(leaves, about.get("weights_at", ""), about.get("fresh_last_layer", False))


def leaves_by_path(tree: Tree) -> dict[str, torch.Tensor]:
    """Return the leaves of a tree by path, as in files; that of a bare tensor is `x`."""
    return {path or "x": leaf for path, leaf in named_leaves(tree)}


def last_layer(network: Leaves) -> Leaves:
    """Return the leaves of the last layer of a network, in the order of its definition; raise if it is the only one."""
    name = list(network)[-1].rpartition(".")[0]
    layer = {path: leaf for path, leaf in network.items() if path.rpartition(".")[0] == name}
    if len(layer) == len(network):
        raise FedcsoError("fresh_last_layer needs a network with several layers; this model has only one")
    return layer


def _part(leaves: Leaves, at: str) -> dict[str, torch.Tensor]:
    """Return the leaves below a path, by their paths from there."""
    return {path.removeprefix(f"{at}."): leaf for path, leaf in leaves.items() if not at or path.startswith(f"{at}.")}


def _below(at: str, leaves: Leaves) -> dict[str, torch.Tensor]:
    """Return the leaves by their paths from the root, if their own paths begin at `at`."""
    return {f"{at}.{path}" if at else path: leaf for path, leaf in leaves.items()}


def as_metadata(**notes: Any) -> dict[str, str]:
    """Return notes as the metadata of a safetensors file: one entry, because the order of several is not fixed."""
    return {"fedcso": json.dumps(notes)}


def _metadata(content: bytes) -> dict[str, Any]:
    """Return our notes in the header of a safetensors file; none if it is another's."""
    length = int.from_bytes(content[:8], "little")
    about = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    return dict(json.loads(about.get("fedcso", "{}")))


def _require_fit(given: Leaves, wanted: Leaves) -> None:
    advice = "start from a model of the same network and inputs, or with a fresh last layer if only that differs"
    for path, leaf in wanted.items():
        if path not in given:
            raise FedcsoError(f"init has no leaf {path!r}, which the model has (it has {', '.join(given)}); {advice}")
        if given[path].shape != leaf.shape:
            theirs, ours = ("×".join(map(str, shape)) or "1" for shape in (given[path].shape, leaf.shape))
            raise FedcsoError(f"init: the leaf {path!r} has the shape {theirs}, the model's has {ours}; {advice}")
    for path in given:
        if path not in wanted:
            raise FedcsoError(f"init has a leaf {path!r}, which the model does not have; {advice}")
