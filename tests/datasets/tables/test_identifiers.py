"""Identifiers are detected, and measurements are not confused with them."""

import numpy as np
import pandas as pd
import pytest

from fedcso.datasets.tables.columns import kind
from fedcso.datasets.tables.identifiers import identifies, named_like_one

RNG = np.random.default_rng(0)
N = 200
ONE_SITE, FOUR_SITES = np.zeros(N, dtype=np.int64), np.repeat(np.arange(4), N // 4 if N % 4 else 50)
LARGE = RNG.permutation(10**6)[:N] + 10**6


def is_one(name, values, sites=ONE_SITE):
    column = pd.Series(values, name=name)
    return identifies(column, kind(column), sites[: len(column)])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("name", [f"patient {n}" for n in range(N)]),
        ("name", [f"patient {max(n, 15)}" for n in range(N)]),  # nearly all are different
        ("name", [f"patient {n}" if n % 3 else None for n in range(N)]),
        ("name", ["a", "b", "c"]),
        ("patient_id", LARGE),
        ("PatientID", LARGE.astype(float)),
        ("patient id", np.where(np.arange(N) % 5 == 0, np.nan, LARGE)),
        ("anything", np.arange(N)),  # they number the rows
        ("anything", RNG.permutation(N) + 5000),
    ],
)
def test_identifiers_are_detected(name, values):
    assert is_one(name, values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("salary", LARGE),  # all different, but they may measure something
        ("patient_id", RNG.integers(0, 50, N)),
        ("patient_id", LARGE[:20]),
        ("patient_id", RNG.normal(size=N)),
        ("colour", RNG.choice(["red", "green"], N)),
        ("code", RNG.choice([f"c{n}" for n in range(100)], N)),
        ("count", RNG.poisson(1000, N)),
        ("visit_id", pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N), "D")),
        ("two", ["a", "b"]),
    ],
)
def test_measurements_and_categories_are_not_identifiers(name, values):
    assert not is_one(name, values)


def test_row_numbers_that_restart_at_each_site_are_identifiers():
    sites = np.repeat(np.arange(3), 60)
    assert is_one("anything", np.tile(np.arange(60), 3), sites)
    assert is_one("patient_id", [f"p{n}" for n in np.tile(np.arange(60), 3)], sites)
    assert not is_one("diagnosis", [f"c{n}" for n in np.tile(np.arange(60), 3)], sites)


def test_categories_that_are_unique_at_small_sites_are_not_identifiers():
    assert not is_one("blood", ["A", "B"] * 50, np.repeat(np.arange(50), 2))


@pytest.mark.parametrize("name", ["id", "ID", "patient_id", "patientId", "PatientID", "row-nr", "Record No.", "MRN"])
def test_names_of_identifiers(name):
    assert named_like_one(name)


@pytest.mark.parametrize("name", ["idle", "paid", "width", "note", "monkey", "enrolment", ""])
def test_other_names(name):
    assert not named_like_one(name)
