"""A user's own classes: split by the seed or by a table, with equally many images of each."""

import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.image_folders import read_images
from fedcso.datasets.own_classes import load_own_classes
from tests.own_images import write_classes

REST = ("validation", "train", "test")


def prints(images):
    """Return each image of a part as bytes, in a list for each class."""
    return [[image.numpy().tobytes() for image in some] for some in images]


def written(folder):
    """Return the images of every class in a folder as bytes."""
    return {
        place.name: {image.numpy().tobytes() for image in read_images(sorted(place.iterdir()), 16)[0]}
        for place in sorted(folder.iterdir())
        if place.is_dir()
    }


def classes_in(source, folder):
    """Return the names of the classes of each part, recognised by their images."""
    known = written(folder)
    return {
        part: [name for some in prints(images) for name, those in known.items() if set(some) <= those]
        for part, images in source.characters._asdict().items()
    }


def test_classes_are_split_by_the_seed_and_every_image_is_used(tmp_path):
    write_classes(tmp_path, 10, 3)
    source = load_own_classes(tmp_path, 16)
    assert [tuple(images.shape) for images in source.characters] == [(6, 3, 16, 16), (2, 3, 16, 16), (2, 3, 16, 16)]
    parts = classes_in(source, tmp_path)
    assert sorted(name for some in parts.values() for name in some) == [f"class{n:02}" for n in range(10)]
    assert source.holders == {}
    assert source.notes == [
        "30 images are read in grey, as 16×16 pixels",
        "10 classes: 6 for training, 2 for validation, 2 for testing (three fifths and one fifth each, drawn by "
        "data_seed)",
    ]
    again, other = load_own_classes(tmp_path, 16), load_own_classes(tmp_path, 16, seed=1)
    assert all(torch.equal(*pair) for pair in zip(source.characters, again.characters, strict=True))
    assert classes_in(other, tmp_path) != parts


def test_all_classes_have_as_many_images_as_the_smallest_and_a_note_counts_the_others(tmp_path):
    write_classes(tmp_path, 5, 6)
    for seed in (0, 3, 4, 5):
        (tmp_path / "class03" / f"{seed}.png").unlink()
    source = load_own_classes(tmp_path, 16)
    assert {images.shape[1] for images in source.characters} == {2}
    assert source.smallest == f"class 'class03' of {tmp_path}"
    assert source.notes[1] == (
        "16 of 26 images are left out: 2 are kept of each class, because 'class03' has no more. To keep more, remove "
        "the classes that have few"
    )
    sources = (load_own_classes(tmp_path, 16, seed=seed).characters for seed in (0, 1))
    one, other = ({image for part in parts for some in prints(part) for image in some} for parts in sources)
    assert one != other  # drawn by the seed, not the first ones


def test_a_table_decides_on_clients_and_parts(tmp_path):
    write_classes(tmp_path, 6, 2)
    table = tmp_path / "classes.csv"
    table.write_text(
        "class,client,part\nclass00,west,train\nclass01,east,train\nclass02,west,train\nclass03,,validation\n"
        "class04,east,test\nclass05,east,train\n"
    )
    source = load_own_classes(tmp_path, 16, class_table=str(table))
    parts = classes_in(source, tmp_path)
    assert parts == {
        "train": ["class00", "class01", "class02", "class05"],
        "validation": ["class03"],
        "test": ["class04"],
    }
    assert {name: which.tolist() for name, which in source.holders.items()} == {"east": [1, 3], "west": [0, 2]}
    assert source.notes[-1].endswith("(by the table)")


def test_without_a_column_of_parts_every_client_gives_of_its_classes(tmp_path):
    write_classes(tmp_path, 20, 1)
    table = tmp_path / "classes.csv"
    table.write_text("class,client\n" + "".join(f"class{n:02},{'ab'[n % 2]}\n" for n in range(20)))
    source = load_own_classes(tmp_path, 16, class_table=str(table))
    assert {name: len(which) for name, which in source.holders.items()} == {"a": 6, "b": 6}
    parts = classes_in(source, tmp_path)
    for part in ("validation", "test"):
        assert sorted(int(name[-2:]) % 2 for name in parts[part]) == [0, 0, 1, 1]


def test_a_client_to_whom_no_training_class_is_left_is_not_forgotten(tmp_path):
    write_classes(tmp_path, 5, 1)
    table = tmp_path / "classes.csv"
    table.write_text("class,client\n" + "".join(f"class{n:02},{n}\n" for n in range(5)))  # dealt in this order
    source = load_own_classes(tmp_path, 16, class_table=str(table))
    assert [len(which) for which in source.holders.values()] == [1, 0, 1, 0, 1]
    table.write_text(
        "class,client,part\n" + "".join(f"class{n:02},{n},{part}\n" for n, part in enumerate(("train", "test", *REST)))
    )
    assert list(load_own_classes(tmp_path, 16, class_table=str(table)).holders) == ["0", "3"]  # the user's decision


def test_a_part_without_classes_is_refused(tmp_path):
    write_classes(tmp_path, 3, 1)
    with pytest.raises(FedcsoError, match="has 3 classes, and none of them is for validation: add some, four are"):
        load_own_classes(tmp_path, 16)
    table = tmp_path / "classes.csv"
    table.write_text("class,part\nclass00,train\nclass01,train\nclass02,validation\n")
    with pytest.raises(FedcsoError, match=r"none of them is for test: change the column 'part' of .*classes\.csv"):
        load_own_classes(tmp_path, 16, class_table=str(table))
