"""u is not sent: whoever knows where x̄ was a round ago sees from where it is now how it has moved.

    ū ≈ (x̄_start − x̄_end) / Σ_t α_t        over the steps t of the last round

is the round's average of ū: exactly ū for q = 1, a smoothed one for q > 1 (where nothing is projected). The server and
the clients of the last round remember x̄_start and compute the same; a client that missed it is sent u.
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
    """u is what x did in the last round: nobody sends it who has seen that round."""

    needs: ClassVar[frozenset[str]] = frozenset({"x", "u"})
    durable: ClassVar[bool] = False

    def check(self, algorithm: Algorithm, shared: Mapping[str, Tree]) -> None:
        """Raise also if the method does not move by x ← x − αu, as far as that can be seen."""
        super().check(algorithm, shared)
        if not hasattr(algorithm, "learning_rate"):
            raise FedcsoError(f"u can't be inferred for {type(algorithm).__name__}, which has no learning_rate")

    def broadcast(self, shared: dict[str, Tree], memory: Memory, round: Round) -> Broadcast:
        """Return x, and for clients without a memory the u that the others infer."""
        x = shared["x"]
        u = _inferred(memory["x"], x, round.algorithm, round.steps_before) if memory else shared["u"]
        return Broadcast(shared | {"u": u}, without(shared, "u"), {"x": x})

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Return the server's u if it was sent, else the one that x tells."""
        x = message["x"]
        if "u" in message:
            return message, {"x": x}
        if not memory:
            raise MissingMemory("the message has no u, and the client has not kept the x of the last round")
        return message | {"u": _inferred(memory["x"], x, round.algorithm, round.steps_before)}, {"x": x}

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Send all but u."""
        return without(shared, "u"), memory

    def combine(self, messages: Messages, before: dict[str, Tree], round: Round) -> dict[str, Tree]:
        """Return the mean, with the u that x tells."""
        combined = before | super().combine(messages, before, round)
        return combined | {"u": _inferred(before["x"], combined["x"], round.algorithm, round.steps)}


def _inferred(start: Tree, end: Tree, algorithm: Algorithm, steps: range) -> Tree:
    rate: Schedule = algorithm.learning_rate  # type: ignore[attr-defined]  # `check` has asked for it
    travelled = sum(at(rate, t) for t in steps)
    moved = subtract(start, end)
    return add_scaled(zeros_like(moved), moved, 1 / travelled)
