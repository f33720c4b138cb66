"""The interface of a codec: how `shared` is written into messages and read from them.

Every engine applies the codec, and the bytes that are counted are those of its messages. Codecs that send less than
everything are in `fedcso.codecs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import Tree, leaves, map_leaves

Message = Tree
"""What is sent: a pytree of tensors."""

Memory = dict[str, Tree]
"""What a client or the server remembers of earlier messages; may be empty."""

KEPT = "codec"
"""The key in the server's `kept` under which the codec's memory is stored; methods never see it."""


class MissingMemory(FedcsoError):
    """A message can't be read without a memory that the client does not have."""


class Round(NamedTuple):
    """What the server and all clients know about a round without any message."""

    number: int
    plan: Plan
    algorithm: Algorithm

    @property
    def steps(self) -> range:
        """The steps t of the round."""
        return self.plan.steps(self.number)

    @property
    def steps_before(self) -> range:
        """The steps t of the previous round."""
        return self.plan.steps(self.number - 1)


class Broadcast(NamedTuple):
    """The server's messages at the start of a round, and its new memory if the round succeeds."""

    to_new: Message
    """For clients without a memory."""
    to_known: Message
    """For clients with a memory; it may leave out what they can compute from it."""
    memory: Memory


class Messages(Protocol):
    """The messages of a round's clients, wherever they are: in a list, stacked along an axis, spread over processes.

    Each engine implements it, so that a codec can combine messages without knowing where they are. A codec that must
    see only the sum of messages needs one more method here, and no change in the loops.
    """

    def mean(self, read: Callable[[Message], Tree], weights: Sequence[float] | None = None) -> Tree:
        """Return the mean over clients of `read(message)`, weighted as the plan says, or by these in their order."""

    def concatenate(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the entries `read(message)` of all clients, in their order, with their weights: see `concatenate`."""


def concatenate(parts: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Concatenate clients' entries along the first axis.

    The result is {"entries": …, "weight": …}. The entries of a client have equal weights, and together that of the
    client; weights are scaled to the mean 1.
    """
    entries = map_leaves(lambda *some: torch.cat(some), *parts)
    like = leaves(entries)[0]
    counts = torch.tensor([len(leaves(part)[0]) for part in parts])
    weight = (torch.tensor(weights, dtype=torch.float64) / counts).repeat_interleave(counts)
    dtype = torch.promote_types(like.dtype, torch.float32)
    return {"entries": entries, "weight": (weight / weight.mean()).to(like.device, dtype)}


@dataclass(frozen=True)
class Codec:
    """How `shared` travels: a frozen dataclass with a method for each stage of a message. This one sends everything.

        server    broadcast       = broadcast(server.shared, memory, round)
        client    shared, memory  = receive(message, memory, round)    followed by the method's local steps
        client    message, memory = reply(shared, memory, round)
        server    part            = read(message)                      the content of a single message
        server    shared          = combine(messages, before, round)   passed to the method's aggregate

    Both sides may keep a memory of earlier messages. The server's is stored in its `kept`, a client's beside its local
    state and for as long (see also `durable`). Like a method, a codec is written as elementwise arithmetic on pytrees,
    so that the same code runs for one client and for many stacked along leading axes.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    """The keys of `shared` that the codec requires of a method."""

    durable: ClassVar[bool] = True
    """False if a memory is valid for the next round only; a client that misses that round counts as new."""

    linear: ClassVar[bool] = False
    """True if a message is what it stands for, so that the mean of messages can be read like a message."""

    stacks: ClassVar[bool] = True
    """False if it can't process many clients stacked along leading axes."""

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return the server's messages at the start of a round."""
        return Broadcast(shared, shared, {})

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return the `shared` that a client reads from the server's message, and its new memory.

        Raise `MissingMemory` if the message can't be read without a memory and there is none.
        """
        return message, {}

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return a client's message after its local steps, and its new memory."""
        return shared, {}

    def read(self, message: Message) -> dict[str, Tree]:
        """Return the content of a single client's message, which may lack some keys of `shared`."""
        part: dict[str, Tree] = message
        return part

    def combine(self, messages: Messages, before: dict[str, Tree], round: Round) -> dict[str, Tree]:
        """Return all clients' messages as one `shared`: the mean, and the pools of what the method does not average.

        `before` is what the server had sent.
        """
        combined: dict[str, Tree] = messages.mean(lambda message: self.read_averaged(message, round.algorithm))
        for name in sorted(round.algorithm.pooled):
            combined[name] = messages.concatenate(lambda message, name=name: self.read(message)[name])  # type: ignore[misc]
        return combined

    def read_averaged(self, message: Message, algorithm: Algorithm) -> dict[str, Tree]:
        """Return that part of the content of a message that is averaged over clients."""
        return {name: part for name, part in self.read(message).items() if name not in algorithm.pooled}

    def check(self, algorithm: Algorithm, shared: Mapping[str, Tree]) -> None:
        """Raise `FedcsoError` if the codec can't send what a method shares."""
        if missing := self.needs - shared.keys():
            raise FedcsoError(
                f"{type(algorithm).__name__} does not share {', '.join(sorted(missing))}, which the codec "
                f"{type(self).__name__} requires: use another codec, or a method that shares it"
            )

    def remembers(self, last: int, round: int) -> bool:
        """Return whether the memory of a client that last took part in round `last` (−1 for never) is still valid."""
        return last >= 0 and (self.durable or last == round - 1)


@dataclass(frozen=True)
class Full(Codec):
    """Send everything, unchanged."""

    linear: ClassVar[bool] = True


full = Full()
