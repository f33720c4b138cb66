"""The page for people who decide, and the model card."""

import re
from dataclasses import replace

import pytest

from fedcso.fitting.page import model_card, page, tables, write_page
from fedcso.fitting.result import Decision, Part, Sent
from fedcso.fitting.words import summary
from fedcso.reports.wishes import Wishes
from fedcso.runs.folder import RunFolder
from tests.browser import needs_browser, visit
from tests.fitting.decisions import SITES, example


@pytest.fixture(scope="module")
def decision() -> Decision:
    return example()


@pytest.fixture(scope="module")
def written(decision, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_page(RunFolder(folder), decision)
    return folder


def test_the_page_is_whole_in_itself(written):
    html = (written / "decision.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", html)
    assert not re.search(r"https?://", html)
    assert html.count("data:image/png;base64,") == 3
    assert (written / "decision-precision-recall.png").read_bytes().startswith(b"\x89PNG")


def test_page_and_card_say_what_the_summary_says(written, decision):
    card = (written / "model-card.md").read_text()
    for sentence in summary(decision):
        assert sentence in card
    assert "gradient boosting | needs the data in one place" in card
    assert "FCSG-M (chosen) | stay at the sites" in card
    for heading in ("Data", "Method and settings", "Results", "Thresholds", "Calibration", "Intervals", "Limits"):
        assert f"\n## {heading}\n" in card
    assert "- test: 1530 rows, 25 positive" in card


def test_a_site_with_one_positive_has_no_interval(written, decision):
    (row,) = (row for row in tables(decision)["sites"] if row["site"] == SITES[-1])
    assert row["test rows (positive)"] == "170 (1)"
    assert row["average precision"].endswith("(1 positive: too few for an interval)")
    for name in ("decision.html", "model-card.md"):
        assert "± 0.000" not in (written / name).read_text()


def test_what_left_the_sites_is_shown_by_kind(decision):
    sent = [Sent("a", "updates", 3, 30, 120), Sent("b", "updates", 2, 20, 80), Sent("a", "counts", 1, 4, 32)]
    assert tables(replace(decision, sent=sent))["sent"] == [
        {
            "what": "updates",
            "sites": 2,
            "messages of a site": "2 to 3",
            "numbers from a site": "20 to 30",
            "bytes from a site": "80 to 120",
            "bytes from all": 200,
        },
        {
            "what": "counts",
            "sites": 1,
            "messages of a site": "1",
            "numbers from a site": "4",
            "bytes from a site": "32",
            "bytes from all": 32,
        },
    ]


def test_a_site_without_test_rows_has_a_row_too(decision):
    first = replace(decision.data[0], site="new", test=Part(0, 0))
    row = tables(replace(decision, data=[first, *decision.data[1:]]))["sites"][0]
    assert row == {
        "site": "new",
        "training rows (positive)": "510 (15)",
        "validation rows (positive)": "170 (5)",
        "test rows (positive)": "0 (0)",
    }


def test_names_can_not_break_the_page(decision):
    nasty = "</td><script>alert(1)</script>"
    html = page(replace(decision, notes=[nasty], about={nasty: nasty}, settings={nasty: nasty}), {})
    assert nasty not in html


def test_with_little_to_show_page_and_card_are_still_written(decision):
    bare = Decision(example(Wishes(recall=None)).decisions, {}, decision.data, {"method": "FCSG-M"})
    assert "It was not recorded what the sites sent." in page(bare, {})
    assert "What left each site" not in model_card(bare)
    assert "## Thresholds" not in model_card(bare)


@needs_browser
@pytest.mark.parametrize("width", [1280, 500])
def test_in_a_browser_nothing_is_wider_than_the_page(written, tmp_path, width):
    script = """
      document.getElementById("theme").click();
      const root = document.documentElement;
      const right = (element) => element.getBoundingClientRect().right;
      const wide = [...document.querySelectorAll("main > *")].filter((element) => right(element) > innerWidth);
      return [root.scrollWidth <= innerWidth, wide.length, root.dataset.theme];
    """
    found = visit(written / "decision.html", script, tmp_path, width)
    assert found.found == "true,0,dark"
    assert found.console == []


@needs_browser
def test_in_a_browser_tables_sort(written, tmp_path):
    script = """
      const table = [...document.querySelectorAll("table")].find((t) => t.tHead.textContent.startsWith("site"));
      table.tHead.rows[0].cells[0].click();
      return table.tBodies[0].rows[0].cells[0].textContent;
    """
    assert visit(written / "decision.html", script, tmp_path).found == SITES[-1]
