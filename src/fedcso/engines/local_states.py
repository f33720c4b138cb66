"""Clients' states between rounds, some of them in memory and the rest spilled to a file.

A run over thousands of clients therefore needs memory only for the participants of a round. A client has no state
before its first round. Spilled states are never changed in place, so snapshots may refer to them.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping

from fedcso.core.packing import OpenFile, Spilled, pack
from fedcso.core.tree import Tree, nbytes
from fedcso.engines.job import Job

IN_MEMORY = 256 * 2**20
"""The most bytes of states that stay in memory."""

LOCAL, MEMORY = "local", "codec"
"""The keys of a snapshot under which the method's local states and the codec's memories are stored."""


class LocalStates:
    """A mapping from clients to their states, written once per round.

    If `lasting` is False, a client's state is dropped when the client misses a round.
    """

    def __init__(self, device: str = "cpu", in_memory: int | None = None, lasting: bool = True):
        self.device, self.in_memory = device, IN_MEMORY if in_memory is None else in_memory
        self.lasting = lasting
        self._attic: Attic | None = None
        self._states: dict[int, Tree | Spilled] = {}
        self._held = 0

    def get(self, client: int) -> dict[str, Tree] | None:
        """Return a client's state, or None if it has none."""
        state = self._states.get(client)
        return state.load(self.device) if isinstance(state, Spilled) else state

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._states))

    def __contains__(self, client: int) -> bool:
        return client in self._states

    def put(self, states: Mapping[int, Tree]) -> None:
        """Store the states of a round's participants; drop those of the other clients unless states are lasting."""
        if not self.lasting:
            self.clear()
        self.keep(states)

    def keep(self, states: Mapping[int, Tree | Spilled]) -> None:
        """Store states, replacing earlier ones of the same clients."""
        for client, state in states.items():
            self._forget(client)
            size = 0 if isinstance(state, Spilled) else nbytes(state)
            if self._held + size > self.in_memory:
                self._attic = self._attic or Attic()
                state, size = self._attic.put(pack(state)), 0
            self._states[client] = state
            self._held += size

    def clear(self) -> None:
        """Drop all states."""
        self._states, self._held = {}, 0

    def saved(self) -> dict[str, Tree]:
        """Return all states, spilled or not, for a snapshot."""
        return {str(client): state for client, state in self._states.items()}

    def load(self, saved: Mapping[str, Tree]) -> None:
        """Replace all states by those of a snapshot."""
        self.clear()
        self.keep({int(client): state for client, state in saved.items()})

    def _forget(self, client: int) -> None:
        state = self._states.pop(client, None)
        if state is not None and not isinstance(state, Spilled):
            self._held -= nbytes(state)


def empty_states(job: Job) -> dict[str, LocalStates]:
    """Return the empty states of a run's clients; a codec's memory lasts no longer than the method's local state."""
    lasts = job.algorithm.durable
    return {
        LOCAL: LocalStates(job.device, lasting=lasts),
        MEMORY: LocalStates(job.device, lasting=lasts and job.codec.durable),
    }


class Attic:
    """An unnamed temporary file for spilled states; space is reused once nothing refers to it."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="fedcso-")
        os.unlink(name)
        self._file = OpenFile(descriptor)
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def put(self, content: bytes) -> Spilled:
        """Write some bytes and return a reference to them."""
        free = self._free.setdefault(len(content), [])
        if free:
            offset = free.pop()
        else:
            offset, self._end = self._end, self._end + len(content)
        written = 0
        while written < len(content):
            written += os.pwrite(self._file.descriptor, content[written:], offset + written)
        parked = Spilled(self._file.read, offset, len(content))
        weakref.finalize(parked, free.append, offset)
        return parked
