"""Precision-recall curves: steps as average precision sums them, a row a point, the chance line in the picture."""

import numpy as np
import pytest
import torch

from fedcso.core.trace import Trace
from fedcso.problems.scores import ranking_judge
from fedcso.reports import precision_recall
from fedcso.reports.precision_recall import POINTS, figure
from tests.helpers import nested_quadratic
from tests.rare import ITSELF, identity, labelled, scored

JUDGE = ranking_judge(identity())
RANKED = scored([0.9, 0.8, 0.7, 0.6, 0.1], [1, 0, 1, 0, 0])
BACKWARDS = {"weight": -ITSELF["weight"]}


def rows_of(*models, test=RANKED, seeds=(0,)):
    runs = [("A", seed, Trace(best=x, last=BACKWARDS)) for seed, x in zip(seeds, models, strict=True)]
    return precision_recall.rows(runs, JUDGE, test)


def test_precision_is_that_of_the_highest_threshold_that_reaches_the_recall():
    """Up to recall ½ the first alone, 1/1; beyond it the first three, 2/3. At recall 0 nothing is called positive."""
    rows = rows_of(ITSELF)
    assert len(rows) == POINTS
    for row in rows:
        assert row["precision"] == pytest.approx(1.0 if row["recall"] <= 0.5 else 2 / 3)
        assert row["prevalence"] == 0.4
    assert [rows[0]["recall"], rows[-1]["recall"]] == [0.0, 1.0]


def test_the_mean_over_recall_is_average_precision():
    data = labelled(300, 40)
    scores = data.inputs.sum(1)
    test = scored(scores.tolist(), data.labels.tolist())
    rows = rows_of(ITSELF, test=test)
    precision = float(JUDGE.measure(ITSELF, test)["average_precision"])
    assert np.mean([row["precision"] for row in rows]) == pytest.approx(precision, abs=0.01)


def test_every_run_has_its_own_rows():
    rows = rows_of(ITSELF, BACKWARDS, seeds=(4, 7))
    assert [row["seed"] for row in rows] == [4] * POINTS + [7] * POINTS
    assert {row["algorithm"] for row in rows} == {"A"}
    last = [row for row in rows if row["seed"] == 7]
    assert last[-1]["precision"] == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    "test", [None, scored([0.1, 0.2], [0, 0]), scored([], [])], ids=["no data", "no positives", "none"]
)
def test_where_there_is_nothing_to_rank_there_are_no_rows(test):
    assert rows_of(ITSELF, test=test) == []


def test_a_problem_without_scores_has_no_rows():
    case = nested_quadratic()
    assert precision_recall.rows([("A", 0, Trace(best=torch.zeros(3)))], case.judge, torch.ones(3)) == []


# ------------------------------------------------------------------------------------------- the figure


def test_the_figure_has_a_curve_for_each_method_and_the_chance_line():
    some = rows_of(ITSELF)
    drawn = figure([*some, *(row | {"algorithm": "B"} for row in some)])
    axes = drawn.axes[0]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["A", "B", "chance"]
    assert list(axes.lines[-1].get_ydata()) == [0.4, 0.4]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")
    assert axes.get_ylim()[0] == 0
    assert axes.lines[0].get_xydata().tolist() == [[row["recall"], row["precision"]] for row in some]
    assert not axes.collections  # one seed has no band


def test_bands_over_seeds_stay_between_nothing_and_everything():
    axes = figure(rows_of(ITSELF, BACKWARDS, seeds=(0, 1))).axes[0]
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == (0.0, 1.0)
    middle = [row["precision"] for row in rows_of(ITSELF, BACKWARDS, seeds=(0, 1))]
    expected = (middle[POINTS - 1] + middle[-1]) / 2
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(expected)
