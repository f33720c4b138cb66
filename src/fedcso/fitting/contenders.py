"""Compare the chosen model with everything else on the test data, which are looked at here and nowhere else."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedcso.datasets.examples import pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.result import Contender
from fedcso.fitting.yardsticks import Yardstick
from fedcso.reports.bootstrap import Bootstrap, Measured, bootstrap
from fedcso.reports.held import Held
from fedcso.reports.ranking import METRICS, Ranking


class Comparison(NamedTuple):
    """All results on the test data."""

    contenders: list[Contender]
    """The chosen model first."""
    test: Held
    """The test rows with the scores of the chosen model."""
    sure: Bootstrap
    """Resampled results of every single model."""


def compare(candidates: Sequence[Yardstick], sites: Sites, seed: int) -> Comparison:
    """Measure all candidates on the test data; the first is the chosen model.

    Intervals are bootstrapped over test rows, drawn within sites and labels, the same for all candidates.
    """
    test = pool_examples(sites.test)
    places = np.repeat(np.array(sites.names), [len(part.labels) for part in sites.test])
    labels = test.labels.numpy()
    scores = {one.name: [rank(test) for rank in one.models] for one in candidates}
    single = {name: ranked[0] for name, ranked in scores.items() if len(ranked) == 1}
    sure = bootstrap(single, labels, places, seed=seed)
    chosen = candidates[0].name

    def measured(name: str, metric: str) -> Measured:
        if name in single:
            return sure.estimate(name, metric)
        column = METRICS.index(metric)
        once = np.ones(len(labels))
        values = [Ranking(ranked, labels).measure(once)[column] for ranked in scores[name]]
        why = f"mean of {len(values)} models, from {min(values):.3f} to {max(values):.3f}"
        return Measured(float(np.mean(values)), np.nan, np.nan, int(labels.sum()), why)

    contenders = [
        Contender(
            one.name,
            measured(one.name, "average_precision"),
            measured(one.name, "auroc"),
            one.needs_pooled_data,
            sure.difference(chosen, one.name) if one.name in single and one.name != chosen else None,
            one.note,
        )
        for one in candidates
    ]
    return Comparison(contenders, Held(single[chosen], labels, places), sure)
