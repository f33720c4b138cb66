"""Send u in fewer bits, in both directions, with error feedback.

    sent ← round(u + e),       e ← u + e − sent

The rounding error e is added to the next message, so that it is delayed but not lost. It starts at 0. The server and
each client remember their own e.

Reference: Karimireddy, Rebjock, Stich, Jaggi, Error Feedback Fixes SignSGD and other Gradient Compression Schemes, ICML
2019.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcso.core.codec import Broadcast, Codec, Memory, Message, Round
from fedcso.core.tree import Tree, add_scaled, map_leaves, subtract, zeros_like


@dataclass(frozen=True)
class Rounded(Codec, ABC):
    """u in fewer bits; everything else is sent unchanged."""

    needs: ClassVar[frozenset[str]] = frozenset({"x", "u"})

    @abstractmethod
    def compress(self, leaf: torch.Tensor) -> Tree:
        """Return the compressed form of a leaf of u."""

    @abstractmethod
    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Return the leaf that a compressed form stands for."""

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return one message for all clients, with u + e rounded."""
        message, memory = self._round_u(shared, memory or _no_error(shared))
        return Broadcast(message, message, memory)

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Decode u; the client's memory is the error of its last reply."""
        shared = self.read(message)
        return shared, memory or _no_error(shared)

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return a message with u + e rounded, and the new error."""
        return self._round_u(shared, memory)

    def read(self, message: Message) -> dict[str, Tree]:
        """Decode u to the dtype of x."""
        u = map_leaves(lambda like, compressed: self.expand(compressed, like.dtype), message["x"], message["u"])
        return dict(message) | {"u": u}

    def _round_u(self, shared: dict[str, Tree], memory: Memory) -> tuple[Message, Memory]:
        """Return a message with u + e rounded, and the new error."""
        whole = add_scaled(shared["u"], memory["error"], 1.0)
        message = shared | {"u": map_leaves(self.compress, whole)}
        return message, {"error": subtract(whole, self.read(message)["u"])}


def _no_error(shared: dict[str, Tree]) -> Memory:
    return {"error": zeros_like(shared["u"])}


@dataclass(frozen=True)
class BFloat16(Rounded):
    """u in bfloat16: two bytes per number, eight bits of precision."""

    def compress(self, leaf: torch.Tensor) -> Tree:
        """Round to the nearest bfloat16."""
        return leaf.to(torch.bfloat16)

    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Convert the numbers to `dtype`, which is exact."""
        leaf: torch.Tensor = compressed.to(dtype)
        return leaf


@dataclass(frozen=True)
class Int8(Rounded):
    """u in int8: one byte per number, from −127 to 127, and a scale for each leaf."""

    stacks: ClassVar[bool] = False  # the scale is computed over all of a leaf

    def compress(self, leaf: torch.Tensor) -> Tree:
        """Round to multiples of a scale, which is 1/127 of the largest absolute value."""
        scale = (leaf.abs().max() / 127).clamp_min(torch.finfo(torch.float32).tiny).to(torch.float32)
        return {"values": torch.round(leaf / scale).clamp(-127, 127).to(torch.int8), "scale": scale}

    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Multiply the values by the scale."""
        leaf: torch.Tensor = compressed["values"].to(dtype) * compressed["scale"].to(dtype)
        return leaf
