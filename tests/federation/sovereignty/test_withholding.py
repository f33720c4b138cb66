"""No count from 1 to k − 1 leaves a site, and none follows by subtraction, whatever its table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.sovereignty.withholding import grouped, without_small_counts


@st.composite
def columns(draw, rows, parts):
    """The description of a column of a table with so many rows."""
    given = draw(st.integers(0, rows))
    counts = draw(st.lists(st.integers(0, given), max_size=3).filter(lambda some: sum(some) <= given))
    return {
        "kind": "numbers",
        "given": given,
        "missing": rows - given,
        "mean": 3.5,
        "deviation": 1.0,
        "categories": dict(zip("abc", counts, strict=False)),
        "parts": {"year": draw(columns(rows, False))} if parts else {},
        "day_first": None,
    }


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 40))
    some = draw(st.lists(st.booleans(), max_size=3))
    described = {f"column {n}": draw(columns(rows, parts)) for n, parts in enumerate(some)}
    return {"rows": rows, "positives": draw(st.integers(0, rows)), "columns": described, "pictures": None}


def counts_in(told):
    """All whole numbers in a description."""
    if isinstance(told, dict):
        return [count for value in told.values() for count in counts_in(value)]
    return [told] if isinstance(told, int) else []


def differences_in(rows, columns):
    """What follows by subtraction."""
    for column in columns.values():
        yield rows - column["given"]
        yield rows - column["missing"]
        if column["given"]:
            yield column["given"] - sum(column["categories"].values())
        yield from differences_in(rows, column["parts"])


def means_of(columns):
    for column in columns.values():
        yield column["given"], column["mean"]
        yield from means_of(column["parts"])


@given(table=tables(), smallest=st.integers(0, 12))
def test_a_description_has_no_small_count_and_no_mean_of_few_values(table, smallest):
    negatives = table["rows"] - table["positives"]
    if any(0 < count < smallest for count in (table["rows"], table["positives"], negatives)):
        with pytest.raises(Refused, match="fewer than smallest_count"):
            without_small_counts(table, smallest)
        return
    told = without_small_counts(table, smallest)
    assert not [count for count in counts_in(told) if 0 < count < smallest]
    assert not [count for count in differences_in(told["rows"], told["columns"]) if 0 < count < smallest]
    assert all(given or not mean for given, mean in means_of(told["columns"]))
    if smallest <= 1:
        assert {name: c["categories"] for name, c in told["columns"].items() if c["given"]} == {
            name: {value: n for value, n in c["categories"].items() if n >= smallest}
            for name, c in table["columns"].items()
            if c["given"]
        }


@given(numbers=st.lists(st.integers(0, 20), min_size=1, max_size=40), smallest=st.integers(0, 12))
def test_groups_have_the_same_sum_and_no_small_count(numbers, smallest):
    counts = np.array(numbers)
    if 0 < counts.sum() < smallest:
        with pytest.raises(Refused):
            grouped(counts, smallest)
        return
    found = grouped(counts, smallest)
    assert found.sum() == counts.sum()
    assert not ((found > 0) & (found < smallest)).any()
    assert set(np.flatnonzero(found)) <= set(np.flatnonzero(counts))  # a group stands where one of its rows is
    if smallest <= 1:
        np.testing.assert_array_equal(found, counts)
