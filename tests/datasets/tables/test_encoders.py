"""New rows as numbers by what was learnt, and what was learnt as JSON."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.tables.encoders import Categorical, Missing, Numeric, Preparation

SMALL = Preparation((Numeric("age", 40.0, 50.0, 10.0), Missing("age"), Categorical("sex", ("f", "m"))))


def test_new_rows_are_encoded_by_what_was_learnt():
    frame = pd.DataFrame({"sex": ["m", "x", None], "age": [60, None, "70"], "unknown": 0}, index=[7, 7, 9])
    assert SMALL.names == ["age", "age is missing", "sex = f", "sex = m", "sex = other", "sex is missing"]
    assert SMALL.apply(frame).tolist() == [[1, 0, 0, 1, 0, 0], [-1, 1, 0, 0, 1, 0], [2, 0, 0, 0, 0, 1]]


def test_no_rows_are_no_rows():
    assert SMALL.apply(pd.DataFrame({"sex": [], "age": []})).shape == (0, 6)


def test_a_missing_column_is_named():
    with pytest.raises(UnknownName, match=r"unknown column 'age'; did you mean ages\?"):
        SMALL.apply(pd.DataFrame({"sex": ["m"], "ages": [1]}))


def test_a_column_that_is_there_twice_is_named():
    with pytest.raises(FedcsoError, match="two columns are called 'age'"):
        SMALL.apply(pd.DataFrame([["m", 1, 2]], columns=["sex", "age", "age"]))


@pytest.mark.parametrize(
    "value", [np.inf, -np.inf, 2e30, "old", 10**400, 1j, [1], pd.Timestamp("2020-01-01"), "nan", "inf"]
)
def test_what_is_not_a_finite_number_is_named_with_its_row(value):
    frame = pd.DataFrame({"sex": ["m", "f"], "age": pd.Series([1.0, value], dtype=object)})
    with pytest.raises(FedcsoError, match=r"column 'age' holds '.*' in row 2; it must be a number, finite"):
        SMALL.apply(frame)


def test_dates_in_place_of_numbers_are_refused():
    with pytest.raises(FedcsoError, match="column 'age' holds '2020-01-01"):
        SMALL.apply(pd.DataFrame({"sex": ["m"], "age": pd.to_datetime(["2020-01-01"])}))


def test_numbers_far_from_all_in_training_stay_finite():
    near = Preparation((Numeric("x", 0.0, 0.0, 1e-140),))
    assert near.apply(pd.DataFrame({"x": [1e30, -1e30, 0.0]})).ravel().tolist() == [1e6, -1e6, 0]


# --------------------------------------------------------------------------------- JSON


def test_what_is_written_is_plain_json():
    written = json.loads(SMALL.to_json())
    assert written["encoders"][0] == {"encoder": "Numeric", "name": "age", "median": 40, "mean": 50, "std": 10}
    assert Preparation.from_json(SMALL.to_json()) == SMALL


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"encoders": 3}',
        '{"encoders": [3]}',
        '{"encoders": [{}]}',
        '{"encoders": [{"encoder": "Evil", "name": "x"}]}',
        '{"encoders": [{"encoder": "Missing"}]}',
        '{"encoders": [{"encoder": "Missing", "name": "x", "more": 1}]}',
        '{"encoders": [{"encoder": "Categorical", "name": "x", "categories": 5}]}',
        '{"encoders": [{"encoder": "Numeric", "name": "x", "median": 0, "mean": 0, "std": 0}]}',
        '{"encoders": [{"encoder": "Numeric", "name": "x", "median": NaN, "mean": 0, "std": 1}]}',
        '{"encoders": [{"encoder": "Numeric", "name": "x", "median": 0, "mean": "a", "std": 1}]}',
        "[" * 100_000,
    ],
)
def test_other_texts_are_refused(written):
    with pytest.raises(FedcsoError, match="not a preparation"):
        Preparation.from_json(written)


@pytest.mark.parametrize("std", [0.0, -1.0, math.inf, math.nan])
def test_a_deviation_must_be_positive(std):
    with pytest.raises(InvalidValue, match="x = "):
        Numeric("x", 0.0, 0.0, std)


def test_torch_gets_what_numpy_gets():
    frame = pd.DataFrame({"sex": ["m", "x"], "age": [60, None]})
    assert SMALL.encode(frame).dtype == np.float32
    assert torch.equal(SMALL.apply(frame), torch.from_numpy(SMALL.encode(frame)))
