"""An `nn.Module` as two functions: one returns initial parameters, the other is the forward pass with given ones."""

import copy
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from fedcso.core.errors import FedcsoError

Model = nn.Module | Callable[[], nn.Module]
"""A network: a module, or a function without arguments (or a class) that builds one.

With a module, every run starts from its weights, whatever the seed, as fine-tuning requires. A function is called for
every run, after torch's generator has been seeded with the run's seed, so every seed starts from new weights.
"""


class Functional:
    """A network as functions of its parameters: `init(rng)` and `apply(parameters, *inputs)`.

    `model` decides where the parameters come from: a module provides its weights, a function builds new ones for each
    seed. The module itself is never changed.

    Layers with running statistics are refused, because these would be a hidden state that is neither averaged nor sent;
    batch norm needs `track_running_stats=False`. Active dropout is refused too, because its random numbers would not
    come from a client's stream.
    """

    def __init__(self, model: Model):
        self._model = model
        self.module = self._build(seed=0)
        for name, part in self.module.named_modules():
            if getattr(part, "track_running_stats", False):
                raise FedcsoError(
                    f"layer {name!r} keeps running statistics, which clients would not share; "
                    "build it with track_running_stats=False, or use GroupNorm or LayerNorm"
                )
            if isinstance(part, _DropoutNd) and part.p > 0 and part.training:
                raise FedcsoError(
                    f"layer {name!r} is dropout, whose random numbers don't come from a client's stream, so runs would "
                    "not be reproducible; remove the layer, or switch it off with eval()"
                )
        # The module's parameters are replaced while it runs, so every thread needs its own copy.
        self._copies = threading.local()

    def __getstate__(self) -> Model:
        return self._model  # the copies of the threads can't be pickled, and are made when needed

    def __setstate__(self, model: Model) -> None:
        self.__init__(model)  # type: ignore[misc]

    def init(self, rng: torch.Generator) -> dict[str, torch.Tensor]:
        """Return a copy of the module's weights, or the weights of a module built with a seed that `rng` gives."""
        module = self._build(seed=int(torch.randint(2**62, (), generator=rng)))
        return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}

    def apply(self, parameters: dict[str, torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
        """Return the module's output with these parameters."""
        if not hasattr(self._copies, "module"):
            self._copies.module = copy.deepcopy(self.module)
            self._copies.places = _places(self._copies.module)
        laid_out = {name: _channels_last(value) for name, value in parameters.items()}
        own = [(layer, key, layer[key]) for layer, key, _ in self._copies.places]
        try:
            for layer, key, name in self._copies.places:
                layer[key] = laid_out[name]
            output: torch.Tensor = self._copies.module(*inputs)
        finally:
            for layer, key, parameter in own:
                layer[key] = parameter
        return output

    def _build(self, seed: int) -> nn.Module:
        """Return the given module, or a new one built with this seed."""
        if isinstance(self._model, nn.Module):
            return self._model
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # `torch.manual_seed` keeps a traceback of every call
            module = self._model() if callable(self._model) else None
        if not isinstance(module, nn.Module):
            raise FedcsoError(
                f"{self._model!r} is not a network: pass an nn.Module, or a function without arguments that returns one"
            )
        return module


def _places(module: nn.Module) -> list[tuple[dict[str, Any], str, str]]:
    """Return where a module keeps its parameters: the dictionary of a layer, the key there, the parameter's name.

    `torch.func.functional_call` finds them again at every call, which takes as long as a small layer. A parameter that
    several layers share has one name and several places.
    """
    names = {parameter: name for name, parameter in module.named_parameters()}
    layers = [layer._parameters for layer in module.modules()]
    return [(layer, key, names[value]) for layer in layers for key, value in layer.items() if value is not None]


def _channels_last(weight: torch.Tensor) -> torch.Tensor:
    """Return kernels of 2-d convolutions with channels last in memory, which is faster on CPUs, and others unchanged.

    This permutes, because `vmap` supports that, and happens at every use, so that no result depends on how a tensor
    was stored before. Torch then uses the kernels' layout for the images too.
    """
    if weight.ndim != 4:
        return weight
    # `clone`, not `contiguous`: with one channel a tensor is contiguous in both layouts, and would not be copied.
    return weight.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format).permute(0, 3, 1, 2)
