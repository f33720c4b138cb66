"""Scoring rows with an exported model: what is passed on, what is noted, what is refused."""

import numpy as np
import pandas as pd
import pytest

from fedcso.core.errors import FedcsoError
from fedcso.fitting.exported import BATCH, Model
from tests.fitting.exported_models import messy, picture_model, table_model

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'fedcso[predict]'")


@pytest.fixture
def exported():
    return table_model()


@pytest.fixture
def model(exported):
    return Model(exported.path)


@pytest.fixture
def of_pictures():
    return Model(picture_model().path)


def save(frame, file):
    frame.to_csv(file, index=False)
    return file


def test_a_table_in_memory_is_scored_as_its_file_is(model, tmp_path):
    frame = messy(20, seed=1)
    frame.index = range(100, 120)
    rows, notes = model.score(frame)
    assert notes == []
    assert rows.index.tolist() == list(range(100, 120))
    from_file = model.score_file(save(frame, tmp_path / "new.csv")).rows
    assert np.array_equal(rows.probability, from_file.probability)


def test_many_rows_are_scored_in_parts(model):
    frame = messy(10, seed=1)
    many = pd.concat([frame] * (BATCH // 10 + 1), ignore_index=True)
    probabilities = model.score(many).rows.probability.to_numpy()
    np.testing.assert_allclose(probabilities, np.tile(model.score(frame).rows.probability, BATCH // 10 + 1), atol=1e-6)


def test_a_code_that_alone_looks_like_a_number_keeps_its_category(model, tmp_path):
    """Beside A1, the ward 007 is text; a file with this ward alone would have the number 7 in its place."""
    both = messy(2, seed=2).assign(ward=["007", "A1"])
    together = model.score_file(save(both, tmp_path / "both.csv"))
    alone = model.score_file(save(both.head(1), tmp_path / "alone.csv"))
    assert alone.notes == together.notes == []
    assert alone.rows.probability[0] == together.rows.probability[0]
    assert alone.rows.ward[0] == "007"


def test_a_number_is_the_same_category_however_it_is_written(model, tmp_path):
    rows = messy(2, seed=2)
    whole = model.score_file(save(rows.assign(ward=[12, 12]), tmp_path / "whole.csv"))
    with_point = model.score_file(save(rows.assign(ward=[12.0, 12.0]), tmp_path / "float.csv"))
    assert with_point.notes == whole.notes == []
    assert np.array_equal(whole.rows.probability, with_point.rows.probability)


def test_columns_that_are_not_there_count_as_missing_and_are_named(model):
    frame = messy(20, seed=1)
    rows, notes = model.score(frame.drop(columns=["age", "sex"]))
    assert notes == ["2 of the model's 6 columns are not there and count as missing values: age, sex"]
    same = model.score(frame.assign(age=np.nan, sex=None)).rows
    assert np.array_equal(rows.probability, same.probability)


def test_unknown_categories_are_named(model):
    _, notes = model.score(messy(5).assign(ward=["A1", "Z9", "Z9", "X", None]))
    assert notes == ["ward: 3 rows have a category that training did not keep, and count as 'other': Z9, X"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"age": "old"}, "column 'age' holds 'old' in row 1; it must be a number"),
        ({"age": np.inf}, "column 'age' holds 'inf' in row 1"),
        ({"seen": "31.02.2020"}, "column 'seen' holds '31.02.2020' in row 1, which is not a date"),
        ({"probability": 1.0}, "has a column 'probability' already"),
        ({"alert_recall_0.8": 1}, "has a column 'alert_recall_0.8' already"),
    ],
)
def test_what_can_not_be_scored_is_refused(model, change, said):
    with pytest.raises(FedcsoError) as refused:
        model.score(messy(3).assign(**change))
    assert said in str(refused.value)
    assert "--drop" not in str(refused.value)  # an option of training


def test_a_table_of_something_else_is_refused(model):
    with pytest.raises(FedcsoError, match=r"none of the model's columns \(age, dose, .* and 1 more\); it has x, y"):
        model.score(pd.DataFrame({"x": [1], "y": [2]}))


def test_a_table_without_rows_is_refused(model):
    with pytest.raises(FedcsoError, match="no rows"):
        model.score(messy(3).head(0))


def test_pictures_of_another_shape_are_refused(of_pictures, tmp_path):
    np.savez(tmp_path / "new.npz", pictures=np.zeros((2, 3, 16, 16), dtype=np.uint8))
    with pytest.raises(FedcsoError, match="have the shape 3×16×16, and the model needs 1×16×16"):
        of_pictures.score_file(tmp_path / "new.npz")


def test_a_table_for_a_model_of_pictures_is_refused(of_pictures, tmp_path):
    with pytest.raises(FedcsoError, match="has no pictures"):
        of_pictures.score_file(save(messy(3), tmp_path / "new.csv"))
    with pytest.raises(FedcsoError, match="scores pictures"):
        of_pictures.score(messy(3))


def test_picture_files_named_by_a_table_are_scored(of_pictures, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs pillow: pip install 'fedcso[images]'")
    pictures = np.random.default_rng(0).integers(0, 256, (2, 1, 16, 16), dtype=np.uint8)
    for number, picture in enumerate(pictures):
        image.fromarray(picture[0]).save(tmp_path / f"{number}.png")
    np.savez(tmp_path / "new.npz", pictures=pictures)
    save(pd.DataFrame({"file": ["0.png", "1.png"]}), tmp_path / "new.csv")
    from_files, from_array = (of_pictures.score_file(tmp_path / name).rows for name in ("new.csv", "new.npz"))
    assert from_files.file.tolist() == ["0.png", "1.png"]
    assert np.array_equal(from_files.probability, from_array.probability)


def test_a_damaged_model_is_named(exported, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(FedcsoError, match="can't be read as a model"):
        Model(tmp_path)
