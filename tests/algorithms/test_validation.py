"""Hyper-parameters are checked at construction; messages name the field, the value and what is allowed."""

import math
from dataclasses import fields

import pytest
import torch

from fedcso.algorithms import ALGORITHMS
from fedcso.core.errors import InvalidValue

POSITIVE = "a finite number above 0"
FRACTION = "a number in (0, 1]"
COUNT = "a whole number, at least 1"
ALLOWED = {
    "learning_rate": POSITIVE,
    "momentum": FRACTION,
    "tracking": FRACTION,
    "normalising": FRACTION,
    "dual_rate": POSITIVE,
    "period": COUNT,
    "large_batch": COUNT,
    "proximity": POSITIVE,
    "stage_steps": COUNT,
}
"""The allowed values of hyper-parameters by name; others are tested with nonsense only."""

NONSENSE = ["fast", None, []]

REFUSED = {
    POSITIVE: [
        0,
        0.0,
        -0.1,
        math.nan,
        math.inf,
        "fast",
        None,
        True,
        torch.tensor([0.1, -0.1]),
        lambda t: -1.0,
    ],
    FRACTION: [0, 0.0, -0.1, 1.1, math.nan, "half", None, True, torch.tensor([0.5, 1.5]), lambda t: 2.0],
    COUNT: [0, -1, 1.5, "ten", None, True],
}
ACCEPTED = {
    POSITIVE: [1e-9, 1, 1e9, torch.tensor([0.1, 0.2]), lambda t: 1 / (1 + t)],
    FRACTION: [1e-9, 0.5, 1, 1.0, torch.tensor([0.5, 1.0]), lambda t: 1 / (1 + t)],
    COUNT: [1, 1000],
}

EVERY = [(name, field.name) for name, method in ALGORITHMS.items() for field in fields(method)]
FIELDS = [(name, field) for name, field in EVERY if field in ALLOWED]


@pytest.mark.parametrize(("name", "field"), EVERY)
def test_nonsense_is_refused_with_the_field(name, field):
    for value in NONSENSE:
        with pytest.raises(InvalidValue, match=f"^{field} = "):
            ALGORITHMS[name](**{field: value})


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_values_out_of_range_are_refused(name, field):
    allowed = ALLOWED[field]
    for value in REFUSED[allowed]:
        with pytest.raises(InvalidValue) as caught:
            ALGORITHMS[name](**{field: value})
        told = value(0) if callable(value) else value
        assert str(caught.value) == f"{field} = {told!r} must be {allowed}"


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_values_in_range_are_taken(name, field):
    for value in ACCEPTED[ALLOWED[field]]:
        assert getattr(ALGORITHMS[name](**{field: value}), field) is value


@pytest.mark.parametrize("name", ALGORITHMS)
def test_defaults_are_valid(name):
    ALGORITHMS[name]()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_settings_can_be_compared_and_not_changed(name):
    method = ALGORITHMS[name]
    assert method() == method()
    with pytest.raises(AttributeError):
        method().learning_rate = 1.0
