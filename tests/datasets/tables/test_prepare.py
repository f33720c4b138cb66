"""Columns are encoded as computed by hand; any table gives no NaN, and the same after saving as JSON."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.columns import kind
from fedcso.datasets.tables.encoders import Categorical, Preparation
from fedcso.datasets.tables.prepare import prepare


def prepared(**columns):
    """Return the preparation for these columns, their encoding by name, and the notes."""
    frame = pd.DataFrame(columns)
    preparation, notes = prepare(frame, {name: kind(frame[name]) for name in frame.columns})
    encoded = preparation.apply(frame)
    assert encoded.dtype == torch.float32
    assert encoded.shape == (len(frame), len(preparation.names))
    return preparation, dict(zip(preparation.names, encoded.T.tolist(), strict=True)), notes


# --------------------------------------------------------------------------------- by hand


def test_numbers_are_standardised_and_gaps_filled_with_the_median():
    _, encoded, notes = prepared(age=[1.0, None, 3.0, 8.0])
    filled = np.array([1.0, 3.0, 3.0, 8.0])
    assert encoded["age"] == pytest.approx(((filled - filled.mean()) / filled.std()).tolist())
    assert encoded["age is missing"] == [0, 1, 0, 0]
    assert notes == []


def test_without_missing_values_there_is_no_column_for_them():
    assert list(prepared(age=[1, 2, 3])[1]) == ["age"]


def test_each_category_other_categories_and_missing_values_have_a_column():
    preparation, encoded, _ = prepared(blood=["B", "A", None, "A", " B "])
    assert encoded == {
        "blood = A": [0, 1, 0, 1, 0],
        "blood = B": [1, 0, 0, 0, 1],
        "blood = other": [0, 0, 0, 0, 0],
        "blood is missing": [0, 0, 1, 0, 0],
    }
    new = preparation.apply(pd.DataFrame({"blood": ["A", "AB", None, "", np.nan]}))
    assert new.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    "values", [[True, False, True], ["yes", "no", "yes"], ["TRUE", "False", "true"], [1, 0, 1], ["Y", "n", 1]]
)
def test_yes_and_no_are_one_column_of_numbers(values):
    _, encoded, _ = prepared(smokes=values)
    assert encoded == prepared(smokes=[1, 0, 1])[1]
    _, encoded, _ = prepared(smokes=[*values, None])
    assert list(encoded) == ["smokes", "smokes is missing"]
    assert encoded["smokes is missing"] == [0, 0, 0, 1]


def test_the_most_frequent_categories_are_kept():
    values = [f"c{number:02}" for number in range(60) for _ in range(2 if number < 30 else 3)]
    preparation, encoded, notes = prepared(code=values)
    (encoder,) = preparation.encoders
    assert encoder.categories == tuple(f"c{number:02}" for number in [*range(20), *range(30, 60)])
    assert sum(encoded["code = other"]) == 20
    assert notes == ["code: of 60 categories the 50 most frequent are kept, the rest is 'other'"]


def test_a_category_called_other_is_other():
    assert prepared(c=["other", "a", "a"])[0].names == ["c = a", "c = other", "c is missing"]


IDENTIFIER = "left out, because it looks like an identifier; --columns keeps the columns it names"


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([7, 7, 7], "always 7, left out"),
        ([0.1] * 7, "always 0.1, left out"),  # the mean of these is not 0.1 exactly
        ([1e9, 1e9, 1e9 + 1e-6], "always 1e+09, left out"),
        ([0.0, 5e-324, 0.0], "always 0, left out"),
        ([0.0, 1e-155, 0.0], "always 0, left out"),
        ([None, None, None], "left out, the training rows have no value"),
        (["", " ", None], "left out, the training rows have no value"),
        (["x", "x", "x"], "always 'x', left out"),
        (["x", "y", "z"], IDENTIFIER),
        (["x", None, "y", "z"], IDENTIFIER),
        (["2020-01-31"] * 3, "always the same date, left out"),
    ],
)
def test_uninformative_columns_are_left_out_with_a_note(values, note):
    _, encoded, notes = prepared(useless=values, useful=range(len(values)))
    assert list(encoded) == ["useful"]
    assert notes == [f"useless: {note}"]


def test_a_constant_column_with_missing_values_is_encoded_as_missing():
    _, encoded, notes = prepared(seen=[1, None, 1])
    assert encoded == {"seen is missing": [0, 1, 0]}
    assert notes == ["seen: always 1, left out but for whether it is missing"]


def test_whole_numbers_that_are_all_different_are_noted():
    _, encoded, notes = prepared(salary=np.arange(100) ** 2, score=np.arange(100) / 7)
    assert list(encoded) == ["salary", "score"]
    advice = "leave it out with --drop salary if it identifies rows"
    assert notes == [f"salary: whole numbers that are all different; {advice}"]


def test_if_no_column_is_left_the_error_gives_the_reasons():
    with pytest.raises(FedcsoError, match=r"no column is left to learn from \(a: always 1, left out; b: always 'x'"):
        prepared(a=[1, 1], b=["x", "x"])


# --------------------------------------------------------------------------------- kinds of columns


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.5, None, 3], dtype="Float64"),
        pd.Series([1, 2, 3], dtype="uint8"),
        pd.Series([Decimal("1.5"), None, Decimal(3)], dtype=object),
        pd.Series([1, 2.5, None], dtype=object),
        pd.Series([None, None], dtype=object),
        pd.Series([np.nan, np.nan]),
        pd.Series([True, False]),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([True, None], dtype=object),
        pd.Series(["yes", "No", None]),
        pd.Series(["yes", 0, True, "N"], dtype=object),
        pd.Series(["t", "f"], dtype="category"),
    ],
)
def test_numbers(column):
    assert kind(column) == "numbers"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype="string"),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2], dtype="category"),
        pd.Series(["a", 1, 2.5, True], dtype=object),
        pd.Series(["yes", "no", "unknown"]),
        pd.Series(["f", "y"]),
        pd.Series(["2020-01-01", "soon"]),
    ],
)
def test_categories(column):
    assert kind(column) == "categories"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2020-01-31", None])),
        pd.Series([pd.Timestamp("2020-01-31").date()], dtype=object),
        pd.Series(pd.period_range("2020-01", periods=2, freq="M")),
        pd.Series(["2020-01-31", None, "2021-12-01"]),
        pd.Series(["2020/1/31"]),
        pd.Series(["2020-01-31 12:30:00"]),
        pd.Series(["2020-01-31T12:30:00Z"]),
        pd.Series(["31.01.2020", "1.2.21"]),
        pd.Series(["1/31/2020 11:59 PM"]),
        pd.Series(pd.to_datetime(["2020-01-31"])).astype("category"),
    ],
)
def test_dates(column):
    assert kind(column) == "dates"


@pytest.mark.parametrize(
    "column", [[[1, 2], [3]], [{"a": 1}, None], [1j, 2j], [b"a", b"b"], [pd.Timedelta(days=3)], [datetime.time(12, 30)]]
)
def test_other_types_are_refused(column):
    with pytest.raises(FedcsoError, match=r"column 'odd' holds .* it must be numbers, text, truth .* --drop odd"):
        kind(pd.Series(column, name="odd", dtype=object))


# --------------------------------------------------------------------------------- any table

numeric = st.lists(st.none() | st.floats(-1e30, 1e30), min_size=6, max_size=6)
whole = st.lists(st.none() | st.integers(-(2**53), 2**53), min_size=6, max_size=6)
textual = st.lists(st.none() | st.text("abc ", max_size=2), min_size=6, max_size=6)
truths = st.lists(st.none() | st.booleans(), min_size=6, max_size=6)
tables = st.dictionaries(st.text(min_size=1, max_size=3), numeric | whole | textual | truths, min_size=1, max_size=4)


@given(tables, tables)
def test_any_table_gives_finite_numbers_and_the_same_from_json(columns, others):
    frame = pd.DataFrame(columns)
    try:
        preparation, _ = prepare(frame, {name: kind(frame[name]) for name in frame.columns})
    except FedcsoError as error:
        assert "no column is left" in str(error)  # noqa: PT017
        return
    encoded = preparation.apply(frame)
    assert encoded.isfinite().all()
    assert encoded.abs().max() <= math.sqrt(6) + 1e-3  # no row of n is further than √n deviations from the mean
    again = Preparation.from_json(preparation.to_json())
    assert again == preparation
    assert torch.equal(again.apply(frame), encoded)
    gaps = pd.DataFrame({name: [None] * 2 for name in frame.columns})
    assert preparation.apply(gaps).isfinite().all()
    for encoder in preparation.encoders:
        if isinstance(encoder, Categorical):
            assert (encoder.encode(frame[encoder.name]).sum(1) == 1).all()
    new = pd.DataFrame({name: others.get(name, [None] * 6) for name in frame.columns})
    try:
        assert again.apply(new).isfinite().all()
    except FedcsoError as error:
        assert "it must be a number" in str(error)  # noqa: PT017


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(columns, random):
    frame = pd.DataFrame(columns)
    order = random.sample(range(6), 6)
    kinds = {name: kind(frame[name]) for name in frame.columns}
    try:
        preparation, notes = prepare(frame, kinds)
    except FedcsoError:
        return
    other, same_notes = prepare(frame.iloc[order], kinds)
    assert same_notes == notes
    assert other.names == preparation.names
    torch.testing.assert_close(other.apply(frame), preparation.apply(frame))
