"""Every data set: found by its name, described by its file, in the form of its table."""

import pytest
import torch

from fedcso.core.errors import UnknownName
from fedcso.datasets import DATASETS, IMAGES, TABLES, Characters, Examples, Images, load, load_any
from fedcso.datasets.fetch.places import DataMissing

EVERY = [pytest.param(table, name, id=name) for table in TABLES for name in table]


@pytest.mark.parametrize(("table", "name"), EVERY)
def test_it_is_a_function_in_a_file_that_says_what_it_is(table, name):
    assert callable(table[name])
    assert len(table.module(name).__doc__.splitlines()[0]) > 20


def test_names_are_different():
    names = [name for table in TABLES for name in table]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", DATASETS)
def test_examples_have_a_label_each(name):
    try:
        inputs, labels = load(name)
    except DataMissing:
        pytest.skip(f"{name} has not been downloaded")
    assert len(inputs) == len(labels) > 0
    assert inputs.dtype == torch.float32
    assert labels.unique().tolist() == list(range(len(labels.unique())))
    assert load_any(name).summary() == (
        f"{len(labels)} examples of {'×'.join(map(str, inputs.shape[1:]))}, {len(labels.unique())} classes"
    )


def test_a_name_is_looked_for_in_all_tables(monkeypatch):
    images = Images(*(Examples(torch.zeros(n, 1, 4, 5), torch.arange(n) % 2) for n in (6, 3)))
    monkeypatch.setitem(IMAGES, "mine", lambda: images)
    assert load_any("mine") is images
    assert images.summary() == "pictures of 1×4×5 (6 train, 3 test), 2 classes"
    with pytest.raises(UnknownName, match=r"unknown dataset 'digitz'; did you mean digits\?"):
        load_any("digitz")


def test_characters_say_how_many_there_are():
    parts = (torch.zeros(n, 20, 28, 28, dtype=torch.uint8) for n in (3, 1, 2))
    assert Characters(*parts).summary() == "6 classes (3 train, 1 validation, 2 test) with 20 drawings of 28×28 each"


@pytest.mark.parametrize("name", ["mnist", "cifar10", "omniglot", "diamonds", "flchain"])
def test_what_is_missing_says_how_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCSO_DATA", str(tmp_path))
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataMissing, match=f"fedcso data get {name}") as caught:
        load_any(name)
    assert caught.value.download is not None
