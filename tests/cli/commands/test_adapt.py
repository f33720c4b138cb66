"""`fedcso run maml --data FOLDER` and `fedcso adapt`: from one's own images to predictions; mistakes are named."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.command_line import BAD_INPUT, FINE, call, folders, read_csv, run, without_drawing
from tests.own_images import ON_THE_COMMAND_LINE, Image, picture, write_classes


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*options, problem="maml", code=FINE):
    return run("run", problem, "--data", "images", *ON_THE_COMMAND_LINE, *options, out=Path("runs"), code=code)


def test_from_images_to_predictions(place):
    write_classes(place / "images", 10, 4)
    folder = train()
    assert "40 images are read in grey, as 16×16 pixels" in (folder / "notes.txt").read_text()
    write_classes(place / "support", [30, 31], [0, 1])
    write_classes(place / "query", [30, 31], range(2, 13))
    outcome = call("adapt", folder, "support", "query", "--steps", "40")
    assert outcome.code == FINE, outcome.err
    rows = read_csv(place / "predictions.csv")
    assert list(rows[0]) == ["file", "class", "predicted", "probability_class30", "probability_class31"]
    assert [row["file"] for row in rows] == [
        f"{name}/{file}.png" for name in ("class30", "class31") for file in sorted(map(str, range(2, 13)))
    ]
    for row in rows:
        values = {name: float(row[f"probability_{name}"]) for name in ("class30", "class31")}
        assert sum(values.values()) == pytest.approx(1)
        assert row["predicted"] == max(values, key=values.__getitem__)
    right = sum(row["class"] == row["predicted"] for row in rows)
    assert right > 18
    said = outcome.out.splitlines()
    assert said[-2:] == [f"accuracy {right / 22:.3f} ({right} of 22 images)", "written predictions.csv"]
    assert said[-3] == "… and 2 more"
    first, probability, predicted = said[-23].split()
    assert (first, predicted) == (rows[0]["file"], rows[0]["predicted"])
    assert float(probability) == pytest.approx(float(rows[0][f"probability_{predicted}"]), abs=5e-4)


def test_queries_may_be_flat_and_the_table_elsewhere(place):
    write_classes(place / "images", 10, 4)
    folder = train("--algorithm", "FedAvg", problem="pretraining")
    write_classes(place / "support", 2, [0])
    write_classes(place / "flat", [0], [1, 2])
    outcome = call("adapt", folder, "support", "flat/class00", "--together", "--out", "flat/found.csv")
    assert outcome.code == FINE, outcome.err
    assert "accuracy" not in outcome.out
    assert "note    the query images are classified together" in outcome.out
    assert [row["file"] for row in read_csv(place / "flat" / "found.csv")] == ["1.png", "2.png"]


def test_a_resumed_run_has_the_same_images(place):
    write_classes(place / "images", 10, 4)
    folder = train()
    assert call("resume", folder).code == FINE
    picture(1, 99).save("images/class01/0.png")
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "was started with other data" in outcome.err


def cut(path):
    path.write_bytes(path.read_bytes()[:-60])


def sixteen_bits(path):
    Image.new("I;16", (16, 16), 60000).save(path)


BAD_IMAGES = {
    "no image": (lambda f: (f / "class03/1.png").write_text("?"), "class03/1.png can't be read as a picture"),
    "truncated": (lambda f: cut(f / "class03/1.png"), "class03/1.png can't be read as a picture"),
    "16 bits": (lambda f: sixteen_bits(f / "class03/1.png"), "class03/1.png has more than 8 bits for a grey pixel"),
    "another kind": (lambda f: (f / "class03/a.gif").write_text(""), "class03/a.gif is not an image: save it as .png"),
    "channels": (lambda f: picture(3, 1, colour=True).save(f / "class03/1.png"), "class03/1.png is in colour: convert"),
    "empty class": (lambda f: (f / "class11").mkdir(), "class11 has no images: put the images of the class there"),
    "no classes": (lambda f: [shutil.rmtree(place) for place in f.iterdir()], "images is empty: make a folder in it"),
    "few classes": (
        lambda f: [shutil.rmtree(f / f"class{n:02}") for n in range(6)],
        "1 classes are for validation, too few",
    ),
    "few images": (lambda f: [(f / f"class03/{n}.png").unlink() for n in (1, 2)], "'class03' of images has 2 images"),
}


@pytest.mark.parametrize("mistake", BAD_IMAGES)
def test_bad_images_are_refused_before_a_run_begins(place, mistake):
    spoil, said = BAD_IMAGES[mistake]
    spoil(write_classes(place / "images", 10, 4))
    outcome = call("run", "maml", "--data", "images", *ON_THE_COMMAND_LINE, "--out", "runs")
    assert outcome.code == BAD_INPUT, outcome
    assert said in outcome.err
    assert outcome.err.count("\n") == 1
    assert folders(place / "runs") == []


def test_a_huge_image_is_refused(place, monkeypatch):
    write_classes(place / "images", 10, 4)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 300)
    outcome = call("run", "maml", "--data", "images", *ON_THE_COMMAND_LINE)
    assert outcome.code == BAD_INPUT
    assert "is too large a picture" in outcome.err


def test_without_pillow_the_user_is_told_what_to_install(place, monkeypatch):
    write_classes(place / "images", 10, 4)
    monkeypatch.setitem(sys.modules, "PIL", None)
    outcome = call("run", "maml", "--data", "images", *ON_THE_COMMAND_LINE)
    assert outcome.code == BAD_INPUT
    assert "needs pillow: pip install pillow" in outcome.err


def test_tables_are_refused_with_the_row(place):
    write_classes(place / "images", 10, 4)
    rows = [f"class{n:02},{'ab'[n > 6]}\n" for n in range(10)]
    for text, said in (
        (["class99,a\n", *rows], "unknown class in row 1 of classes.csv (a folder in images) 'class99'"),
        (rows[1:], "class 'class00' of images has no row in classes.csv"),
        ([*rows[:9], "class09,c\n"], "has 1 classes, too few for 2-way tasks"),
    ):
        (place / "classes.csv").write_text("class,client\n" + "".join(text))
        outcome = call("run", "maml", "--data", "images", "--class-table", "classes.csv", *ON_THE_COMMAND_LINE)
        assert outcome.code == BAD_INPUT, outcome
        assert said in outcome.err


def test_bad_arguments_of_adapt_are_named(place):
    write_classes(place / "images", 10, 4)
    folder = train()
    write_classes(place / "support", 2, [0])
    write_classes(place / "query", 2, [1])
    (place / "none").mkdir()
    broken = write_classes(place / "broken", 2, [1])
    (broken / "class00" / "1.png").write_text("?")
    for arguments, said in {
        ("nowhere", "support", "query"): "there is no model nowhere: give the folder of a run of maml",
        ("images", "support", "query"): "images is not a few-shot model (images/models/few-shot.json is missing)",
        (folder, "nowhere", "query"): "nowhere is not a folder: give a folder of images",
        (folder, "none", "query"): "none is empty: make a folder in it for each class",
        (folder, "support", "none"): "none has no images: put those to classify there",
        (folder, "query/class00", "query"): "query/class00/1.png is not in the folder of a class",
        (folder, "broken", "query"): "broken/class00/1.png can't be read as a picture",
        (folder, "support", "broken"): "broken/class00/1.png can't be read as a picture",
        (folder, "support", "query", "--steps", "0"): "steps = 0 must be a whole number, at least 1",
        (folder, "support", "query", "--rate", "fast"): "rate = 'fast' must be a number",
        (
            folder,
            "support",
            "query",
            "--out",
            "no/such.csv",
        ): "out = 'no/such.csv' must be a file in a folder that",
    }.items():
        outcome = call("adapt", *arguments)
        assert outcome.code == BAD_INPUT, outcome
        assert said in outcome.err
        assert outcome.err.count("\n") == 1
