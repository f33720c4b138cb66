"""Permutation importance: columns that decide come first, those that are not used have none."""

import numpy as np
import pytest

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.reports.importance import permutation_importance

RNG = np.random.default_rng(0)
LABELS = (RNG.random(600) < 0.2).astype(int)
SITES = np.array(["a", "b", "c"])[np.arange(600) % 3]
INPUTS = RNG.normal(size=(600, 5)) + LABELS[:, None] * np.array([2.0, 1.0, 1.0, 0.0, 0.0])
COLUMNS = {"unused": [4], "weak": [3], "pair": [1, 2], "strong": [0]}


def score(inputs):
    return inputs @ np.array([2.0, 1.0, 1.0, 0.1, 0.0])


def importance(columns=COLUMNS, **options):
    return permutation_importance(score, INPUTS, LABELS, SITES, columns, **options)


def test_columns_come_by_falling_importance():
    found = importance()
    assert [column.column for column in found][:2] == ["strong", "pair"]
    assert found[0].mean > 0.2
    assert found[0].spread > 0
    assert {column.column for column in found} == set(COLUMNS)


def test_a_column_that_the_model_does_not_use_has_none():
    unused = next(column for column in importance() if column.column == "unused")
    assert (unused.mean, unused.spread) == (0, 0)


def test_inputs_of_one_column_are_shuffled_together():
    """Their sum is all that counts: shuffled apart, a sum that is always 0 would no longer be."""
    inputs = np.column_stack([INPUTS[:, 0], INPUTS[:, 1], -INPUTS[:, 1]])
    (pair,) = permutation_importance(lambda x: x.sum(1), inputs, LABELS, SITES, {"pair": [1, 2]})
    assert abs(pair.mean) < 1e-3


def test_rows_are_shuffled_within_sites():
    """A column that is constant at every site is never changed, however much it differs between them."""
    inputs = np.column_stack([INPUTS[:, 0], (SITES == "a") * 9.0])
    (site,) = permutation_importance(lambda x: x.sum(1), inputs, LABELS, SITES, {"site": [1]})
    assert (site.mean, site.spread) == (0, 0)


def test_the_seed_determines_it_and_the_order_of_columns_does_not():
    assert importance() == importance()
    assert importance(seed=1) != importance()
    assert importance(dict(reversed(COLUMNS.items()))) == importance()


def test_inputs_stay_as_they_were():
    before = INPUTS.copy()
    importance(repeats=2)
    np.testing.assert_array_equal(INPUTS, before)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(FedcsoError, match="no positive"):
        permutation_importance(score, INPUTS, np.zeros(600), SITES, COLUMNS)
    with pytest.raises(InvalidValue, match="repeats"):
        importance(repeats=1)
