"""`fedcso predict`: rows in, probabilities and alerts out; every mistake of a user is named."""

import io

import numpy as np
import pandas as pd
import pytest

from tests.command_line import BAD_INPUT, call
from tests.fitting.exported_models import messy, table_model

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'fedcso[predict]'")


@pytest.fixture
def exported():
    return table_model()


@pytest.fixture
def new(tmp_path):
    file = tmp_path / "new.csv"
    messy(30, seed=4).to_csv(file, index=False)
    return file


def test_rows_are_printed_or_written(exported, new, tmp_path):
    printed = call("predict", exported.path, new)
    assert printed.code == 0, printed.err
    written = call("predict", exported.path.parent, new, "--out", tmp_path / "scored.csv")  # the run's folder
    assert written.code == 0, written.err
    assert written.out == ""
    assert (tmp_path / "scored.csv").read_text() == printed.out
    scored = pd.read_csv(io.StringIO(printed.out))
    assert len(scored) == 30
    np.testing.assert_allclose(scored.probability, exported.own_of_file(new)[1], atol=1e-6)


def test_missing_columns_are_noted(exported, new):
    pd.read_csv(new).drop(columns="age").to_csv(new, index=False)
    outcome = call("predict", exported.path, new)
    assert outcome.code == 0
    assert "1 of the model's 6 columns are not there and count as missing values: age" in outcome.err


def test_bad_input_is_named(exported, new, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("age,dose\n")
    (tmp_path / "rows.json").write_text("{}")
    for arguments, said in {
        (tmp_path, new): "has no exported model",
        (tmp_path / "nowhere", new): "has no exported model",
        (exported.path, tmp_path / "none.csv"): "there is no file",
        (exported.path, tmp_path): "there is no file",
        (exported.path, tmp_path / "empty.csv"): "is empty",
        (exported.path, tmp_path / "header.csv"): "has no rows",
        (exported.path, tmp_path / "rows.json"): "can't be read as a table; save it as .csv",
        (exported.path, new, "--out", tmp_path / "scored.xlsx"): "must end in .csv",
        (exported.path,): "rows is missing",
    }.items():
        outcome = call("predict", *arguments)
        assert outcome.code == BAD_INPUT, arguments
        assert said in outcome.err
