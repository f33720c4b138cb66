"""A user's own network, by where it stands: `path.py:Name` or `module:Name`."""

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedcso.core import own
from fedcso.core.errors import FedcsoError, InvalidValue


def own_network(name: str, shape: torch.Size) -> nn.Module:
    """Return the network that is called `name`, for inputs of this shape.

    It stands there as a module, or as a class or function that makes one, from the shape of one input or from nothing.
    """
    found: Any = own.load("net", name)
    try:
        network = found if isinstance(found, nn.Module) else _made(found, shape)
    except Exception as error:
        line = own.line_in(Path(name.rpartition(":")[0]), error)
        raise FedcsoError(f"net: {name}{line} raised {type(error).__name__}: {error}") from error
    if not isinstance(network, nn.Module):
        raise InvalidValue("net", name, "an nn.Module, or a class or function that makes one")
    _try(network, name, shape)
    return network


def _made(maker: Any, shape: torch.Size) -> Any:
    if not callable(maker):
        return None
    required = [p for p in inspect.signature(maker).parameters.values() if p.default is p.empty]
    return maker(shape) if any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in required) else maker()


def _try(network: nn.Module, name: str, shape: torch.Size) -> None:
    """Raise now, and not in the middle of a run, if a network can't take inputs of this shape."""
    has = "×".join(map(str, shape))
    try:
        with torch.no_grad():
            output = network(torch.zeros(2, *shape))
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise FedcsoError(f"net: {name} can't take inputs of {has} ({type(error).__name__}: {reason})") from error
    if tuple(output.shape) not in ((2,), (2, 1)):
        gives = "×".join(map(str, output.shape))
        raise InvalidValue("net", name, f"a network with one output; for two inputs of {has} this one gives {gives}")
