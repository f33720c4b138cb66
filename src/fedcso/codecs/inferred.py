"""Don't send u: infer it from how far x̄ moved in the last round.

    ū ≈ (x̄_start − x̄_end) / Σ_t α_t        over the steps t of the last round

This is the average of ū over the round: exactly ū for q = 1, a smoothed ū for q > 1 (without projection). The server
and the clients of the last round remember x̄_start and compute the same value; clients that missed the round are sent u.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, at
from fedcso.core.codec import Broadcast, Codec, Memory, Message, Messages, MissingMemory, Round
from fedcso.core.errors import FedcsoError
from fedcso.core.tree import Tree, add_scaled, subtract, without, zeros_like


@dataclass(frozen=True)
class Inferred(Codec):
    """u is inferred from the movement of x in the last round, and sent only to clients that missed it."""

    needs: ClassVar[frozenset[str]] = frozenset({"x", "u"})
    durable: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    def check(self, algorithm: Algorithm, shared: Mapping[str, Tree]) -> None:
        """Raise `FedcsoError` unless the method shares x and u and has a learning rate."""
        super().check(algorithm, shared)
        if not hasattr(algorithm, "learning_rate"):
            raise FedcsoError(
                f"u can't be inferred for {type(algorithm).__name__}, which has no learning_rate: use another codec"
            )

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return messages with x, for clients without a memory also with the u that the others infer."""
        x = shared["x"]
        u = _infer(memory["x"], x, round.algorithm, round.steps_before) if memory else shared["u"]
        return Broadcast(shared | {"u": u}, without(shared, "u"), {"x": x})

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return x, and u as sent or else inferred."""
        x = message["x"]
        if "u" in message:
            return message, {"x": x}
        if not memory:
            raise MissingMemory("the message has no u, and the client has not kept the x of the last round")
        return message | {"u": _infer(memory["x"], x, round.algorithm, round.steps_before)}, {"x": x}

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Return a message with everything but u."""
        return without(shared, "u"), memory

    def combine(self, messages: Messages, before: dict[str, Tree], round: Round) -> dict[str, Tree]:
        """Return the means, with u inferred."""
        combined = before | super().combine(messages, before, round)
        return combined | {"u": _infer(before["x"], combined["x"], round.algorithm, round.steps)}


def _infer(start: Tree, end: Tree, algorithm: Algorithm, steps: range) -> Tree:
    rate: Schedule = algorithm.learning_rate  # type: ignore[attr-defined]  # `check` requires it
    total_rate = sum(at(rate, t) for t in steps)
    moved = subtract(start, end)
    return add_scaled(zeros_like(moved), moved, 1 / total_rate)
