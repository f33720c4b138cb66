"""The files that a path denotes; nothing in a folder is ignored silently."""

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.files import listed, site_of, table_files


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        for name in ("east.csv", *names):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x")
        return tmp_path

    return make


def names(found):
    return [file.name for file in found[0]]


def test_a_folder_denotes_all_its_tables_sorted_by_name(folder):
    place = folder("west.CSV", "north.parquet", "a.b.tsv.gz", "south.npz", "all.xlsx")
    found, notes = table_files(place)
    assert [site_of(file) for file in found] == ["a.b", "all", "east", "north", "south", "west"]
    assert notes == []
    assert table_files(str(place)) == (found, notes)


@pytest.mark.parametrize(
    "name",
    ["README.md", "readme.txt", "LICENSE", ".DS_Store", "Thumbs.db", "~$all.xlsx", "plot.png", "run.py", "notes/x.txt"],
)
def test_files_that_are_clearly_no_tables_are_listed_in_a_note(folder, name):
    place = folder(name)
    found = table_files(place)
    assert names(found) == ["east.csv"]
    shown = "notes/" if "/" in name else name
    assert found[1] == [f"left out of {place}, because they are not tables: {shown}"]


def test_a_note_on_many_files_lists_a_few(folder):
    place = folder(*(f"{number}.png" for number in range(5)))
    assert table_files(place)[1][0].endswith("not tables: 0.png, 1.png, 2.png and 2 more")


@pytest.mark.parametrize("name", ["west.txt", "west.xls", "west.sas7bdat", "west.json", "west", "west.npy"])
def test_an_unknown_file_that_may_hold_data_is_refused(folder, name):
    with pytest.raises(FedcsoError, match=rf"{name} can't be read as a table: save it as \.csv, .* or move it out"):
        table_files(folder(name))


def test_a_table_in_a_subfolder_is_refused(folder):
    with pytest.raises(FedcsoError, match=r"west/data\.csv is a table inside a folder of .*: move it to"):
        table_files(folder("west/data.csv"))


def test_a_pattern_denotes_the_files_that_match(folder):
    place = folder("west.csv", "west.txt")
    assert names(table_files(str(place / "*.csv"))) == ["east.csv", "west.csv"]


def test_a_few_names_are_listed_and_the_rest_counted():
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(iter("abcde")) == "a, b, c and 2 more"
