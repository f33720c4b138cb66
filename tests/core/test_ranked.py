"""The measures of rankings are those of scikit-learn, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from fedcso.core.ranked import auroc, average_precision

EXAMPLES = st.lists(st.tuples(st.integers(0, 1), st.integers(-4, 4) | st.floats(-1e300, 1e300)), min_size=2)


@given(EXAMPLES.filter(lambda examples: {label for label, _ in examples} == {0, 1}))
def test_they_are_those_of_scikit_learn(examples):
    """Also with scores that occur several times."""
    labels, scores = (np.array(column) for column in zip(*examples, strict=True))
    assert average_precision(labels, scores) == average_precision_score(labels, scores)
    assert auroc(labels, scores) == roc_auc_score(labels, scores)


def test_many_scores():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 5000), rng.normal(size=5000).round(3)
    assert average_precision(labels, scores) == average_precision_score(labels, scores)
    assert auroc(labels, scores) == roc_auc_score(labels, scores)


def test_positives_alone_are_ranked_perfectly():
    assert average_precision(np.array([1, 1]), np.array([0.3, 0.7])) == 1
