"""Folders of images: everything in them is used, named in a note, or refused."""

import numpy as np
import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.characters import ImageForm
from fedcso.datasets.image_folders import images_by_class, images_to_classify, read_images
from tests.own_images import Image, picture, write_classes


def names(files, folder):
    return [file.relative_to(folder).as_posix() for file in files]


# ------------------------------------------------------------------------------------------ which files


def test_every_subfolder_is_a_class(tmp_path):
    write_classes(tmp_path, 2, 2)
    picture(1, 5).save(tmp_path / "class01" / "photo.JPG", format="JPEG")
    classes, notes = images_by_class(tmp_path)
    assert {name: names(files, tmp_path) for name, files in classes.items()} == {
        "class00": ["class00/0.png", "class00/1.png"],
        "class01": ["class01/0.png", "class01/1.png", "class01/photo.JPG"],
    }
    assert notes == []


def test_files_that_are_clearly_no_data_are_named_and_the_table_is_no_surprise(tmp_path):
    write_classes(tmp_path, 2, 2)
    for name in ("README.md", "class00/.DS_Store", "class00/._0.png", "class01/Thumbs.db", "classes.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / ".git").mkdir()
    picture(0, 9).save(tmp_path / "class00" / "license.png")
    classes, notes = images_by_class(tmp_path, [tmp_path / "classes.csv"])
    assert names(classes["class00"], tmp_path) == ["class00/0.png", "class00/1.png", "class00/license.png"]
    assert notes == [
        f"left out of {tmp_path}, because they are not images: .git, README.md, class00/.DS_Store and 2 more"
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda f: (f / "class00" / "notes.txt").write_text(""),
            r"class00/notes\.txt is not an image: save it as \.png",
        ),
        (lambda f: (f / "data.csv").write_text(""), r"data\.csv is not an image: .* move it out of the folder"),
        (lambda f: picture(0, 0).save(f / "0.png"), r"0\.png is not in the folder of a class"),
        (lambda f: (f / "empty").mkdir(), "empty has no images: put the images of the class there, or remove"),
        (lambda f: (f / "class01" / "deep").mkdir(), "class01/deep is a folder inside that of a class: move"),
    ],
)
def test_what_is_out_of_place_is_refused(tmp_path, make, message):
    make(write_classes(tmp_path, 2, 2))
    with pytest.raises(FedcsoError, match=message):
        images_by_class(tmp_path)


def test_a_folder_without_classes_is_refused(tmp_path):
    with pytest.raises(FedcsoError, match="is empty: make a folder in it for each class"):
        images_by_class(tmp_path)
    with pytest.raises(FedcsoError, match="nowhere is not a folder: give a folder of images"):
        images_by_class(tmp_path / "nowhere")


def test_images_to_classify_are_flat_or_in_subfolders_whose_names_may_be_classes(tmp_path):
    write_classes(tmp_path, [0, 3], 2)
    found = images_to_classify(tmp_path, ["class00", "class03", "class07"])
    assert names(found.files, tmp_path) == ["class00/0.png", "class00/1.png", "class03/0.png", "class03/1.png"]
    assert (found.labels, found.notes) == (["class00"] * 2 + ["class03"] * 2, [])
    assert images_to_classify(tmp_path, ["other"]).labels == []
    partly = images_to_classify(tmp_path, ["class03"])
    assert partly.labels == []
    assert partly.notes == [f"accuracy is not measured: the folder 'class00' in {tmp_path} is not called like a class"]
    flat = images_to_classify(tmp_path / "class00", ["class00"])
    assert (names(flat.files, tmp_path), flat.labels) == (["class00/0.png", "class00/1.png"], [])


def test_there_must_be_images_to_classify_and_no_deep_folders(tmp_path):
    with pytest.raises(FedcsoError, match="has no images: put those to classify there"):
        images_to_classify(tmp_path, [])
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(FedcsoError, match="a/b is a folder inside a folder: move its images"):
        images_to_classify(tmp_path, [])


# ------------------------------------------------------------------------------------------ their pixels


def files_in(folder):
    return sorted(folder.glob("*/*.*"))


def test_images_are_reduced_by_averaging_over_areas(tmp_path):
    array = np.zeros((40, 40), dtype=np.uint8)
    array[:4, :8] = 100  # two areas of 4×4; the second is half bright
    array[:4, 6:8] = 0
    Image.fromarray(array).save(tmp_path / "a.png")
    pixels, form, notes = read_images([tmp_path / "a.png"], 10)
    assert pixels.dtype == torch.uint8
    assert pixels.shape == (1, 10, 10)
    assert pixels[0, 0, :3].tolist() == [100, 50, 0]
    assert pixels.sum() == 150
    assert form == ImageForm(10, "grey", False)
    assert notes == ["1 images are read in grey, as 10×10 pixels"]


def test_images_in_colour_have_an_axis_of_channels(tmp_path):
    array = np.zeros((16, 16, 3), dtype=np.uint8)
    array[..., 0], array[..., 2] = 10, 30
    Image.fromarray(array).save(tmp_path / "a.png")
    pixels, form, _ = read_images([tmp_path / "a.png"], 16)
    assert pixels.shape == (1, 3, 16, 16)
    assert pixels.flatten(2).unique(dim=2).squeeze().tolist() == [10, 0, 30]
    assert (form.channels, form.depth) == ("colour", 3)


def test_unequal_channels_are_refused_unless_one_is_chosen(tmp_path):
    write_classes(tmp_path, 1, 2)
    write_classes(tmp_path, [1], 1, colour=True)
    with pytest.raises(
        FedcsoError, match=r"class00/0\.png is grey and .*class01/0\.png is in colour: convert them, or .* --channels"
    ):
        read_images(files_in(tmp_path), 16)
    for channels, shape, converted in (("grey", (3, 16, 16), 1), ("colour", (3, 3, 16, 16), 2)):
        pixels, form, notes = read_images(files_in(tmp_path), 16, channels)
        assert pixels.shape == shape
        assert form.channels == channels
        assert f"{converted} images are converted to {channels}" in notes


def test_images_that_are_not_square_are_stretched_with_a_note(tmp_path):
    Image.fromarray(np.repeat(np.arange(32, dtype=np.uint8)[:, None], 64, 1)).save(tmp_path / "a.png")
    pixels, _, notes = read_images([tmp_path / "a.png"], 32)
    assert pixels[0, :, 5].tolist() == list(range(32))
    assert notes[1:] == ["1 images are not square and are stretched"]


def test_inverted_images_have_dark_and_bright_exchanged(tmp_path):
    write_classes(tmp_path, 1, 1)
    plain, _, _ = read_images(files_in(tmp_path), 16)
    inverted, form, _ = read_images(files_in(tmp_path), 16, inverted=True)
    assert torch.equal(inverted, 255 - plain)
    assert form.inverted
