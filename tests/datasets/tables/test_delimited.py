"""CSV files with any separator, encoding and decimal sign give the same table."""

import gzip

import pandas as pd
import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.delimited import read_delimited, read_text

PLAIN = "name,amount,count,y\nKöln,1.5,1234,0\n,2.25,99,1\nParis,,7,0\n"
FRAME = pd.DataFrame(
    {"name": ["Köln", None, "Paris"], "amount": [1.5, 2.25, None], "count": [1234, 99, 7], "y": [0, 1, 0]}
)


@pytest.fixture
def read(tmp_path):
    def read(content, name="t.csv", wanted=()):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_delimited(tmp_path / name, wanted)

    return read


def same(frame):
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False, check_names=False)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found(read, separator, name):
    frame, notes = read(PLAIN.replace(",", separator), name)
    same(frame)
    assert notes == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_the_encoding_is_found(read, encoding):
    frame, notes = read(PLAIN.encode(encoding))
    same(frame)
    windows = encoding in ("cp1252", "latin-1")
    assert notes == ["t.csv: read as Windows-1252 (Latin-1), because it is not UTF-8"] * windows


def test_an_invalid_utf8_byte_beyond_the_sample_is_detected(read):
    content = "x,y\n" + "a,0\n" * 50_000 + "Köln,1\n"
    frame, notes = read(content.encode("latin-1"))
    assert frame["x"].iloc[-1] == "Köln"
    assert len(notes) == 1


@pytest.mark.parametrize(
    "content",
    [
        "name;amount;count;y\nKöln;1,5;1.234;0\n;2,25;99;1\nParis;;7;0\n",
        "name\tamount\tcount\ty\nKöln\t1,5\t1 234\t0\n\t2,25\t99\t1\nParis\t\t7\t0\n",
        'name,amount,count,y\nKöln,"1,5","1.234",0\n,"2,25",99,1\nParis,,7,0\n',
        'name,amount,count,y\nKöln,"1.5","1,234",0\n,"2.25","99","1"\nParis,,7,0\n',
        'name;amount;count;y\nKöln;"1,5";1\'234;0\n;"2,25";99;1\nParis;;7;0\n',
        "name;amount;count;y\nKöln;1.5;1,234;0\n;2.25;99;1\nParis;;7;0\n",
    ],
    ids=["German", "French", "German with quotes", "English", "Swiss", "English with semicolons"],
)
def test_numbers_are_read_in_all_styles(read, content):
    same(read(content)[0])


def test_a_thousands_separator_that_pandas_read_as_a_decimal_point_is_noted(read):
    frame, notes = read("a;b;y\n1,5;1.234;0\n2,5;5.678;1\n")
    assert frame["b"].tolist() == [1234, 5678]
    assert notes == ["b: '1.234' is read as 1234"]


def test_a_decimal_point_is_kept_in_a_table_with_decimal_commas(read):
    frame, _ = read("a;b;y\n1,5;0.25;0\n2,5;1.5;1\n")
    assert frame["b"].tolist() == [0.25, 1.5]


def test_the_separator_that_gives_the_wanted_columns_is_chosen(read):
    content = "weight, kg;height, cm;y\n70,5;180,2;1\n80,5;190,2;0\n"
    frame, _ = read(content, wanted=["y"])
    assert list(frame.columns) == ["weight, kg", "height, cm", "y"]
    assert frame["weight, kg"].tolist() == [70.5, 80.5]


def test_separators_in_quotes_are_ignored(read):
    frame, _ = read('"a;b;c;d",y\n1,0\n2,1\n')
    assert list(frame.columns) == ["a;b;c;d", "y"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01\n", b"a,b\n\x00,1\n", b"a,b\n\x81\x8d,1\n"])
def test_binary_files_are_refused(read, content):
    with pytest.raises(FedcsoError, match=r"t\.csv is not text; save it as CSV UTF-8"):
        read(content)


def test_old_line_ends_are_read_and_unclosed_quotes_raise(read):
    frame, _ = read(b"x,y\r1,0\r2,1\r")
    assert frame.to_dict("list") == {"x": [1, 2], "y": [0, 1]}
    with pytest.raises(pd.errors.ParserError):
        read('x,y\n1,"' + "a" * 200_000)


def test_text_is_what_is_written(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('code; amount;empty;\n007;1.234,50;;\n 12 ;NA;"a;b";\n')
    frame = read_text(file)
    assert frame.to_dict("list") == {"code": ["007", "12 "], "amount": ["1.234,50", "NA"], "empty": ["", "a;b"]}
