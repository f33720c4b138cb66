"""Intervals by bootstrap: they cover the truth, methods are paired, and too few rows are said to be too few."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.reports.bootstrap import FEWEST, bootstrap


def drawn(seed=0, positives=60, negatives=340, distance=1.5, sites=2):
    """Normal scores, positives higher, and rows of each label dealt to the sites in turn."""
    labels = np.repeat([1, 0], [positives, negatives])
    scores = np.random.default_rng(seed).normal(size=len(labels)) + distance * labels
    return scores, labels, np.arange(len(labels)) % sites


def true_metrics(prevalence, distance):
    """Average precision (by numerical integration) and AUROC of normal scores with unit variance."""
    cuts = np.linspace(12, -9, 40_001)
    tpr, fpr = norm.sf(cuts - distance), norm.sf(cuts)
    precision = prevalence * tpr / (prevalence * tpr + (1 - prevalence) * fpr)
    return {
        "average_precision": float((np.diff(tpr) * (precision[1:] + precision[:-1]) / 2).sum()),
        "auroc": float(norm.cdf(distance / math.sqrt(2))),
    }


def test_estimates_are_the_metrics_of_all_rows_and_of_each_site():
    scores, labels, sites = drawn()
    found = bootstrap({"A": scores}, labels, sites, resamples=50)
    for site, rows in ((None, sites >= 0), ("0", sites == 0), ("1", sites == 1)):
        precision, auroc = (found.estimate("A", metric, site) for metric in ("average_precision", "auroc"))
        assert precision.value == pytest.approx(average_precision_score(labels[rows], scores[rows]))
        assert auroc.value == pytest.approx(roc_auc_score(labels[rows], scores[rows]))
        assert precision.positives == labels[rows].sum()
        assert precision.low < precision.value < precision.high
        assert f"{precision.low:.4f} to {precision.high:.4f}" in str(precision)


def test_intervals_cover_the_truth():
    """Of 100 intervals at 95 % fewer than 87 cover with a chance of one in two thousand."""
    truth = true_metrics(60 / 400, 1.5)
    covered = dict.fromkeys(truth, 0)
    for seed in range(100):
        scores, labels, sites = drawn(seed)
        found = bootstrap({"A": scores}, labels, sites, resamples=200, seed=seed)
        for metric, value in truth.items():
            estimate = found.estimate("A", metric)
            covered[metric] += estimate.low <= value <= estimate.high
    assert min(covered.values()) >= 87
    assert max(covered.values()) < 100


def test_differences_are_paired():
    """Two methods that err alike: their difference is surer than two separate intervals would say."""
    scores, labels, sites = drawn()
    rng = np.random.default_rng(2)
    found = bootstrap({"A": scores, "B": scores + 0.2 * rng.normal(size=len(scores))}, labels, sites, resamples=400)
    paired = found.difference("A", "B")
    apart = [found.estimate(method) for method in ("A", "B")]
    unpaired = math.hypot(*(estimate.high - estimate.low for estimate in apart))
    assert paired.value == pytest.approx(apart[0].value - apart[1].value)
    assert paired.high - paired.low < 0.6 * unpaired
    reverse = found.difference("B", "A")
    assert (reverse.low, reverse.high) == pytest.approx((-paired.high, -paired.low))


def test_the_seed_determines_the_intervals():
    scores, labels, sites = drawn()
    first, same, other = (bootstrap({"A": scores}, labels, sites, 50, seed).estimate("A") for seed in (3, 3, 4))
    assert first == same
    assert first.value == other.value
    assert first.low != other.low


def test_every_resample_keeps_the_positives_of_every_site():
    """Were a resample without positives, its metrics would be nan, and so would the limits."""
    scores, labels, sites = drawn(positives=2 * FEWEST)
    found = bootstrap({"A": scores}, labels, sites, resamples=300)
    assert all(np.isfinite(values).all() for values in found.resampled.values())


@pytest.mark.parametrize(
    ("positives", "why"),
    [(0, "0 positives: too few"), (1, "1 positive: too few"), (4, "4 positives: too few"), (5, "")],
)
def test_few_positives_have_no_interval_and_it_is_said(positives, why):
    scores, labels, sites = drawn(positives=positives, sites=1)
    estimate = bootstrap({"A": scores}, labels, sites, resamples=50).estimate("A")
    assert estimate.positives == positives
    assert math.isnan(estimate.value) == (positives == 0)
    assert math.isnan(estimate.low) == math.isnan(estimate.high) == bool(why)
    assert why in estimate.why_no_interval
    assert str(estimate).startswith("undefined" if positives == 0 else f"{estimate.value:.4f}")


def test_few_negatives_have_no_interval():
    scores, labels, sites = drawn(positives=30, negatives=2)
    assert "2 negatives: too few" in bootstrap({"A": scores}, labels, sites, 20).estimate("A").why_no_interval


def test_a_perfect_ranking_has_no_interval_of_width_0():
    scores, labels, sites = drawn(distance=100)
    estimate = bootstrap({"A": scores}, labels, sites, resamples=50).estimate("A")
    assert estimate.value == 1
    assert math.isnan(estimate.low)
    assert "all resamples give the same value" in str(estimate)


def test_one_positive_a_site_is_still_resampled():
    """Were each drawn from its site alone, it would be drawn once every time, and the interval far too narrow."""
    scores, labels, one = drawn(positives=20, negatives=400, sites=1)
    many = np.arange(len(labels)) % 20
    widths = []
    for sites in (one, many):
        estimate = bootstrap({"A": scores}, labels, sites, resamples=400).estimate("A")
        widths.append(estimate.high - estimate.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


@pytest.mark.parametrize(
    ("scores", "labels", "sites", "message"),
    [
        ({}, [], [], "nothing to measure"),
        ({"A": [0.1, 0.2]}, [0, 1], ["a"], "1 names of sites"),
        ({"A": [0.1, np.nan]}, [0, 1], ["a", "a"], "NaN"),
    ],
)
def test_what_cannot_be_measured_is_refused(scores, labels, sites, message):
    with pytest.raises(FedcsoError, match=message):
        bootstrap(scores, labels, sites)


def test_unknown_names_are_said():
    scores, labels, sites = drawn()
    found = bootstrap({"A": scores}, labels, sites, resamples=2)
    for arguments in (("B",), ("A", "accuracy"), ("A", "auroc", "7")):
        with pytest.raises(UnknownName):
            found.estimate(*arguments)
