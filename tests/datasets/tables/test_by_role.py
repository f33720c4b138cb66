"""Columns of a table by the role that a problem gives them."""

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.by_role import read_by_role


def test_numbers_and_names_are_read_for_each_site(tmp_path):
    (tmp_path / "all.csv").write_text("x,kind,where\n1.5,a,east\n2,b,west\n3,a,east\n")
    read = read_by_role(str(tmp_path / "all.csv"), {"dose": "x"}, {"group": "kind"}, "where")
    assert read.sites == ["east", "west"]
    assert read.columns[0]["dose"].tolist() == [1.5, 3.0]
    assert read.columns[0]["group"].tolist() == ["a", "a"]
    assert read.notes == []


def test_without_a_site_column_every_file_is_a_site(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("x,kind\n1,a\n2,\n")
    read = read_by_role(str(tmp_path), {"dose": "x"}, {"group": "kind"})
    assert read.sites == ["one", "two"]
    assert [note.split(":")[0] for note in read.notes] == ["one.csv", "two.csv"]


def test_one_site_is_not_federated_and_a_note_says_so(tmp_path):
    (tmp_path / "one.csv").write_text("x,kind\n1,a\n2,b\n")
    assert "not federated" in read_by_role(str(tmp_path / "one.csv"), {"dose": "x"}, {"group": "kind"}).notes[0]


def test_a_table_without_a_complete_row_is_refused(tmp_path):
    (tmp_path / "one.csv").write_text("x,kind\n1,\n,b\n")
    with pytest.raises(FedcsoError, match="no row with a value in all of the columns x, kind"):
        read_by_role(str(tmp_path / "one.csv"), {"dose": "x"}, {"group": "kind"})
