"""Calibration from counts: what scikit-learn fits to rows, the same from sites as from all rows, and never falling."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.reports.calibration import ISOTONIC_FROM, Calibration, calibrate, isotonic, platt
from fedcso.reports.score_counts import Bins, fixed_bins, total

EXTREME = np.array([-np.inf, -1e300, -50, -3, -1e-9, 0, 1e-9, 3, 50, 1e300, np.inf])


def drawn(rows=2000, seed=0):
    """Scores 2 times the true log-odds, less 1."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-2, 1.5, rows)
    return 2 * truth - 1, (rng.random(rows) < expit(truth)).astype(int)


class Itself(ClassifierMixin, BaseEstimator):
    """A classifier whose only input is its score."""

    def fit(self, inputs, labels):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, inputs):
        return inputs[:, 0]

    def predict(self, inputs):
        return (inputs[:, 0] > 0).astype(int)


def platt_by_scikit_learn(scores, labels):
    fitted = FrozenEstimator(Itself().fit(None, None))
    calibrated = CalibratedClassifierCV(fitted, method="sigmoid").fit(scores[:, None], labels)
    return calibrated.predict_proba(scores[:, None])[:, 1]


def row_bins(scores):
    """A bin for every row."""
    centres = np.sort(scores)
    return Bins(np.concatenate([[-1e6], (centres[1:] + centres[:-1]) / 2, [1e6]]), centres)


@pytest.mark.parametrize(("steps", "precision"), [(64, 2e-2), (256, 2e-3), (8192, 1e-4)])
def test_platt_from_counts_is_scikit_learns_on_rows_the_better_the_finer_the_bins(steps, precision):
    scores, labels = drawn()
    found = platt(fixed_bins(steps).count(scores, labels)).apply(scores)
    assert np.abs(found - platt_by_scikit_learn(scores, labels)).max() < precision


def test_platt_with_a_bin_for_every_row_is_scikit_learns():
    scores, labels = drawn()
    found = platt(row_bins(scores).count(scores, labels)).apply(scores)
    np.testing.assert_allclose(found, platt_by_scikit_learn(scores, labels), atol=1e-7)


def test_isotonic_with_a_bin_for_every_row_is_scikit_learns():
    scores, labels = drawn()
    found = isotonic(row_bins(scores).count(scores, labels)).apply(scores)
    expected = IsotonicRegression().fit(scores, labels).predict(scores)
    smallest, largest = 1 / ((labels == 0).sum() + 2), (labels.sum() + 1) / (labels.sum() + 2)
    np.testing.assert_allclose(found, expected.clip(smallest, largest), atol=1e-12)


def test_isotonic_from_fixed_bins_is_near_that_of_rows():
    scores, labels = drawn()
    found = isotonic(fixed_bins().count(scores, labels)).apply(scores)
    expected = IsotonicRegression().fit(scores, labels).predict(scores)
    assert np.abs(found - expected).mean() < 5e-3


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_true_probabilities_are_found(fit):
    scores, labels = drawn(50_000)
    at = np.linspace(-8, 3, 30)
    found = fit(fixed_bins().count(scores, labels)).apply(at)
    assert np.abs(found - expit((at + 1) / 2)).max() < {platt: 0.02, isotonic: 0.06}[fit]


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_sites_counts_give_what_all_rows_give(fit):
    scores, labels = drawn()
    site, bins = np.arange(len(scores)) % 5, fixed_bins()
    together = total([bins.count(scores[site == n], labels[site == n]) for n in range(5)])
    assert fit(together) == fit(bins.count(scores, labels))


@pytest.mark.parametrize("fit", [platt, isotonic])
@pytest.mark.parametrize("sign", [1, -1], ids=["good", "backwards"])
def test_probabilities_never_fall_and_are_inside_0_and_1(fit, sign):
    scores, labels = drawn()
    probabilities = fit(fixed_bins().count(sign * scores, labels)).apply(EXTREME)
    assert (np.diff(probabilities) >= 0).all()
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    if sign < 0:
        assert probabilities == pytest.approx(labels.mean(), abs=2e-3)


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_scores_that_separate_the_labels_do_not_become_certain(fit):
    scores, labels = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
    probabilities = fit(fixed_bins().count(scores, labels)).apply(scores)
    assert (probabilities[:2] < 0.4).all()
    assert (probabilities[2:] > 0.6).all()
    assert ((probabilities > 0.2) & (probabilities < 0.8)).all()


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_one_score_for_all_rows_gives_one_probability(fit):
    labels = np.repeat([1, 0], [30, 70])
    probabilities = fit(fixed_bins().count(np.full(100, 3.0), labels)).apply(EXTREME)
    assert probabilities == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_extreme_scores_among_the_rows_do_no_harm(fit):
    scores, labels = drawn()
    scores[:2] = -np.inf, np.inf
    assert np.isfinite(fit(fixed_bins().count(scores, labels)).apply(EXTREME)).all()


@pytest.mark.parametrize(("positives", "method"), [(ISOTONIC_FROM - 1, "Platt"), (ISOTONIC_FROM, "isotonic")])
@pytest.mark.parametrize("rare", [1, 0])
def test_isotonic_is_chosen_where_there_are_enough_of_both_labels(positives, method, rare):
    rng = np.random.default_rng(0)
    labels = np.repeat([rare, 1 - rare], [positives, 1000])
    counts = fixed_bins().count(rng.normal(size=len(labels)) + labels, labels)
    assert calibrate(counts).method.startswith(method)


@pytest.mark.parametrize("fit", [platt, isotonic, calibrate])
@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]])
def test_both_labels_are_needed(fit, labels):
    with pytest.raises(FedcsoError, match=f"hold {sum(labels)} positives and {len(labels) - sum(labels)} negatives"):
        fit(fixed_bins(8).count(np.zeros(len(labels)), np.array(labels)))


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_a_calibration_can_be_kept_as_json(fit):
    calibration = fit(fixed_bins().count(*drawn()))
    assert Calibration.from_dict(json.loads(json.dumps(calibration.to_dict()))) == calibration


GOOD = {"method": "", "scores": [0.0, 1.0], "log_odds": [-1.0, 0.0], "slope": 0.0, "prevalence": 0.1}


@pytest.mark.parametrize(
    "change",
    [
        {"scores": [1.0, 0.0]},
        {"scores": [0.0, "x"]},
        {"scores": [], "log_odds": []},
        {"log_odds": [0.0, -1.0]},
        {"log_odds": [0.0]},
        {"log_odds": [0.0, float("nan")]},
        {"slope": -1.0},
        {"prevalence": 0},
        {"colour": "red"},
    ],
)
def test_what_is_no_calibration_is_refused(change):
    assert Calibration.from_dict(GOOD).scores == (0.0, 1.0)
    with pytest.raises(FedcsoError, match="not a calibration"):
        Calibration.from_dict(GOOD | change)


def test_another_prevalence_multiplies_the_odds():
    calibration = platt(fixed_bins().count(*drawn(20_000)))
    rarer = calibration.at_prevalence(0.01)
    before, after = (found.apply(np.linspace(-9, 9, 50)) for found in (calibration, rarer))
    ratio = 0.01 / 0.99 * (1 - calibration.prevalence) / calibration.prevalence
    np.testing.assert_allclose(after / (1 - after), ratio * before / (1 - before), rtol=1e-6)
    assert rarer.prevalence == 0.01
    np.testing.assert_allclose(rarer.at_prevalence(calibration.prevalence).apply(EXTREME), calibration.apply(EXTREME))
    with pytest.raises(InvalidValue, match="prevalence"):
        calibration.at_prevalence(1.0)
