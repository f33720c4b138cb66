"""Local states that wait in a file: the same numbers, little memory, snapshots that stay what they were."""

import gc

import pytest
import torch

from fedcso.algorithms import SOX, Scaffold
from fedcso.core.packing import Spilled, pack
from fedcso.core.plan import Plan
from fedcso.engines import local_states
from fedcso.engines.local_states import Attic, LocalStates
from fedcso.runs import checkpoint
from tests.helpers import assert_close, assert_same_run, few_points, nested_quadratic, run_on

NUMBERS = 100
SIZE = NUMBERS * 8


def state(value: float) -> dict[str, torch.Tensor]:
    return {"c": torch.full((NUMBERS,), value, dtype=torch.float64)}


def kinds(states: LocalStates) -> list[bool]:
    """Which clients' states wait in a file."""
    return [isinstance(saved, Spilled) for saved in states.saved().values()]


def test_states_stay_in_memory_while_there_is_room():
    states = LocalStates(in_memory=2 * SIZE)
    states.keep({n: state(n) for n in range(5)})
    assert kinds(states) == [False, False, True, True, True]
    for n in range(5):
        assert_close(states.get(n), state(n), tolerance=0.0)
    assert states.get(5) is None
    assert list(states) == [0, 1, 2, 3, 4]


def test_room_is_used_again():
    states = LocalStates(in_memory=SIZE)
    for turn in range(3):
        states.keep({0: state(turn)})
    assert kinds(states) == [False]
    states.clear()
    states.keep({1: state(7)})
    assert kinds(states) == [False]


def test_a_snapshot_stays_what_it_was():
    states = LocalStates(in_memory=0)
    states.keep({0: state(1)})
    before = states.saved()
    states.keep({0: state(2)})
    assert_close(before["0"].load(), state(1), tolerance=0.0)
    assert_close(states.get(0), state(2), tolerance=0.0)


def test_what_nobody_refers_to_is_written_over():
    attic, content = Attic(), pack(state(0))
    first = attic.put(content)
    kept = attic.put(content)
    offset = first.offset
    del first
    gc.collect()
    assert attic.put(content).offset == offset != kept.offset


@pytest.mark.parametrize("engine", ["reference", "threads"])
@pytest.mark.parametrize("method", [Scaffold(0.1), SOX(0.1, 0.4, 0.3)], ids=["SCAFFOLD", "SOX"])
def test_a_run_is_the_same_with_states_in_a_file(engine, method, monkeypatch):
    case = few_points()
    plan = Plan(rounds=6, local_steps=2, participation=2)
    expected = run_on(engine, method, case, plan)
    monkeypatch.setattr(local_states, "IN_MEMORY", 0)
    assert_same_run(run_on(engine, method, case, plan), expected, tolerance=0.0)


def test_a_checkpoint_holds_states_from_a_file(tmp_path, monkeypatch):
    """Written from file to file, read when they are needed, and the run goes on to the last bit."""
    case, plan = nested_quadratic(), Plan(rounds=6, local_steps=2, participation=2)
    expected = run_on("reference", Scaffold(0.1), case, plan)
    monkeypatch.setattr(local_states, "IN_MEMORY", 0)

    def save(progress):
        checkpoint.save(tmp_path / str(progress.done), progress.snapshot())

    run_on("reference", Scaffold(0.1), case, plan, callbacks=[save])
    for done in range(1, plan.rounds):
        start = checkpoint.newest(tmp_path / str(done))
        assert all(isinstance(saved, Spilled) for saved in start.state["local"].values())
        assert_same_run(run_on("reference", Scaffold(0.1), case, plan, start=start), expected, tolerance=0.0)
