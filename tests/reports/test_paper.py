"""Figures for a paper: sizes, fonts, names, axes, and bands that stay within a metric's range."""

import itertools
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso import InvalidValue, UnknownName
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.reports.direct_labels import spread
from fedcso.reports.figures import render
from fedcso.reports.paper import SIDES, PaperStyle, paper_figure, parse_labels, parse_size
from fedcso.reports.recorded import Record

DECLARED = DeclaredMetrics(
    [Metric("accuracy", "test accuracy", True, share=True), Metric("loss", "loss", False)],
    "accuracy",
    False,
    "accuracy",
)


def record(methods: int = 3, seeds: int = 3) -> Record:
    """Accuracies that come so near to 1 that intervals reach beyond it."""
    rows = [
        {"algorithm": f"M(rate={number})", "seed": seed, "round": r, "outer_samples": 10 * r, "inner_samples": 90 * r}
        | {"accuracy": 1 - (0.5 + 0.02 * number * seed) / (r + 1) ** (1 + seed), "loss": 1 / (r + 1 + seed)}
        for number in range(methods)
        for seed in range(seeds)
        for r in range(4)
    ]
    return Record(rows, DECLARED)


def names(figure) -> list[str]:
    (legend,) = [*figure.legends, *(one for axes in figure.axes if (one := axes.get_legend()))]
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("legend", SIDES)
def test_the_figure_has_exactly_the_size_that_was_asked_for(legend):
    pdf = render(paper_figure(record(8), style=PaperStyle(size=(3.5, 2.25), legend=legend)), "pdf")
    assert re.search(rb"/MediaBox \[ 0 0 252 162 \]", pdf)


def test_fonts_are_embedded_as_truetype():
    pdf = render(paper_figure(record()), "pdf")
    assert b"/FontFile2" in pdf  # a font program in TrueType format
    assert b"/Type3" not in pdf  # which some publishers refuse
    fonts = set(re.findall(rb"/BaseFont /(\S+)", pdf))
    described = set(re.findall(rb"/FontName /(\S+)", pdf))
    assert fonts
    assert fonts <= described  # each font of the text has a descriptor, which holds its file
    assert pdf.count(b"/FontFile2") == pdf.count(b"/Type /FontDescriptor")
    assert b"Tf" in b"".join(_streams(pdf))


def _streams(pdf: bytes) -> list[bytes]:
    found = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return [zlib.decompressobj().decompress(one) for one in found if one[:1] == b"x"]


def test_bands_never_leave_the_range_of_a_share():
    axes = paper_figure(record()).axes[0]
    heights = [point[1] for band in axes.collections for path in band.get_paths() for point in path.vertices]
    assert max(heights) == 1.0  # without the range they would reach beyond
    assert axes.get_ylim()[1] < 1.02


def test_samples_are_those_of_both_kinds():
    axes = paper_figure(record(), "loss", PaperStyle(x="samples")).axes[0]
    assert list(axes.lines[0].get_xdata()) == [0, 100, 200, 300]
    assert axes.get_ylabel() == "loss"
    assert axes.get_xlabel() == "samples ξ and η"


def test_the_deciding_metric_is_drawn_unless_another_is_named():
    assert paper_figure(record()).axes[0].get_ylabel() == "test accuracy"


def test_methods_keep_their_looks_and_labels_come_first():
    everything, some = (
        paper_figure(record(), style=style)
        for style in (PaperStyle(), PaperStyle(labels={"M(rate=2)": "ours"}, methods=["M(rate=0)", "M(rate=2)"]))
    )
    assert names(everything) == ["M(rate=0)", "M(rate=1)", "M(rate=2)"]
    assert names(some) == ["ours", "M(rate=0)"]
    assert some.axes[0].lines[0].get_color() == everything.axes[0].lines[2].get_color()


def test_twenty_methods_have_twenty_looks():
    lines = paper_figure(record(20)).axes[0].lines
    assert len({line.get_color() for line in lines}) == 20
    assert len({(str(line._dash_pattern), line.get_marker()) for line in lines}) == 20


def test_direct_labels_stand_beside_the_curves_without_covering_each_other():
    figure = paper_figure(record(12), style=PaperStyle(legend="direct", size=(4, 3)))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == [f"M(rate={number})" for number in range(12)]
    assert all(box.x0 >= axes.get_window_extent().x1 and box.x1 <= figure.bbox.x1 for box in boxes)
    lower = sorted(boxes, key=lambda box: box.y0)
    assert all((one.y0 + one.y1) / 2 < other.y0 + 1 for one, other in itertools.pairwise(lower))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15), st.floats(0.001, 0.06))
def test_names_are_spread_in_order_at_least_a_gap_apart_and_within_the_panel(places, gap):
    moved = spread(places, gap)
    order = sorted(range(len(places)), key=lambda number: (places[number], moved[number]))
    steps = [moved[b] - moved[a] for a, b in itertools.pairwise(order)]
    assert all(step >= gap - 1e-9 for step in steps)
    assert min(moved) >= -1e-9
    assert max(moved) <= 1 + 1e-9


def test_names_that_are_far_apart_stay_where_they_are():
    assert spread([0.9, 0.1, 0.5], 0.1) == [0.9, 0.1, 0.5]


def test_what_is_written_is_parsed():
    assert parse_size("3.3x2.5") == (3.3, 2.5)
    assert parse_labels(["M(rate=1)=β=1"], record()) == {"M(rate=1)": "β=1"}


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: parse_size("3.3"), InvalidValue, "as in 3.3x2.5"),
        (lambda: parse_labels(["ours"], record()), InvalidValue, "METHOD=LABEL"),
        (lambda: parse_labels(["M(rate=7)=ours"], record()), UnknownName, "did you mean M(rate=2)"),
        (lambda: PaperStyle(x="sample"), UnknownName, "did you mean samples"),
        (lambda: PaperStyle(legend="outsid"), UnknownName, "did you mean outside"),
        (lambda: PaperStyle(size=(0.1, 2)), InvalidValue, "between 1 and 40 inches"),
        (lambda: paper_figure(record(), "acuracy"), UnknownName, "did you mean accuracy"),
        (lambda: paper_figure(record(), style=PaperStyle(methods=["N"])), UnknownName, "unknown method of this run"),
        (lambda: paper_figure(record(), style=PaperStyle(x="seconds")), InvalidValue, "recorded with"),
    ],
)
def test_mistakes_are_named(call, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        call()
