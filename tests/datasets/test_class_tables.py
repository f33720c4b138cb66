"""A table of classes has each class once, with its client and its part; everything else is refused."""

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.class_tables import ClassTable, read_class_table

CLASSES = ["001", "002", "oak"]


def read(tmp_path, text, name="classes.csv"):
    file = tmp_path / name
    file.write_text(text)
    return read_class_table(file, CLASSES, tmp_path / "images")


def test_clients_and_parts_are_read_and_names_stay_as_they_are_written(tmp_path):
    table = read(tmp_path, "class;client;part;colour\n002;north;train;red\n 001 ;;test;\noak;north;validation;\n")
    assert table == ClassTable(
        {"002": "north", "001": "", "oak": "north"}, {"002": "train", "001": "test", "oak": "validation"}
    )


def test_one_of_both_columns_is_enough(tmp_path):
    assert read(tmp_path, "class,client\n001,a\n002,b\noak,1\n") == ClassTable({"001": "a", "002": "b", "oak": "1"}, {})
    assert read(tmp_path, "class,part\n001,train\n002,test\noak,train\n").clients == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "class,client\n001,a\n002,b\nelm,a\n",
            r"unknown class in row 3 of .*classes\.csv \(a folder in .*images\) 'elm'",
        ),
        ("class,client\n001,a\n002,b\n", r"class 'oak' of .*images has no row in .*classes\.csv: add one"),
        ("class,client\n001,a\n002,b\n001,b\n", "class '001' is there again in row 3 of"),
        ("class,client\n001,a\n002,\noak,a\n", "class '002' has no client in row 2 of .*: name one"),
        (
            "class,part\n001,train\n002,tests\noak,test\n",
            "part in row 2 of .* = 'tests' must be one of train, validation",
        ),
        ("name,client\n001,a\n", r"has no column 'class' .*\(it has name, client\)"),
        ("class,site\n001,a\n", "has neither a column 'client' nor a column 'part': add one of them"),
        ("class,client\n", "has no rows"),
        ("", "can't be read"),
    ],
)
def test_mistakes_are_named_with_their_row(tmp_path, text, message):
    with pytest.raises(FedcsoError, match=message):
        read(tmp_path, text)


def test_it_must_be_a_csv_file(tmp_path):
    with pytest.raises(FedcsoError, match=r"class_table = .*classes\.txt' must be a file that ends in \.csv"):
        read(tmp_path, "", "classes.txt")
    with pytest.raises(FedcsoError, match=r"class_table = .*none\.csv' must be a file"):
        read_class_table(tmp_path / "none.csv", CLASSES, tmp_path)
