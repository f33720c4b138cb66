"""Which columns a model's ranking rests on: permutation importance for average precision.

    importance of a column = AP(model, rows) − mean over repeats of AP(model, rows with this column shuffled)

A raw column can be several prepared inputs (one for each category, one for "is missing"): all of them are shuffled
together, and within each site, so that differences between sites stay and only the link to the row is lost. Two columns
that tell the same have little importance each, because the model can use the other one.

Reference: Breiman, Random Forests, Machine Learning 2001, Section 10.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fedcso.core.errors import FedcsoError, require_count
from fedcso.core.ranked import average_precision
from fedcso.reports.score_counts import checked

MOST_CELLS = 100_000_000
"""Cells (rows × inputs) that are shuffled in all repeats together, as far as two repeats allow."""


class Importance(NamedTuple):
    """By how much average precision falls when a column is shuffled."""

    column: str
    mean: float
    """Over repeats; about 0 for a column that is not used, and below 0 by chance."""
    spread: float
    """The standard deviation over repeats."""


def permutation_importance(
    score: Callable[[np.ndarray], np.ndarray],
    inputs: np.ndarray,
    labels: np.ndarray,
    sites: np.ndarray,
    columns: Mapping[str, Sequence[int]],
    repeats: int | None = None,
    seed: int = 0,
) -> list[Importance]:
    """Return the importance of raw columns, the largest first.

    Args:
        score: the model, from prepared inputs (rows, inputs) to a score for each row
        inputs: prepared test rows
        labels: 0 or 1 for each row
        sites: the name of each row's site
        columns: for each raw column the numbers of its prepared inputs
        repeats: how often each column is shuffled; by default ten times, and less often in large tables
        seed: determines the shuffling, which is the same for all columns, whatever their order
    """
    if repeats is None:
        repeats = int(np.clip(MOST_CELLS / max(inputs.size, 1), 2, 10))
    require_count("repeats", repeats, least=2)
    scores, labels = checked(score(inputs), labels)
    if not labels.any():
        raise FedcsoError("columns can't be compared: the test data hold no positive")
    whole = average_precision(labels, scores)
    falls: dict[str, list[float]] = {column: [] for column in columns}
    changed = inputs.copy()
    for repeat in range(repeats):
        shuffled = _shuffle_within(np.asarray(sites), np.random.default_rng([seed, repeat]))
        for column, places in columns.items():
            own = inputs[:, list(places)]
            changed[:, list(places)] = own[shuffled]
            falls[column].append(whole - average_precision(labels, score(changed)))
            changed[:, list(places)] = own
    found = [Importance(name, float(np.mean(fall)), float(np.std(fall, ddof=1))) for name, fall in falls.items()]
    return sorted(found, key=lambda importance: -importance.mean)


def _shuffle_within(sites: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return row numbers in random order, each at a place of its own site."""
    rows = np.arange(len(sites))
    for site in np.unique(sites):
        rows[sites == site] = rng.permutation(rows[sites == site])
    return rows
