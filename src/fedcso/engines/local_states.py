"""Clients' local states, of which only so many are in memory: the others wait in a file for their next round.

So a run over thousands of clients needs memory for those at work. A client has no state before its first round. What
is put away is never changed in place: a snapshot that refers to it stays what it was.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping

from fedcso.core.packing import OpenFile, Parked, pack
from fedcso.core.tree import Tree, nbytes
from fedcso.engines.job import Job

IN_MEMORY = 256 * 2**20
"""Bytes of local states that stay in memory."""

LOCAL, MEMORY = "local", "codec"
"""What a client holds between rounds, as a snapshot names it: the method's local state and the codec's memory."""


class LocalStates:
    """The states by client; a mapping that is read one by one and written a round at a time.

    If they are not `lasting`, a client's state is forgotten when it misses a round.
    """

    def __init__(self, device: str = "cpu", in_memory: int | None = None, lasting: bool = True):
        self.device, self.in_memory = device, IN_MEMORY if in_memory is None else in_memory
        self.lasting = lasting
        self._attic: Attic | None = None
        self._states: dict[int, Tree | Parked] = {}
        self._held = 0

    def get(self, client: int) -> dict[str, Tree] | None:
        """A client's state, or None if it has none."""
        state = self._states.get(client)
        return state.load(self.device) if isinstance(state, Parked) else state

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._states))

    def __contains__(self, client: int) -> bool:
        return client in self._states

    def put(self, states: Mapping[int, Tree]) -> None:
        """Keep the states of a round's participants; the others' too, if these last."""
        if not self.lasting:
            self.clear()
        self.keep(states)

    def keep(self, states: Mapping[int, Tree | Parked]) -> None:
        """Put new states in the place of old ones."""
        for client, state in states.items():
            self._forget(client)
            size = 0 if isinstance(state, Parked) else nbytes(state)
            if self._held + size > self.in_memory:
                self._attic = self._attic or Attic()
                state, size = self._attic.put(pack(state)), 0
            self._states[client] = state
            self._held += size

    def clear(self) -> None:
        """Forget all."""
        self._states, self._held = {}, 0

    def saved(self) -> dict[str, Tree]:
        """All of them as they are, for a snapshot."""
        return {str(client): state for client, state in self._states.items()}

    def load(self, saved: Mapping[str, Tree]) -> None:
        """Those of a snapshot in place of all others."""
        self.clear()
        self.keep({int(client): state for client, state in saved.items()})

    def _forget(self, client: int) -> None:
        state = self._states.pop(client, None)
        if state is not None and not isinstance(state, Parked):
            self._held -= nbytes(state)


def no_states(job: Job) -> dict[str, LocalStates]:
    """Return room for what the clients of a run hold; a codec's memory does not outlast the method's local state."""
    lasts = job.algorithm.durable
    return {
        LOCAL: LocalStates(job.device, lasting=lasts),
        MEMORY: LocalStates(job.device, lasting=lasts and job.codec.durable),
    }


class Attic:
    """A file without a name, gone with its process, in which the place of what nobody refers to is used again."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="fedcso-")
        os.unlink(name)
        self._file = OpenFile(descriptor)
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def put(self, content: bytes) -> Parked:
        """Write something to where there is room for it."""
        free = self._free.setdefault(len(content), [])
        if free:
            offset = free.pop()
        else:
            offset, self._end = self._end, self._end + len(content)
        written = 0
        while written < len(content):
            written += os.pwrite(self._file.descriptor, content[written:], offset + written)
        parked = Parked(self._file.read, offset, len(content))
        weakref.finalize(parked, free.append, offset)
        return parked
