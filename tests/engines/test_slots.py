"""Slots for the clients that have a state, stored by their clients."""

import torch

from fedcso.engines.slots import NONE, Slots

EVERYONE_WELL = torch.ones(1, 2, 2, dtype=torch.bool)


def filled(lasting: bool) -> Slots:
    """Two seeds: clients 5 and 900,000, then 5 and 7, and in the other seed 1 and 2, then 2 and 1."""
    slots = Slots((1, 2), lasting)
    for first, clients in ((1.0, [[5, 900_000], [1, 2]]), (10.0, [[5, 7], [2, 1]])):
        slots.put(clients, {"y": first + torch.arange(4.0).reshape(1, 2, 2)}, EVERYONE_WELL)
    return slots


def test_lasting_states_stay_and_others_expire():
    kept, expired = filled(True), filled(False)
    assert [float(kept.one((0, 0), n)["y"]) for n in (5, 900_000, 7)] == [10.0, 2.0, 11.0]
    assert [float(kept.one((0, 1), n)["y"]) for n in (1, 2)] == [13.0, 12.0]
    assert expired.one((0, 0), 900_000) is None
    assert float(expired.one((0, 0), 7)["y"]) == 11.0
    assert kept.one((0, 1), 5) is None


def test_a_state_comes_back():
    before, after = filled(True), Slots((1, 2), True)
    after.load(before.state())
    assert after.slots == before.slots == [{5: 0, 900_000: 1, 7: 2}, {1: 0, 2: 1}]
    assert after.state()["owner"].tolist() == [[5, 900_000, 7], [1, 2, NONE]]


def test_a_state_of_an_earlier_version_comes_back():
    """It held the slot of every client."""
    before, after = filled(True), Slots((1, 2), True)
    slot = torch.full((2, 900_001), NONE)
    for seed, mine in enumerate(before.slots):
        slot[seed, list(mine)] = torch.tensor(list(mine.values()))
    after.load({"slot": slot, "known": before.known, "states": before.states})
    assert after.slots == before.slots


def test_no_states_take_no_slots():
    slots = Slots((1, 2), True)
    assert slots.state()["owner"].shape == (2, 0)
    assert slots.take([[3], [4]])[0] is None
