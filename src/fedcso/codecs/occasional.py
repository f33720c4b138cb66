"""Average u in every k-th round only; in between, each client continues with its own u.

Clients send u at the end of rounds k, 2k, …, and the server sends the average at the start of the rounds that follow. A
client remembers its u in between; one that missed a round is sent the last average.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.codec import Broadcast, Codec, Memory, Message, Messages, MissingMemory, Round
from fedcso.core.errors import require_count
from fedcso.core.tree import Tree, without


@dataclass(frozen=True)
class Occasional(Codec):
    """u is sent in every k-th round, everything else in every round."""

    every: int
    """k, the number of rounds from one average of u to the next."""

    needs: ClassVar[frozenset[str]] = frozenset({"x", "u"})
    durable: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("send_u: every", self.every)

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return messages with u if it is new, and otherwise only for clients that do not remember theirs."""
        is_new = round.number % self.every == 0
        return Broadcast(shared, shared if is_new else without(shared, "u"), {})

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return the server's u if it was sent, else the client's own."""
        if "u" in message:
            return message, {}
        if not memory:
            raise MissingMemory("the message has no u, and the client has not kept its u of the last round")
        return message | {"u": memory["u"]}, {}

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return a message with u at the end of every k-th round; otherwise remember u."""
        if (round.number + 1) % self.every == 0:
            return shared, {}
        return without(shared, "u"), {"u": shared["u"]}

    def combine(self, messages: Messages, before: dict[str, Tree], round: Round) -> dict[str, Tree]:
        """Return the means, with the last average of u if no new one was sent."""
        return before | super().combine(messages, before, round)
