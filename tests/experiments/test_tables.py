"""fit on public tables: every table and split is fitted, compared and judged."""

import pytest

from fedcso.core.errors import UnknownName
from fedcso.datasets.r_tables import RTable
from fedcso.experiments import tables
from tests.command_line import read_csv, run, without_drawing
from tests.experiments.miniature import shrink
from tests.fitting.small_sites import search_little, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small table in place of a public one."""
    place = tmp_path_factory.mktemp("tables")
    table(300).to_csv(place / "small.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        search_little(patch)
        patch.setattr(RTable, "path", lambda self: place / "small.csv")
        small = tables.TABLES["pneumon"]._replace(label="ill", site="hospital", drop="", about="illness")
        patch.setitem(tables.TABLES, "pneumon", small)
        shrink(patch, "tables", splits=(0, 1))
        return run("reproduce", "tables", "--quick", out=place / "runs")


def test_every_column_has_a_mean_and_a_range_over_splits(folder):
    (line,) = read_csv(folder / "table.csv")
    assert line["table"] == "pneumon"
    for column in tables.COLUMNS:
        assert " to " in line[column], column


def test_the_results_of_every_split_are_in_a_file(folder):
    (line,), splits = read_csv(folder / "table.csv"), read_csv(folder / "splits.csv")
    assert [one["split"] for one in splits] == ["0", "1"]
    for column in tables.COLUMNS:
        mean = sum(float(one[column]) for one in splits) / len(splits)
        assert line[column].startswith(f"{mean:.3f} "), column


def test_there_are_a_page_a_figure_and_a_statement_for_every_yardstick(folder):
    page = (folder / "reproduction.md").read_text()
    assert "# fit on real tables" in page
    assert page.count("is not worse than") == len(tables.COLUMNS) - 1
    assert (folder / "tables.png").is_file()


def test_a_table_that_is_not_there_is_refused():
    with pytest.raises(UnknownName, match="'iris'"):
        tables.settings(False).limited_to(["iris"])
