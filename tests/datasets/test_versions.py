"""Versions of pictures equal those shifted and mirrored pixel by pixel."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso import datasets
from fedcso.core.errors import InvalidValue
from fedcso.core.task import Task
from fedcso.datasets import Examples, Images
from fedcso.datasets.rows import Rows
from fedcso.datasets.tables.sites import load_sites
from fedcso.datasets.versions import Variation, Versions
from fedcso.problems.auprc import auprc

PICTURES = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5)


def by_hand(picture: torch.Tensor, down: int, right: int, mirrored: bool) -> torch.Tensor:
    """Shift and mirror a picture pixel by pixel."""
    _, height, width = picture.shape
    found = torch.empty_like(picture)
    for row, column in itertools.product(range(height), range(width)):
        source = min(max(column - right, 0), width - 1)
        source = width - 1 - source if mirrored else source
        found[:, row, column] = picture[:, min(max(row - down, 0), height - 1), source]
    return found


def test_each_version_is_there_once():
    versions = Versions(PICTURES, Variation(mirrored=True, moved=1))
    wanted = [
        by_hand(picture, down, right, mirrored)
        for picture in PICTURES
        for mirrored in (False, True)
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    ]
    assert len(versions) == len(wanted) == 36
    assert torch.equal(versions[:], torch.stack(wanted))


@given(st.booleans(), st.integers(0, 3), st.data())
def test_versions_look_like_a_copy(mirrored, moved, data):
    versions = Versions(PICTURES, Variation(mirrored, moved))
    copy = versions[:]
    assert (len(versions), versions.shape, versions.dtype) == (len(copy), copy.shape, copy.dtype)
    which = torch.tensor(data.draw(st.lists(st.integers(0, len(copy) - 1), min_size=4, max_size=4))).reshape(2, 1, 2)
    assert torch.equal(versions[which], copy[which])
    assert torch.equal(versions[int(which[0, 0, 0])], copy[which[0, 0, 0]])


def test_rows_of_a_shared_array_have_versions_too():
    rows, variation = Rows(PICTURES, torch.tensor([1])), Variation(moved=1)
    assert torch.equal(Versions(rows, variation)[:], Versions(PICTURES[1:], variation)[:])


def test_labels_go_with_their_pictures():
    labels = torch.tensor([0, 1])
    found = Variation(mirrored=True).of(Examples(PICTURES, labels))
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert torch.equal(found.inputs[2], PICTURES[1])
    assert torch.equal(found.inputs[3], PICTURES[1].flip(-1))


def test_without_variation_the_data_are_not_changed():
    examples = Examples(PICTURES, torch.tensor([0, 1]))
    assert Variation().of(examples) is examples


def test_other_versions_have_another_fingerprint():
    examples = Examples(PICTURES, torch.tensor([0, 1]))
    problem = auprc().problem
    kinds = [Variation(), Variation(mirrored=True), Variation(moved=1), Variation(True, 1)]
    assert len({Task(problem, [kind.of(examples)]).digest() for kind in kinds}) == len(kinds)


@pytest.fixture
def pictures(monkeypatch):
    """Replace MNIST by 200 pictures of noise for training and 50 for testing."""
    rng = torch.Generator().manual_seed(0)
    parts = [
        Examples(torch.randint(256, (n, 1, 28, 28), generator=rng, dtype=torch.uint8), torch.arange(n) % 10)
        for n in (200, 50)
    ]
    monkeypatch.setitem(datasets.IMAGES, "mnist", lambda: Images(*parts))


def test_training_data_vary_and_held_out_data_do_not(pictures):
    plain, varied = (auprc(data="mnist", clients=2, net="linear", moved=moved) for moved in (0, 1))
    for before, after in zip(plain.clients, varied.clients, strict=True):
        assert torch.equal(after.inputs[4::9], before.inputs[:])
        assert torch.equal(after.labels, before.labels.repeat_interleave(9))
    assert torch.equal(varied.validation.inputs, plain.validation.inputs)
    assert torch.equal(varied.test.whole.inputs, plain.test.whole.inputs)


def test_pooled_data_vary_too(pictures):
    plain, varied = (
        auprc(data="mnist", clients=2, net="linear", train_on="pooled", mirrored=flip) for flip in (False, True)
    )
    assert torch.equal(varied.clients[0].inputs[::2], plain.clients[0].inputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"moved": -1}, "moved = -1 must be"),
        (
            {"moved": 2},
            r"moved = 2 must be left out for data other than pictures \(mnist, cifar10 or your own\)",
        ),
        ({"mirrored": True}, "mirrored = True must be left out for data other than pictures"),
    ],
)
def test_only_pictures_have_versions(options, message):
    with pytest.raises(InvalidValue, match=message):
        load_sites(data="digits", **options)
