"""Few-shot learning on one's own images: whose classes they are, and what does not suffice."""

import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.streams import stream
from fedcso.problems import PROBLEMS
from fedcso.problems.few_shot_classes import load_few_shot
from fedcso.problems.few_shot_model import FILE, FewShotModel
from tests.few_characters import instead_of_glyphs
from tests.own_images import OPTIONS, write_classes


@pytest.fixture
def table(tmp_path):
    """Ten classes and a table that gives them to two clients, with two classes each for validation and test."""
    write_classes(tmp_path, 10, 4)
    parts = ["train"] * 6 + ["validation"] * 2 + ["test"] * 2
    rows = [f"class{n:02},{('south', 'north')[n % 3 > 0]},{part}\n" for n, part in enumerate(parts)]
    file = tmp_path / "classes.csv"
    file.write_text("class,client,part\n" + "".join(rows))
    return file


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("name", ["maml", "pretraining"])
def test_a_model_is_made_for_the_images(tmp_path, name, colour):
    task = PROBLEMS[name](data=str(write_classes(tmp_path, 10, 4, colour)), **OPTIONS)
    depth = 3 if colour else 1
    x = task.problem.init(stream(0, 0, 0))
    assert x["convolutions.0.weight"].shape == (4, depth, 3, 3)
    assert task.test.whole.xi.images.shape == (2, 6, depth, 16, 16)
    assert task.test.whole.eta.shape == (2, 1, 2, depth, 16, 16)
    assert 0 <= task.judge.measure(x, task.test.whole)["accuracy"] <= 1
    assert len(task.notes) == 2
    form = FewShotModel.from_json(task.files[FILE], FILE).form
    assert form == (16, "colour" if colour else "grey", False)


def test_clients_hold_what_the_table_says(tmp_path, table):
    task = PROBLEMS["maml"](data=str(tmp_path), class_table=str(table), **OPTIONS)
    assert list(task.names) == ["north", "south"]
    assert [len(images) for images in task.clients] == [4, 2]
    rotated = PROBLEMS["maml"](data=str(tmp_path), class_table=str(table), rotations=True, **OPTIONS)
    for images, four in zip(task.clients, rotated.clients, strict=True):
        assert torch.equal(four[: len(images)], images)
        assert torch.equal(four[len(images) : 2 * len(images)], torch.rot90(images, 1, (-2, -1)))


def test_without_a_table_classes_are_dealt(tmp_path):
    write_classes(tmp_path, 10, 4)
    task = PROBLEMS["maml"](data=str(tmp_path), **OPTIONS)
    assert list(task.names) == []
    assert [len(images) for images in task.clients] == [3, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"queries": 4},
            "'class00' of .* has 4 images, too few for queries = 4 and shots = 1: set queries to at most 3",
        ),
        ({"shots": 4}, "has 4 images, too few for queries = 3 and shots = 4: use fewer shots"),
        ({"ways": 3}, "2 classes are for validation, too few for 3-way tasks: add classes, use fewer ways"),
        ({"clients": 6}, "a client has 1 classes, too few for 2-way tasks: use fewer clients"),
    ],
    ids=["images", "shots", "classes", "clients"],
)
def test_what_does_not_suffice_is_named(tmp_path, options, message):
    write_classes(tmp_path, 10, 4)
    with pytest.raises(FedcsoError, match=message):
        PROBLEMS["maml"](data=str(tmp_path), **OPTIONS | options)


def test_a_client_of_the_table_with_too_few_classes_is_named(tmp_path, table):
    table.write_text(table.read_text().replace("class03,south", "class03,north"))
    with pytest.raises(FedcsoError, match="client 'south' has 1 classes, too few for 2-way tasks"):
        PROBLEMS["maml"](data=str(tmp_path), class_table=str(table), **OPTIONS)


def test_options_for_images_are_refused_for_characters(monkeypatch):
    instead_of_glyphs(monkeypatch)
    for option in ({"image_size": 32}, {"channels": "grey"}, {"class_table": "classes.csv"}):
        with pytest.raises(InvalidValue, match=f"{next(iter(option))} = .* must be left out for glyphs"):
            load_few_shot(**option)


def test_data_are_a_name_or_a_folder(tmp_path):
    with pytest.raises(UnknownName, match=r"data 'glyph'; did you mean glyphs\? \(known: FOLDER, glyphs, omniglot"):
        load_few_shot("glyph")
    (tmp_path / "file.png").write_text("")
    for data in (str(tmp_path / "file.png"), "", "~nobody/images", "a\0b"):
        with pytest.raises(UnknownName, match="unknown data"):
            load_few_shot(data)


def test_images_can_not_be_too_small():
    with pytest.raises(InvalidValue, match="image_size = 15 must be a whole number, at least 16"):
        load_few_shot(image_size=15)
