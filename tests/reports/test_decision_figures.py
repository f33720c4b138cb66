"""Figures for deciding: what they show, and the same bytes from the same input."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import expit

from fedcso.reports import decision_figures
from fedcso.reports.calibration import calibrate
from fedcso.reports.figures import render
from fedcso.reports.importance import Importance
from fedcso.reports.reliability import reliability
from fedcso.reports.score_counts import fixed_bins
from fedcso.reports.thresholds import for_alerts, for_precision


def counted(seed=0, rows=3000):
    rng = np.random.default_rng(seed)
    truth = rng.normal(-3, 1.8, rows)
    return fixed_bins().count(truth, (rng.random(rows) < expit(truth)).astype(int))


VALIDATION, TEST = counted(0), counted(1)
COLUMNS = [Importance(f"column {n}", 0.3 / (n + 1) - 0.01, 0.02) for n in range(25)]


def all_figures():
    return {
        "precision-recall": decision_figures.precision_recall(
            {"validation": VALIDATION, "test": TEST}, for_precision(VALIDATION, 0.6)
        ),
        "reliability": decision_figures.reliability(reliability(TEST, calibrate(VALIDATION))),
        "importance": decision_figures.importance(COLUMNS),
    }


def test_the_same_input_gives_the_same_bytes():
    for first, second in zip(all_figures().values(), all_figures().values(), strict=True):
        assert render(first, "png") == render(second, "png")


def test_the_threshold_is_marked_on_every_curve_where_it_is():
    chosen = for_precision(VALIDATION, 0.6)
    figure = decision_figures.precision_recall({"validation": VALIDATION, "test": TEST}, chosen)
    outcome = chosen.validation
    words = f"precision {outcome.precision().value:.2f}, recall {outcome.recall.value:.2f}"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert any("threshold" in text and "validation" in text and words in text for text in texts)
    assert any("threshold" in text and "test" in text for text in texts)


def test_a_threshold_above_all_scores_is_not_marked():
    low = fixed_bins().count(np.array([-9.0, -9.5, -9.2]), np.array([0, 1, 0]))
    figure = decision_figures.precision_recall({"test": low}, for_alerts(VALIDATION, 1))
    assert not any("threshold" in text.get_text() for text in figure.legends[0].get_texts())


def test_the_curve_ends_at_recall_1_and_the_share_of_positives():
    axes = decision_figures.precision_recall({"test": TEST}).axes[0]
    x, y = axes.lines[0].get_data()
    assert (x[0], x[-1]) == (0, 1)
    assert y[-1] == pytest.approx(TEST.positives.sum() / TEST.rows.sum())


def test_every_group_is_in_the_reliability_plot():
    groups = reliability(TEST, calibrate(VALIDATION))
    figure = decision_figures.reliability(groups)
    (points,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert points.get_xdata().tolist() == [group.predicted for group in groups]
    assert figure.axes[1].lines[0].get_ydata().tolist() == [group.rows for group in groups]


def test_the_first_columns_are_drawn_and_the_rest_is_counted():
    axes = decision_figures.importance(COLUMNS, most=4).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [column.column for column in COLUMNS[:4]]
    assert axes.get_title() == "the first 4 of 25 columns"
    assert decision_figures.importance(COLUMNS[:3]).axes[0].get_title() == ""


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_figures_can_be_rendered(kind):
    for figure in all_figures().values():
        assert isinstance(figure, Figure)
        assert len(render(figure, kind)) > 5000
