"""Files of every format are read; errors and missing packages are reported."""

import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.preparation import read_table
from fedcso.datasets.tables.formats import FORMATS, read_sheet

FRAME = pd.DataFrame(
    {
        "amount": [1.5, None, 3.0],
        "city": ["Köln", "Paris", None],
        "day": pd.to_datetime(["2020-01-31", None, "2021-12-01"]),
        "smokes": [True, False, True],
        "count": [1, 2, 3],
    }
)


@pytest.fixture
def excel(tmp_path):
    pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'fedcso[excel]'")

    def write(**sheets):
        with pd.ExcelWriter(tmp_path / "t.xlsx", engine="openpyxl") as book:
            for name, frame in sheets.items():
                frame.to_excel(book, sheet_name=name, index=False)
        return tmp_path / "t.xlsx"

    return write


def test_an_excel_sheet_is_read_with_its_types(excel):
    frame, notes, _ = read_sheet(excel(data=FRAME))
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)
    assert frame["day"].dtype.kind == "M"
    assert frame["count"].dtype.kind == "i"
    assert notes == []


def test_only_the_first_excel_sheet_is_read_with_a_note(excel):
    frame, notes, _ = read_sheet(excel(data=FRAME, legend=FRAME[["city"]]))
    assert list(frame.columns) == list(FRAME.columns)
    assert notes == ["t.xlsx: only the first sheet, 'data', is read"]


def test_excel_files_may_have_blank_rows_numbers_as_text_and_numeric_names(excel):
    blank = pd.DataFrame({"x": ["1,5", None, 2.5], 2020: [1, None, 2]}, dtype=object)
    frame, _, _ = read_sheet(excel(data=blank))
    assert frame.to_dict("list") == {"x": [1.5, 2.5], "2020": [1, 2]}


def test_repeated_column_names_in_excel_are_refused(excel):
    with pytest.raises(FedcsoError, match=r"t\.xlsx has two columns called 'x'"):
        read_sheet(excel(data=pd.DataFrame([[1, 2]], columns=["x", "x"])))


def test_an_empty_sheet_is_refused(excel):
    with pytest.raises(FedcsoError, match=r"t\.xlsx is empty"):
        read_sheet(excel(data=pd.DataFrame()))


@pytest.mark.parametrize(("name", "package"), [("t.xlsx", "openpyxl"), ("t.parquet", "pyarrow")])
def test_the_missing_package_is_named(tmp_path, monkeypatch, name, package):
    (tmp_path / name).write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FedcsoError, match=rf"{name} needs {package}: pip install {package}"):
        read_sheet(tmp_path / name)


def test_an_invalid_excel_file_is_refused(tmp_path):
    pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'fedcso[excel]'")
    (tmp_path / "t.xlsx").write_bytes(b"PK no book")
    with pytest.raises(FedcsoError, match=r"t\.xlsx can't be read"):
        read_sheet(tmp_path / "t.xlsx")


def test_numbers_as_text_are_numbers_in_every_format(tmp_path):
    frame = pd.DataFrame({"x": ["1,5", "2,5"], "code": ["007", "123"]})
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", x=frame["x"].to_numpy(str), code=frame["code"].to_numpy(str))
    for ending in (".parquet", ".npz"):
        read = read_sheet(tmp_path / f"t{ending}").frame
        assert read.to_dict("list") == {"x": [1.5, 2.5], "code": ["007", "123"]}


def test_an_npz_file_may_have_columns_and_pictures(tmp_path):
    pictures = np.zeros((3, 1, 4, 5), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", X=pictures, y=[0, 1, 0])
    sheet = read_sheet(tmp_path / "t.npz")
    assert list(sheet.frame.columns) == ["y"]
    assert sheet.pictures.shape == (3, 1, 4, 5)


def test_an_npz_may_have_pictures_alone(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.zeros((3, 1, 4, 5), dtype=np.uint8))
    sheet = read_sheet(tmp_path / "t.npz")
    assert sheet.frame.shape == (3, 0)
    assert sheet.pictures.shape == (3, 1, 4, 5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": np.zeros((2, 1, 4, 4)), "B": np.zeros((2, 1, 4, 4))}, "several arrays of pictures, A, B; keep one"),
        ({"A": np.zeros((3, 1, 4, 4))}, "arrays have different lengths"),
        (
            {"A": np.zeros((2, 4, 4))},
            r"shape 2×4×4, not numbers or text with 1 or 2 axes or pictures with 4; .*A\[:, None\]",
        ),
    ],
)
def test_incompatible_arrays_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", y=[0, 1], **arrays)
    with pytest.raises(FedcsoError, match=message):
        read_sheet(tmp_path / "t.npz")


def test_an_array_that_fits_in_no_memory_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    with pytest.raises(FedcsoError, match="can't be read"):
        read_sheet(tmp_path / "t.npz")


def test_a_member_that_is_not_an_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("notes.txt", "not an array")
    with pytest.raises(FedcsoError, match=r"notes\.txt is not an array"):
        read_sheet(tmp_path / "t.npz")


def test_new_rows_are_read_like_training_rows(tmp_path):
    (tmp_path / "new.csv").write_text("x;day\n1,5;31.01.2020\n2,5;1.2.2020\n")
    assert read_table(tmp_path / "new.csv").to_dict("list") == {"x": [1.5, 2.5], "day": ["31.01.2020", "1.2.2020"]}


def test_no_format_hides_another():
    """The first ending that fits is used, so no ending may end in an earlier one."""
    assert not [(a, b) for a in FORMATS for b in FORMATS if a != b and a.endswith(b)]
