"""Clip a site's update and add the site's own noise, just before the codec writes the message.

`Protected` is the run's codec with this in front: what is written is post-processing of the protected update, and what
the site remembers of its messages is too.
"""

from dataclasses import dataclass, field
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, Memory, Message, Round
from fedcso.core.tree import Tree, leaves
from fedcso.federation.aggregation import clipped, update_norm, with_noise
from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.sovereignty.update import Update


@dataclass(frozen=True)
class Protected(Codec):
    """A codec that protects what it sends; `notes` gets what the record says of it."""

    codec: Codec
    update: Update
    notes: dict[str, Any]
    _received: dict[str, Tree] = field(default_factory=dict)

    def receive(self, message: Message, memory: Memory | None, round: Round) -> tuple[dict[str, Tree], Memory]:
        """Read the message, and note what was received."""
        require_protectable(self.update, round.algorithm)
        shared, memory = self.codec.receive(message, memory, round)
        self._received.update(shared)
        return shared, memory

    def reply(self, shared: dict[str, Tree], memory: Memory, round: Round) -> tuple[Message, Memory]:
        """Protect the update, then write it."""
        return self.codec.reply(self.protect(shared), memory, round)

    def read(self, message: Message) -> dict[str, Tree]:
        """Return what a message holds."""
        return self.codec.read(message)

    def protect(self, sent: dict[str, Tree]) -> dict[str, Tree]:
        """Return what may be sent instead of these parts of `shared`, and count it as one more update."""
        update, before = self.update, {name: self._received[name] for name in sent if name in self._received}
        if update.noise and not all(leaf.is_floating_point() for leaf in leaves(sent)):
            raise Refused("the method shares whole numbers, to which the noise that the policy asks for can't be added")
        norm = update_norm(before, sent)
        protected = clipped(before, sent, update.clip) if update.clip else sent
        after = update_norm(before, protected)
        if update.noise:
            protected = with_noise(protected, update.deviation)
        noted = {"norm": norm, "clipped": after, "clip": update.clip, "noise": update.deviation}
        self.notes.setdefault("updates", []).append(noted)
        return protected


def require_protectable(update: Update, algorithm: Algorithm) -> None:
    """Raise `Refused` if the method sends entries of single rows, which clipping and noise do not protect."""
    if (update.clip or update.noise) and algorithm.pooled:
        pooled = ", ".join(sorted(algorithm.pooled))
        raise Refused(f"{type(algorithm).__name__} sends {pooled} of single rows, which clip and noise do not protect")
