"""No count from 1 to k − 1 leaves a site, whatever its table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.sovereignty.withholding import grouped, without_small_counts

COUNT = st.integers(0, 30)
COLUMN = st.builds(
    lambda given, missing, categories, parts: {
        "kind": "numbers",
        "given": given,
        "missing": missing,
        "mean": 3.5,
        "deviation": 1.0,
        "categories": categories,
        "parts": parts,
        "day_first": None,
    },
    COUNT,
    COUNT,
    st.dictionaries(st.text(max_size=3), COUNT, max_size=3),
    st.just({}),
)
DATES = st.builds(lambda column, part: column | {"parts": {"year": part}}, COLUMN, COLUMN)
TABLES = st.builds(
    lambda rows, positives, columns: {"rows": rows, "positives": positives, "columns": columns, "pictures": None},
    COUNT,
    COUNT,
    st.dictionaries(st.text(max_size=3), COLUMN | DATES, max_size=3),
)


def counts_in(told):
    """All whole numbers in a description."""
    if isinstance(told, dict):
        return [count for value in told.values() for count in counts_in(value)]
    return [told] if isinstance(told, int) else []


def means_of(columns):
    for column in columns.values():
        yield column["given"], column["mean"]
        yield from means_of(column["parts"])


@given(table=TABLES, smallest=st.integers(0, 12))
def test_a_description_has_no_small_count_and_no_mean_of_few_values(table, smallest):
    if any(0 < table[name] < smallest for name in ("rows", "positives")):
        with pytest.raises(Refused, match="fewer than smallest_count"):
            without_small_counts(table, smallest)
        return
    told = without_small_counts(table, smallest)
    assert not [count for count in counts_in(told) if 0 < count < smallest]
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
