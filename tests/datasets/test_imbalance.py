"""Positives are made rare: exact numbers, chosen by the seed, and nothing else changes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import InvalidValue
from fedcso.datasets.imbalance import binarise, thin_positives

binary = st.lists(st.integers(0, 1), max_size=60).map(lambda values: torch.tensor(values, dtype=torch.int64))


def test_some_labels_against_the_rest():
    labels = torch.tensor([0, 1, 2, 3, 2, 1, 0])
    made = binarise(labels, [2, 0])
    assert made.tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert made.dtype == torch.int64
    assert labels.tolist() == [0, 1, 2, 3, 2, 1, 0]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=40), st.sets(st.integers(0, 4), min_size=1))
def test_a_label_is_positive_if_and_only_if_it_is_named(labels, positive):
    if not positive < set(labels):
        with pytest.raises(InvalidValue, match="positive = "):
            binarise(torch.tensor(labels), sorted(positive))
        return
    assert binarise(torch.tensor(labels), sorted(positive)).tolist() == [int(label in positive) for label in labels]


@pytest.mark.parametrize("positive", [[], [7], [0, 7], [0, 1, 2], [-1]])
def test_labels_that_are_not_there_or_all_are_refused_with_those_there_are(positive):
    with pytest.raises(InvalidValue, match=r"some, not all, of the labels there are: \[0, 1, 2\]"):
        binarise(torch.tensor([0, 1, 2]), positive)


@given(binary, st.floats(0, 1, exclude_max=True), st.integers(0, 3))
def test_exactly_that_share_is_removed_and_the_rest_stays_in_order(labels, removed, seed):
    positives = int(labels.sum())
    number = round(removed * positives)
    if positives and number == positives:
        with pytest.raises(InvalidValue, match=f"smaller, so that at least one of the {positives} positives is left"):
            thin_positives(labels, removed, seed)
        return
    kept = thin_positives(labels, removed, seed)
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert int(labels[kept].sum()) == positives - number
    assert int((labels[kept] == 0).sum()) == int((labels == 0).sum())


def test_the_seed_decides_which():
    labels = torch.arange(200) % 2
    assert thin_positives(labels, 0.8, 1).tolist() == thin_positives(labels, 0.8, 1).tolist()
    assert thin_positives(labels, 0.8, 1).tolist() != thin_positives(labels, 0.8, 2).tolist()
    counts = torch.stack([labels.new_zeros(200).index_fill(0, thin_positives(labels, 0.8, s), 1) for s in range(50)])
    assert counts[:, 1::2].sum(0).min() > 0  # each positive can be kept


@pytest.mark.parametrize("removed", [-0.1, 1, 1.0, 1.5, float("nan"), True, "half", None])
def test_an_invalid_share_is_refused(removed):
    with pytest.raises(InvalidValue, match=r"removed = .* in \[0, 1\)"):
        thin_positives(torch.tensor([0, 1]), removed, 0)


def test_other_labels_are_refused():
    with pytest.raises(InvalidValue, match=r"labels = 2 .* 0 or 1"):
        thin_positives(torch.tensor([0, 1, 2]), 0.5, 0)
