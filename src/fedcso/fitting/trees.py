"""Gradient-boosted trees, the usual choice for tables in one place: a yardstick that can't be trained across sites.

scikit-learn's `HistGradientBoostingClassifier`, with plain and with balanced classes and two learning rates. The
setting and the number of trees are chosen by average precision on validation data, as for everything else.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from fedcso.datasets.examples import Examples
from fedcso.fitting.thinning import at_most
from fedcso.reports.ranking import Ranking

TREES = 200
EVERY = 10
"""Numbers of trees that are tried: 10, 20, …"""

MANY_ROWS = 50_000
"""From this many rows on, several threads are worth it."""

MOST_ROWS = 100_000
"""Of more training rows, all positives and some of the others are used: more rows take long and change little."""

RATES = (0.03, 0.1)
CLASS_WEIGHTS = (None, "balanced")

Score = Callable[[np.ndarray], np.ndarray]
"""(rows, inputs) → a score for each row."""


def fit_trees(train: Examples, validation: Examples, seed: int, most: int = MOST_ROWS) -> Score | None:
    """Return a function that scores rows; None if the training rows have only one label.

    At most so many training rows are used. Without positive validation rows, all trees of the first setting are.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    train = at_most(train, most)
    rows, labels = train.inputs.flatten(1).numpy(), train.labels.numpy()
    if len(np.unique(labels)) < 2:
        return None
    held, truth = validation.inputs.flatten(1).numpy(), validation.labels.numpy()
    best_value, best, once = -1.0, None, np.ones(len(truth))
    for rate in RATES:
        for weight in CLASS_WEIGHTS:
            model = HistGradientBoostingClassifier(
                learning_rate=rate, max_iter=TREES, class_weight=weight, early_stopping=False, random_state=seed
            )
            # Threads that wait for each other take many times as long if other processes use the cores.
            with threadpool_limits(None if len(rows) > MANY_ROWS else 1, user_api="openmp"):
                model.fit(rows, labels)
            if not truth.any():
                return _at_stage(model, TREES)
            stages = islice(model.staged_predict_proba(held), EVERY - 1, None, EVERY)
            values = [Ranking(scores[:, 1], truth).measure(once)[0] for scores in stages]
            if max(values) > best_value:
                best_value, best = max(values), _at_stage(model, EVERY * (int(np.argmax(values)) + 1))
    return best


def _at_stage(model: Any, trees: int) -> Score:
    """Return the scores by the first trees."""

    def score(inputs: np.ndarray) -> np.ndarray:
        (scores,) = islice(model.staged_predict_proba(inputs), trees - 1, trees)
        return np.asarray(scores[:, 1])

    return score
