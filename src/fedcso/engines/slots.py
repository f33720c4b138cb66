"""Stacked states of clients, with a slot for each client that has a state.

Leaves have axes (g, seed, slot, ...): all grid points have the same participants. If states expire when a client misses
a round, there are as many slots as participants; otherwise as many as clients have taken part so far.
"""

from itertools import count
from typing import Any

import torch

from fedcso.core.tree import Tree, index, leaves, map_leaves

NONE = -1


class Slots:
    """The clients' states and their slots. Tensors are never changed in place, so snapshots stay valid."""

    def __init__(self, shape: tuple[int, int], lasting: bool):
        self.lasting = lasting
        self.slots: list[dict[int, int]] = [{} for _ in range(shape[1])]
        """For each seed, the slots of the clients that have one, in their order."""
        self.known = torch.zeros(*shape, 0, dtype=torch.bool)
        """Whether the state at (g, seed, slot) is valid; a setting may have dropped the client."""
        self.states: dict[str, Tree] = {}

    def state(self) -> dict[str, Tree]:
        """Return everything, for a snapshot."""
        room = self.known.shape[2]
        owners = [[*mine, *[NONE] * (room - len(mine))] for mine in self.slots]
        owner = torch.tensor(owners, dtype=torch.int64).reshape(len(self.slots), room)
        return {"owner": owner, "known": self.known, "states": self.states}

    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""
        self.known, self.states = state["known"], state["states"]
        owner = state["owner"] if "owner" in state else _owners(state["slot"], self.known.shape[2])
        self.slots = [{n: slot for slot, n in enumerate(some) if n != NONE} for some in owner.tolist()]

    def take(self, clients: list[list[int]]) -> tuple[Tree | None, torch.Tensor]:
        """Return the states (g, seed, k, ...) of k clients per seed, or None if there are none, and which are valid."""
        known = torch.zeros(*self.known.shape[:2], len(clients[0]), dtype=torch.bool)
        if not leaves(self.states):
            return None, known
        where = self._where(clients)
        missing = where[2] == NONE
        if bool(missing.all()):
            return None, known
        known = self.known[where] & ~missing  # a missing client's index is −1, which reads the last slot
        return (index(self.states, where) if bool(known.any()) else None), known

    def put(self, clients: list[list[int]], states: dict[str, Tree], healthy: torch.Tensor) -> None:
        """Store the participants' states; a dropped client keeps its earlier state if states are lasting."""
        if not self.lasting:
            self.slots = [{} for _ in clients]
            self.known = self.known[:, :, :0]
            self.states = map_leaves(lambda leaf: leaf[:, :, :0], states)
        if not leaves(states):
            return
        self.slots = [_with_newcomers(mine, some) for mine, some in zip(self.slots, clients, strict=True)]
        room = max(map(len, self.slots))
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
        slot = self.slots[run[1]].get(client, NONE)
        return index(self.states, (*run, slot)) if slot != NONE and self.known[(*run, slot)] else None

    def _where(self, clients: list[list[int]]) -> tuple[Any, ...]:
        """Return an index (g, seed, slot) of the given clients."""
        grid, seeds = torch.arange(self.known.shape[0]), torch.arange(len(clients)).unsqueeze(1)
        slot = [[mine.get(n, NONE) for n in some] for mine, some in zip(self.slots, clients, strict=True)]
        return grid.reshape(-1, 1, 1), seeds.unsqueeze(0), torch.tensor(slot).unsqueeze(0)


def choose(mask: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    """Return `yes` where the mask over the leading axes is True, else `no`."""
    return torch.where(mask.reshape(mask.shape + (1,) * (yes.ndim - mask.ndim)), yes, no)


def _with_newcomers(slots: dict[int, int], clients: list[int]) -> dict[int, int]:
    """Return the slots with new ones, after the others, for the clients that have none."""
    newcomers = (n for n in clients if n not in slots)
    return slots | dict(zip(newcomers, count(len(slots)), strict=False))


def _owners(slot: torch.Tensor, room: int) -> torch.Tensor:
    """Return the client of each (seed, slot) from the slot of each (seed, client), which earlier versions stored."""
    owner = torch.full((len(slot), room), NONE)
    seed, client = (slot != NONE).nonzero(as_tuple=True)
    owner[seed, slot[seed, client]] = client
    return owner


def _widened(leaf: torch.Tensor, room: int) -> torch.Tensor:
    """Return a copy with zeros in the new slots."""
    wide = leaf.new_zeros(*leaf.shape[:2], room, *leaf.shape[3:])
    wide[:, :, : leaf.shape[2]] = leaf
    return wide
