"""Rows of a shared array behave like a copy of them."""

from dataclasses import replace

import numpy as np
import torch

from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.rows import Rows, memory_mapped, share
from tests.helpers import SETTINGS, Case, assert_same_run, classification, run_on

ARRAY = torch.arange(24.0).reshape(6, 2, 2)
WHICH = torch.tensor([4, 0, 4])


def test_rows_look_like_a_copy():
    rows, copy = Rows(ARRAY, WHICH), ARRAY[WHICH]
    assert len(rows) == len(copy)
    assert (rows.shape, rows.dtype) == (copy.shape, copy.dtype)
    for where in (slice(None), 1, slice(1, 3), torch.tensor([[2, 0], [1, 1]])):
        assert torch.equal(rows[where], copy[where])


def shared_and_copied() -> tuple[Case, Case]:
    case = classification()
    whole = pool_examples(case.clients)
    ends = torch.tensor([len(data.labels) for data in case.clients]).cumsum(0).tolist()
    shares = [share(whole, torch.arange(start, end)) for start, end in zip([0, *ends], ends, strict=False)]
    return replace(case, clients=shares), case


def test_a_run_on_shared_rows_is_the_run_on_copies():
    shared, copied = shared_and_copied()
    plan = Plan(rounds=3, local_steps=2, outer_batch=2, weights="size")
    for engine in ("reference", "stacked"):
        found = run_on(engine, SETTINGS["FCSG-M"], shared, plan)
        assert_same_run(found, run_on(engine, SETTINGS["FCSG-M"], copied, plan), tolerance=0.0)


def test_data_have_the_same_fingerprint_however_they_are_held():
    shared, copied = (Task(case.problem, case.clients) for case in shared_and_copied())
    assert shared.digest() == copied.digest()


def test_all_clients_data_can_be_pooled():
    examples = Examples(ARRAY, torch.arange(6))
    both = pool_examples([share(examples, WHICH), share(examples, WHICH[:1])])
    assert both.labels.tolist() == [4, 0, 4, 4]
    assert torch.equal(both.inputs, ARRAY[both.labels])


def test_an_array_in_a_file(tmp_path):
    mapped = memory_mapped(np.arange(6, dtype=np.uint8).reshape(3, 2), tmp_path / "array.npy")
    assert mapped.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert mapped.dtype == torch.uint8
