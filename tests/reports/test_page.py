"""The page of a run, as data and in a real browser."""

import json
import re

import pytest

from fedcso.reports import page
from fedcso.reports.charts import charts
from fedcso.reports.looks import COLOURS
from fedcso.reports.recorded import Record
from tests.browser import needs_browser, visit
from tests.command_line import run

TABLE = [
    {"algorithm": "FCSG", "samples": "9 600"},
    {"algorithm": "B", "samples": "undefined"},
    {"algorithm": "A", "samples": "80"},
]


def data_in(html):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(
        *("run", "auprc", "--data", "breast_cancer", "--clients", "3", "--rounds", "4", "--local-steps", "2"),
        *("--learning-rate", "0.1", "--evaluate-every", "2", "--algorithm", "FCSG", "--algorithm", "FCSG-M"),
        out=tmp_path_factory.mktemp("runs"),
    )


def test_the_page_is_whole_in_itself(finished):
    html = (finished / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", html)
    assert not re.search(r"https?://", html)
    assert [chart["title"] for chart in data_in(html)["charts"]][:2] == ["test average precision", "test AUROC"]


def test_names_can_not_break_out_of_the_script():
    nasty = "</script><script>alert(1)</script>"
    html = page.page(nasty, [], [{"algorithm": nasty}], {}, {}, [nasty], {}, {"looks": {nasty: {}}, "charts": []})
    assert nasty not in html
    assert list(data_in(html)["looks"]) == [nasty]


def test_without_charts_the_figures_are_shown():
    html = page.page("t", [("caption", b"png")], TABLE, {}, {})
    assert "<noscript>" not in html
    assert 'alt="caption"' in html


LINES = "document.querySelectorAll('.chart:first-child polyline').length"


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_methods_are_switched_and_axes_chosen(finished, tmp_path, width):
    script = f"""
        const seen = [{LINES}];
        const chip = document.querySelector('.chip');
        chip.click(); seen.push({LINES}, chip.getAttribute('aria-pressed'));
        chip.click(); seen.push({LINES});
        const select = document.getElementById('axis');
        seen.push([...select.options].map(o => o.value).join('/'));
        const points = () => document.querySelector('.chart text:last-of-type').textContent;
        select.value = 'megabytes'; select.dispatchEvent(new Event('change')); seen.push(points());
        seen.push(document.documentElement.scrollWidth <= innerWidth);
        return seen.join(' ');
    """
    seen = visit(finished / "report.html", script, tmp_path, width)
    assert seen.found == "2 1 false 2 rounds/local steps/samples/megabytes/seconds megabytes true"
    assert seen.console == []


@needs_browser
def test_every_chart_is_drawn_and_bands_are_there(finished, tmp_path):
    script = """
        const kind = (chart) => chart.querySelector('polyline') ? 'polyline' : '.marker';
        return [...document.querySelectorAll('.chart')].map(chart => chart.querySelectorAll(kind(chart)).length)
    """
    counts = [int(count) for count in visit(finished / "report.html", script, tmp_path).found.split(",")]
    assert len(counts) == len(data_in((finished / "report.html").read_text())["charts"])
    assert all(count >= 2 for count in counts)
    assert counts[-1] == 2 * 3  # methods × clients


@needs_browser
def test_pointing_at_a_curve_reads_it(finished, tmp_path):
    script = """
        const svg = document.querySelector('.chart svg'), box = svg.getBoundingClientRect();
        const place = {clientX: box.right - 20, clientY: box.top + 50, bubbles: true};
        svg.dispatchEvent(new PointerEvent('pointermove', place));
        const tip = document.querySelector('.chart .tip');
        return tip.hidden + ' ' + tip.textContent;
    """
    assert re.match(
        r"false rounds 4FCSG: 0\.\d+ ± [\d.e-]+FCSG-M: 0\.\d+ ± ",
        visit(finished / "report.html", script, tmp_path).found,
    )


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A page of as many methods as there are colours."""
    rows = [
        {"algorithm": f"Acc-FCSG-M(learning_rate={0.01 * n:.2f})", "seed": s, "round": r, "loss": n + 1 / (r + 1 + s)}
        for n in range(len(COLOURS))
        for s in (0, 1)
        for r in range(4)
    ]
    file = tmp_path_factory.mktemp("crowded") / "page.html"
    costs = dict.fromkeys(("outer_samples", "inner_samples", "bytes_up", "bytes_down", "step", "seconds"), 0)
    file.write_text(page.page("t", [], TABLE, {}, {}, charts=charts(Record([row | costs for row in rows]))))
    return file


@needs_browser
def test_every_one_of_many_methods_has_a_colour_and_its_curve_looks_as_its_name_does(crowded, tmp_path):
    """Regression: the ninth method looked like the first."""
    script = """
        const look = (line, marker) =>
            [line.getAttribute('stroke'), line.getAttribute('stroke-dasharray'), marker.getAttribute('d')];
        const names = [...document.querySelectorAll('.chip')].map(
            (chip) => look(chip.querySelector('line'), chip.querySelector('.marker')).join());
        const curves = [...document.querySelectorAll('.chart polyline')].map(
            (line) => look(line, line.nextElementSibling).join());
        const colours = new Set(names.map((name) => name.split(',')[0]));
        return [names.length, colours.size, new Set(names).size, curves.join() === names.join()];
    """
    number = len(COLOURS)
    assert visit(crowded, script, tmp_path).found == f"{number},{number},{number},true"


@needs_browser
@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("which", ["finished", "crowded"])
def test_curves_follow_the_names_of_methods_which_never_fill_the_window(which, width, request, tmp_path):
    """Regression: an element that was only there for scripts took 150 pixels between them; and the names of many
    methods, which stay in sight, covered all the curves on a phone."""
    found = request.getfixturevalue(which)
    script = """
        const box = (name) => document.querySelector(name).getBoundingClientRect();
        return [box('.charts').top - box('.controls').bottom, box('.controls').height / innerHeight];
    """
    file = found / "report.html" if which == "finished" else found
    gap, share = map(float, visit(file, script, tmp_path, width).found.split(","))
    assert 0 <= gap < 30
    assert share < 0.45


@needs_browser
def test_tables_are_sorted_by_a_click(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page.page("t", [], TABLE, {}, {}))
    script = """
        const head = document.querySelectorAll('th')[1];
        const column = () => [...document.querySelectorAll('td:nth-child(2)')].map(c => c.textContent).join();
        head.click(); const down = column(); head.click();
        return down + ' | ' + column() + ' | ' + head.getAttribute('aria-sort');
    """
    assert visit(file, script, tmp_path).found == "9 600,80,undefined | 80,9 600,undefined | ascending"


@needs_browser
def test_light_and_dark(finished, tmp_path):
    script = """
        const colour = () => getComputedStyle(document.body).backgroundColor, seen = [colour()];
        const button = document.getElementById('theme');
        button.click(); seen.push(colour()); button.click(); seen.push(colour());
        return seen.join(' / ');
    """
    first, second, third = visit(finished / "report.html", script, tmp_path).found.split(" / ")
    assert first == third != second
