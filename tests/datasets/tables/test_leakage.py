"""Warnings of data leakage are given if, and only if, there is a reason."""

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.datasets.tables.columns import kind
from fedcso.datasets.tables.leakage import (
    copies_across_parts,
    copies_across_sites,
    picture_prints,
    row_prints,
    telling_columns,
)

RNG = np.random.default_rng(0)
N = 400
LABELS = (np.arange(N) % 5 == 0).astype(int)


def told(labels=LABELS, **columns):
    frame = pd.DataFrame(columns)
    return telling_columns(frame, {name: kind(frame[name]) for name in frame.columns}, labels)


@pytest.mark.parametrize(
    "values",
    [
        LABELS,
        1 - LABELS,
        LABELS + RNG.normal(0, 0.1, N),
        np.where(LABELS, "discharged", "at home"),
        np.where(LABELS, RNG.choice(["a", "b"], N), RNG.choice(["c", "d", "e"], N)),
        np.where(LABELS, "yes", "no"),
        pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(1000 * LABELS + RNG.integers(0, 99, N), "D")),
    ],
    ids=["copy", "opposite", "noisy", "category", "categories", "yes", "dates"],
)
def test_a_column_that_nearly_determines_the_label_is_reported(values):
    (note,) = told(fine=RNG.normal(size=N), outcome=values)
    assert note.startswith("outcome: alone it nearly gives the label (AUROC ")
    assert note.endswith("leave it out with --drop outcome if it is not known when the model is used")


def test_a_column_whose_missing_values_determine_the_label_is_reported():
    (note,) = told(died_on=np.where(LABELS, RNG.normal(size=N), np.nan))
    assert note.startswith("died_on: whether it is missing nearly gives the label (AUROC 1.000)")


def test_ordinary_columns_are_not_reported():
    codes = [f"c{n}" for n in RNG.integers(0, 100, N)]
    assert told(good=LABELS + RNG.normal(0, 0.5, N), code=codes, empty=np.full(N, np.nan)) == []


def test_too_few_rows_give_no_warning():
    few = np.zeros(N, dtype=int)
    few[:9] = 1
    assert told(labels=few, outcome=few) == []
    few[9] = 1
    assert len(told(labels=few, outcome=few)) == 1


def test_large_tables_are_sampled_but_rare_labels_are_kept():
    labels = (np.arange(60_000) % 3000 == 0).astype(int)
    assert len(told(labels=labels, outcome=labels)) == 1


# --------------------------------------------------------------------------------- copies

FRAME = pd.DataFrame({"x": RNG.normal(size=50), "c": RNG.choice(["a", None], 50), "n": RNG.integers(0, 9, 50)})
PARTS = {"train": np.arange(30), "validation": np.arange(30, 40), "test": np.arange(40, 50)}


def with_copies(*pairs):
    frame = FRAME.copy()
    for copy, original in pairs:
        frame.iloc[copy] = frame.iloc[original]
    return row_prints(frame, LABELS[:50] * 0)


def test_unique_rows_give_no_warning():
    assert copies_across_parts(with_copies(), PARTS) == []
    assert copies_across_parts(with_copies((1, 2), (31, 32), (41, 42)), PARTS) == []  # within a part


def test_copies_in_two_parts_are_counted():
    validation, test = copies_across_parts(with_copies((35, 3), (45, 3), (46, 36), (47, 48)), PARTS)
    assert validation.startswith("1 of 10 validation rows are copies of rows in another part")
    assert test.startswith("2 of 10 test rows are copies of rows in another part")


def test_a_row_with_another_label_is_not_a_copy():
    frame = pd.concat([FRAME, FRAME], ignore_index=True)
    labels = np.repeat([0, 1], 50)
    assert len(np.unique(row_prints(frame, labels))) == 100


def test_rows_of_few_values_are_equal_by_chance():
    frame = pd.DataFrame({"a": RNG.integers(0, 3, 100), "b": RNG.integers(0, 3, 100)})
    assert len(np.unique(row_prints(frame, np.zeros(100, dtype=int)))) == 100


def test_a_table_in_which_every_row_is_repeated_has_copies():
    repeated = pd.concat([FRAME] * 5, ignore_index=True)
    assert len(np.unique(row_prints(repeated, np.zeros(250, dtype=int)))) == 50


def test_copies_at_two_sites_are_counted():
    places = np.repeat([0, 1, 2], [20, 20, 10])
    assert copies_across_sites(with_copies((1, 2)), places, ["east", "north", "west"]) == []
    (note,) = copies_across_sites(with_copies((45, 2), (46, 3)), places, ["east", "north", "west"])
    assert note.startswith("4 rows are copies of rows at another site (east, west)")


def test_pictures_are_compared_by_their_pixels():
    pictures = torch.randint(0, 256, (4, 1, 3, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pictures[3] = pictures[0]
    prints = picture_prints(pictures, np.array([0, 0, 1, 0]))
    assert prints[0] == prints[3]
    assert len(set(prints.tolist())) == 3
    assert len(set(picture_prints(pictures, np.array([0, 0, 1, 1])).tolist())) == 4
