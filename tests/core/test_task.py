"""The fingerprint of a task's data, which changes with the data and their split only."""

import numpy as np
import pytest
import torch

from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.problems import PROBLEMS

LARGE = 5000


def digest(*clients, test=None, validation=None):
    return Task(None, clients, test=test, validation=validation).digest()


def test_it_is_short_and_looks_like_one():
    assert len(digest(torch.ones(2))) == 16
    assert int(digest(torch.ones(2)), 16) >= 0


def test_the_same_data_have_the_same():
    def make():
        return digest(Examples(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2])), {"a": [1, "b"]}, test=None)

    assert make() == make()


BASE = torch.arange(6.0)
CHANGES = {
    "a value": [BASE + torch.eye(6)[5] * 1e-6],
    "the order": [BASE.flip(0)],
    "the shape": [BASE.reshape(2, 3)],
    "the type": [BASE.double()],
    "the split": [BASE[:4], BASE[4:]],
    "another client": [BASE, BASE],
    "no client": [],
    "a list of it": [[BASE]],
    "a name for it": [{"x": BASE}],
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_changes_with(change):
    assert digest(*CHANGES[change]) != digest(BASE)


def test_splits_of_the_same_data_differ():
    assert len({digest(BASE[:n], BASE[n:]) for n in range(1, 6)}) == 5


def test_test_and_validation_data_belong_to_it_and_are_not_mixed_up():
    assert len({digest(BASE), digest(BASE, test=BASE), digest(BASE, validation=BASE), digest(test=BASE)}) == 4


def test_how_a_tensor_lies_in_memory_does_not_matter():
    table = torch.arange(6.0).reshape(2, 3)
    assert digest(table.T) == digest(table.T.contiguous())
    assert digest(table.requires_grad_()) == digest(table.detach())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool, torch.int8, torch.complex64])
def test_it_takes_tensors_of_any_type(dtype):
    assert digest(torch.zeros(3).to(dtype)) != digest(torch.ones(3).to(dtype))


@pytest.mark.parametrize("place", [0, LARGE // 2, LARGE - 1])
def test_every_entry_of_an_array_counts(place):
    data = np.zeros(LARGE)
    before = digest(data)
    data[place] = 1e-9
    assert digest(data) != before


class Hospital:
    """Data in a user's class without a repr."""

    def __init__(self, patients):
        self.patients = patients


def test_own_data_classes_have_the_same_in_every_process():
    hospitals = [Hospital(torch.ones(3)) for _ in range(2)]  # at different places in memory
    assert digest(hospitals[0]) == digest(hospitals[1])


def test_own_data_classes_have_another_for_other_data():
    assert digest(Hospital(torch.ones(3))) != digest(Hospital(torch.zeros(3)))


# ------------------------------------------------------------------------------ the built-in tasks

SETTINGS = {
    "invariant_logistic": [{"clients": 4}, {"data_seed": 1}, {"unlike_truth": 0.5}, {"test_points": 31}],
    "nested_quadratic": [{"clients": 4}, {"data_seed": 1}, {"heterogeneity": 0.1}],
    "classification": [{"clients": 4}, {"data_seed": 1}, {"alpha": 0.5}],
}
FIXED = {"invariant_logistic": {"clients": 3, "test_points": 30}, "classification": {"clients": 3}}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_task_made_twice_has_the_same_data(name):
    made = [PROBLEMS[name](**FIXED.get(name, {})).digest() for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in SETTINGS for change in SETTINGS[name]])
def test_a_task_with_other_data_has_another(name, change):
    base = FIXED.get(name, {})
    assert PROBLEMS[name](**base | change).digest() != PROBLEMS[name](**base).digest()


@pytest.mark.parametrize(
    ("name", "change"), [("invariant_logistic", {"noise": 3.0}), ("classification", {"hidden": 4})]
)
def test_what_is_no_data_leaves_it_as_it_is(name, change):
    base = FIXED[name]
    assert PROBLEMS[name](**base | change).digest() == PROBLEMS[name](**base).digest()
