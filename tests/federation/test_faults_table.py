"""The table of faults in docs/deployment.md: rows of tests that passed, the newest one of each fault."""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from tests.federation.real import faults

DOCS = Path(__file__).parents[2] / "docs"


def test_the_last_row_of_a_fault_counts_and_stands_at_the_place_of_the_first(tmp_path):
    results, page = tmp_path / "faults.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n\n{faults.BEGIN}\nold\n{faults.END}\n\nafter\n")
    faults.add([faults.fault("a site is slow", "waited", seconds="9"), ("other", 1)], results)
    faults.add([faults.fault("a site dies", "left out", "that site's round")], results)
    faults.add([faults.fault("a site is slow", "waited", seconds="7")], results)
    for _ in range(2):
        faults.main(results, page)
    rows = "| a site is slow | waited | 7 | nothing |\n| a site dies | left out | – | that site's round |\n"
    assert rows in page.read_text()
    assert page.read_text().count(faults.HEAD[0]) == 1
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()


def test_the_table_in_the_documentation_is_that_of_the_last_run():
    page = (DOCS / "deployment.md").read_text()
    assert faults.put_into(page, faults.table(DOCS / "faults.jsonl")) == page
