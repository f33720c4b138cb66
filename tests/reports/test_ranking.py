"""Average precision and AUROC of weighted rows, beside scikit-learn's."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from fedcso.reports.ranking import Ranking

RNG = np.random.default_rng(0)
LABELS = (RNG.random(400) < 0.2).astype(int)
SCORES = RNG.normal(size=400) + LABELS


@pytest.mark.parametrize("digits", [0, 1, 9], ids=["many ties", "some ties", "no ties"])
@pytest.mark.parametrize("weights", [np.ones(400), RNG.integers(0, 4, 400)], ids=["equal", "different"])
def test_metrics_of_weighted_rows_are_scikit_learns(digits, weights):
    scores = SCORES.round(digits)
    precision, auroc = Ranking(scores, LABELS).measure(weights)
    assert precision == pytest.approx(average_precision_score(LABELS, scores, sample_weight=weights), abs=1e-12)
    assert auroc == pytest.approx(roc_auc_score(LABELS, scores, sample_weight=weights), abs=1e-12)


def test_a_weight_counts_like_repeated_rows():
    weights = RNG.integers(0, 4, 400)
    repeated = Ranking(np.repeat(SCORES, weights), np.repeat(LABELS, weights))
    assert Ranking(SCORES, LABELS).measure(weights) == pytest.approx(repeated.measure(np.ones(weights.sum())))


@pytest.mark.parametrize(("labels", "undefined"), [([0, 0], (True, True)), ([1, 1], (False, True))])
def test_metrics_without_both_labels_are_undefined(labels, undefined):
    measured = Ranking(np.array([0.1, 0.2]), np.array(labels)).measure(np.ones(2))
    assert tuple(map(math.isnan, measured)) == undefined
