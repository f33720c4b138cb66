"""What travels: `shared` becomes messages, and messages become `shared`, by a codec that every engine applies.

The bytes that are counted are those of the messages. Ways to send less are in `fedcso.codecs`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import Tree

Message = Tree
"""What really travels: a pytree of tensors."""

Memory = dict[str, Tree]
"""What a client or the server remembers of earlier messages; empty if nothing."""

KEPT = "codec"
"""The key in the server's `kept` that holds the codec's memory; the method never sees it."""


class MissingMemory(FedcsoError):
    """A message counts on a memory that the client does not have."""


class Round(NamedTuple):
    """What the server and all clients know of a round without being told."""

    number: int
    plan: Plan
    algorithm: Algorithm

    @property
    def steps(self) -> range:
        """The steps t of the round."""
        return self.plan.steps(self.number)

    @property
    def steps_before(self) -> range:
        """The steps t of the round before."""
        return self.plan.steps(self.number - 1)


class Broadcast(NamedTuple):
    """The server's messages at the start of a round, and what it remembers of them if the round counts."""

    to_new: Message
    """For clients without a memory."""
    to_known: Message
    """For clients with a memory; it may lack what they can make of that."""
    memory: Memory


class Messages(Protocol):
    """What the clients of a round sent, wherever it is: in a list, stacked along an axis, spread over processes.

    Engines implement it, so that a codec can say how messages are combined without knowing where they are.
    """

    def mean(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the mean of what is read from every message, weighted as the plan says."""


@dataclass(frozen=True)
class Codec:
    """How `shared` travels; a frozen dataclass with the five moments of a message's way, here the identity.

        server    broadcast       = broadcast(server.shared, memory, round)
        client    shared, memory  = receive(message, memory, round)    then the method's local steps
        client    message, memory = reply(shared, memory, round)
        server    part            = read(message)                      what a single message says
        server    shared          = combine(messages, before, round)   what the method then aggregates

    Whatever an end needs of earlier messages it puts into its memory. The server's is kept with its state, under a
    key of its own; a client's beside its local state, for as long as that lasts (and see `durable`). Like a method, a
    codec is elementwise arithmetic on pytrees, so that the same lines serve one client or many along leading axes.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    """The names of what a method must share to be sent in this way."""

    durable: ClassVar[bool] = True
    """False if the memory is of use only in the next round; a client that misses it counts as new."""

    stacks: ClassVar[bool] = True
    """False if it can't work on many clients along leading axes at once."""

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return what the server sends at the start of a round."""
        return Broadcast(shared, shared, {})

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return what a client takes from the server's message, and its new memory.

        Raise `MissingMemory` if the message counts on a memory and there is none.
        """
        return message, {}

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return what a client sends after its local steps, and its new memory."""
        return shared, {}

    def read(self, message: Message) -> dict[str, Tree]:
        """Return what a single client's message says, as far as it says it."""
        part: dict[str, Tree] = message
        return part

    def combine(self, messages: Messages, before: dict[str, Tree], round: Round) -> dict[str, Tree]:
        """Return all clients' messages as one `shared`, given the server's of the round."""
        combined: dict[str, Tree] = messages.mean(self.read)
        return combined

    def check(self, algorithm: Algorithm, shared: Mapping[str, Tree]) -> None:
        """Raise `FedcsoError` if what a method shares can't travel in this way."""
        if missing := self.needs - shared.keys():
            raise FedcsoError(
                f"{type(algorithm).__name__} does not share {', '.join(sorted(missing))}, which {type(self).__name__} "
                f"is made for; it shares {', '.join(shared)}"
            )

    def remembers(self, last: int, round: int) -> bool:
        """Return whether the memory of a client that took part in round `last` (−1: in none) is of use in this one."""
        return last >= 0 and (self.durable or last == round - 1)


@dataclass(frozen=True)
class Full(Codec):
    """Everything travels as it is."""


full = Full()
