"""Stacked states of clients, with a slot for each client that has a state.

Leaves have axes (g, seed, slot, ...): all grid points have the same participants. If states expire when a client misses
a round, there are as many slots as participants; otherwise as many as clients have taken part so far.
"""

from typing import Any

import torch

from fedcso.core.tree import Tree, index, leaves, map_leaves

NONE = -1


class Slots:
    """The clients' states and their slots. Tensors are never changed in place, so snapshots stay valid."""

    def __init__(self, shape: tuple[int, int], clients: int, lasting: bool):
        self.lasting = lasting
        self.slot = torch.full((shape[1], clients), NONE)
        """The slot of each (seed, client)."""
        self.known = torch.zeros(*shape, 0, dtype=torch.bool)
        """Whether the state at (g, seed, slot) is valid; a setting may have dropped the client."""
        self.states: dict[str, Tree] = {}

    def state(self) -> dict[str, Tree]:
        """Return everything, for a snapshot."""
        return {"slot": self.slot, "known": self.known, "states": self.states}

    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""
        self.slot, self.known, self.states = state["slot"], state["known"], state["states"]

    def take(self, clients: list[list[int]]) -> tuple[Tree | None, torch.Tensor]:
        """Return the states (g, seed, k, ...) of k clients per seed, or None if there are none, and which are valid."""
        where = self._where(clients)
        missing = where[2] == NONE
        known = torch.zeros(*self.known.shape[:2], len(clients[0]), dtype=torch.bool)
        if not leaves(self.states) or bool(missing.all()):
            return None, known
        known = self.known[where] & ~missing  # a missing client's index is −1, which reads the last slot
        return (index(self.states, where) if bool(known.any()) else None), known

    def put(self, clients: list[list[int]], states: dict[str, Tree], healthy: torch.Tensor) -> None:
        """Store the participants' states; a dropped client keeps its earlier state if states are lasting."""
        if not self.lasting:
            self.slot = torch.full_like(self.slot, NONE)
            self.known = self.known[:, :, :0]
            self.states = map_leaves(lambda leaf: leaf[:, :, :0], states)
        if not leaves(states):
            return
        self.slot = self.slot.clone()
        for seed, some in enumerate(clients):
            newcomers = [n for n in some if self.slot[seed, n] == NONE]
            first = int(self.slot[seed].max()) + 1
            self.slot[seed, newcomers] = torch.arange(first, first + len(newcomers))
        room = int(self.slot.max()) + 1
        where = self._where(clients)
        old_known = _widened(self.known, room)
        self.known = old_known.index_put(where, old_known[where] | healthy.to(old_known.device))
        before = self.states if leaves(self.states) else map_leaves(lambda leaf: leaf[:, :, :0], states)

        def put(everyone: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
            everyone = _widened(everyone, room)
            everyone[where] = choose(healthy, some, everyone[where])
            return everyone

        self.states = map_leaves(put, before, states)

    def one(self, run: tuple[int, int], client: int) -> Tree | None:
        """Return the state of one client in one run, or None."""
        slot = int(self.slot[run[1], client])
        return index(self.states, (*run, slot)) if slot != NONE and self.known[(*run, slot)] else None

    def _where(self, clients: list[list[int]]) -> tuple[Any, ...]:
        """Return an index (g, seed, slot) of the given clients."""
        grid, seeds = torch.arange(self.known.shape[0]), torch.arange(len(clients)).unsqueeze(1)
        return grid.reshape(-1, 1, 1), seeds.unsqueeze(0), self.slot[seeds, torch.tensor(clients)].unsqueeze(0)


def choose(mask: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    """Return `yes` where the mask over the leading axes is True, else `no`."""
    return torch.where(mask.reshape(mask.shape + (1,) * (yes.ndim - mask.ndim)), yes, no)


def _widened(leaf: torch.Tensor, room: int) -> torch.Tensor:
    """Return a copy with zeros in the new slots."""
    wide = leaf.new_zeros(*leaf.shape[:2], room, *leaf.shape[3:])
    wide[:, :, : leaf.shape[2]] = leaf
    return wide
