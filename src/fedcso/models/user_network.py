"""Load a user's network, named `path.py:Name` or `module:Name`."""

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedcso.core import user_code
from fedcso.core.errors import FedcsoError, InvalidValue


def load_network(name: str, shape: torch.Size) -> nn.Module:
    """Return the network `path.py:Name` or `module:Name` for inputs of this shape.

    `Name` is a module, or a class or function that makes one, with the shape of one input as its argument or without
    arguments. Raise `FedcsoError` if it is not a network, or if it does not accept inputs of this shape.
    """
    found: Any = user_code.load("net", name)
    try:
        network = found if isinstance(found, nn.Module) else _make(found, shape)
    except Exception as error:
        line = user_code.describe_line(Path(name.rpartition(":")[0]), error)
        raise FedcsoError(f"net: {name}{line} raised {type(error).__name__}: {error}") from error
    if not isinstance(network, nn.Module):
        raise InvalidValue("net", name, "an nn.Module, or a class or function that makes one")
    _check(network, name, shape)
    return network


def _make(maker: Any, shape: torch.Size) -> Any:
    if not callable(maker):
        return None
    required = [p for p in inspect.signature(maker).parameters.values() if p.default is p.empty]
    return maker(shape) if any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in required) else maker()


def _check(network: nn.Module, name: str, shape: torch.Size) -> None:
    """Raise an error before the run starts if a network does not accept inputs of this shape."""
    has = "×".join(map(str, shape))
    try:
        with torch.no_grad():
            output = network(torch.zeros(2, *shape))
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise FedcsoError(f"net: {name} does not accept inputs of {has} ({type(error).__name__}: {reason})") from error
    if tuple(output.shape) not in ((2,), (2, 1)):
        returned = "×".join(map(str, output.shape))
        raise InvalidValue("net", name, f"a network with one output; for two inputs of {has} it returns {returned}")
