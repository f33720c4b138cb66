"""The embedded few-shot data are always the same, and neither trivial nor hopeless."""

import unicodedata
from importlib import import_module

import numpy as np
import pytest
import torch

from fedcso.core import atomic
from fedcso.datasets import handwriting, load_characters
from fedcso.datasets.characters import check
from fedcso.datasets.fetch import places

module = import_module("fedcso.datasets.glyphs")  # the package has a function of this name


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCSO_CACHE", str(cache))
        made = load_characters("glyphs")
        patch.setattr(module, "_make", pytest.fail)
        again = load_characters("glyphs")
    assert all(torch.equal(*pair) for pair in zip(made, again, strict=True))  # the second comes from the cache
    (file,) = cache.glob("*.npz")
    places.cache_folder().mkdir(parents=True, exist_ok=True)
    atomic.write(places.cache_folder() / file.name, file.read_bytes())  # other tests need not make them again
    return made


@pytest.fixture(scope="module")
def letters():
    return module.distinct_letters()


def test_shapes(characters, letters):
    for split, images in characters._asdict().items():
        check(images, module.DRAWINGS)
        assert images.shape == (len(letters[split]), 20, 28, 28)
        assert images.dtype == torch.uint8


def test_there_are_as_many_classes_as_few_shot_learning_needs(characters):
    train, validation, test = (len(images) for images in characters)
    total = train + validation + test
    assert total > 1000
    assert abs(train / total - 0.63) < 0.05
    assert abs(validation / total - 0.11) < 0.05
    assert abs(test / total - 0.26) < 0.05


def test_splits_share_neither_letters_nor_scripts(letters):
    everything = [letter for split in letters.values() for letter in split]
    assert len(set(everything)) == len(everything)
    scripts = [{unicodedata.name(letter).split()[0] for letter in split} for split in letters.values()]
    assert set.union(*scripts) == {script for names in module.SCRIPTS.values() for script in names}
    assert sum(map(len, scripts)) == len(set.union(*scripts))


def test_letters_that_look_alike_are_there_once(letters):
    assert "A" in letters["train"]
    assert not {"Α", "А"} & {letter for split in letters.values() for letter in split}


def test_the_drawings_are_the_same_every_time(characters, letters):
    rng = torch.Generator().manual_seed(0)
    first = module._drawings(letters["train"][:5], rng)
    assert torch.equal(first, characters.train[:5])


def test_every_drawing_has_ink_and_room_around_it(characters):
    for images in characters:
        coverage = (images > 127).float().mean((-1, -2))
        assert coverage.min() > 0.005
        assert coverage.max() < 0.7
        assert images.amax((-1, -2)).min() > 127


def test_no_two_drawings_of_a_letter_are_the_same(characters):
    flat = characters.validation.flatten(2)
    for drawings in flat:
        assert len(torch.unique(drawings, dim=0)) == module.DRAWINGS


def nearest_mean_accuracy(images, ways=5, shots=1, tasks=400):
    """Return the accuracy of a nearest-mean classifier on raw pixels."""
    rng = np.random.default_rng(0)
    pixels = images.flatten(2).float() / 255
    right = 0.0
    for _ in range(tasks):
        classes = rng.choice(len(pixels), ways, replace=False)
        drawings = pixels[torch.from_numpy(classes)][:, torch.from_numpy(rng.permutation(20))]
        nearest = torch.cdist(drawings[:, shots], drawings[:, :shots].mean(1)).argmin(1)
        right += (nearest == torch.arange(ways)).float().mean().item()
    return right / tasks


def test_raw_pixels_help_but_are_not_enough(characters):
    for images in characters:
        assert 0.35 < nearest_mean_accuracy(images) < 0.7


def test_more_shots_help(characters):
    assert nearest_mean_accuracy(characters.test, shots=5) > nearest_mean_accuracy(characters.test) + 0.1


def test_without_distortion_a_drawing_is_the_print(monkeypatch):
    for name in ("ROTATION", "SHEAR", "SCALE", "SHIFT", "BEND"):
        monkeypatch.setattr(handwriting, name, 0.0)
    monkeypatch.setattr(handwriting, "STROKE", (0.0, 0.0))
    ink = np.zeros((64, 64), dtype=bool)
    ink[16:48, 24:40] = True
    (drawing,) = handwriting.draw(torch.from_numpy(handwriting.distance_field(ink))[None], torch.Generator())
    assert (drawing[8:20, 11:17] == 255).all()
    assert drawing.float().mean() / 255 == pytest.approx(ink.mean(), rel=0.1)
    assert drawing[:6].max() == drawing[22:].max() == drawing[:, :9].max() == drawing[:, 19:].max() == 0


def test_a_distance_field_is_the_distance_from_the_edge():
    ink = np.zeros((7, 7), dtype=bool)
    ink[:, 3:] = True
    assert handwriting.distance_field(ink)[0].tolist() == [-3, -2, -1, 1, 2, 3, 4]
