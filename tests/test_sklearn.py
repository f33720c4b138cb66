"""The scikit-learn classifier: scikit-learn's own checks, sites, calibration and errors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_fit2d_predict1d,
    check_n_features_in,
    parametrize_with_checks,
)

from fedcso.core.errors import FedcsoError
from fedcso.sklearn import FederatedAUPRCClassifier, FederatedClassifier
from tests.fitting.small_sites import search_little

QUICK = FederatedAUPRCClassifier(learning_rate=1.0, rounds=5, local_steps=2, hidden=False)


@parametrize_with_checks([FederatedAUPRCClassifier(rounds=5, local_steps=3)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


RNG = np.random.default_rng(0)
SITE = np.repeat(["east", "north", "south"], 40)
Y = (RNG.random(120) < 0.2).astype(int)
X = RNG.normal(size=(120, 4)) + 1.5 * Y[:, None] * [1, 0, 0, 0]


def quick(**options) -> FederatedAUPRCClassifier:
    return clone(QUICK).set_params(**options)


def test_it_learns_to_rank():
    model = quick().fit(X[::2], Y[::2], groups=SITE[::2])
    assert average_precision_score(Y[1::2], model.decision_function(X[1::2])) > 2 * Y[1::2].mean()


def test_groups_are_sites_and_count():
    together, apart = quick().fit(X, Y), quick().fit(X, Y, groups=SITE)
    assert not np.allclose(together.decision_function(X), apart.decision_function(X))
    assert np.array_equal(apart.decision_function(X), quick().fit(X, Y, groups=SITE).decision_function(X))


def test_groups_may_be_named_by_anything():
    numbers = np.unique(SITE, return_inverse=True)[1]
    expected = quick().fit(X, Y, groups=SITE).decision_function(X)
    for groups in (numbers, list(SITE)):
        assert np.array_equal(quick().fit(X, Y, groups=groups).decision_function(X), expected)


@pytest.mark.parametrize("idle", ["east", "north", "south"])
def test_a_group_without_positives_does_not_train_and_does_no_harm(idle):
    labels = np.where(np.isin(SITE, idle), 0, Y)
    model = quick().fit(X, labels, groups=SITE)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("missing", [np.nan, None], ids=["nan", "None"])
def test_rows_whose_group_is_missing_are_refused(missing):
    """Not passed over in silence."""
    groups = np.array([missing if n % 2 else 1.0 for n in range(120)], dtype=float if missing else object)
    with pytest.raises(ValueError, match="groups"):
        quick().fit(X, Y, groups=groups)


def test_labels_may_be_words_and_the_second_is_positive():
    words = np.where(Y == 1, "ill", "healthy")
    model, plain = quick().fit(X, words, groups=SITE), quick().fit(X, Y, groups=SITE)
    assert model.classes_.tolist() == ["healthy", "ill"]
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert np.array_equal(model.predict(X), np.where(plain.predict(X) == 1, "ill", "healthy"))
    assert set(model.predict(X)) == {"healthy", "ill"}


def test_probabilities_rank_as_scores_do_and_decide_at_one_half():
    model = quick().fit(X, Y, groups=SITE)
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert np.allclose(probabilities.sum(1), 1)
    assert np.array_equal(np.argsort(scores), np.argsort(probabilities[:, 1]))
    assert np.array_equal(model.predict(X), (probabilities[:, 1] > 0.5).astype(int))
    assert np.allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))


def test_probabilities_are_as_high_as_positives_are_frequent():
    """As a logistic regression on the scores has them."""
    model = quick().fit(X, Y, groups=SITE)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(Y.mean(), abs=1e-3)


def test_a_higher_score_is_never_less_probable_even_where_positives_were_ranked_last():
    """Almost no step: the model is as it was drawn, and of x and −x one is ranked the wrong way round."""
    for rows in (X, -X):
        model = quick(rounds=1, local_steps=1, learning_rate=1e-6).fit(rows, Y)
        logits = model.problem_.scores.logits(model.x_, model._inputs(rows).double()).numpy()
        assert np.array_equal(np.argsort(model.predict_proba(rows)[:, 1]), np.argsort(logits))


def test_rows_far_out_have_probabilities_too():
    model = quick().fit(X, Y)
    far = np.vstack([X[0] * 1e6, -X[0] * 1e6])
    assert np.isfinite(model.predict_proba(far)).all()


def test_a_clone_is_fresh_and_has_all_settings():
    model = FederatedAUPRCClassifier("FCSG", 0.1, 3, 2, 4, 5, 0.7, False, 0.5, 9).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_it_can_be_pickled_and_gives_the_same():
    model = quick(hidden=True).fit(X, Y, groups=SITE)
    other = pickle.loads(pickle.dumps(model))
    assert np.array_equal(other.decision_function(X), model.decision_function(X))
    assert np.array_equal(other.predict_proba(X), model.predict_proba(X))


def test_settings_change_what_is_learnt():
    scores = quick().fit(X, Y, groups=SITE).decision_function(X)
    for options in ({"algorithm": "FCSG"}, {"learning_rate": 0.01}, {"margin": 0.1}, {"random_state": 1}):
        assert not np.array_equal(quick(**options).fit(X, Y, groups=SITE).decision_function(X), scores), options


def test_clipping_is_handed_on():
    """Gradients cut to almost nothing leave the model at its start, whatever the rounds."""
    once, longer = (quick(clip=1e-9, rounds=rounds).fit(X, Y).x_["1.weight"] for rounds in (1, 5))
    assert np.allclose(once, longer, atol=1e-6)
    assert not np.allclose(once, quick(clip=0.0).fit(X, Y).x_["1.weight"], atol=1e-3)


def test_it_is_scored_by_average_precision_in_cross_validation():
    scores = cross_val_score(quick(), X, Y, scoring="average_precision", cv=StratifiedKFold(3))
    assert len(scores) == 3
    assert scores.mean() > 2 * Y.mean()


def test_folds_may_be_sites_and_it_may_stand_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), quick())
    scores = cross_val_score(pipeline, X, Y, scoring="average_precision", cv=GroupKFold(3), groups=SITE)
    assert ((scores > 0) & (scores <= 1)).all()


@pytest.mark.parametrize(
    ("labels", "groups", "says"),
    [
        (np.arange(120) % 3, None, "Only binary classification is supported.*3 classes"),
        (np.zeros(120), None, "only one class, .*0"),
        (Y, SITE[:-1], "groups has 119 entries for 120 rows"),
        (Y, np.stack([SITE, SITE], 1), "1d array"),
        (Y[:-1], None, "inconsistent numbers of samples"),
        (np.linspace(0, 1, 120), None, "Unknown label type"),
    ],
    ids=["three classes", "one class", "too few groups", "groups of two columns", "too few labels", "no labels"],
)
def test_what_cannot_be_learnt_is_refused(labels, groups, says):
    with pytest.raises(ValueError, match=says):
        quick().fit(X, labels, groups=groups)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_must_be_numbers(value):
    spoilt = X.copy()
    spoilt[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        quick().fit(spoilt, Y)


@pytest.mark.parametrize("options", [{"algorithm": "FCSG-N"}, {"rounds": 0}, {"learning_rate": -1.0}, {"clip": -1.0}])
def test_settings_are_checked(options):
    with pytest.raises(FedcsoError):
        quick(**options).fit(X, Y)


@pytest.fixture
def few_steps(monkeypatch):
    search_little(monkeypatch)


def test_the_one_that_searches_chooses_ranks_and_calibrates(few_steps):
    new = RNG.normal(size=(200, 4))
    model = FederatedClassifier(net="linear").fit(X, Y, groups=SITE)
    assert np.corrcoef(new[:, 0], model.decision_function(new))[0, 1] > 0.5  # the only column that tells
    probabilities = model.predict_proba(X)[:, 1]
    assert 0.5 * Y.mean() < probabilities.mean() < 2 * Y.mean()
    assert "(linear)" in model.chosen_
    again = FederatedClassifier(net="linear").fit(X, Y, groups=SITE)
    assert np.array_equal(model.decision_function(X), again.decision_function(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


def test_the_one_that_searches_needs_rows_to_validate_with(few_steps):
    labels = np.zeros(120, dtype=int)
    labels[[0, 50, 100]] = 1  # one positive at each site
    with pytest.raises(ValueError, match="four rows of each class"):
        FederatedClassifier(net="linear").fit(X, labels, groups=SITE)


@pytest.mark.parametrize("check", [check_fit2d_predict1d, check_n_features_in], ids=lambda check: check.__name__)
def test_the_one_that_searches_passes_checks_of_scikit_learn(few_steps, check):
    check("FederatedClassifier", FederatedClassifier(net="linear"))
