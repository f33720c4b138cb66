"""An `nn.Module` as a pair of functions: a dict of parameters to start from, and the forward pass on one."""

import copy
import threading
from collections.abc import Callable

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.modules.dropout import _DropoutNd

from fedcso.core.errors import FedcsoError

Model = nn.Module | Callable[[], nn.Module]
"""A network. A module is taken as it is: every run starts from its weights, whatever the seed, as fine-tuning a
pretrained network needs. A function without arguments that builds a module (or a class of modules) is called anew for
every run, after torch's generator has been seeded with the run's seed: every seed starts from new weights."""


class Functional:
    """`init(rng)` gives parameters, `apply(parameters, *inputs)` the output; the module itself is left alone.

    `model` says where the parameters come from: a module keeps its weights, a function builds new ones by seed.

    Batch norm must use batch statistics (`track_running_stats=False`): running ones would be a second,
    hidden state that neither averages nor travels. Dropout is refused too: its randomness is nobody's.
    """

    def __init__(self, model: Model):
        self._model = model
        self.module = self._build(seed=0)
        for name, part in self.module.named_modules():
            if getattr(part, "track_running_stats", False):
                raise FedcsoError(
                    f"layer {name!r} keeps running statistics, a state that clients would not share; build "
                    "it with track_running_stats=False, or use GroupNorm or LayerNorm"
                )
            if isinstance(part, _DropoutNd) and part.p > 0 and part.training:
                raise FedcsoError(
                    f"layer {name!r} draws random numbers of its own, which belong to no client's stream, so that no "
                    "run could be repeated; leave dropout out, or set it to eval()"
                )
        # functional_call swaps parameters inside the module while it runs: every thread needs its own.
        self._copies = threading.local()

    def __getstate__(self) -> Model:
        return self._model  # the threads' copies neither can nor need be pickled

    def __setstate__(self, model: Model) -> None:
        self.__init__(model)  # type: ignore[misc]

    def init(self, rng: torch.Generator) -> dict[str, torch.Tensor]:
        """Return a copy of the module's weights, or the weights of a module built with a seed that `rng` gives."""
        module = self._build(seed=int(torch.randint(2**62, (), generator=rng)))
        return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}

    def apply(self, parameters: dict[str, torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
        """The module's output with these parameters."""
        if not hasattr(self._copies, "module"):
            self._copies.module = copy.deepcopy(self.module)
        laid_out = {name: _channels_last(value) for name, value in parameters.items()}
        output: torch.Tensor = functional_call(self._copies.module, laid_out, inputs)
        return output

    def _build(self, seed: int) -> nn.Module:
        """Return the module as it is, or a new one with the random numbers of this seed."""
        if isinstance(self._model, nn.Module):
            return self._model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self._model() if callable(self._model) else None
        if not isinstance(module, nn.Module):
            raise FedcsoError(
                f"{self._model!r} is not a network: pass an nn.Module, or a function without arguments that returns one"
            )
        return module


def _channels_last(weight: torch.Tensor) -> torch.Tensor:
    """Kernels of 2-d convolutions with channels last in memory, which CPUs compute faster with.

    By permuting, which `vmap` understands, and at every use, so that no result depends on how a tensor
    happened to be stored. The images follow the kernels' layout by themselves.
    """
    if weight.ndim != 4:
        return weight
    # `clone`, not `contiguous`: one channel counts as contiguous either way, and nothing would be done.
    return weight.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format).permute(0, 3, 1, 2)
