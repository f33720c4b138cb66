"""Gradient-boosted trees, the usual choice for tables in one place: a yardstick that can't be trained across sites.

scikit-learn's `HistGradientBoostingClassifier`, with plain and with balanced classes and two learning rates; setting and
number of trees are chosen by average precision on validation data, as for everything else.
"""

from collections.abc import Callable

import numpy as np

from fedcso.datasets.examples import Examples

TREES = 200
RATES = (0.03, 0.1)
CLASS_WEIGHTS = (None, "balanced")

Score = Callable[[np.ndarray], np.ndarray]


def fit_trees(train: Examples, validation: Examples, seed: int) -> Score | None:
    """Return a function that scores rows; None if the training rows have only one label."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import average_precision_score

    rows, labels = train.inputs.flatten(1).numpy(), train.labels.numpy()
    if len(np.unique(labels)) < 2:
        return None
    held, truth = validation.inputs.flatten(1).numpy(), validation.labels.numpy()
    best: tuple[float, Score] | None = None
    for rate in RATES:
        for weight in CLASS_WEIGHTS:
            model = HistGradientBoostingClassifier(
                learning_rate=rate, max_iter=TREES, class_weight=weight, early_stopping=False, random_state=seed
            ).fit(rows, labels)
            stages = [scores[:, 1] for scores in model.staged_predict_proba(held)] if truth.any() else []
            values = [average_precision_score(truth, scores) for scores in stages]
            trees = int(np.argmax(values)) + 1 if values else TREES
            value = max(values, default=0.0)
            if best is None or value > best[0]:
                best = value, _at_stage(model, trees)
    assert best is not None
    return best[1]


def _at_stage(model: object, trees: int) -> Score:
    def score(inputs: np.ndarray) -> np.ndarray:
        for number, scores in enumerate(model.staged_predict_proba(inputs), start=1):  # type: ignore[attr-defined]
            if number == trees:
                break
        return np.asarray(scores[:, 1])

    return score
