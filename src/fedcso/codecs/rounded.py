"""u in fewer bits, upwards and downwards, with error feedback at both ends.

    sent ← round(u + e),       e ← u + e − sent

What rounding takes away is added before the next message, so that it is late but not lost. e = 0 at first. A client
remembers its e, the server its own.

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
    """u in fewer bits, all else as it is."""

    needs: ClassVar[frozenset[str]] = frozenset({"x", "u"})

    @abstractmethod
    def compress(self, leaf: torch.Tensor) -> Tree:
        """Return a leaf of u as it travels."""

    @abstractmethod
    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Return what is left of the leaf."""

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return one message for all clients: u + e, rounded."""
        message, memory = self._rounded(shared, memory or _no_error(shared))
        return Broadcast(message, message, memory)

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return what the message says; the client's e is that of its last reply."""
        shared = self.read(message)
        return shared, memory or _no_error(shared)

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return u + e, rounded, and the new e."""
        return self._rounded(shared, memory)

    def read(self, message: Message) -> dict[str, Tree]:
        """Return what the message says, with u in the type of x."""
        u = map_leaves(lambda like, compressed: self.expand(compressed, like.dtype), message["x"], message["u"])
        return dict(message) | {"u": u}

    def _rounded(self, shared: dict[str, Tree], memory: Memory) -> tuple[Message, Memory]:
        """Return a message, and what it lacks of u + e."""
        whole = add_scaled(shared["u"], memory["error"], 1.0)
        message = shared | {"u": map_leaves(self.compress, whole)}
        return message, {"error": subtract(whole, self.read(message)["u"])}


def _no_error(shared: dict[str, Tree]) -> Memory:
    return {"error": zeros_like(shared["u"])}


@dataclass(frozen=True)
class BFloat16(Rounded):
    """u in two bytes a number: eight bits of precision."""

    def compress(self, leaf: torch.Tensor) -> Tree:
        """Round to the nearest bfloat16."""
        return leaf.to(torch.bfloat16)

    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Return the same numbers."""
        leaf: torch.Tensor = compressed.to(dtype)
        return leaf


@dataclass(frozen=True)
class Int8(Rounded):
    """u in one byte a number: whole numbers from −127 to 127, times a scale for each leaf."""

    stacks: ClassVar[bool] = False  # a scale belongs to one client

    def compress(self, leaf: torch.Tensor) -> Tree:
        """Round to the nearest multiple of a scale, of which the largest number is 127 times."""
        scale = (leaf.abs().max() / 127).clamp_min(torch.finfo(torch.float32).tiny).to(torch.float32)
        return {"values": torch.round(leaf / scale).clamp(-127, 127).to(torch.int8), "scale": scale}

    def expand(self, compressed: Tree, dtype: torch.dtype) -> torch.Tensor:
        """Return the values times the scale."""
        leaf: torch.Tensor = compressed["values"].to(dtype) * compressed["scale"].to(dtype)
        return leaf
